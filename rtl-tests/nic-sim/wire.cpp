#include "wire.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fail.hpp"

namespace
{

constexpr uint64_t SECOND = 1'000'000'000;
// First UTC second with 11 s between UTC and TAI, with 12 s, ... (IERS Bulletin C); 10 s before.
constexpr uint64_t LEAPS[] = {78796800,  94694400,   126230400,  157766400,  189302400,  220924800, 252460800,
                              283996800, 315532800,  362793600,  394329600,  425865600,  489024000, 567993600,
                              631152000, 662688000,  709948800,  741484800,  773020800,  820454400, 867715200,
                              915148800, 1136073600, 1230768000, 1341100800, 1435708800, 1483228800};
// More than a jumbo frame, less than what the card counts (20 bits).
constexpr uint32_t LONGEST = 1 << 18;
constexpr size_t BUFFER = 1 << 16;

std::string reason() { return strerror(errno); }

} // namespace

uint64_t tai_from_utc(uint64_t utc_ns)
{
    uint64_t offset = 10;
    for (const uint64_t leap : LEAPS)
        offset += utc_ns / SECOND >= leap;
    return utc_ns + offset * SECOND;
}

uint64_t utc_from_tai(uint64_t tai_ns)
{
    uint64_t offset = 10;
    for (const uint64_t leap : LEAPS)
        offset += tai_ns / SECOND >= leap + offset + 1;
    return tai_ns > offset * SECOND ? tai_ns - offset * SECOND : 0;
}

uint64_t tai_now()
{
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return tai_from_utc(now.tv_sec * SECOND + now.tv_nsec);
}

PcapReader::PcapReader(const std::string &path) : path(path), file(fopen(path.c_str(), "rb"), fclose)
{
    if (!file)
        fail("cannot read " + path + ": " + reason());
    uint8_t head[24];
    if (fread(head, sizeof head, 1, file.get()) != 1)
        fail(path + " is too short for a capture");
    for (const bool swap : {false, true}) {
        swapped = swap;
        nano = number(head) == 0xa1b23c4d;
        if (nano || number(head) == 0xa1b2c3d4) {
            if ((number(head + 20) & 0xffff) != 1)
                fail(path + " is no capture of Ethernet");
            return;
        }
    }
    fail(path + " is no pcap file; convert it first: editcap -F nsecpcap IN OUT");
}

uint32_t PcapReader::number(const uint8_t *bytes) const
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return swapped ? __builtin_bswap32(value) : value;
}

bool PcapReader::next(Frame &frame)
{
    for (;;) {
        uint8_t head[16];
        const size_t got = fread(head, 1, sizeof head, file.get());
        if (got == 0)
            return false;
        const uint32_t captured = number(head + 8), wire = number(head + 12);
        if (got != sizeof head || captured > LONGEST)
            fail(path + " is damaged or ends within a frame");
        frame.data.assign(captured, 0);
        if (captured && fread(frame.data.data(), captured, 1, file.get()) != 1)
            fail(path + " ends within a frame");
        // No card receives a frame without bytes, or one that it cannot count.
        if (captured == 0 || wire > LONGEST)
            continue;
        if (wire > captured) {
            frame.data.resize(wire);
            filled++;
        }
        frame.tai_ns = tai_from_utc(number(head) * SECOND + number(head + 4) * (nano ? 1ull : 1000ull));
        return true;
    }
}

PcapWriter::PcapWriter(const std::string &path) : path(path), file(fopen(path.c_str(), "wb"), fclose)
{
    if (!file)
        fail("cannot write " + path + ": " + reason());
    const uint32_t head[] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, 1 << 18, 1};
    if (fwrite(head, sizeof head, 1, file.get()) != 1)
        fail("cannot write " + path + ": " + reason());
}

void PcapWriter::frame(uint64_t tai_ns, const Bytes &data)
{
    const uint64_t utc = utc_from_tai(tai_ns);
    const auto length = static_cast<uint32_t>(data.size());
    const uint32_t head[] = {static_cast<uint32_t>(utc / SECOND), static_cast<uint32_t>(utc % SECOND), length, length};
    if (fwrite(head, sizeof head, 1, file.get()) != 1 || fwrite(data.data(), data.size(), 1, file.get()) != 1)
        fail("cannot write " + path + ": " + reason());
}

PcapngWriter::PcapngWriter(const std::string &path, uint32_t ports)
    : path(path), file(fopen(path.c_str(), "wb"), fclose)
{
    if (!file)
        fail("cannot write " + path + ": " + reason());
    // Section header: byte order, version 1.0, length not known. Interfaces: Ethernet, nanoseconds.
    block(0x0a0d0d0a, {0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255});
    for (uint32_t port = 0; port < ports; port++)
        block(1, {1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0});
}

void PcapngWriter::block(uint32_t type, Bytes body)
{
    body.resize((body.size() + 3) / 4 * 4);
    const auto length = static_cast<uint32_t>(body.size() + 12);
    const uint32_t head[] = {type, length};
    if (fwrite(head, sizeof head, 1, file.get()) != 1 || fwrite(body.data(), body.size(), 1, file.get()) != 1 ||
        fwrite(&length, sizeof length, 1, file.get()) != 1)
        fail("cannot write " + path + ": " + reason());
}

void PcapngWriter::frame(uint32_t port, uint64_t tai_ns, const Bytes &data)
{
    const uint64_t utc = utc_from_tai(tai_ns);
    const auto length = static_cast<uint32_t>(data.size());
    const uint32_t head[] = {port, static_cast<uint32_t>(utc >> 32), static_cast<uint32_t>(utc), length, length};
    Bytes body(sizeof head + data.size());
    memcpy(body.data(), head, sizeof head);
    memcpy(body.data() + sizeof head, data.data(), data.size());
    block(6, std::move(body));
}

Interface::Interface(const std::string &name) : name(name)
{
    const unsigned index = if_nametoindex(name.c_str());
    if (index == 0)
        fail("no network interface " + name);
    socket_ = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket_ < 0)
        fail("cannot open a packet socket: " + reason() + "; interfaces need root");
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = static_cast<int>(index);
    const int yes = 1, large = 64 << 20;
    packet_mreq promiscuous{};
    promiscuous.mr_ifindex = static_cast<int>(index);
    promiscuous.mr_type = PACKET_MR_PROMISC;
    // What this process sends is not what it receives.
    const bool good = setsockopt(socket_, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof yes) == 0 &&
                      setsockopt(socket_, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous) == 0 &&
                      bind(socket_, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0;
    if (!good)
        fail("cannot listen on " + name + ": " + reason());
    setsockopt(socket_, SOL_SOCKET, SO_RCVBUFFORCE, &large, sizeof large);
    setsockopt(socket_, SOL_SOCKET, SO_SNDBUFFORCE, &large, sizeof large);
}

Interface::~Interface() { close(socket_); }

bool Interface::receive(Frame &frame)
{
    frame.data.resize(BUFFER);
    const ssize_t length = recv(socket_, frame.data.data(), frame.data.size(), 0);
    if (length <= 0)
        return false;
    frame.data.resize(length);
    frame.tai_ns = tai_now();
    return true;
}

bool Interface::send(const Bytes &data)
{
    for (int tries = 0; tries < 1000; tries++) {
        if (::send(socket_, data.data(), data.size(), 0) == static_cast<ssize_t>(data.size()))
            return true;
        if (errno != EAGAIN && errno != ENOBUFS && errno != EINTR)
            fail("cannot send " + std::to_string(data.size()) + " bytes on " + name + ": " + reason() +
                 (errno == EMSGSIZE ? "; record frames need an MTU of 9000" : ""));
        usleep(100);
    }
    return false;
}
