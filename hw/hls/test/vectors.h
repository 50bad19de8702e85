// Reads what `vectors` of host/sketch writes, and plays words to a kernel.

#ifndef WEIR_TEST_VECTORS_H
#define WEIR_TEST_VECTORS_H

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "weir_kernel.h"

namespace test
{

struct PortFigures {
    uint64_t bytes, frames, peak, peak_bin, edges, bursts, longest, above;
    bool operator==(const PortFigures &other) const
    {
        return bytes == other.bytes && frames == other.frames && peak == other.peak && peak_bin == other.peak_bin &&
               edges == other.edges && bursts == other.bursts && longest == other.longest && above == other.above;
    }
};

typedef std::array<uint64_t, 2> Address; // high, low
typedef std::array<uint64_t, 3> Sent;

struct Interval {
    uint64_t start = 0;
    std::map<int, PortFigures> ports;
    // By metric * 16 + service, bucket.
    std::map<int, std::map<int, uint64_t>> histograms;
    std::array<uint64_t, 3> samples{};
    std::map<Address, Sent> talkers;
};

struct Vectors {
    std::vector<std::array<uint64_t, 8>> words;
    ap_uint<64> threshold = 0;
    ap_uint<112> services = 0;
    ap_uint<192> seed = 0;
    std::vector<Interval> intervals;
};

// Of <stem>.words and <stem>.expected; throws std::runtime_error.
Vectors read_vectors(const std::string &stem);

struct Word {
    std::array<uint64_t, 8> lanes;
    bool last;
};

// One clock of a kernel; true while it holds a word that waits.
typedef std::function<bool(hls::stream<weir::word_t> &, hls::stream<weir::result_t> &)> Clock;

weir::word_t packed(const std::array<uint64_t, 8> &lanes);
Word unpacked(const weir::result_t &result);

// Plays words as fast as the kernel takes them, then `after` more clocks. With `before`, a word goes in when the one
// before it is counted, and `before` is called with its number. Throws when the kernel stops taking words.
std::vector<Word> play(const std::vector<std::array<uint64_t, 8>> &words, const Clock &clock,
                       const std::function<void(size_t)> &before = {}, int after = 3 * 4096);

// Results of the kernels as the exact reference has them; throw when a result contradicts itself.
std::vector<Interval> bursts_of(const std::vector<Word> &results);
std::vector<Interval> histograms_of(const std::vector<Word> &results);

struct Top {
    uint64_t start = 0;
    // By weight: destination and its three estimates.
    std::array<std::map<Address, Sent>, 3> top;
    Sent totals{};
};
std::vector<Top> talkers_of(const std::vector<Word> &results);

} // namespace test

#endif
