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
        listen(listener, 1) != 0)
        fail("cannot listen on " + path + ": " + strerror(errno));
}

Control::~Control()
{
    hang_up();
    close(listener);
    unlink(path.c_str());
}

void Control::poll()
{
    if (under_way) {
        if (!access.done)
            return;
        under_way = false;
        answer(access.error ? REFUSED : DONE, access.value);
    }
    if (host < 0) {
        host = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        request.clear();
    }
    if (host < 0 || card.accessing())
        return;
    uint8_t bytes[REQUEST];
    const ssize_t got = recv(host, bytes, REQUEST - request.size(), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        hang_up();
        return;
    }
    if (got < 0)
        return;
    request.insert(request.end(), bytes, bytes + got);
    if (request.size() < REQUEST)
        return;
    access = Access();
    memcpy(tag, &request[2], sizeof tag);
    memcpy(&access.address, &request[4], 4);
    memcpy(&access.value, &request[8], 4);
    access.write = request[1] == WRITE;
    const bool good = request[0] == VERSION && (request[1] == READ || request[1] == WRITE) && access.address % 4 == 0 &&
                      access.address < REGISTERS;
    request.clear();
    if (!good) {
        answer(MALFORMED, 0);
        hang_up();
        return;
    }
    under_way = true;
    card.begin(access);
}

void Control::answer(uint8_t status, uint32_t value)
{
    uint8_t bytes[ANSWER] = {VERSION, status, tag[0], tag[1]};
    memcpy(bytes + 4, &value, 4);
    if (host >= 0 && send(host, bytes, ANSWER, MSG_NOSIGNAL) != ANSWER)
        hang_up();
}

void Control::hang_up()
{
    if (host >= 0)
        close(host);
    host = -1;
}
