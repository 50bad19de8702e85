// Corners of the kernels that captures do not reach: unit NAME.

#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>

#include "vectors.h"
#include "weir_kernel_bursts.h"
#include "weir_kernel_histograms.h"
#include "weir_kernel_talkers.h"

namespace
{

typedef std::array<uint64_t, 8> Lanes;

const uint64_t INTERVAL = 100000000;
const uint64_t BIN = 100000;
const uint64_t START = 18000000000 * INTERVAL;

void check(bool holds, const std::string &what)
{
    if (!holds)
        throw std::runtime_error(what);
}

// A word from its fields, for those that are not 0.
class Word
{
  public:
    explicit Word(weir::WordKind kind, uint64_t time)
    {
        set_kind(kind);
        set_timestamp(time);
        set_fine_start(time - time % weir::FINE_NS);
        set_fine_digit(time / weir::FINE_NS % 10);
    }
#define WEIR_FIELD(name, low, width)                                                                                   \
    Word &set_##name(uint64_t value)                                                                                   \
    {                                                                                                                  \
        const uint64_t mask = ~uint64_t(0) >> (64 - (width)) << (low) % 64;                                            \
        lanes[(low) / 64] = (lanes[(low) / 64] & ~mask) | (value << (low) % 64 & mask);                                \
        return *this;                                                                                                  \
    }
    WEIR_WORD_FIELDS(WEIR_FIELD)
#undef WEIR_FIELD
    operator Lanes() const { return lanes; }

  private:
    Lanes lanes{};
};

Word packet(uint64_t time, unsigned length) { return Word(weir::WORD_PACKET, time).set_wire_length(length); }
Word end(uint64_t time) { return Word(weir::WORD_END, time); }

template <class State> struct Kernel {
    weir::Control control{};
    std::unique_ptr<State> state = std::make_unique<State>();
    void (*function)(weir::Control &, State &, hls::stream<weir::word_t> &, hls::stream<weir::result_t> &);
    void step(hls::stream<weir::word_t> &input, hls::stream<weir::result_t> &output)
    {
        function(control, *state, input, output);
    }
    test::Clock clock()
    {
        return [this](auto &input, auto &output) {
            step(input, output);
            return control.has_held != 0;
        };
    }
    explicit Kernel(decltype(function) step) : function(step) {}
};

const uint32_t THRESHOLD = 1000;

Kernel<weir::BurstState> bursts()
{
    return Kernel<weir::BurstState>([](auto &control, auto &state, auto &input, auto &output) {
        weir::burst_step(control, state, input, output, (ap_uint<32>(THRESHOLD), ap_uint<32>(THRESHOLD)));
    });
}

Kernel<weir::HistogramState> histograms()
{
    return Kernel<weir::HistogramState>([](auto &control, auto &state, auto &input, auto &output) {
        weir::histogram_step(control, state, input, output, ap_uint<112>(443) << 16 | 80);
    });
}

ap_uint<192> seed()
{
    ap_uint<192> seed;
    std::mt19937_64 random(7);
    for (int i = 0; i < 3; i++)
        seed.range(64 * i + 63, 64 * i) = random();
    return seed;
}

Kernel<weir::TalkerState> talkers()
{
    return Kernel<weir::TalkerState>([](auto &control, auto &state, auto &input, auto &output) {
        weir::talker_step(control, state, input, output, seed());
    });
}

// A bin is 3,125 times 32 ns: the low five bits say nothing.
void bins()
{
    for (uint32_t offset = 0; offset < weir::FINE_NS; offset += 32) {
        check(weir::bin_of(offset) == offset / BIN, "bin of " + std::to_string(offset));
        check(weir::bin_of(offset + 31) == offset / BIN, "bin of " + std::to_string(offset + 31));
    }
}

void buckets()
{
    int bucket = 0;
    uint64_t next = 1024;
    for (uint64_t value = 0; value < uint64_t(1) << 38; value += 1 + value / 4097) {
        while (value >= next) {
            bucket++;
            const int power = 63 - __builtin_clzll(next);
            next += uint64_t(1) << (power - 2);
        }
        check(weir::bucket_of(value) == bucket, "bucket of " + std::to_string(value));
    }
    check(bucket == 112, "113 buckets");
    check(weir::bucket_of((uint64_t(1) << 38) - 1) == 112, "the last bucket");
}

// The columns are the product of a Toeplitz matrix, and two keys share one as often as a good hash has it.
void columns()
{
    std::mt19937_64 random(3);
    const ap_uint<192> bits = seed();
    for (int n = 0; n < 2000; n++) {
        const uint64_t high = random(), low = random();
        uint64_t expected = 0;
        for (int row = 0; row < 48; row++) {
            bool parity = false;
            for (int bit = 0; bit < 128; bit++) {
                const bool set = (bit < 64 ? low >> bit : high >> (bit - 64)) & 1;
                parity ^= set && bits[row + bit];
            }
            expected |= uint64_t(parity) << row;
        }
        check(weir::columns_of(high, low, bits) == expected, "columns");
    }
    size_t shared = 0, pairs = 0;
    for (int draw = 0; draw < 200000; draw++) {
        ap_uint<192> drawn;
        for (int i = 0; i < 3; i++)
            drawn.range(64 * i + 63, 64 * i) = random();
        // Neighbours in a subnet.
        const uint64_t first = weir::columns_of(0, 0xffff0a000001, drawn);
        const uint64_t other = weir::columns_of(0, 0xffff0a000002 + random() % 250, drawn);
        for (int row = 0; row < weir::ROWS; row++) {
            shared += (first >> 12 * row & 4095) == (other >> 12 * row & 4095);
            pairs++;
        }
    }
    const double chance = double(shared) / double(pairs) * 4096;
    check(chance > 0.7 && chance < 1.3, "keys share a column with a chance of " + std::to_string(chance) + " / 4096");
}

// The same cell again after every distance from 1 to beyond the window of the memories.
void hazards()
{
    for (int distance = 1; distance <= weir::RAM_WINDOW + 2; distance++) {
        std::vector<Lanes> words;
        uint64_t time = START;
        const int rounds = 50;
        for (int i = 0; i < rounds * distance; i++) {
            const unsigned flow = i % distance;
            words.push_back(packet(time += 2000, 100)
                                .set_tracked(1)
                                .set_fresh(i < distance)
                                .set_index(flow)
                                .set_new_data(1)
                                .set_from_server(i / distance % 2)
                                .set_server_port(80)
                                .set_rtt_valid(1)
                                .set_rtt((uint64_t(1) << (20 + flow)))
                                .set_destination_low(flow));
        }
        words.push_back(end(time));
        auto kernel = histograms();
        const auto got = test::histograms_of(test::play(words, kernel.clock())).at(0);
        check(int(got.histograms.at(0).size()) == distance, "a bucket for each");
        for (const auto &[bucket, count] : got.histograms.at(0))
            check(count == rounds, "round trips at distance " + std::to_string(distance));
        check(got.samples[2] == uint64_t(rounds / 2 * distance), "responses at distance " + std::to_string(distance));

        auto other = talkers();
        const auto top = test::talkers_of(test::play(words, other.clock())).at(0);
        for (int flow = 0; flow < distance; flow++) {
            const test::Sent sent = {rounds, rounds * 100, rounds};
            const auto &entry = top.top[0].at({0, uint64_t(flow)});
            check(entry[0] == sent[0] && entry[1] == sent[1], "talkers at distance " + std::to_string(distance));
        }
    }
}

std::vector<Lanes> mixed(int count, uint64_t step)
{
    std::mt19937_64 random(11);
    std::vector<Lanes> words;
    uint64_t time = START;
    for (int i = 0; i < count; i++) {
        time += random() % step;
        words.push_back(packet(time, 60 + random() % 1400)
                            .set_port(random() % 2)
                            .set_tracked(1)
                            .set_fresh(i < 8)
                            .set_index(i < 8 ? i : random() % 8)
                            .set_new_data(random() % 2)
                            .set_from_server(random() % 2)
                            .set_server_port(random() % 2 ? 80 : 22)
                            .set_rtt_valid(random() % 2)
                            .set_rtt(random() >> 30)
                            .set_destination_low(random() % 64));
    }
    words.push_back(end(time));
    return words;
}

bool same(const std::vector<test::Word> &a, const std::vector<test::Word> &b)
{
    if (a.size() != b.size())
        return false;
    for (size_t i = 0; i < a.size(); i++) {
        if (a[i].lanes != b[i].lanes || a[i].last != b[i].last)
            return false;
    }
    return true;
}

// Clocks without a word, and a sink that often has no room, change nothing.
template <class Make> void disturbed(Make make)
{
    const auto words = mixed(3000, 200000);
    auto calm = make();
    const auto expected = test::play(words, calm.clock());
    check(!expected.empty(), "there are results");

    auto kernel = make();
    std::mt19937_64 random(5);
    hls::stream<weir::word_t> input;
    hls::stream<weir::result_t> output;
    output.set_room(1);
    std::vector<test::Word> got;
    size_t next = 0;
    for (int clock = 0; clock < 200000; clock++) {
        if (next < words.size() && input.size() < 2 && random() % 64 == 0)
            input.write(test::packed(words[next++]));
        kernel.step(input, output);
        if (!output.empty() && random() % 3 == 0)
            got.push_back(test::unpacked(output.read()));
    }
    for (int clock = 0; clock < 100000; clock++) {
        while (next < words.size() && input.size() < 2)
            input.write(test::packed(words[next++]));
        kernel.step(input, output);
        if (!output.empty())
            got.push_back(test::unpacked(output.read()));
    }
    check(next == words.size() && input.empty(), "all words were taken");
    if (!same(got, expected)) {
        // Results may be lost, counted, where an interval ended before they were out.
        check(kernel.control.lost > 0, "other results without loss");
    }
}

void bubbles()
{
    disturbed(bursts);
    disturbed(histograms);
    disturbed(talkers);
}

// Nobody takes results: words still go in, no word waits longer than a walk, and what is lost is counted.
void full_output()
{
    auto kernel = talkers();
    hls::stream<weir::word_t> input;
    hls::stream<weir::result_t> output;
    output.set_room(0);
    for (int i = 0; i < 2 * weir::COLUMNS; i++)
        kernel.step(input, output);
    const int intervals = 5, keys = 10;
    for (int i = 0; i < intervals; i++) {
        for (int key = 0; key < keys; key++) {
            input.write(test::packed(packet(START + i * INTERVAL + key, 100).set_destination_low(key)));
            int waited = 0;
            for (; (!input.empty() || kernel.control.has_held) && waited < 2 * weir::COLUMNS; waited++)
                kernel.step(input, output);
            check(waited <= weir::COLUMNS + 2, "a word waited for " + std::to_string(waited) + " clocks");
        }
    }
    // Of each interval but the last: two tops and the end; one word found room on the way out.
    check(kernel.control.lost == (intervals - 2) * (2 * keys + 1) - 1,
          std::to_string(kernel.control.lost) + " results are counted as lost");

    output.set_room(1000000);
    input.write(test::packed(end(START + intervals * INTERVAL)));
    for (int i = 0; i < 3 * weir::COLUMNS; i++)
        kernel.step(input, output);
    std::map<uint64_t, int> words;
    test::Word last{};
    while (!output.empty()) {
        last = test::unpacked(output.read());
        words[last.lanes[2]]++;
    }
    check(words[START + 4 * INTERVAL] == 2 * keys + 1, "the last interval is whole");
    check(last.last && last.lanes[3] == keys && last.lanes[4] == keys * 100 && last.lanes[6] != 0,
          "its end has the totals and what was lost before");
}

// Words at the first and last ns of bins and intervals; bursts at the edges.
void edges()
{
    std::vector<Lanes> words;
    const auto add = [&](uint64_t at, unsigned length) { words.push_back(packet(START + at, length)); };
    add(0, THRESHOLD);
    add(BIN - 1, 1);
    add(BIN, THRESHOLD - 1);
    add(3 * BIN, THRESHOLD);
    add(4 * BIN, 600);
    add(5 * BIN - 1, 400);
    add(INTERVAL - BIN, THRESHOLD);
    add(INTERVAL - 1, 5);
    add(INTERVAL, 7);
    words.push_back(end(START + INTERVAL));
    auto kernel = bursts();
    const auto got = test::bursts_of(test::play(words, kernel.clock()));
    check(got.size() == 2 && got[0].start == START && got[1].start == START + INTERVAL, "two intervals");
    const test::PortFigures first = {
        2 * THRESHOLD + 1 + THRESHOLD - 1 + 1000 + THRESHOLD + 5, 8, THRESHOLD + 5, 999, 3, 3, 2, 4};
    check(got[0].ports.at(0) == first, "figures of the first");
    const test::PortFigures second = {7, 1, 7, 0, 0, 0, 0, 0};
    check(got[1].ports.at(0) == second, "figures of the second");
    check(got[0].ports.at(1) == test::PortFigures{}, "nothing on the other port");
}

// A walk leaves nothing behind: an interval after another is as one alone.
void clearing()
{
    const auto words = mixed(300, 1000);
    std::vector<Lanes> thrice;
    for (int i = 0; i < 3; i++) {
        for (const Lanes &word : words) {
            if ((word[0] & 7) == weir::WORD_END)
                continue;
            const weir::Word fields = weir::unpack(word.data());
            Word moved = Word(weir::WORD_PACKET, fields.timestamp + i * INTERVAL);
            Lanes lanes = moved;
            lanes[0] = (word[0] & ~(uint64_t(0xf) << 44)) | (lanes[0] & uint64_t(0xf) << 44);
            lanes[1] = word[1];
            for (int lane = 4; lane < 8; lane++)
                lanes[lane] = word[lane];
            thrice.push_back(lanes);
        }
    }
    thrice.push_back(end(START + 3 * INTERVAL));
    const auto equal = [&](const std::vector<test::Word> &results, const char *what) {
        check(results.size() % 3 == 0, what);
        const size_t size = results.size() / 3;
        for (size_t i = 0; i < results.size(); i++) {
            Lanes lanes = results[i].lanes;
            check(lanes[2] == START + i / size * INTERVAL, what);
            lanes[2] = START;
            check(lanes == results[i % size].lanes, what);
        }
    };
    auto first = bursts();
    equal(test::play(thrice, first.clock()), "bursts");
    auto second = histograms();
    equal(test::play(thrice, second.clock()), "histograms");
    auto third = talkers();
    equal(test::play(thrice, third.clock()), "talkers");
}

// A reset at any clock, within a boot, a count, a walk: what comes after is as of a new kernel.
template <class Make> void reset_within(Make make, const char *what)
{
    const auto words = mixed(300, 200000);
    auto fresh = make();
    const auto expected = test::play(words, fresh.clock());
    check(!expected.empty(), "there are results");
    const auto before = mixed(2000, 300000);
    for (const int clocks : {1, 2, 7, 3000, 4097, 5000, 7000, 9000, 12000, 20000}) {
        auto kernel = make();
        hls::stream<weir::word_t> input;
        hls::stream<weir::result_t> output;
        for (const Lanes &word : before)
            input.write(test::packed(word));
        for (int i = 0; i < clocks; i++)
            kernel.step(input, output);
        kernel.control = weir::Control();
        check(same(test::play(words, kernel.clock()), expected), what);
    }
}

void reset()
{
    reset_within(bursts, "bursts");
    reset_within(histograms, "histograms");
    reset_within(talkers, "talkers");
}

void saturation()
{
    check(weir::add_saturating(0xfffffff0, 0xf) == 0xffffffff && weir::add_saturating(0xfffffff0, 0x10) == 0xffffffff &&
              weir::add_saturating(0xffffffff, 0xffffffff) == 0xffffffff && weir::add_saturating(2, 3) == 5,
          "sums");
    const int count = 4200;
    std::vector<Lanes> words(count, packet(START, 0xfffff).set_destination_low(9));
    words.push_back(end(START));
    auto kernel = bursts();
    const auto got = test::bursts_of(test::play(words, kernel.clock())).at(0).ports.at(0);
    check(got.peak == 0xffffffff && got.bytes == uint64_t(count) * 0xfffff && got.bursts == 1, "a bin's bytes");
    auto other = talkers();
    const auto top = test::talkers_of(test::play(words, other.clock())).at(0);
    check(top.top[1].at({0, 9})[1] == 0xffffffff && top.totals[1] == uint64_t(count) * 0xfffff, "a counter's");
}

// More destinations than entries: those that are sent most stay, and the tables differ by weight.
void tops()
{
    std::vector<Lanes> words;
    uint64_t time = START;
    for (int round = 0; round < 60; round++) {
        for (uint64_t key = 0; key < 48; key++) {
            const bool much = key >= 16 && key < 32;
            const bool flood = key >= 32;
            for (int i = 0; i < (much ? 1 : flood ? 2 : 3); i++)
                words.push_back(packet(time += 10, much ? 1500 : 64)
                                    .set_destination_high(~key)
                                    .set_destination_low(key)
                                    .set_flags(flood  ? 0x02
                                               : much ? 0x12
                                                      : 0x10));
        }
    }
    words.push_back(end(time));
    auto kernel = talkers();
    const auto top = test::talkers_of(test::play(words, kernel.clock())).at(0);
    const test::Sent expected[3] = {{180, 180 * 64, 0}, {60, 60 * 1500, 0}, {120, 120 * 64, 120}};
    for (uint64_t weight = 0; weight < 3; weight++) {
        for (uint64_t key = 16 * weight; key < 16 * weight + 16; key++) {
            const auto found = top.top[weight].find({~key, key});
            check(found != top.top[weight].end(), "key " + std::to_string(key) + " is in its top");
            check(found->second == expected[weight], "its figures");
        }
    }
}

} // namespace

int main(int count, char **arguments)
{
    const std::map<std::string, void (*)()> tests = {
        {"bins", bins},       {"buckets", buckets},   {"columns", columns},
        {"hazards", hazards}, {"bubbles", bubbles},   {"full_output", full_output},
        {"edges", edges},     {"clearing", clearing}, {"saturation", saturation},
        {"tops", tops},       {"reset", reset},
    };
    const std::string name = count > 1 ? arguments[1] : "";
    const auto found = tests.find(name);
    if (found == tests.end()) {
        printf("no test %s\n", name.c_str());
        return 2;
    }
    try {
        found->second();
    } catch (const std::exception &problem) {
        printf("%s: %s\n", name.c_str(), problem.what());
        return 1;
    }
    printf("%s ok\n", name.c_str());
}
