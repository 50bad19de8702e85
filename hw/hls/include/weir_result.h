// What the kernels write: 64-byte words laid out as records (docs/src/records.md), numbers little-endian. The kernels
// leave version, lane and sequence 0: whoever puts the words among the records fills them in.
//
//   bytes   header
//   0       kind: BURST, HISTOGRAM, TOP
//   1       flags: bit 0 set in the word that ends an interval's results of HISTOGRAM and TOP
//   3       arg
//   16..23  time: start of the 100 ms (TAI ns)
//
//   BURST (arg = port), one for each port
//   24 u64 bytes        on the wire
//   32 u32 frames
//   36 u32 peak         bytes of the fullest bin of 100 us (saturating)
//   40 u16 peak_bin     its number, the first of equals
//   42 u16 edges        bit 0: the first bin of the interval is part of a burst, bit 1: the last bin
//   44 u32 bursts       runs of bins with at least `threshold` bytes
//   48 u32 longest      bins in the longest run
//   52 u32 above        bins in all runs
//   56 u32 threshold    bytes per bin; 0: no bursts are looked for
//   60 u32 lost         result words that found no room so far
//
//   HISTOGRAM (arg = metric * 16 + service), one for each eight buckets that are not all empty
//   24 u32x8 counts     of buckets first_bucket ...
//   56 u16 port         of the service; 0: of all others
//   58 u16 first_bucket
//   HISTOGRAM, last
//   24 u32x3 samples    of each metric
//   36 u32 lost
//
//   TOP (arg = weight: 0 packets, 1 bytes, 2 SYN without ACK), in no order
//   24 b16 address      destination, in network order
//   40 u32x3 estimates  of packets, bytes, SYN without ACK when the destination had its last packet
//   TOP, last
//   24 u64x3 totals     of all destinations
//   48 u32 lost

#ifndef WEIR_RESULT_H
#define WEIR_RESULT_H

#include <ap_axi_sdata.h>
#include <ap_int.h>
#include <stdint.h>

namespace weir
{

enum ResultKind {
    RESULT_BURST = 11,
    RESULT_HISTOGRAM = 12,
    RESULT_TOP = 13
};

// TLAST: the last word of an interval's results.
typedef ap_axiu<512, 0, 0, 0> result_t;

struct Result {
    uint64_t lanes[8];
};

inline Result start_result(ResultKind kind, bool last, uint8_t arg, uint64_t time)
{
#pragma HLS INLINE
    Result result;
    for (int i = 0; i < 8; i++) {
#pragma HLS UNROLL
        result.lanes[i] = 0;
    }
    result.lanes[0] = uint64_t(kind) | uint64_t(last) << 8 | uint64_t(arg) << 24;
    result.lanes[2] = time;
    return result;
}

inline uint64_t pair(uint32_t low, uint32_t high)
{
#pragma HLS INLINE
    return uint64_t(high) << 32 | low;
}

} // namespace weir

#endif
