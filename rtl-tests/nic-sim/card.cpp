#include "card.hpp"

#include "Vtop___024root.h"
#include "Vtop_weir_card__pi1.h"
#include "Vtop_weir_nic_sim.h"

#include <algorithm>

namespace
{

// A wide port or a narrow one: its 32-bit words, the lowest first.
template <class T> uint32_t *words(T &port) { return reinterpret_cast<uint32_t *>(&port); }

// Registers of weir_clock (clock.vlt).
#define CLOCK(name) top.rootp->weir_nic_sim->card->datapath__DOT__clock__DOT__##name

// Sign of the low `bits` of a value.
int64_t sign(uint64_t value, int bits) { return static_cast<int64_t>(value << (64 - bits)) >> (64 - bits); }

} // namespace

void Card::reset()
{
    top.rst = 1;
    top.m_tready = 1;
    for (int i = 0; i < 10; i++)
        tick();
    top.rst = 0;
}

void Card::tick()
{
    beats();
    registers();
    top.clk = 0;
    top.eval();
    taken();
    top.clk = 1;
    top.eval();
    clocks++;
}

void Card::send(int port, const uint8_t *data, size_t length)
{
    const uint64_t start = clocks + START_DELAY;
    lines[port].frames.push_back({data, length, start});
    lines[port].end = start + (length + BEAT - 1) / BEAT;
    last_beat = std::max(last_beat, lines[port].end);
    frames_in++;
}

void Card::beats()
{
    top.rx_tvalid = 0;
    top.rx_tlast = 0;
    for (int p = 0; p < PORTS; p++) {
        Line &line = lines[p];
        if (line.frames.empty() || line.frames.front().start > clocks)
            continue;
        const Line::Frame &frame = line.frames.front();
        const size_t bytes = std::min(BEAT, frame.length - line.sent);
        const uint64_t keep = bytes == BEAT ? ~0ull : (1ull << bytes) - 1;
        memset(words(top.rx_tdata) + p * BEAT / 4, 0, BEAT);
        memcpy(words(top.rx_tdata) + p * BEAT / 4, frame.data + line.sent, bytes);
        memcpy(words(top.rx_tkeep) + p * 2, &keep, 8);
        top.rx_tvalid |= 1 << p;
        line.sent += bytes;
        if (line.sent == frame.length) {
            top.rx_tlast |= 1 << p;
            line.sent = 0;
            line.frames.pop_front();
        }
    }
}

void Card::registers()
{
    top.s_awvalid = top.s_wvalid = top.s_arvalid = 0;
    if (!pending)
        return;
    if (pending->write) {
        top.s_awaddr = pending->address;
        top.s_awvalid = !address_taken;
        top.s_wdata = pending->value;
        top.s_wvalid = !data_taken;
    } else {
        top.s_araddr = pending->address;
        top.s_arvalid = !address_taken;
    }
}

// What happens at the edge to come.
void Card::taken()
{
    if (top.rst)
        return;
    if (pending) {
        address_taken |= (top.s_awvalid && top.s_awready) || (top.s_arvalid && top.s_arready);
        data_taken |= top.s_wvalid && top.s_wready;
        if (pending->write ? top.s_bvalid : top.s_rvalid) {
            if (!pending->write)
                pending->value = top.s_rdata;
            pending->error = (pending->write ? top.s_bresp : top.s_rresp) != 0;
            pending->done = true;
            pending = nullptr;
            address_taken = data_taken = false;
        }
    }
    looked_up += top.looked_up_packet;
    if (top.m_tvalid) {
        const auto *bytes = reinterpret_cast<const uint8_t *>(&top.m_tdata);
        records.insert(records.end(), bytes, bytes + BEAT);
        if (top.m_tlast) {
            if (on_records)
                on_records(records);
            records.clear();
        }
    }
    for (int p = 0; p < PORTS; p++) {
        if (!(top.tx_tvalid >> p & 1))
            continue;
        uint64_t keep;
        memcpy(&keep, words(top.tx_tkeep) + p * 2, 8);
        const auto *bytes = reinterpret_cast<const uint8_t *>(words(top.tx_tdata) + p * BEAT / 4);
        Bytes &out = lines[p].out;
        out.insert(out.end(), bytes, bytes + __builtin_popcountll(keep));
        if (top.tx_tlast >> p & 1) {
            if (on_wire)
                on_wire(p, out);
            out.clear();
        }
    }
}

// As weir_clock counts it: the fourth edge from here.
uint64_t Card::stamp() const
{
    const uint64_t add = CLOCK(add_2);
    uint64_t fraction = CLOCK(fraction_3);
    const uint64_t base = static_cast<uint64_t>(sign(CLOCK(base_1), 42) + sign(CLOCK(slew_1), 24)) +
                          (static_cast<uint64_t>(sign(CLOCK(step_1), 31)) << 32);
    uint64_t ns = CLOCK(tai_ns_4) + sign(CLOCK(add_ns_3), 33);
    for (const uint64_t more : {add, base}) {
        fraction += more & 0xffffffff;
        ns += sign(more >> 32, 32) + (fraction >> 32);
        fraction &= 0xffffffff;
    }
    return ns;
}

void Card::step(int64_t ns)
{
    const int64_t sum = sign(CLOCK(step_1), 31) + ns;
    CLOCK(step_1) = static_cast<uint32_t>(sum) & 0x7fffffff;
}

uint32_t Card::read(uint32_t address)
{
    Access access;
    access.address = address;
    begin(access);
    while (!access.done)
        tick();
    if (access.error)
        fail("the card refuses to read register " + std::to_string(address));
    return access.value;
}

void Card::write(uint32_t address, uint32_t value)
{
    Access access;
    access.write = true;
    access.address = address;
    access.value = value;
    begin(access);
    while (!access.done)
        tick();
    if (access.error)
        fail("the card refuses to write register " + std::to_string(address));
}
