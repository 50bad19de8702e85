#include "vectors.h"

#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace test
{

namespace
{

struct Field {
    const char *name;
    unsigned low, width;
};

const Field FIELDS[] = {
#define WEIR_FIELD(name, low, width) {#name, low, width},
    WEIR_WORD_FIELDS(WEIR_FIELD)
#undef WEIR_FIELD
};

[[noreturn]] void fail(const std::string &text) { throw std::runtime_error(text); }

void must(bool holds, const char *text)
{
    if (!holds)
        fail(text);
}

// Bytes of a file, read as little-endian numbers.
class Bytes
{
  public:
    explicit Bytes(const std::string &path)
    {
        std::ifstream file(path, std::ios::binary);
        if (!file)
            fail("cannot read " + path);
        bytes.assign(std::istreambuf_iterator<char>(file), {});
    }

    uint64_t number(unsigned size)
    {
        must(left() >= size, "the file of words is cut");
        uint64_t value = 0;
        for (unsigned i = 0; i < size; i++)
            value |= uint64_t(uint8_t(bytes[place + i])) << 8 * i;
        place += size;
        return value;
    }

    std::string text(size_t size)
    {
        must(left() >= size, "the file of words is cut");
        place += size;
        return {bytes.begin() + long(place - size), bytes.begin() + long(place)};
    }

    size_t left() const { return bytes.size() - place; }

  private:
    std::vector<char> bytes;
    size_t place = 0;
};

void read_words(const std::string &path, Vectors &vectors)
{
    Bytes bytes(path);
    must(bytes.number(4) == std::size(FIELDS), "the words have another number of fields");
    for (const Field &field : FIELDS) {
        const uint64_t low = bytes.number(2), width = bytes.number(2);
        const std::string name = bytes.text(bytes.number(1));
        if (name != field.name || low != field.low || width != field.width)
            fail("field " + name + " of the words is not that of weir_word.h: " + field.name);
    }
    while (bytes.left() > 0) {
        std::array<uint64_t, 8> lanes;
        for (uint64_t &lane : lanes)
            lane = bytes.number(8);
        vectors.words.push_back(lanes);
    }
}

void read_expected(const std::string &path, Vectors &vectors)
{
    std::ifstream file(path);
    if (!file)
        fail("cannot read " + path);
    std::string line, what;
    while (std::getline(file, line)) {
        std::istringstream in(line);
        in >> what;
        Interval *interval = vectors.intervals.empty() ? nullptr : &vectors.intervals.back();
        if (what == "thresholds") {
            uint32_t port[2];
            in >> port[0] >> port[1];
            vectors.threshold = (ap_uint<32>(port[1]), ap_uint<32>(port[0]));
        } else if (what == "services") {
            for (int i = 0; i < 7; i++) {
                unsigned port;
                in >> port;
                vectors.services.range(16 * i + 15, 16 * i) = port;
            }
        } else if (what == "seed") {
            for (int i = 0; i < 3; i++) {
                uint64_t lane;
                in >> std::hex >> lane;
                vectors.seed.range(64 * i + 63, 64 * i) = lane;
            }
        } else if (what == "interval") {
            vectors.intervals.emplace_back();
            in >> vectors.intervals.back().start;
        } else if (!interval) {
            fail("before the first interval: " + line);
        } else if (what == "port") {
            int port;
            in >> port;
            PortFigures &f = interval->ports[port];
            in >> f.bytes >> f.frames >> f.peak >> f.peak_bin >> f.edges >> f.bursts >> f.longest >> f.above;
        } else if (what == "histogram") {
            int metric, service, bucket;
            char colon;
            uint64_t count;
            in >> metric >> service;
            while (in >> bucket >> colon >> count)
                interval->histograms[metric * 16 + service][bucket] = count;
            in.clear();
        } else if (what == "samples") {
            in >> interval->samples[0] >> interval->samples[1] >> interval->samples[2];
        } else if (what == "talker") {
            std::string address;
            in >> address;
            must(address.size() == 32, "an address has 32 digits");
            const Address key = {std::stoull(address.substr(0, 16), nullptr, 16),
                                 std::stoull(address.substr(16), nullptr, 16)};
            Sent &sent = interval->talkers[key];
            in >> sent[0] >> sent[1] >> sent[2];
        } else {
            fail("unknown: " + line);
        }
        if (!in)
            fail("cannot be read: " + line);
    }
}

unsigned kind_of(const Word &word) { return word.lanes[0] & 0xff; }
bool ends(const Word &word) { return word.lanes[0] >> 8 & 1; }
unsigned arg_of(const Word &word) { return word.lanes[0] >> 24 & 0xff; }
uint64_t low(uint64_t lane) { return lane & 0xffffffff; }
uint64_t high(uint64_t lane) { return lane >> 32; }

uint64_t network_order(uint64_t lane) { return __builtin_bswap64(lane); }

} // namespace

Vectors read_vectors(const std::string &stem)
{
    Vectors vectors;
    read_words(stem + ".words", vectors);
    read_expected(stem + ".expected", vectors);
    return vectors;
}

weir::word_t packed(const std::array<uint64_t, 8> &lanes)
{
    weir::word_t word;
    for (int i = 0; i < 8; i++)
        word.range(64 * i + 63, 64 * i) = lanes[i];
    return word;
}

Word unpacked(const weir::result_t &result)
{
    Word word;
    for (int i = 0; i < 8; i++)
        word.lanes[i] = weir::word_t(result.data).range(64 * i + 63, 64 * i).to_uint64();
    word.last = result.last;
    return word;
}

std::vector<Word> play(const std::vector<std::array<uint64_t, 8>> &words, const Clock &clock,
                       const std::function<void(size_t)> &before, int after)
{
    hls::stream<weir::word_t> input("input");
    hls::stream<weir::result_t> output("output");
    for (size_t i = 0; i < words.size(); i++) {
        if (before)
            before(i);
        input.write(packed(words[i]));
        bool held = false;
        for (int waited = 0; !input.empty() || (before && held); waited++) {
            must(waited < 10000, "the kernel takes no words");
            held = clock(input, output);
        }
    }
    for (int i = 0; i < after; i++)
        clock(input, output);
    std::vector<Word> results;
    while (!output.empty())
        results.push_back(unpacked(output.read()));
    return results;
}

std::vector<Interval> bursts_of(const std::vector<Word> &results)
{
    std::vector<Interval> intervals;
    int port = 0;
    for (const Word &word : results) {
        const auto &lanes = word.lanes;
        must(kind_of(word) == weir::Burst::KIND && int(arg_of(word)) == port, "not the port's BURST");
        must(word.last == (port == 1), "TLAST is with the last port");
        must(high(lanes[7]) == 0, "a result was lost");
        if (port == 0) {
            intervals.emplace_back();
            intervals.back().start = lanes[2];
        }
        must(intervals.back().start == lanes[2], "one interval, one time");
        PortFigures figures = {lanes[3],          low(lanes[4]),           high(lanes[4]),
                               lanes[5] & 0xffff, lanes[5] >> 16 & 0xffff, high(lanes[5]),
                               low(lanes[6]),     high(lanes[6])};
        intervals.back().ports[port] = figures;
        port = 1 - port;
    }
    must(port == 0, "all ports");
    return intervals;
}

std::vector<Interval> histograms_of(const std::vector<Word> &results)
{
    std::vector<Interval> intervals;
    bool open = false;
    for (const Word &word : results) {
        const auto &lanes = word.lanes;
        must(kind_of(word) == weir::Histogram::KIND && word.last == ends(word), "not a HISTOGRAM");
        if (!open) {
            intervals.emplace_back();
            intervals.back().start = lanes[2];
        }
        Interval &interval = intervals.back();
        open = !word.last;
        must(interval.start == lanes[2], "one interval, one time");
        if (word.last) {
            interval.samples = {low(lanes[3]), high(lanes[3]), low(lanes[4])};
            must(high(lanes[4]) == 0, "a result was lost");
            continue;
        }
        auto &histogram = interval.histograms[int(arg_of(word))];
        bool any = false;
        for (int i = 0; i < 8; i++) {
            const uint64_t count = i % 2 ? high(lanes[3 + i / 2]) : low(lanes[3 + i / 2]);
            if (count == 0)
                continue;
            any = true;
            must(histogram.emplace(int(lanes[7] >> 16 & 0xffff) + i, count).second, "a bucket came twice");
        }
        must(any, "words without counts stay away");
    }
    must(!open, "the last interval has an end");
    return intervals;
}

std::vector<Top> talkers_of(const std::vector<Word> &results)
{
    std::vector<Top> intervals;
    bool open = false;
    for (const Word &word : results) {
        const auto &lanes = word.lanes;
        must(kind_of(word) == weir::Top::KIND && word.last == ends(word), "not a TOP");
        if (!open) {
            intervals.emplace_back();
            intervals.back().start = lanes[2];
        }
        Top &interval = intervals.back();
        open = !word.last;
        must(interval.start == lanes[2], "one interval, one time");
        if (word.last) {
            interval.totals = {lanes[3], lanes[4], lanes[5]};
            must(low(lanes[6]) == 0, "a result was lost");
            continue;
        }
        must(arg_of(word) < 3, "a weight");
        const Address key = {network_order(lanes[3]), network_order(lanes[4])};
        const Sent sent = {low(lanes[5]), high(lanes[5]), low(lanes[6])};
        must(interval.top[arg_of(word)].emplace(key, sent).second, "a destination came twice");
    }
    must(!open, "the last interval has an end");
    return intervals;
}

} // namespace test
