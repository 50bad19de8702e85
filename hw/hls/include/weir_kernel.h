// What the kernels have in common: the turn of a clock (take a word, change banks, walk), and a RAM that may be read,
// changed and written in each clock.
//
// A kernel is a function that is called once per clock (function pipeline, II = 1, ap_ctrl_none). Its state is Control and
// one structure more, of plain numbers, without constructors: in the hardware they are zero from the bitstream, in C++
// they are static or set to zero by their owner. A reset sets Control to zero and nothing else (the tool resets no static
// that a RESET pragma does not name): the kernel then boots, which clears the rest.
//
// Two banks. Words are counted in one bank; when a word of another 100 ms comes, the banks change places, and the other
// one is walked: one address per clock is read, written out where it says something, and set to zero. So counting goes
// on while results leave, and no word is lost for clearing. A word that ends an interval while a walk is on its way
// waits at the input; the walk takes no more clocks than its addresses, whatever becomes of its results: from then on,
// results that find no room are lost and counted. 100 ms are 30 million clocks at 300 MHz, a walk 4,096: on a wire no
// word waits. After power-up and reset both banks are walked before the first word is taken: the boot.
//
// Loops. What a clock leaves for the next one is computed in that clock: a comparison of 64 bits decides whether a word
// waits; in memories, the choice among RAM_WINDOW + 1 values and a sum of 32 bits. All else goes forward and may take as
// many clocks as it needs. Each kernel's header names loops of its own.

#ifndef WEIR_KERNEL_H
#define WEIR_KERNEL_H

#include <hls_stream.h>
#include <type_traits>

#include "weir_result.h"
#include "weir_word.h"

namespace weir
{

const uint64_t FINE_NS = 10000000;
const int BINS_PER_INTERVAL = 1000;
// log2 of the contexts of the flow table.
const int INDEX_WIDTH = 18;
const int BOTH_BANKS = 2;

struct Control {
    // The word that came last, until it is counted, and the start of its interval.
    uint64_t held[8];
    uint64_t held_start;
    // A result on its way out.
    uint64_t out[8];
    // Start of the interval that is counted, and of the one that is walked.
    uint64_t start;
    uint64_t walked_start;
    uint32_t lost;
    uint16_t walk;
    uint8_t has_held;
    uint8_t has_out;
    uint8_t out_last;
    uint8_t booted;
    uint8_t bank;
    uint8_t walking;
    // A packet was counted in the interval.
    uint8_t counting;
};

// What a clock is for.
struct Turn {
    // Count `word` in `bank`.
    bool count;
    // Walk address `at` of the other bank.
    bool walk;
    uint16_t at;
    // After power-up and reset: of both banks.
    bool boot;
    bool last;
    // Which of the two counts.
    uint8_t bank;
    Word word;
};

// Steps: addresses of a walk.
template <int Steps> Turn take_turn(Control &control, hls::stream<word_t> &s_word, hls::stream<result_t> &m_result)
{
#pragma HLS INLINE
#pragma HLS ARRAY_PARTITION variable = control.held complete
#pragma HLS ARRAY_PARTITION variable = control.out complete
    if (control.has_out) {
        result_t result;
        for (int i = 0; i < 8; i++) {
#pragma HLS UNROLL
            result.data.range(64 * i + 63, 64 * i) = control.out[i];
        }
        result.keep = ~ap_uint<64>(0);
        result.strb = ~ap_uint<64>(0);
        result.last = control.out_last;
        if (m_result.write_nb(result))
            control.has_out = 0;
    }
    Turn turn;
    turn.word = unpack(control.held);
    const bool end = turn.word.kind == WORD_END;
    const bool ends = control.has_held && control.counting && (control.held_start != control.start || end);
    const bool waits = ends && control.walking;
    turn.count = control.has_held && !waits && turn.word.kind == WORD_PACKET;

    turn.boot = !control.booted;
    turn.walk = turn.boot || (control.walking && (!control.has_out || waits));
    turn.at = control.walk;
    turn.last = control.walk == Steps - 1;
    if (turn.walk) {
        control.walk = turn.last ? 0 : control.walk + 1;
        if (turn.last) {
            control.booted = 1;
            control.walking = 0;
        }
    }
    if (ends && !waits) {
        control.bank ^= 1;
        control.walking = 1;
        control.walked_start = control.start;
        control.counting = 0;
    }
    if (turn.count) {
        control.start = control.held_start;
        control.counting = 1;
    }
    turn.bank = control.bank;

    // The next word is looked at in the next clock: what decides whether it waits is then in registers.
    if (!waits)
        control.has_held = 0;
    if (control.booted && !control.has_held) {
        word_t packed;
        if (s_word.read_nb(packed)) {
            for (int i = 0; i < 8; i++) {
#pragma HLS UNROLL
                control.held[i] = packed.range(64 * i + 63, 64 * i).to_uint64();
            }
            const Word next = unpack(control.held);
            control.held_start = next.fine_start - next.fine_digit * FINE_NS;
            control.has_held = 1;
        }
    }
    return turn;
}

inline void write_result(Control &control, const Result &result, bool last)
{
#pragma HLS INLINE
    if (control.has_out) {
        control.lost++;
        return;
    }
    for (int i = 0; i < 8; i++) {
#pragma HLS UNROLL
        control.out[i] = result.lanes[i];
    }
    control.out_last = last;
    control.has_out = 1;
}

inline uint32_t add_saturating(uint32_t a, uint32_t b)
{
#pragma HLS INLINE
    const uint32_t sum = a + b;
    return sum < a ? ~uint32_t(0) : sum;
}

// Clocks from a read of the memory to its write of the same address, at most: block and UltraRAM with all their
// registers, and the change.
const int RAM_WINDOW = 6;

// A memory with one read and one write in each clock. What was written in the last RAM_WINDOW clocks is kept beside the
// cells and taken from there: an address may come in each clock.
template <class T, int Size> struct Ram {
    static_assert(std::is_trivially_default_constructible<T>::value, "state has no constructors");
    T cells[Size];
    // Newest first.
    T recent[RAM_WINDOW];
    uint32_t at[RAM_WINDOW];
    uint8_t written[RAM_WINDOW];
};

template <class T, int Size> T ram_read(const Ram<T, Size> &ram, uint32_t address)
{
#pragma HLS INLINE
    T value = ram.cells[address];
    for (int i = RAM_WINDOW - 1; i >= 0; i--) {
#pragma HLS UNROLL
        if (ram.written[i] && ram.at[i] == address)
            value = ram.recent[i];
    }
    return value;
}

// Once per clock, also when nothing is written. The pragma is true because of the window: a value is only read from the
// cells when it was written more than RAM_WINDOW clocks before. C simulation holds writes back for as long as that.
template <class T, int Size> void ram_write(Ram<T, Size> &ram, bool write, uint32_t address, T value)
{
#pragma HLS INLINE
#pragma HLS ARRAY_PARTITION variable = ram.recent complete dim = 0
#pragma HLS ARRAY_PARTITION variable = ram.at complete dim = 0
#pragma HLS ARRAY_PARTITION variable = ram.written complete dim = 0
#pragma HLS DEPENDENCE variable = ram.cells type = inter direction = RAW distance = 7 dependent = true
    static_assert(RAM_WINDOW + 1 == 7, "the distance above");
#ifdef __SYNTHESIS__
    if (write)
        ram.cells[address] = value;
#else
    if (ram.written[RAM_WINDOW - 1])
        ram.cells[ram.at[RAM_WINDOW - 1]] = ram.recent[RAM_WINDOW - 1];
#endif
    for (int i = RAM_WINDOW - 1; i > 0; i--) {
#pragma HLS UNROLL
        ram.recent[i] = ram.recent[i - 1];
        ram.at[i] = ram.at[i - 1];
        ram.written[i] = ram.written[i - 1];
    }
    ram.recent[0] = value;
    ram.at[0] = address;
    ram.written[0] = write;
}

} // namespace weir

#endif
