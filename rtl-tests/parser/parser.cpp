// Drives weir_parser with the frames that `meta` (host/capture/examples/meta.rs) writes to standard input, one beat
// in every clock, and holds each word against the one beside its frame. Exit 1 at the first difference.

#include "Vweir_parser.h"
#include "verilated.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <set>
#include <string>
#include <vector>

namespace
{

struct Field {
    std::string name;
    unsigned width = 0;
    unsigned low = 0;
};

struct Frame {
    uint64_t number = 0;
    uint64_t last_beat = 0;
    std::vector<uint8_t> word;
    std::vector<uint8_t> bytes;
    uint32_t wire = 0;
};

constexpr size_t BEAT = 64;
// Of a frame that no flow counts only these hold.
const std::set<std::string> ALWAYS = {"timestamp", "number", "port", "class", "reason", "wire_length", "cut"};
constexpr unsigned UNTRACKED = 3;

std::vector<Field> fields;
size_t word_bytes = 0;

bool read_bytes(void *to, size_t count) { return std::fread(to, 1, count, stdin) == count; }

void need(bool good, const char *what)
{
    if (good) {
        return;
    }
    std::fprintf(stderr, "%s\n", what);
    std::exit(2);
}

bool bit(const uint8_t *word, unsigned at) { return word[at / 8] >> (at % 8) & 1; }

std::string hex(const uint8_t *word, const Field &field)
{
    std::string text;
    for (unsigned nibble = (field.width + 3) / 4; nibble-- > 0;) {
        unsigned value = 0;
        for (unsigned i = 0; i < 4 && 4 * nibble + i < field.width; i++) {
            value |= unsigned{bit(word, field.low + 4 * nibble + i)} << i;
        }
        text += "0123456789abcdef"[value];
    }
    return text;
}

void read_table()
{
    uint32_t count = 0;
    need(read_bytes(&count, sizeof count) && count < 1000, "no table of fields");
    for (uint32_t i = 0; i < count; i++) {
        uint16_t width = 0;
        uint8_t length = 0;
        need(read_bytes(&width, sizeof width) && read_bytes(&length, sizeof length), "table of fields is cut");
        Field field;
        field.name.resize(length);
        need(read_bytes(field.name.data(), length), "table of fields is cut");
        field.width = width;
        fields.push_back(field);
    }
    unsigned low = 0;
    for (size_t i = fields.size(); i-- > 0;) {
        fields[i].low = low;
        low += fields[i].width;
    }
    word_bytes = (low + 31) / 32 * 4;
    need(word_bytes == sizeof(Vweir_parser{}.m_meta), "fields do not fill meta_t");
}

bool equal(const uint8_t *got, const Frame &frame)
{
    if (std::memcmp(got, frame.word.data(), word_bytes) == 0) {
        return true;
    }
    bool same = true;
    bool untracked = false;
    for (const Field &field : fields) {
        if (field.name == "class") {
            untracked = bit(frame.word.data(), field.low) && bit(frame.word.data(), field.low + 1);
        }
    }
    for (const Field &field : fields) {
        if (untracked && ALWAYS.count(field.name) == 0) {
            continue;
        }
        for (unsigned i = 0; i < field.width; i++) {
            if (bit(got, field.low + i) != bit(frame.word.data(), field.low + i)) {
                same = false;
            }
        }
    }
    if (same) {
        return true;
    }
    std::printf("frame %llu (%zu bytes, wire_length %u) differs:\n", static_cast<unsigned long long>(frame.number),
                frame.bytes.size(), frame.wire);
    for (const Field &field : fields) {
        const std::string is = hex(got, field);
        const std::string wanted = hex(frame.word.data(), field);
        if (is != wanted && !(untracked && ALWAYS.count(field.name) == 0)) {
            std::printf("  %-24s hardware %s, software %s\n", field.name.c_str(), is.c_str(), wanted.c_str());
        }
    }
    for (size_t i = 0; i < frame.bytes.size() && i < 256; i++) {
        std::printf("%s%02x", i % 16 == 0 ? "\n  " : " ", frame.bytes[i]);
    }
    std::printf("\n");
    return false;
}

} // namespace

int main(int argc, char **argv)
{
    Verilated::commandArgs(argc, argv);
    // One clock in so many is left empty; 0: none.
    const unsigned gaps = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 0;
    read_table();

    Vweir_parser top;
    uint64_t clock = 0;
    uint64_t beats = 0;
    uint64_t latency = 0;
    uint64_t tracked[4] = {};
    std::deque<Frame> waiting;
    uint32_t state = 12345;

    // Inputs are set; a word that this clock brings out is held against its frame.
    auto tick = [&]() {
        top.clk = 1;
        top.eval();
        top.clk = 0;
        top.eval();
        clock++;
        if (!top.m_valid) {
            return true;
        }
        need(!waiting.empty(), "a word without a frame");
        const Frame &frame = waiting.front();
        if (latency == 0) {
            latency = clock - frame.last_beat;
        }
        if (clock - frame.last_beat != latency) {
            std::printf("frame %llu: latency %llu, before %llu\n", static_cast<unsigned long long>(frame.number),
                        static_cast<unsigned long long>(clock - frame.last_beat),
                        static_cast<unsigned long long>(latency));
            return false;
        }
        const auto *got = reinterpret_cast<const uint8_t *>(&top.m_meta);
        if (!equal(got, frame)) {
            return false;
        }
        for (const Field &field : fields) {
            if (field.name == "class") {
                tracked[bit(got, field.low) + 2 * bit(got, field.low + 1)]++;
            }
        }
        waiting.pop_front();
        return true;
    };

    // Registers and the clock itself start random: nothing counts before the reset's end.
    top.rst = 1;
    top.s_tvalid = 0;
    for (int i = 0; i < 4; i++) {
        top.clk = 0;
        top.eval();
        top.clk = 1;
        top.eval();
    }
    top.clk = 0;
    top.rst = 0;
    top.eval();

    uint64_t frames = 0;
    uint32_t captured = 0;
    while (read_bytes(&captured, sizeof captured)) {
        Frame frame;
        uint64_t time = 0;
        need(read_bytes(&frame.wire, sizeof frame.wire) && read_bytes(&time, sizeof time), "input is cut");
        frame.word.resize(word_bytes);
        frame.bytes.resize(captured);
        need(read_bytes(frame.word.data(), word_bytes) && read_bytes(frame.bytes.data(), captured), "input is cut");
        frame.number = ++frames;
        const size_t count = captured == 0 ? 1 : (captured + BEAT - 1) / BEAT;
        for (size_t i = 0; i < count; i++) {
            while (gaps != 0 && (state = state * 1664525 + 1013904223) >> 16 < 65536 / gaps) {
                top.s_tvalid = 0;
                if (!tick()) {
                    return 1;
                }
            }
            const size_t left = captured - i * BEAT;
            const size_t here = left < BEAT ? left : BEAT;
            // What is beyond the frame's end must not matter: the bytes of the frame before stay there.
            std::memcpy(&top.s_tdata, frame.bytes.data() + i * BEAT, here);
            top.s_tkeep = here == BEAT ? ~uint64_t{0} : (uint64_t{1} << here) - 1;
            top.s_tvalid = 1;
            top.s_tlast = i + 1 == count;
            // The user word counts with the first beat only.
            const uint64_t stamp = i == 0 ? time : ~time;
            top.s_tuser[0] = static_cast<uint32_t>(stamp);
            top.s_tuser[1] = static_cast<uint32_t>(stamp >> 32);
            top.s_tuser[2] = i == 0 ? frame.wire : 77;
            if (i + 1 == count) {
                frame.last_beat = clock + 1;
                waiting.push_back(std::move(frame));
            }
            beats++;
            if (!tick()) {
                return 1;
            }
        }
    }
    top.s_tvalid = 0;
    for (int i = 0; i < 200; i++) {
        if (!tick()) {
            return 1;
        }
    }
    if (!waiting.empty()) {
        std::printf("%zu frames without a word\n", waiting.size());
        return 1;
    }
    top.final();
    std::printf("%llu frames in %llu beats and %llu clocks, latency %llu: TCP %llu, other %llu, ICMP errors %llu, "
                "untracked %llu\n",
                static_cast<unsigned long long>(frames), static_cast<unsigned long long>(beats),
                static_cast<unsigned long long>(clock - 200), static_cast<unsigned long long>(latency),
                static_cast<unsigned long long>(tracked[0]), static_cast<unsigned long long>(tracked[1]),
                static_cast<unsigned long long>(tracked[2]), static_cast<unsigned long long>(tracked[UNTRACKED]));
    return 0;
}
