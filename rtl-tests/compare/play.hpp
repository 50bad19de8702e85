// The play list of `weir-bench play`: host/bench/src/nic/play.rs says what it holds.

#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

constexpr size_t BEAT = 64;

enum class What : uint8_t {
    FRAME = 0,
    VISIT = 1,
    SECOND = 2,
    END = 3
};

struct Item {
    What what;
    uint8_t port;
    uint8_t flags;
    uint8_t reason;
    uint32_t index;
    uint64_t time;
    uint64_t now;
    uint32_t wire;
    uint32_t captured;
    uint64_t number;
    uint64_t last_seen;
    uint64_t place;
    uint64_t unused;

    bool tracked() const { return flags & 1; }
    bool fresh() const { return flags & 2; }
    bool expired() const { return flags & 4; }
    size_t beats() const { return (captured + BEAT - 1) / BEAT; }
};
static_assert(sizeof(Item) == BEAT, "as in the play list");

[[noreturn]] inline void fail(const std::string &message)
{
    fprintf(stderr, "%s\n", message.c_str());
    exit(2);
}

// Items one after the other; a frame's beats are there until the next call.
class PlayList
{
  public:
    explicit PlayList(const char *path) : file(strcmp(path, "-") == 0 ? stdin : fopen(path, "rb"))
    {
        if (!file)
            fail(std::string("cannot open ") + path);
        setvbuf(file, nullptr, _IOFBF, 1 << 20);
        uint8_t head[BEAT];
        uint32_t version = 0;
        if (fread(head, BEAT, 1, file) != 1 || memcmp(head, "WEIRPLAY", 8) != 0)
            fail("no play list");
        memcpy(&version, head + 8, 4);
        memcpy(&ports, head + 12, 4);
        if (version != 2)
            fail("a play list of another version");
    }

    // False after the last item.
    bool next(Item &item, std::vector<uint8_t> &data)
    {
        if (fread(&item, sizeof item, 1, file) != 1)
            return false;
        if (item.what != What::FRAME)
            return true;
        data.resize(item.beats() * BEAT);
        if (fread(data.data(), data.size(), 1, file) != 1)
            fail("the play list ends within a frame");
        return true;
    }

    uint32_t ports = 0;

  private:
    FILE *file;
};
