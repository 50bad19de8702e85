#include "control.hpp"

#include <cerrno>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace
{

constexpr uint8_t VERSION = 1, READ = 1, WRITE = 2;
constexpr uint8_t DONE = 0, REFUSED = 1, MALFORMED = 2;
constexpr size_t REQUEST = 12, ANSWER = 8;
constexpr uint32_t REGISTERS = 1 << 14;

} // namespace

Control::Control(Card &card, const std::string &path) : card(card), path(path)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        fail("the name of the socket is too long: " + path);
    memcpy(address.sun_path, path.data(), path.size());
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    // One that a process before left behind.
    unlink(path.c_str());
    if (listener < 0 || bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0 ||
        listen(listener, 4) != 0)
        fail("cannot listen on " + path + ": " + strerror(errno));
}

Control::~Control()
{
    for (const Host &host : hosts)
        close(host.descriptor);
    close(listener);
    unlink(path.c_str());
}

void Control::poll()
{
    if (asking) {
        if (!access.done)
            return;
        // One that hung up is noticed when it is listened to.
        answer(*asking, access.error ? REFUSED : DONE, access.value);
        asking = nullptr;
    }
    const int fresh = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fresh >= 0)
        hosts.push_back({fresh, {}});
    if (card.accessing())
        return;
    for (size_t turns = hosts.size(); turns > 0 && !asking; turns--) {
        // Whoever was listened to is the last the next time.
        hosts.splice(hosts.end(), hosts, hosts.begin());
        if (!listen_to(hosts.back())) {
            close(hosts.back().descriptor);
            hosts.pop_back();
        }
    }
}

bool Control::listen_to(Host &host)
{
    uint8_t bytes[REQUEST];
    Bytes &request = host.request;
    const ssize_t got = recv(host.descriptor, bytes, REQUEST - request.size(), 0);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (got == 0)
        return false;
    request.insert(request.end(), bytes, bytes + got);
    if (request.size() < REQUEST)
        return true;
    access = Access();
    memcpy(&access.address, &request[4], 4);
    memcpy(&access.value, &request[8], 4);
    access.write = request[1] == WRITE;
    const bool good = request[0] == VERSION && (request[1] == READ || request[1] == WRITE) && access.address % 4 == 0 &&
                      access.address < REGISTERS;
    if (!good) {
        answer(host, MALFORMED, 0);
        return false;
    }
    asking = &host;
    card.begin(access);
    return true;
}

bool Control::answer(Host &host, uint8_t status, uint32_t value)
{
    uint8_t bytes[ANSWER] = {VERSION, status, host.request[2], host.request[3]};
    memcpy(bytes + 4, &value, 4);
    host.request.clear();
    return send(host.descriptor, bytes, ANSWER, MSG_NOSIGNAL) == ANSWER;
}
