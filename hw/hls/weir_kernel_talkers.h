// Heavy hitters and SYN floods: who is sent the most packets, bytes, and SYNs without ACK.
//
// Key      The destination address (IPv4-mapped), of TCP and other IP packets whether the flow table had room for them
//          or not; VLANs are not told apart. Not ICMP errors, whose word has the addresses of the quoted packet.
// Sketch   Count-min (Cormode, Muthukrishnan 2005), per 100 ms: ROWS = 4 rows of COLUMNS = 4,096 counters for each of the
//          three weights, 32 bits, saturating. No conservative update: its loop (least of four, sum, greatest) is too long
//          for one clock, and without it sketches of several intervals or cards can be added up. Rows are hashed with one
//          Toeplitz matrix of 48 x 128 bits made from the seed: for two keys and a seed drawn at random all four
//          columns are equal with a chance of 1/4096 each, independently.
// Bound    With N = all that was counted of a weight in the interval, true <= estimate always, and estimate <= true +
//          eps N but with chance delta, for each key: eps = e / 4096 = 0.000664, delta = e^-4 = 0.0183.
// Top      For each weight a table of TOP = 16 keys. A key enters with a packet of that weight while there is room, and
//          later when its estimate is above that of the entry that had the least TOP_LAG packets ago. With at most 16
//          destinations the tables hold them all. A key whose share is far enough above that of the 16th is in it (the
//          test: by 2 eps N, for keys of at least 32 packets spread over the interval).
// Loops    In the tables: a comparison of 128 bits, or the choice of an entry and a comparison of 32 bits; the least
//          entry has TOP_LAG clocks.
// Results  TOP (weir_result.h) at the end of an interval with packets.
//
// Cost     2 banks x 4 rows x 4,096 x 96 bits (88 RAMB36), registers of 2 banks x 3 x 16 x 225 bits with as many
//          comparators of 128 bits.

#ifndef WEIR_KERNEL_TALKERS_H
#define WEIR_KERNEL_TALKERS_H

#include "weir_kernel.h"

namespace weir
{

const int WEIGHTS = 3;
const int ROWS = 4;
const int COLUMN_WIDTH = 12;
const int COLUMNS = 1 << COLUMN_WIDTH;
const int TOP = 16;
// Clocks between the look for the least entry and its use: its comparisons are not in one clock.
const int TOP_LAG = 4;
const int SEED_WIDTH = 192;

struct Counters {
    uint32_t of[WEIGHTS];
};

struct TopEntry {
    uint64_t high;
    uint64_t low;
    Counters estimates;
};

struct TopTable {
    TopEntry entries[TOP];
    uint8_t used;
    // Entry with the least, newest first.
    uint8_t least[TOP_LAG];
};

struct Totals {
    uint64_t of[WEIGHTS];
};

struct TalkerState {
    Ram<Counters, COLUMNS> rows[BOTH_BANKS][ROWS];
    TopTable top[BOTH_BANKS][WEIGHTS];
    Totals totals[BOTH_BANKS];
};
static_assert(std::is_trivially_default_constructible<TalkerState>::value, "state has no constructors");

static_assert(ROWS * COLUMN_WIDTH + 128 - 1 <= SEED_WIDTH && ROWS * COLUMN_WIDTH <= 64, "the matrix");

// The columns of a key: that of row r in bits 12 r + 11 .. 12 r.
uint64_t columns_of(uint64_t high, uint64_t low, ap_uint<SEED_WIDTH> seed);

// What a bank says of a key: for tests.
Counters estimate_of(const TalkerState &state, int bank, uint64_t high, uint64_t low, ap_uint<SEED_WIDTH> seed);

// One clock. The seed may change between intervals only.
void talker_step(Control &control, TalkerState &state, hls::stream<word_t> &s_word, hls::stream<result_t> &m_result,
                 ap_uint<SEED_WIDTH> seed);

} // namespace weir

void weir_kernel_talkers(hls::stream<weir::word_t> &s_word, hls::stream<weir::result_t> &m_result,
                         ap_uint<weir::SEED_WIDTH> seed);

#endif
