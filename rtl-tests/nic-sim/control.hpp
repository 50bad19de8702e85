// Register access for the host, over a Unix socket. Several may be connected; their accesses take turns.
//
//   request   version (1) u8, operation (1 read, 2 write) u8, tag u16, address u32, value u32 (0 for a read)
//   answer    version (1) u8, status (0 done, 1 refused by the card, 2 malformed) u8, tag u16, value u32
//
// All little-endian. Each request is answered once, in order; behind a malformed one the connection is closed.

#pragma once

#include <list>
#include <string>

#include "card.hpp"

class Control
{
  public:
    Control(Card &card, const std::string &path);
    ~Control();
    Control(const Control &) = delete;
    Control &operator=(const Control &) = delete;
    // Looks at the socket and moves the access under way on. Called between clocks.
    void poll();
    bool connected() const { return !hosts.empty(); }

  private:
    Card &card;
    std::string path;
    struct Host {
        int descriptor = -1;
        Bytes request;
    };

    int listener = -1;
    std::list<Host> hosts;
    // Whose access is under way.
    Host *asking = nullptr;
    Access access;

    // False when the host is gone or did not keep to the protocol.
    bool listen_to(Host &host);
    bool answer(Host &host, uint8_t status, uint32_t value);
};
