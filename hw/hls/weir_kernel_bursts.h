// Microbursts: bytes per 100 us on each port against a threshold.
//
// A bin is 100 us of TAI time, an interval the 100 ms that the bin lies in. A burst is a longest run of bins with at
// least `threshold` bytes on the wire; one that goes on over the end of an interval is counted in both, and `edges`
// tells. All frames of the port count, tracked or not. Exact. Results: BURST (weir_result.h), one for each port at the
// end of an interval in which any port had a frame.
//
// Cost   registers of 2 banks x PORTS x 270 bits, one multiplier of 19 x 21 bits.

#ifndef WEIR_KERNEL_BURSTS_H
#define WEIR_KERNEL_BURSTS_H

#include "weir_kernel.h"

namespace weir
{

const int PORTS = 2;

struct PortCounts {
    uint64_t bytes;
    uint32_t frames;
    uint32_t peak;
    uint32_t bursts;
    uint32_t longest;
    uint32_t above;
    // Of the newest bin with frames, and of the newest burst.
    uint32_t bin_bytes;
    uint32_t run;
    uint16_t peak_bin;
    uint16_t bin;
    uint16_t run_bin;
    uint16_t edges;
};

struct BurstState {
    PortCounts counts[BOTH_BANKS][PORTS];
};
static_assert(std::is_trivially_default_constructible<BurstState>::value, "state has no constructors");

// Number of the 100 us that a time of up to 10 ms lies in.
inline ap_uint<7> bin_of(ap_uint<24> offset)
{
#pragma HLS INLINE
    // offset / 32 / 3125, by 2^32 / 3125: exact for all offsets below 10^7 (the test tries all units).
    const ap_uint<19> units = offset >> 5;
    return ap_uint<40>(units * ap_uint<21>(1374390)) >> 32;
}

// One clock. threshold: that of port p in bits 32 p + 31 .. 32 p.
void burst_step(Control &control, BurstState &state, hls::stream<word_t> &s_word, hls::stream<result_t> &m_result,
                ap_uint<32 * PORTS> threshold);

} // namespace weir

void weir_kernel_bursts(hls::stream<weir::word_t> &s_word, hls::stream<weir::result_t> &m_result,
                        ap_uint<32 * weir::PORTS> threshold);

#endif
