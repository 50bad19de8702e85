// What stands at the card's ports: capture files and network interfaces.

#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

using Bytes = std::vector<uint8_t>;

// A frame on its way to the card, as long as it was on the wire.
struct Frame {
    uint64_t tai_ns = 0;
    Bytes data;
};

// TAI ns of a UTC time in ns since 1970, and the other way.
uint64_t tai_from_utc(uint64_t utc_ns);
uint64_t utc_from_tai(uint64_t tai_ns);
uint64_t tai_now();

// Frames of a capture file: pcap in micro- or nanoseconds, either byte order, Ethernet. What the capture cut is filled
// with zeros.
class PcapReader
{
  public:
    explicit PcapReader(const std::string &path);
    // False at the end.
    bool next(Frame &frame);
    uint64_t filled = 0;

  private:
    std::string path;
    std::unique_ptr<FILE, int (*)(FILE *)> file;
    bool swapped = false, nano = false;
    uint32_t number(const uint8_t *bytes) const;
};

// Writes a capture in nanoseconds.
class PcapWriter
{
  public:
    explicit PcapWriter(const std::string &path);
    void frame(uint64_t tai_ns, const Bytes &data);
    void flush() { fflush(file.get()); }

  private:
    std::string path;
    std::unique_ptr<FILE, int (*)(FILE *)> file;
};

// Writes a capture of several ports in nanoseconds: pcapng, an interface each.
class PcapngWriter
{
  public:
    PcapngWriter(const std::string &path, uint32_t ports);
    void frame(uint32_t port, uint64_t tai_ns, const Bytes &data);
    void flush() { fflush(file.get()); }

  private:
    std::string path;
    std::unique_ptr<FILE, int (*)(FILE *)> file;
    // A block: its body is filled up to whole words.
    void block(uint32_t type, Bytes body);
};

// A packet socket on a network interface; neither reading nor writing waits.
class Interface
{
  public:
    explicit Interface(const std::string &name);
    ~Interface();
    Interface(const Interface &) = delete;
    Interface &operator=(const Interface &) = delete;
    bool receive(Frame &frame);
    // False when the kernel does not take it.
    bool send(const Bytes &data);
    int descriptor() const { return socket_; }

  private:
    std::string name;
    int socket_ = -1;
};
