// The word that the kernels take: what the parser and the tracker know of one packet, in 512 bits.
//
// This table is the one definition. The packed structure in hw/rtl/weir_kernel_pkg.sv and the writer of test vectors
// (host/sketch/src/word.rs) follow it; vectors carry their own copy of the table, and the tests refuse one that is not
// equal. Values are those of meta_t, word_t and lookup_t in hw/rtl/weir_pkg.sv and of the records that the packet made:
//
//   kind             word_kind_e: 0 packet, 1 visit and 2 PORT (nothing but time), 3 end of input
//   tracked          the packet is counted in the flow of `index`
//   fresh            it opened that flow (OPEN)
//   from_server      the server of the flow sent it
//   new_data         TCP payload that was not seen before (section 4.5 of docs/src/flow-engine.md), not of a SYN or RST
//   rtt_valid        it made an RTT record other than ECHO: `rtt` in ns
//   rtt_of_server    direction of the timed segment: 1 if the server sent it
//   class            class_e: 0 TCP, 1 other, 2 ICMP error (addresses are those of the quoted packet), 3 untracked (of
//                    such a frame only port, wire_length and the times hold)
//   fine_digit       number of the 10 ms within their 100 ms; fine_start: where they start
//   server_port      of the flow, if tracked
//   timestamp        TAI ns, never before that of an earlier word
//   destination, source   as numbers: the first byte of the address is the highest
//
// No field lies across a multiple of 64 bits. Bits that no field has are 0.

#ifndef WEIR_WORD_H
#define WEIR_WORD_H

#include <ap_int.h>
#include <stdint.h>
#include <type_traits>

//      name, lowest bit, width
#define WEIR_WORD_FIELDS(F)                                                                                            \
    F(kind, 0, 3)                                                                                                      \
    F(tracked, 3, 1)                                                                                                   \
    F(fresh, 4, 1)                                                                                                     \
    F(from_server, 5, 1)                                                                                               \
    F(new_data, 6, 1)                                                                                                  \
    F(rtt_valid, 7, 1)                                                                                                 \
    F(class_, 8, 2)                                                                                                    \
    F(rtt_of_server, 10, 1)                                                                                            \
    F(port, 12, 4)                                                                                                     \
    F(flags, 16, 8)                                                                                                    \
    F(index, 24, 18)                                                                                                   \
    F(fine_digit, 44, 4)                                                                                               \
    F(server_port, 48, 16)                                                                                             \
    F(wire_length, 64, 20)                                                                                             \
    F(rtt, 88, 38)                                                                                                     \
    F(timestamp, 128, 64)                                                                                              \
    F(fine_start, 192, 64)                                                                                             \
    F(destination_low, 256, 64)                                                                                        \
    F(destination_high, 320, 64)                                                                                       \
    F(source_low, 384, 64)                                                                                             \
    F(source_high, 448, 64)

namespace weir
{

enum WordKind {
    WORD_PACKET = 0,
    WORD_VISIT = 1,
    WORD_PORT = 2,
    WORD_END = 3
};

enum Class {
    CLASS_TCP = 0,
    CLASS_OTHER = 1,
    CLASS_ICMP_ERROR = 2,
    CLASS_UNTRACKED = 3
};

typedef ap_uint<512> word_t;

// The narrowest plain number that a field fits in: state is made of plain numbers, and C simulation is quick.
template <int Width>
using Plain = typename std::conditional<
    Width <= 8, uint8_t,
    typename std::conditional<Width <= 16, uint16_t,
                              typename std::conditional<Width <= 32, uint32_t, uint64_t>::type>::type>::type;

struct Word {
#define WEIR_FIELD(name, low, width) Plain<width> name;
    WEIR_WORD_FIELDS(WEIR_FIELD)
#undef WEIR_FIELD
};

#define WEIR_FIELD(name, low, width)                                                                                   \
    static_assert((low) / 64 == ((low) + (width) - 1) / 64, "a field lies across a multiple of 64 bits");
WEIR_WORD_FIELDS(WEIR_FIELD)
#undef WEIR_FIELD

// From the word's eight numbers of 64 bits, lowest first.
inline Word unpack(const uint64_t lanes[8])
{
#pragma HLS INLINE
    Word word;
#define WEIR_FIELD(name, low, width)                                                                                   \
    word.name = Plain<width>(lanes[(low) / 64] >> (low) % 64 & ~uint64_t(0) >> (64 - (width)));
    WEIR_WORD_FIELDS(WEIR_FIELD)
#undef WEIR_FIELD
    return word;
}

} // namespace weir

#endif
