// The simulated card as a process: docs/src/nic-sim.md says what it promises.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <optional>
#include <unistd.h>

#include "card.hpp"
#include "control.hpp"
#include "weir_registers.h"
#include "wire.hpp"

namespace
{

constexpr int64_t MS = 1'000'000;
constexpr uint64_t SECOND = 1000 * MS;
// The clock's own limit.
constexpr int64_t MOST_STEP = 999'999'000;
// Time may be so far ahead of the scan: less than the period in which it looks at each context, 268 ms.
constexpr int64_t AHEAD_OF_SCAN = 200 * MS;
// The clock stands so long before the first frame.
constexpr uint64_t BEFORE = 10 * MS;
// A frame is in its queue so long after its last beat.
constexpr uint64_t ARRIVED = 64;
// Words wait for other ports so long (HorizonNs), with a margin.
constexpr int64_t HORIZON = 1100;
// Time is leapt over when no more words and new keys than these wait.
constexpr uint64_t FEW_WORDS = 8;
constexpr unsigned FEW_KEYS = 8;
// The queue of a port takes 512 words.
constexpr uint64_t MOST_WORDS = 400;
// The card sends what is left of its records in fewer clocks.
constexpr int QUIET = 5000;
constexpr int POLL_CLOCKS = 16;
// An edge of the PPS input is high for so long.
constexpr uint64_t PPS_CLOCKS = 16;
// What is in the card when it is told to end has left after so many.
constexpr uint64_t LAST_CLOCKS = 20'000;
constexpr size_t MOST_WAITING = 4096;
// Beats waiting on a port: their bytes are in use.
constexpr size_t KEPT = 8;

volatile sig_atomic_t stopped = 0;

struct Options {
    std::string wires[PORTS];
    std::string records;
    std::string socket;
    std::string seen, passed;
    uint64_t seed = 1;
    uint32_t epoch = 0, lane = 0;
    double drain = 5;
    uint64_t pace = 0, pps = 0;
    bool digests = false, vlan_in_key = true, shed = false, hold = false;
};

const char USAGE[] =
    "usage: weir-nic-sim --wire0 WIRE [--wire1 WIRE] --records LINK [options]\n"
    "\n"
    "  WIRE                pcap file (its frames, at its times) or eth:INTERFACE (needs root)\n"
    "  --records LINK      pcap file, or eth:INTERFACE (needs root; MTU 9000): where record frames go\n"
    "  --socket PATH       registers for the host over a Unix socket\n"
    "  --hold              the host configures and starts the card over the socket; frames wait until then\n"
    "  --pace CLOCKS       a frame every so many clocks, whatever its time in the capture and whether or not it is\n"
    "                      measured; the card's clock runs by itself, and only a signal ends the program\n"
    "  --pps CLOCKS        an edge on the PPS input every so many clocks; only with --pace\n"
    "  --seen FILE         pcapng: what came in on the wires, with the card's stamps\n"
    "  --passed FILE       pcapng: what went out on the wires\n"
    "  --drain SECONDS     simulated time after the last frame of files (default 5: closed connections end)\n"
    "  --seed N            of the hash (default 1)\n"
    "  --epoch N, --lane N (0 .. 7) in records (default 0)\n"
    "  --digests           a PACKET record for every packet\n"
    "  --ignore-vlan       VLAN ids are not part of a flow's key\n"
    "  --shed              leave records out when they cannot leave\n";

uint64_t splitmix(uint64_t &state)
{
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

bool is_interface(const std::string &name) { return name.rfind("eth:", 0) == 0; }

// Frames for one port: of a file or an interface.
struct Wire {
    std::unique_ptr<PcapReader> file;
    std::unique_ptr<Interface> interface;
    std::deque<Frame> waiting;
    // Bytes of frames that were sent stay until the card has taken them.
    std::deque<Frame> sent;

    void open(const std::string &name)
    {
        if (is_interface(name))
            interface = std::make_unique<Interface>(name.substr(4));
        else if (!name.empty())
            file = std::make_unique<PcapReader>(name);
    }

    Frame *next()
    {
        Frame frame;
        if (waiting.empty() && file && file->next(frame))
            waiting.push_back(std::move(frame));
        return waiting.empty() ? nullptr : &waiting.front();
    }

    void listen()
    {
        Frame frame;
        while (interface && waiting.size() < MOST_WAITING && interface->receive(frame))
            waiting.push_back(std::move(frame));
    }
};

class Simulation
{
  public:
    Simulation(Card &card, const Options &options) : card(card), options(options)
    {
        for (int p = 0; p < PORTS; p++)
            wires[p].open(options.wires[p]);
        if (is_interface(options.records))
            link = std::make_unique<Interface>(options.records.substr(4));
        else
            file = std::make_unique<PcapWriter>(options.records);
        live = wires[0].interface || wires[1].interface || options.pace > 0;
        if (!options.seen.empty())
            seen = std::make_unique<PcapngWriter>(options.seen, PORTS);
        if (!options.passed.empty())
            passed_file = std::make_unique<PcapngWriter>(options.passed, PORTS);
        if (!options.socket.empty())
            control = std::make_unique<Control>(card, options.socket);
        card.on_records = [this](const Bytes &data) {
            record_frames++;
            records += data.size() / BEAT - 1;
            quiet = 0;
            if (file)
                file->frame(this->card.now(), data);
            else if (!link->send(data))
                link_lost++;
        };
        card.on_wire = [this](int port, const Bytes &data) {
            passed++;
            if (passed_file)
                passed_file->frame(port, this->card.now(), data);
            if (wires[port].interface)
                wires[port].interface->send(data);
        };
    }

    uint64_t record_frames = 0, records = 0, passed = 0, link_lost = 0, late = 0;

    void run()
    {
        card.reset();
        set_clock();
        if (!options.hold)
            configure();
        while (!stopped && (feed() || live))
            clock();
        if (!live)
            drain();
        while (!stopped && control && control->connected())
            clock();
        // What came in goes out, and what was measured is told.
        for (uint64_t last = 0; stopped && last < LAST_CLOCKS; last++)
            clock();
        if (file)
            file->flush();
        for (PcapngWriter *wire : {seen.get(), passed_file.get()}) {
            if (wire)
                wire->flush();
        }
    }

    uint64_t filled() const
    {
        uint64_t sum = 0;
        for (const Wire &wire : wires)
            sum += wire.file ? wire.file->filled : 0;
        return sum;
    }

  private:
    Card &card;
    const Options &options;
    Wire wires[PORTS];
    std::unique_ptr<Interface> link;
    std::unique_ptr<PcapWriter> file;
    std::unique_ptr<PcapngWriter> seen, passed_file;
    std::unique_ptr<Control> control;
    bool live = false;
    int quiet = 0, since_poll = 0;
    uint64_t last_time = 0, last_sent = 0, next_send = 0;
    // Frames that no measuring will tell of: it was in reset.
    uint64_t unmeasured = 0;

    uint64_t not_told() const { return card.frames_in - card.looked_up - card.dropped(0) - card.dropped(1); }
    uint64_t under_way() const { return not_told() - unmeasured; }

    void set_clock()
    {
        const Frame *first = earliest().second;
        const uint64_t time = first ? first->tai_ns - std::min<uint64_t>(first->tai_ns, BEFORE) : tai_now();
        const uint64_t seconds = time / SECOND;
        card.write(WEIR_REG_CLOCK_SET_SECONDS_LOW, static_cast<uint32_t>(seconds));
        card.write(WEIR_REG_CLOCK_SET_SECONDS_HIGH, static_cast<uint32_t>(seconds >> 32));
        card.write(WEIR_REG_CLOCK_SET_NS, static_cast<uint32_t>(time % SECOND));
    }

    // What firmware does at START, where none runs.
    void configure()
    {
        uint64_t state = options.seed;
        for (int i = 0; i < 13; i++)
            card.write(WEIR_REG_MEASURE_SEED(i), static_cast<uint32_t>(splitmix(state)));
        const uint32_t measure = (options.vlan_in_key ? WEIR_REG_MEASURE_CONTROL_VLAN_IN_KEY_MASK : 0) |
                                 (options.shed ? WEIR_REG_MEASURE_CONTROL_SHED_ENABLE_MASK : 0) |
                                 options.lane << WEIR_REG_MEASURE_CONTROL_LANE_SHIFT |
                                 options.epoch << WEIR_REG_MEASURE_CONTROL_EPOCH_SHIFT;
        card.write(WEIR_REG_MEASURE_CONTROL, measure);
        card.write(WEIR_REG_DIGEST_CONTROL, options.digests);
        card.write(WEIR_REG_RECORD_DESTINATION_LOW, 0x00000001);
        card.write(WEIR_REG_RECORD_DESTINATION_HIGH, 0x0200);
        card.write(WEIR_REG_RECORD_SOURCE_LOW, 0x00000002);
        card.write(WEIR_REG_RECORD_SOURCE_HIGH, 0x0200);
        card.write(WEIR_REG_SYSTEM_CONTROL, WEIR_REG_SYSTEM_CONTROL_CPU_RESET_MASK);
    }

    void clock()
    {
        if (++since_poll >= (card.accessing() ? 1 : POLL_CLOCKS)) {
            since_poll = 0;
            for (Wire &wire : wires)
                wire.listen();
            if (control)
                control->poll();
        }
        if (options.pps)
            card.pps(card.clocks % options.pps < PPS_CLOCKS);
        card.tick();
        quiet++;
        if (!card.ready())
            unmeasured = not_told();
    }

    // The port whose next frame comes first; on port 0 if they come at once.
    std::pair<int, Frame *> earliest()
    {
        std::pair<int, Frame *> first{0, nullptr};
        for (int p = 0; p < PORTS; p++) {
            Frame *frame = wires[p].next();
            if (frame && (!first.second || frame->tai_ns < first.second->tai_ns))
                first = {p, frame};
        }
        return first;
    }

    // Sends the next frame if its time can be now. False when there is none.
    bool feed()
    {
        const auto [port, frame] = earliest();
        if (options.pace) {
            if (!frame || card.clocks < next_send || !card.free(port))
                return true;
            next_send = card.clocks + options.pace;
            send(port, *frame);
            return true;
        }
        if (!frame) {
            if (live)
                leap(static_cast<int64_t>(tai_now() - card.stamp()));
            return false;
        }
        if (!card.free(port) || under_way() >= MOST_WORDS)
            return true;
        // A file waits for measuring, a link does not.
        if (!card.ready() && !live)
            return true;
        if (card.ready() && !leap(static_cast<int64_t>(frame->tai_ns - card.stamp())))
            return true;
        late += frame->tai_ns < last_time;
        last_sent = frame->tai_ns;
        last_time = std::max(last_time, frame->tai_ns);
        send(port, *frame);
        return true;
    }

    void send(int port, Frame &frame)
    {
        if (seen)
            seen->frame(port, card.stamp(), frame.data);
        Wire &wire = wires[port];
        wire.sent.push_back(std::move(frame));
        wire.waiting.pop_front();
        card.send(port, wire.sent.back().data.data(), wire.sent.back().data.size());
        if (wire.sent.size() > KEPT)
            wire.sent.pop_front();
    }

    // Lets so much time pass if nothing is disturbed by it; true when it has passed. What lies behind a leap must find
    // the card as time itself would: all words taken, all keys in their places, the scan not left behind.
    bool leap(int64_t ns)
    {
        if (ns > 4) {
            const uint64_t words = under_way();
            if (words > 0) {
                // They wait until no other port can have an earlier one.
                const auto passed = static_cast<int64_t>(card.stamp() - last_sent);
                if (card.clocks < card.last_beat + ARRIVED || words > FEW_WORDS || passed >= HORIZON)
                    return false;
                const int64_t rest = HORIZON - passed;
                if (rest < ns) {
                    card.step(rest);
                    return false;
                }
            } else {
                if (card.stash() > FEW_KEYS || (card.deletions() && ns > MS))
                    return false;
                const auto room = static_cast<int64_t>(card.visit() + AHEAD_OF_SCAN - card.stamp());
                if (room < ns) {
                    if (room > MS)
                        card.step(std::min(room, MOST_STEP));
                    return false;
                }
            }
        }
        if (ns < -MOST_STEP || ns > MOST_STEP) {
            card.step(ns < 0 ? -MOST_STEP : MOST_STEP);
            return false;
        }
        card.step(ns);
        return true;
    }

    void drain()
    {
        const uint64_t end = last_time + static_cast<uint64_t>(options.drain * SECOND);
        while (!stopped && card.stamp() < end) {
            leap(static_cast<int64_t>(end - card.stamp()));
            clock();
        }
        quiet = 0;
        while (!stopped && (quiet < QUIET || under_way() > 0))
            clock();
    }
};

uint64_t number(const char *text, uint64_t most)
{
    char *end = nullptr;
    const uint64_t value = strtoull(text, &end, 0);
    if (*text == 0 || *end != 0 || value > most)
        fail(std::string(text) + " is no number from 0 to " + std::to_string(most));
    return value;
}

Options parse(int argc, char **argv)
{
    Options options;
    for (int i = 1; i < argc; i++) {
        const std::string option = argv[i];
        const auto value = [&]() -> const char * {
            if (i + 1 >= argc)
                fail(option + " needs a value\n" + USAGE);
            return argv[++i];
        };
        if (option == "--wire0")
            options.wires[0] = value();
        else if (option == "--wire1")
            options.wires[1] = value();
        else if (option == "--records")
            options.records = value();
        else if (option == "--socket")
            options.socket = value();
        else if (option == "--seen")
            options.seen = value();
        else if (option == "--passed")
            options.passed = value();
        else if (option == "--pace")
            options.pace = number(value(), 1'000'000'000);
        else if (option == "--pps")
            options.pps = number(value(), 1'000'000'000);
        else if (option == "--drain")
            options.drain = static_cast<double>(number(value(), 1'000'000));
        else if (option == "--seed")
            options.seed = number(value(), ~0ull);
        else if (option == "--epoch")
            options.epoch = static_cast<uint32_t>(number(value(), 65535));
        else if (option == "--lane")
            options.lane = static_cast<uint32_t>(number(value(), 7));
        else if (option == "--digests")
            options.digests = true;
        else if (option == "--ignore-vlan")
            options.vlan_in_key = false;
        else if (option == "--shed")
            options.shed = true;
        else if (option == "--hold")
            options.hold = true;
        else if (option == "--help" || option == "-h") {
            fputs(USAGE, stdout);
            exit(0);
        } else
            fail("what is " + option + "?\n" + USAGE);
    }
    if (options.records.empty() || (options.wires[0].empty() && options.wires[1].empty()))
        fail(std::string("a wire and a link for the records are needed\n") + USAGE);
    if (options.hold && options.socket.empty())
        fail("--hold needs a --socket that the host comes by");
    const bool interfaces = is_interface(options.wires[0]) || is_interface(options.wires[1]);
    if (options.pace && interfaces)
        fail("--pace is for wires that are files");
    if (options.pps && !options.pace)
        fail("--pps needs --pace: otherwise the card's time is that of the wires");
    if (is_interface(options.wires[0]) != is_interface(options.wires[1]) && !options.wires[0].empty() &&
        !options.wires[1].empty())
        fail("both wires must be files, or both interfaces");
    return options;
}

} // namespace

int main(int argc, char **argv)
{
    const Options options = parse(argc, argv);
    for (const int signal : {SIGINT, SIGTERM})
        std::signal(signal, [](int) { stopped = 1; });
    auto context = std::make_unique<VerilatedContext>();
    auto card = std::make_unique<Card>(*context);
    Simulation simulation(*card, options);
    const clock_t start = std::clock();
    simulation.run();
    const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
    fprintf(stderr,
            "weir-nic-sim: %llu frames, %llu passed, %llu records in %llu frames, %llu clocks, %.0f frames and %.0f "
            "clocks per CPU second\n",
            (unsigned long long)card->frames_in, (unsigned long long)simulation.passed,
            (unsigned long long)simulation.records, (unsigned long long)simulation.record_frames,
            (unsigned long long)card->clocks, card->frames_in / seconds, card->clocks / seconds);
    const auto told = [](uint64_t count, const char *what) {
        if (count > 0)
            fprintf(stderr, "weir-nic-sim: %llu %s\n", (unsigned long long)count, what);
    };
    told(simulation.filled(), "frames were cut in the capture and are filled with zeros");
    told(simulation.late, "frames lie before an earlier one of the capture: their order between ports may differ");
    told(card->dropped(0) + card->dropped(1), "frames were not measured: the queue was full");
    told(card->no_room(), "packets found no room in the key table");
    told(simulation.link_lost, "record frames were not taken by the link");
    return 0;
}
