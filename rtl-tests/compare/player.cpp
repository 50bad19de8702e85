// Plays a capture (see play.hpp) to the Verilated measuring pipeline and writes its records.
//
//   player PLAYLIST RECORDS [--stall PERCENT] [--bubbles PERCENT] [--seed N] [--digests] [--ignore-vlan] [--shed]
//          [--statistics FILE --burst-bytes N,N --services N,...]
//
// Statistics go into a FILE of their own. A wire gives the kernels 100 ms to write out those of the 100 ms before; here
// frames wait for that.
// PLAYLIST and RECORDS may be - (standard input and output). PERCENT of the clocks no record is taken, no beat sent.
// Frames go back to back, as far ahead of their words as the queues allow; horizons keep the words in the order of the
// capture, also where its times run backwards.

#include <algorithm>
#include <array>
#include <ctime>
#include <deque>
#include <memory>

#include "Vtop.h"
#include "play.hpp"
#include "verilated.h"
#if VM_COVERAGE
#include "verilated_cov.h"
#endif

namespace
{

#ifndef WIRE_PORTS
#define WIRE_PORTS 2
#endif
constexpr int PORTS = WIRE_PORTS;
// Below the words that a queue of metadata takes.
constexpr size_t MOST_FRAMES = 400;
// New flows whose keys the stash must be able to take at once, with a margin.
constexpr int STASH_ENTRIES = 28;
// A leap in time by this must find the keys of ended flows deleted (weir_lookup, Deletions).
constexpr uint64_t LEAP = 1 << 28;
constexpr int HANG = 1'000'000;
constexpr size_t MARK = 256;
// Of statistics (TAI ns); clocks in which the kernels clear their memories.
constexpr uint64_t STATISTICS = 100'000'000;
constexpr int CLEARING = 4200;
// Record kinds that they make, from this one on, and bits of a record's flags.
constexpr uint8_t BURST = 11;
constexpr size_t KERNELS = 3;
constexpr uint8_t CONTINUATION = 1;

enum Kind : uint8_t {
    PACKET,
    VISIT,
    PORT,
    END
};

uint64_t splitmix(uint64_t &state)
{
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

// A wide port or a narrow one: its 32-bit words, the lowest first.
template <class T> uint32_t *words(T &port) { return reinterpret_cast<uint32_t *>(&port); }

struct Options {
    int stall = 0;
    int bubbles = 0;
    uint64_t seed = 1;
    FILE *statistics = nullptr;
};

// A frame that has not gone through the merge yet.
struct Waiting {
    uint64_t time;
    uint64_t now;
};

class Player
{
  public:
    Player(Vtop &top, PlayList &list, FILE *out, const Options &options)
        : top(top), list(list), out(out), options(options)
    {
    }

    uint64_t clocks = 0, frames = 0, visits = 0, records = 0;

    // Packets per clock behind the lookup in the second half of the capture.
    double rate() const
    {
        const size_t half = marks.size() / 2;
        if (marks.size() - half < 2)
            return 0;
        return double(MARK * (marks.size() - 1 - half)) / (marks.back() - marks[half]);
    }

    void run()
    {
        for (auto &word : top.seed.m_storage)
            word = splitmix(options.seed);
        top.rst = 1;
        for (int i = 0; i < 10; i++)
            clock();
        top.rst = 0;
        while (!top.ready)
            clock();
        for (int i = 0; options.statistics && i < CLEARING; i++)
            clock();
        clocks = 0;
        while (!done()) {
            send_beat();
            offer_visit();
            set_horizons();
            top.m_ready = !chance(options.stall);
            top.statistic_ready = !chance(options.stall);
            clock();
            if (++since_progress > HANG)
                hang();
        }
        flush();
        if (top.no_room_count != 0)
            fail("the key table had no room for a flow: this run cannot be compared");
        for (int p = 0; p < PORTS; p++) {
            if (words(top.dropped)[p] != 0)
                fail("frames were dropped: this run cannot be compared");
        }
        for (size_t k = 0; k < KERNELS; k++) {
            if (words(top.words_lost)[k] != 0)
                fail("a kernel had no room for a word: this run cannot be compared");
        }
    }

  private:
    Vtop &top;
    PlayList &list;
    FILE *out;
    Options options;

    // The frame that is being sent or is next.
    Item frame{};
    std::vector<uint8_t> data;
    bool have_frame = false, list_ended = false;
    size_t beat = 0;
    uint64_t last_sent = 0;
    // Clock of every MARK-th packet behind the lookup.
    uint64_t packets = 0;
    std::vector<uint64_t> marks;
    std::array<std::deque<Waiting>, PORTS> waiting;
    struct Visit {
        Kind kind;
        uint32_t index;
        uint64_t time;
    };
    std::deque<Visit> pending_visits;
    // All visits and frames still to be read from the list are not before these.
    uint64_t next_visit = 0, next_frame = 0;
    uint64_t issued = 0, looked_up = 0;
    int fresh_under_way = 0;
    // Whether each frame under way opens a flow, in order.
    std::deque<bool> fresh;
    uint64_t settled_at = 0;
    bool finishing = false;
    int quiet = 0, since_progress = 0;
    std::vector<uint8_t> buffer;
    // Start of the 100 ms of the last frame, how many there were, and how many each kernel has written out.
    uint64_t interval = ~0ull;
    uint64_t intervals = 0;
    std::array<uint64_t, KERNELS> written{};
    // A word of later 100 ms, or the end, ends the last ones: those before must be written out.
    bool must_wait(uint64_t time) const
    {
        return options.statistics && intervals > 0 && time / STATISTICS > interval && behind(intervals - 1);
    }
    bool behind(uint64_t count) const { return *std::min_element(written.begin(), written.end()) < count; }

    bool chance(int percent) { return percent > 0 && static_cast<int>(splitmix(options.seed) % 100) < percent; }

    bool done()
    {
        const bool idle = list_ended && !have_frame && pending_visits.empty() && issued == looked_up && !top.m_valid &&
                          !(options.statistics && behind(intervals));
        quiet = idle ? quiet + 1 : 0;
        return quiet > 400;
    }

    [[noreturn]] void hang()
    {
        fail("the pipeline hangs after " + std::to_string(frames) + " frames: " + std::to_string(issued - looked_up) +
             " words under way, " + std::to_string(fresh_under_way) + " of them open flows, stash " +
             std::to_string(top.stash_level) + ", deletions " + std::to_string(top.deletions));
    }

    // Reads the list up to the next frame. A leap in time waits until the flows that ended before it are forgotten.
    void load()
    {
        while (!have_frame && !list_ended) {
            if (pending_visits.size() > 4096)
                return;
            if (!has_ahead) {
                if (!list.next(ahead, data)) {
                    pending_visits.push_back({PORT, 0, ahead.now});
                    // A visit to a flow that is no more ends the last 100 ms.
                    if (options.statistics)
                        pending_visits.push_back({VISIT, 0, ahead.now + STATISTICS});
                    list_ended = true;
                    return;
                }
                has_ahead = true;
            }
            if (ahead.now > settled_at + LEAP) {
                if (issued != looked_up || !pending_visits.empty() || top.deletions != 0 || ++settling < 4)
                    return;
                settled_at = ahead.now;
                settling = 0;
            }
            has_ahead = false;
            if (ahead.what == What::FRAME) {
                if (ahead.port >= PORTS)
                    fail("a frame of a port that this pipeline does not have");
                frame = ahead;
                have_frame = true;
                beat = 0;
                next_visit = frame.now + 1;
            } else if (ahead.what == What::VISIT) {
                pending_visits.push_back({VISIT, ahead.index, ahead.now});
                next_visit = ahead.now + 1;
            } else if (ahead.what == What::END) {
                // The first of them only says how many.
                if (finishing)
                    pending_visits.push_back({END, ahead.index, ahead.now});
                finishing = true;
            }
            next_frame = ahead.now;
        }
    }
    Item ahead{};
    bool has_ahead = false;
    int settling = 0;

    // Whether the merge would take the frame before one that comes before it on another port.
    bool overtakes() const
    {
        for (int p = 0; p < PORTS; p++) {
            if (p == frame.port)
                continue;
            for (const Waiting &other : waiting[p]) {
                if (frame.time < other.time || (frame.time == other.time && frame.port < p))
                    return true;
            }
        }
        return false;
    }

    void send_beat()
    {
        top.s_tvalid = 0;
        if (!have_frame)
            load();
        if (!have_frame || chance(options.bubbles))
            return;
        const int port = frame.port;
        if (beat == 0) {
            if (waiting[port].size() >= MOST_FRAMES || overtakes())
                return;
            if (frame.fresh() && fresh_under_way + top.stash_level >= STASH_ENTRIES)
                return;
            if (must_wait(frame.now))
                return;
            if (options.statistics && frame.now / STATISTICS != interval) {
                interval = frame.now / STATISTICS;
                intervals++;
            }
        }
        const bool last = beat + 1 == frame.beats();
        const size_t bytes = last ? frame.captured - beat * BEAT : BEAT;
        const uint64_t keep = bytes == BEAT ? ~0ull : (1ull << bytes) - 1;
        memcpy(words(top.s_tdata) + port * BEAT / 4, &data[beat * BEAT], BEAT);
        memcpy(words(top.s_tkeep) + port * 2, &keep, 8);
        memcpy(words(top.s_timestamp) + port * 2, &frame.time, 8);
        top.s_wire_length = static_cast<uint64_t>(frame.wire) << (20 * port);
        top.s_tvalid = 1u << port;
        top.s_tlast = last << port;
        if (beat == 0) {
            waiting[port].push_back({frame.time, frame.now});
            last_sent = frame.now;
            fresh.push_back(frame.fresh());
            fresh_under_way += frame.fresh();
            issued++;
        }
        beat++;
        if (last) {
            have_frame = false;
            frames++;
        }
    }

    void offer_visit()
    {
        top.s_visit_valid = !pending_visits.empty();
        if (pending_visits.empty())
            return;
        const Visit &visit = pending_visits.front();
        if (must_wait(visit.kind == END ? ~0ull : visit.time)) {
            top.s_visit_valid = 0;
            return;
        }
        top.s_visit_kind = visit.kind;
        top.s_visit_index = visit.index & 0x3ffff;
        top.s_visit_time = visit.time;
    }

    // A port with nothing under way has nothing before what was read of the list, and nothing that goes before the
    // frames that were sent.
    void set_horizons()
    {
        for (int p = 0; p < PORTS; p++) {
            uint64_t horizon = std::max(next_frame, last_sent + 1);
            if (!waiting[p].empty())
                horizon = waiting[p].front().time;
            else if (list_ended)
                horizon = ~0ull;
            memcpy(words(top.s_horizon) + p * 2, &horizon, 8);
        }
        const bool has_visit = !pending_visits.empty() && pending_visits.front().kind == VISIT;
        top.s_visit_horizon = has_visit ? pending_visits.front().time : list_ended ? ~0ull : next_visit;
    }

    void clock()
    {
        top.clk = 0;
        top.eval();
        if (!top.rst)
            watch();
        top.clk = 1;
        top.eval();
        clocks++;
    }

    // What happens at the edge to come.
    void watch()
    {
        if (top.m_valid && top.m_ready) {
            const auto *bytes = reinterpret_cast<const uint8_t *>(&top.m_record);
            buffer.insert(buffer.end(), bytes, bytes + BEAT);
            if (buffer.size() >= 1 << 20)
                flush();
            records++;
            since_progress = 0;
        }
        if (top.statistic_valid && top.statistic_ready) {
            const auto *bytes = reinterpret_cast<const uint8_t *>(&top.statistic);
            const size_t kernel = bytes[0] - BURST;
            if (kernel >= KERNELS || fwrite(bytes, BEAT, 1, options.statistics) != 1)
                fail("no record of statistics, or it cannot be written");
            written[kernel] += kernel == 0 ? bytes[3] == 1 : bytes[1] & CONTINUATION;
            since_progress = 0;
        }
        for (int p = 0; p < PORTS; p++) {
            if (top.gone >> p & 1)
                waiting[p].pop_front();
        }
        if (top.s_visit_valid && top.s_visit_ready) {
            if (pending_visits.front().kind != PORT)
                issued++;
            pending_visits.pop_front();
            visits++;
            since_progress = 0;
        }
        if (top.looked_up && top.looked_up_kind != PORT) {
            looked_up++;
            if (top.looked_up_kind == PACKET) {
                fresh_under_way -= fresh.front();
                fresh.pop_front();
                if (++packets % MARK == 0)
                    marks.push_back(clocks);
            }
            since_progress = 0;
        }
    }

    void flush()
    {
        if (!buffer.empty() && fwrite(buffer.data(), buffer.size(), 1, out) != 1)
            fail("cannot write the records");
        fflush(out);
        buffer.clear();
    }
};

// Up to eight numbers between commas.
std::array<uint32_t, 8> numbers(const std::string &text)
{
    std::array<uint32_t, 8> all{};
    const char *at = text.c_str();
    for (size_t i = 0; i < all.size() && *at; i++) {
        char *end = nullptr;
        all[i] = strtoul(at, &end, 10);
        at = *end == ',' ? end + 1 : end;
    }
    return all;
}

} // namespace

int main(int argc, char **argv)
{
    auto context = std::make_unique<VerilatedContext>();
    context->commandArgs(argc, argv);
    std::vector<const char *> files;
    Options options;
    std::string burst_bytes, services;
    bool digests = false, vlan_in_key = true, shed = false;
    for (int i = 1; i < argc; i++) {
        const std::string arg = argv[i];
        if (arg == "--stall" && i + 1 < argc)
            options.stall = atoi(argv[++i]);
        else if (arg == "--bubbles" && i + 1 < argc)
            options.bubbles = atoi(argv[++i]);
        else if (arg == "--seed" && i + 1 < argc)
            options.seed = strtoull(argv[++i], nullptr, 10);
        else if (arg == "--statistics" && i + 1 < argc)
            options.statistics = fopen(argv[++i], "wb");
        else if (arg == "--burst-bytes" && i + 1 < argc)
            burst_bytes = argv[++i];
        else if (arg == "--services" && i + 1 < argc)
            services = argv[++i];
        else if (arg == "--digests")
            digests = true;
        else if (arg == "--shed")
            shed = true;
        else if (arg == "--ignore-vlan")
            vlan_in_key = false;
        else if (arg[0] != '+')
            files.push_back(argv[i]);
    }
    if (files.size() != 2 || options.stall > 99 || options.bubbles > 99)
        fail("usage: player PLAYLIST RECORDS [--stall PERCENT] [--bubbles PERCENT] [--seed N] [--digests] "
             "[--ignore-vlan] [--shed] [--statistics FILE --burst-bytes N,N --services N,...]");
    PlayList list(files[0]);
    FILE *out = strcmp(files[1], "-") == 0 ? stdout : fopen(files[1], "wb");
    if (!out)
        fail(std::string("cannot write ") + files[1]);

    auto top = std::make_unique<Vtop>(context.get());
    top->digests = digests;
    top->shed_enable = shed;
    top->vlan_in_key = vlan_in_key;
    top->statistics_enable = options.statistics != nullptr;
    for (int i = 0; i < 2; i++)
        words(top->burst_bytes)[i] = numbers(burst_bytes)[i];
    for (int i = 0; i < 7; i++)
        reinterpret_cast<uint16_t *>(&top->services)[i] = numbers(services)[i];
    Player player(*top, list, out, options);
    const clock_t start = std::clock();
    player.run();
    const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
    fprintf(stderr,
            "%llu packets, %llu visits, %llu records, %llu clocks, %.2f packets per clock at the end, %.0f packets per "
            "CPU second\n",
            (unsigned long long)player.frames, (unsigned long long)player.visits, (unsigned long long)player.records,
            (unsigned long long)player.clocks, player.rate(), player.frames / seconds);
    if (options.statistics && fclose(options.statistics) != 0)
        fail("cannot write the statistics");
    top->final();
#if VM_COVERAGE
    context->coveragep()->write(std::string(files[1]) + ".coverage");
#endif
    return 0;
}
