// The Verilated card, clock by clock: registers, beats in and out, and its time.

#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "Vtop.h"
#include "fail.hpp"
#include "verilated.h"

constexpr size_t BEAT = 64;
constexpr int PORTS = 2;

using Bytes = std::vector<uint8_t>;

// An access to a register: done when the card has answered.
struct Access {
    bool write = false;
    uint32_t address = 0, value = 0;
    bool done = false, error = false;
};

class Card
{
  public:
    explicit Card(VerilatedContext &context) : top(&context) {}

    void reset();
    // One clock.
    void tick();

    // At most one access is under way; it must live until it is done.
    void begin(Access &access) { pending = &access; }
    bool accessing() const { return pending != nullptr; }
    uint32_t read(uint32_t address);
    void write(uint32_t address, uint32_t value);

    // Sends a frame on a port from the clock after the next but one on; its bytes must stay until the port is free.
    void send(int port, const uint8_t *data, size_t length);
    // A frame that begins now would follow the one before.
    bool free(int port) const { return lines[port].end <= clocks + START_DELAY; }

    // TAI ns that a frame which is sent now gets.
    uint64_t stamp() const;
    // Moves the clock by this, seen from that stamp on.
    void step(int64_t ns);

    // Level of the PPS input.
    void pps(bool level) { top.pps = level; }

    bool ready() const { return top.ready; }
    uint64_t now() const { return top.tai_ns; }
    uint64_t visit() const { return top.visit_ns; }
    unsigned stash() const { return top.stash_level; }
    unsigned deletions() const { return top.deletions; }
    unsigned flows() const { return top.contexts_in_use; }
    unsigned dropped(int port) const { return static_cast<uint32_t>(top.dropped >> (32 * port)); }
    unsigned no_room() const { return top.no_room; }

    // Called with each whole frame.
    std::function<void(const Bytes &)> on_records;
    std::function<void(int port, const Bytes &)> on_wire;

    uint64_t clocks = 0, frames_in = 0, looked_up = 0;
    // Clock after the last beat of all frames sent so far.
    uint64_t last_beat = 0;

  private:
    static constexpr size_t START_DELAY = 2;

    struct Line {
        // What waits to begin, and what is being sent.
        struct Frame {
            const uint8_t *data;
            size_t length;
            uint64_t start;
        };
        std::deque<Frame> frames;
        size_t sent = 0;
        // Clock after the last beat of all.
        uint64_t end = 0;
        Bytes out;
    };

    Vtop top;
    Line lines[PORTS];
    Bytes records;
    Access *pending = nullptr;
    bool address_taken = false, data_taken = false;

    void beats();
    void registers();
    void taken();
};
