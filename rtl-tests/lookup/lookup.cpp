// Drives weir_lookup with random and directed words and holds every answer against a model that finishes one word
// before it begins the next. Exit 1 at the first difference.
//
//     lookup TEST SEED [WORDS]      TEST: random, distances, full, tiny, rates

#include "Vweir_lookup_bench.h"
#include "verilated.h"

#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace
{

enum Kind {
    PACKET = 0,
    VISIT = 1,
    PORT = 2,
    END = 3
};
enum Class {
    TCP = 0,
    OTHER = 1,
    ICMP_ERROR = 2,
    UNTRACKED = 3
};
constexpr unsigned ICMP_NO_FLOW = 6;
constexpr unsigned TABLE_FULL = 7;
constexpr uint64_t REST = uint64_t{1} << 29;
constexpr uint64_t SEEN_MASK = (uint64_t{1} << 48) - 1;
// Time that may pass without empty clocks, counted from the last word that waited: half the shortest timeout.
constexpr uint64_t DRAIN_AFTER = 1 << 20;
// Clocks from the end of the last deletion to the index at the head of the free list (weir_lookup, Deletions).
constexpr unsigned FORGOTTEN = 24;

struct Word {
    Kind kind = PACKET;
    Class class_ = TCP;
    uint32_t index = 0;
    uint64_t time = 0;
    uint64_t key = 0;
    uint32_t vlans = 0;
    unsigned reason = 0;
    // State of the flow after this packet, as the tracker would find it.
    unsigned timeout = 0;
    uint64_t number = 0;
};

struct Answer {
    bool tracked = false;
    bool expired = false;
    bool fresh = false;
    unsigned reason = 0;
    uint32_t index = 0;
    uint64_t last_seen = 0;
};

struct Model {
    struct Context {
        bool live = false;
        uint64_t last_seen = 0;
        unsigned timeout = 0;
        std::pair<uint64_t, uint32_t> key;
    };
    struct Hash {
        size_t operator()(const std::pair<uint64_t, uint32_t> &key) const { return key.first * 31 + key.second; }
    };

    uint32_t limit;
    bool vlan_in_key;
    std::array<uint64_t, 4> timeouts;
    std::unordered_map<std::pair<uint64_t, uint32_t>, uint32_t, Hash> keys;
    std::vector<Context> contexts;
    std::deque<std::pair<uint32_t, uint64_t>> released;
    uint64_t no_room = 0;
    uint64_t no_index = 0;

    bool old(const Context &context, uint64_t time) const
    {
        return time - context.last_seen >= timeouts[context.timeout];
    }

    void end(uint32_t index, uint64_t time)
    {
        keys.erase(contexts[index].key);
        contexts[index].live = false;
        released.emplace_back(index, time);
    }

    // `no_room_seen`: the key table said that it had no room for the key, which the model cannot know.
    Answer step(const Word &word, bool full_seen)
    {
        Answer answer;
        if (word.kind == PORT) {
            return answer;
        }
        if (word.kind != PACKET) {
            if (word.index >= contexts.size() || !contexts[word.index].live) {
                return answer;
            }
            const Context &context = contexts[word.index];
            answer = {true, word.kind == VISIT && old(context, word.time), false, 0, word.index, context.last_seen};
            if (answer.expired || word.kind == END) {
                end(word.index, word.time);
            }
            return answer;
        }
        if (word.class_ == UNTRACKED) {
            answer.reason = word.reason;
            return answer;
        }
        const std::pair<uint64_t, uint32_t> key{word.key, vlan_in_key ? word.vlans : 0};
        const auto at = keys.find(key);
        if (word.class_ == ICMP_ERROR) {
            if (at == keys.end() || old(contexts[at->second], word.time)) {
                answer.reason = ICMP_NO_FLOW;
                return answer;
            }
            answer = {true, false, false, 0, at->second, contexts[at->second].last_seen};
            return answer;
        }
        if (at != keys.end()) {
            Context &context = contexts[at->second];
            const bool expired = old(context, word.time);
            answer = {true, expired, expired, 0, at->second, context.last_seen};
            context.last_seen = word.time;
            context.timeout = word.timeout;
            return answer;
        }
        uint32_t index = 0;
        const bool rested = !released.empty() && word.time - released.front().second >= REST;
        if (!rested && contexts.size() == limit) {
            no_index++;
            answer.reason = TABLE_FULL;
            return answer;
        }
        if (full_seen) {
            no_room++;
            answer.reason = TABLE_FULL;
            return answer;
        }
        if (rested) {
            index = released.front().first;
            released.pop_front();
        } else {
            index = static_cast<uint32_t>(contexts.size());
            contexts.emplace_back();
        }
        keys[key] = index;
        contexts[index] = {true, word.time, word.timeout, key};
        answer = {true, false, true, 0, index, 0};
        return answer;
    }
};

class Bench
{
  public:
    std::mt19937_64 random;
    Vweir_lookup_bench top;
    Model model{};
    uint64_t clocks = 0;
    uint64_t words = 0;
    uint64_t packets = 0;
    uint64_t tracked = 0;
    uint64_t full = 0;
    uint64_t expired_packets = 0;
    uint64_t expired_visits = 0;
    // Clocks from a packet's answer to the tracker's word about its timeout.
    unsigned update_clocks = 1;
    std::string what;

    explicit Bench(uint64_t seed) : random(seed) {}

    uint64_t below(uint64_t limit) { return random() % limit; }
    bool chance(unsigned percent) { return below(100) < percent; }

    void reset(std::array<uint64_t, 4> timeouts, bool vlan_in_key)
    {
        model = Model{};
        model.limit = CONTEXTS;
        model.timeouts = timeouts;
        model.vlan_in_key = vlan_in_key;
        expected.clear();
        updates.clear();
        top.rst = 1;
        top.s_valid = 0;
        top.vlan_in_key = vlan_in_key;
        for (auto &part : top.seed.m_storage) {
            part = static_cast<uint32_t>(random());
        }
        top.seed.m_storage[12] &= 0x7fff;
        // handshake, idle, linger, other: 47 bits each, the last lowest.
        std::array<bool, 188> bits{};
        for (unsigned field = 0; field < 4; field++) {
            for (unsigned bit = 0; bit < 47; bit++) {
                bits[(3 - field) * 47 + bit] = timeouts[field] >> bit & 1;
            }
        }
        for (unsigned part = 0; part < 6; part++) {
            top.timeouts.m_storage[part] = 0;
            for (unsigned bit = 0; bit < 32 && part * 32 + bit < bits.size(); bit++) {
                top.timeouts.m_storage[part] |= uint32_t{bits[part * 32 + bit]} << bit;
            }
        }
        // The tracker takes 6 clocks; with DrainClocks 32 any up to 20 must do.
        update_clocks = 1 + static_cast<unsigned>(below(20));
        for (int i = 0; i < 3; i++) {
            clock();
        }
        top.rst = 0;
        while (!top.ready) {
            clock();
        }
        anchor = 0;
    }

    // One clock; the word, if any, is in it.
    void clock()
    {
        while (!updates.empty() && updates.front().first + update_clocks < clocks) {
            updates.pop_front();
        }
        const bool update = !updates.empty() && updates.front().first + update_clocks == clocks;
        top.update_valid = update;
        if (update) {
            top.update_index = updates.front().second.index;
            top.update_timeout = static_cast<uint8_t>(updates.front().second.timeout);
        }
        top.clk = 0;
        top.eval();
        top.clk = 1;
        top.eval();
        top.s_valid = 0;
        clocks++;
        if (!top.rst && top.m_valid) {
            check();
        }
    }

    void idle(uint64_t count)
    {
        for (uint64_t i = 0; i < count; i++) {
            clock();
        }
    }

    // Until the indices of all flows that ended may be used again.
    void forget()
    {
        for (unsigned done = 0; done < FORGOTTEN; done = top.deletions == 0 ? done + 1 : 0) {
            clock();
        }
    }

    // As the merge does: empty clocks before a word that is long after the others.
    void send(Word word)
    {
        if (word.time > anchor + DRAIN_AFTER) {
            idle(top.drain);
            forget();
            anchor = word.time;
        }
        word.number = ++words;
        top.s_valid = 1;
        top.s_kind = word.kind;
        top.s_class = word.class_;
        top.s_reason = static_cast<uint8_t>(word.reason);
        top.s_index = word.index;
        top.s_time = word.time;
        top.s_key = word.key;
        top.s_vlans = word.vlans;
        top.s_number = word.number;
        expected.push_back({word, clocks});
        clock();
    }

    void wait_for_stash(unsigned level)
    {
        for (uint64_t begin = clocks; top.stash_level > level;) {
            clock();
            need(clocks - begin < 100000, "the stash does not empty");
        }
    }

    void drain()
    {
        idle(top.latency + 2);
        need(expected.empty(), "words did not come out");
    }

    // Counters of the card agree with what came out.
    void settle()
    {
        drain();
        idle(64);
        forget();
        need(top.occupancy == model.keys.size(), "occupancy");
        need(top.used == model.contexts.size(), "used");
        need(top.no_room_count == model.no_room, "no_room_count");
        need(top.no_index_count == model.no_index, "no_index_count");
    }

    void need(bool good, const char *problem)
    {
        if (good) {
            return;
        }
        std::printf("%s: %s at clock %" PRIu64 "\n", what.c_str(), problem, clocks);
        std::exit(1);
    }

  private:
    struct Sent {
        Word word;
        uint64_t clock;
    };
    std::deque<Sent> expected;
    std::deque<std::pair<uint64_t, Word>> updates;
    uint64_t anchor = 0;

    void check()
    {
        need(!expected.empty(), "a word too many");
        const Sent sent = expected.front();
        expected.pop_front();
        const Word &word = sent.word;
        const bool full_seen = word.kind == PACKET && !top.m_tracked && top.m_reason == TABLE_FULL;
        const uint64_t no_room = model.no_room;
        const Answer answer = model.step(word, full_seen);
        const bool counts = word.kind == PACKET && word.class_ <= OTHER;
        const bool seen_matters = answer.tracked && (!answer.fresh || answer.expired);
        bool good = top.m_number == word.number && top.m_vlans == word.vlans && clocks - sent.clock == top.latency &&
                    top.m_tracked == answer.tracked && top.m_expired == answer.expired && top.m_fresh == answer.fresh;
        good = good && (!answer.tracked || top.m_index == answer.index);
        good = good && (answer.tracked || word.kind != PACKET || top.m_reason == answer.reason);
        good = good && (!seen_matters || top.m_last_seen == (answer.last_seen & SEEN_MASK));
        if (!good) {
            std::printf("%s: word %" PRIu64 " kind %u class %u index %u key %" PRIx64 " time %" PRIu64 " clock %" PRIu64
                        "\n",
                        what.c_str(), word.number, word.kind, word.class_, word.index, word.key, word.time, clocks);
            std::printf("  card:  number %" PRIu64
                        " tracked %u expired %u fresh %u reason %u index %u last seen %" PRIu64 "\n",
                        static_cast<uint64_t>(top.m_number), top.m_tracked, top.m_expired, top.m_fresh, top.m_reason,
                        top.m_index, static_cast<uint64_t>(top.m_last_seen));
            std::printf("  model: number %" PRIu64
                        " tracked %u expired %u fresh %u reason %u index %u last seen %" PRIu64 "\n",
                        word.number, answer.tracked, answer.expired, answer.fresh, answer.reason, answer.index,
                        answer.last_seen & SEEN_MASK);
            std::exit(1);
        }
        if (counts) {
            packets++;
            tracked += answer.tracked;
            full += answer.reason == TABLE_FULL;
            expired_packets += answer.expired;
            if (answer.tracked) {
                Word update = word;
                update.index = answer.index;
                updates.emplace_back(clocks, update);
            }
        }
        expired_visits += word.kind == VISIT && answer.expired;
        if (!room_may_lack) {
            need(model.no_room == no_room, "no room in the stash");
        }
    }

  public:
    bool room_may_lack = false;
};

constexpr std::array<uint64_t, 4> SHORT = {1 << 21, 3 << 20, (1 << 21) + 1, 5 << 20};

// Any words, in moods of some thousand: how many keys, how fast time goes, how often what comes.
void random_words(Bench &bench, uint64_t count, bool room_may_lack)
{
    bench.room_may_lack = room_may_lack;
    uint64_t done = 0;
    while (done < count) {
        std::array<uint64_t, 4> timeouts = SHORT;
        if (bench.chance(30)) {
            for (auto &timeout : timeouts) {
                timeout = (uint64_t{1} << 21) + bench.below(uint64_t{1} << (21 + bench.below(10)));
            }
        }
        bench.reset(timeouts, bench.chance(70));
        uint64_t time = bench.below(uint64_t{1} << 60);
        const uint64_t base = bench.random();
        const uint64_t length = 1000 + bench.below(60000);
        uint64_t keys = 4;
        uint64_t mood_left = 0;
        unsigned gap = 0;
        unsigned visits = 0;
        unsigned ends = 0;
        unsigned leaps = 0;
        uint64_t step = 1;
        for (uint64_t i = 0; i < length; i++, done++) {
            if (mood_left-- == 0) {
                mood_left = 50 + bench.below(3000);
                keys = 1 + bench.below(uint64_t{1} << bench.below(13));
                gap = bench.chance(40) ? 0 : static_cast<unsigned>(bench.below(60));
                visits = bench.chance(30) ? 0 : static_cast<unsigned>(bench.below(50));
                ends = bench.chance(70) ? 0 : static_cast<unsigned>(bench.below(8));
                leaps = bench.chance(50) ? 0 : static_cast<unsigned>(bench.below(6));
                step = bench.chance(50) ? 8 : uint64_t{1} << bench.below(20);
            }
            while (bench.chance(gap)) {
                bench.clock();
            }
            time += bench.below(step);
            if (bench.chance(leaps)) {
                const uint64_t reach[] = {
                    timeouts[bench.below(4)] - 1, timeouts[bench.below(4)], 1 << 20, (1 << 20) + 1, REST / 2, REST};
                time += reach[bench.below(bench.chance(90) ? 4 : 6)];
            }
            // Exactly the time at which the oldest released index may be used again, or just before.
            if (bench.chance(1) && !bench.model.released.empty() &&
                bench.model.released.front().second + REST > time + 1) {
                time = bench.model.released.front().second + REST - bench.below(2);
            }
            Word word;
            word.time = time;
            word.key = base + bench.below(keys);
            word.vlans = bench.chance(80) ? 5 : static_cast<uint32_t>(bench.below(3));
            word.timeout = static_cast<unsigned>(bench.below(4));
            word.index = static_cast<uint32_t>(bench.below(
                bench.chance(90) && !bench.model.contexts.empty() ? bench.model.contexts.size() : CONTEXTS + 3));
            const unsigned kind = static_cast<unsigned>(bench.below(100));
            if (kind < visits) {
                word.kind = VISIT;
            } else if (kind < visits + ends) {
                word.kind = END;
            } else if (kind < visits + ends + 1) {
                word.kind = PORT;
            } else {
                const unsigned classes[] = {0, 0, 0, 0, 0, 1, 1, 2, 2, 3};
                word.class_ = static_cast<Class>(classes[bench.below(10)]);
                word.reason = static_cast<unsigned>(bench.below(10));
            }
            bench.send(word);
        }
        bench.settle();
    }
}

// What can go wrong only when words follow each other at one distance: that distance, and every nearer one.
void distances(Bench &bench)
{
    bench.room_may_lack = false;
    const unsigned reach = bench.top.latency + bench.top.history + 20;
    uint64_t key = 1;
    uint64_t time = 1000;
    const auto packet = [&](uint64_t which, Class class_ = TCP) {
        Word word;
        word.key = which;
        word.time = time;
        word.class_ = class_;
        word.timeout = static_cast<unsigned>(which % 4);
        bench.send(word);
    };
    const auto about = [&](Kind kind, uint32_t index) {
        Word word;
        word.kind = kind;
        word.index = index;
        word.time = time;
        bench.send(word);
    };
    // Between the two: nothing, other new keys, one other known key, visits.
    const auto between = [&](unsigned words, unsigned filler) {
        for (unsigned i = 0; i < words; i++) {
            if (filler == 0) {
                bench.clock();
            } else if (filler == 1 && i % 8 == 0) {
                packet(++key + 1000000);
            } else if (filler <= 2) {
                packet(42);
            } else {
                about(VISIT, static_cast<uint32_t>(i));
            }
            time++;
        }
    };
    const auto rest = [&] {
        bench.idle(100);
        time += 2 * REST;
    };
    uint64_t cases = 0;
    for (unsigned filler = 0; filler < 4; filler++) {
        for (unsigned distance = 1; distance <= reach; distance++) {
            if (cases % 16 == 0) {
                bench.settle();
                bench.reset(SHORT, true);
            }
            cases++;
            // A new key, and again, and an ICMP error about it, and a visit to it.
            key += 10;
            packet(key);
            between(distance - 1, filler);
            packet(key);
            between(distance - 1, filler);
            packet(key);
            bench.drain();
            key += 10;
            packet(key);
            between(distance - 1, filler);
            packet(key, ICMP_ERROR);
            packet(key);
            bench.drain();
            key += 10;
            packet(key);
            between(distance - 1, filler);
            const auto next = static_cast<uint32_t>(bench.model.contexts.size());
            for (uint32_t i = 0; i < 4; i++) {
                about(VISIT, next >= i ? next - i : 0);
            }
            bench.drain();
            // A-B-A-B, both new.
            key += 10;
            for (unsigned i = 0; i < 6; i++) {
                packet(key + i % 2);
                between(distance - 1, filler);
            }
            bench.drain();
            // The flow times out by a visit, then its key comes, and comes again.
            key += 10;
            packet(key);
            bench.drain();
            const uint32_t index = bench.model.keys.at({key, 0});
            rest();
            about(VISIT, index);
            between(distance - 1, filler);
            packet(key);
            between(distance - 1, filler);
            packet(key);
            packet(key, ICMP_ERROR);
            bench.drain();
            // It times out by its own packet.
            rest();
            packet(key);
            between(distance - 1, filler);
            packet(key);
            bench.drain();
            // It ends by WORD_END, long after or just after it began, and its key comes again.
            const uint32_t second = bench.model.keys.at({key, 0});
            about(END, second);
            between(distance - 1, filler);
            packet(key);
            between(distance - 1, filler);
            about(END, second);
            bench.drain();
            key += 10;
            packet(key);
            between(distance - 1, filler);
            const auto newest = static_cast<uint32_t>(bench.model.contexts.size());
            for (uint32_t i = 0; i < 4; i++) {
                about(END, newest >= i ? newest - i : 0);
            }
            between(distance - 1, filler);
            packet(key);
            packet(key);
            rest();
        }
    }
    bench.settle();
    std::printf("  distances 1..%u, 4 fillers\n", reach);
}

// All contexts taken, one released, one key more; then all released at once and taken again.
void full_table(Bench &bench)
{
    bench.room_may_lack = true;
    bench.reset({1 << 30, 1 << 30, 1 << 30, 1 << 30}, true);
    Word word;
    word.time = uint64_t{1} << 40;
    for (int round = 0; round < 4; round++) {
        for (uint64_t key = 1; key <= CONTEXTS + 40; key++) {
            word.key = key + static_cast<uint64_t>(round) * 1000000;
            word.time += 10;
            bench.send(word);
            bench.idle(bench.below(16));
        }
        bench.drain();
        bench.need(CONTEXTS > 2 * BUCKETS * WAYS || bench.model.contexts.size() == CONTEXTS,
                   "not all contexts were used");
        Word end;
        end.kind = round % 2 ? END : VISIT;
        end.time = word.time + (uint64_t{1} << 30);
        for (uint32_t index = 0; index < CONTEXTS; index++) {
            end.index = index;
            bench.send(end);
            end.time += 1024;
        }
        bench.drain();
        bench.need(bench.model.keys.empty(), "all flows are over");
        word.time = end.time;
        for (uint64_t key = 0; key < 5; key++) {
            word.key = 77000000 + key;
            bench.send(word);
        }
        word.time = end.time + REST - 1024 * static_cast<uint64_t>(CONTEXTS);
    }
    bench.settle();
}

// Insertions as fast as the stash takes them while the load is near the one given.
void rates(Bench &bench)
{
    const uint64_t capacity = uint64_t{2} * BUCKETS * WAYS;
    bench.room_may_lack = true;
    std::printf("  %" PRIu64 " entries, %u ways, stash %u\n", capacity, WAYS, STASH);
    std::printf("  load    fastest: clocks per insertion    at 1 per 8: highest stash level, no room   at 1 per 4\n");
    for (const unsigned percent : {50U, 75U, 80U, 90U, 95U}) {
        std::array<uint64_t, 2> highest{};
        std::array<uint64_t, 2> lost{};
        double fastest = 0;
        for (const unsigned spacing : {0U, 8U, 4U}) {
            bench.reset({uint64_t{1} << 45, uint64_t{1} << 45, uint64_t{1} << 45, uint64_t{1} << 45}, true);
            uint64_t key = bench.random();
            Word word;
            word.time = 1;
            const uint64_t target = capacity * percent / 100;
            const uint64_t burst = capacity / 50;
            while (bench.model.keys.size() < target - burst / 2) {
                word.key = key++;
                bench.send(word);
                bench.idle(10);
                bench.wait_for_stash(4);
            }
            uint64_t inserted = 0;
            uint64_t spent = 0;
            uint32_t oldest = 0;
            for (int round = 0; round < 10; round++) {
                bench.drain();
                bench.wait_for_stash(0);
                const uint64_t begin = bench.clocks;
                const uint64_t before = bench.model.no_room;
                uint64_t sent = 0;
                while (sent < burst) {
                    if (spacing != 0 || bench.top.stash_level < STASH / 2) {
                        word.key = key++;
                        bench.send(word);
                        sent++;
                        if (spacing != 0) {
                            bench.idle(spacing - 1);
                            highest[spacing == 4] = std::max<uint64_t>(highest[spacing == 4], bench.top.stash_level);
                        } else {
                            // What is on its way to the stash does not show in its level yet.
                            bench.idle(1);
                        }
                    } else {
                        bench.clock();
                    }
                }
                bench.wait_for_stash(2);
                spent += bench.clocks - begin;
                inserted += sent;
                bench.drain();
                if (spacing != 0) {
                    lost[spacing == 4] += bench.model.no_room - before;
                }
                Word end;
                end.kind = END;
                end.time = word.time;
                for (uint64_t i = 0; i < burst; i++) {
                    end.index = oldest++;
                    bench.send(end);
                    bench.idle(20);
                }
            }
            if (spacing == 0) {
                fastest = static_cast<double>(spent) / static_cast<double>(inserted);
            }
        }
        std::printf("  %3u %%   %5.2f                            %" PRIu64 ", %" PRIu64 "   %" PRIu64 ", %" PRIu64 "\n",
                    percent, fastest, highest[0], lost[0], highest[1], lost[1]);
        if (percent == 90) {
            bench.need(fastest <= 8 && lost[0] == 0, "fewer than 1 insertion per 8 clocks at 90 % load");
        }
    }
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 3) {
        std::fprintf(stderr, "usage: lookup random|distances|full|tiny|rates SEED [WORDS]\n");
        return 2;
    }
    Verilated::randReset(2);
    Verilated::randSeed(static_cast<int>(std::strtoul(argv[2], nullptr, 10) % 0x7fffffff) + 1);
    const uint64_t count = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 100000;
    const std::string test = argv[1];
    auto bench = std::make_unique<Bench>(std::strtoull(argv[2], nullptr, 10));
    bench->what = test;
    bench->reset(SHORT, true);
    if (test == "random") {
        random_words(*bench, count, CONTEXTS > STASH * 2);
    } else if (test == "tiny") {
        random_words(*bench, count, true);
    } else if (test == "distances") {
        distances(*bench);
    } else if (test == "full") {
        full_table(*bench);
    } else if (test == "rates") {
        rates(*bench);
    } else {
        std::fprintf(stderr, "no test %s\n", test.c_str());
        return 2;
    }
    std::printf("%s: %" PRIu64 " words in %" PRIu64 " clocks; %" PRIu64 " packets = %" PRIu64 " tracked + %" PRIu64
                " table full; timed out: %" PRIu64 " by packets, %" PRIu64 " by visits\n",
                test.c_str(), bench->words, bench->clocks, bench->packets, bench->tracked, bench->full,
                bench->expired_packets, bench->expired_visits);
    bench->need(bench->packets == bench->tracked + bench->full, "packets = tracked + table full");
    return 0;
}
