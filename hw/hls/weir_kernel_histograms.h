// Histograms per service: round-trip times on both sides, and response times. Exact counts in buckets of a logarithm.
//
// Service    A server port of the table `services` (0: no entry; the first of equal ones counts); all others are the
//            last service.
// Metric     0: RTT records of segments that the client sent (the way to the server and back), 1: of segments that the
//            server sent, 2: response times.
// Response   From the last packet with new data of the client to the first one of the server after it. TCP only. 2^38 ns
//            and longer are left out, as they are of round trips (section 4.6 of docs/src/flow-engine.md).
// Bucket     0: below 2^10 ns. Then four to each power of two: 1 + 4 (k - 10) + s holds 2^k + s 2^(k-2) and up to the
//            next, k = 10..37: a bucket is at most 25 % wide, 113 buckets take all values below 2^38 ns.
// Results    HISTOGRAM (weir_result.h) at the end of an interval with packets.
//
// The table of request times has an entry per context index, set anew by the packet that opens the flow. It is not
// cleared by reset: the kernel and the flow table are reset together.
//
// Cost   2 banks x 3,072 x 32 bits (8 RAMB36), 2^18 x 64 bits (64 URAM).

#ifndef WEIR_KERNEL_HISTOGRAMS_H
#define WEIR_KERNEL_HISTOGRAMS_H

#include "weir_kernel.h"

namespace weir
{

const int SERVICES = 8;
const int METRICS = 3;
const int METRIC_RESPONSE = 2;
const int BUCKET_WIDTH = 7;
const int BUCKETS = 1 << BUCKET_WIDTH;
const int ROUND_TRIP_CELLS = 2 * SERVICES * BUCKETS;
const int RESPONSE_CELLS = SERVICES * BUCKETS;
const int HISTOGRAM_STEPS = ROUND_TRIP_CELLS + RESPONSE_CELLS;
const int LIMIT_WIDTH = 38;

struct HistogramState {
    Ram<uint32_t, ROUND_TRIP_CELLS> round_trips[BOTH_BANKS];
    Ram<uint32_t, RESPONSE_CELLS> responses[BOTH_BANKS];
    // Time of the client's last new data; bit 63: the server has not answered it yet. The boot leaves it: the packet that
    // opens a flow is the first to look at its cell, and takes no notice of what it holds.
    Ram<uint64_t, 1 << INDEX_WIDTH> requests;
    // The walk's counts until there are eight.
    uint32_t eight[8];
    uint32_t samples[METRICS];
};
static_assert(std::is_trivially_default_constructible<HistogramState>::value, "state has no constructors");

ap_uint<BUCKET_WIDTH> bucket_of(ap_uint<LIMIT_WIDTH> ns);

// One clock. services: port of service s in bits 16 s + 15 .. 16 s.
void histogram_step(Control &control, HistogramState &state, hls::stream<word_t> &s_word,
                    hls::stream<result_t> &m_result, ap_uint<16 * (SERVICES - 1)> services);

} // namespace weir

void weir_kernel_histograms(hls::stream<weir::word_t> &s_word, hls::stream<weir::result_t> &m_result,
                            ap_uint<16 * (weir::SERVICES - 1)> services);

#endif
