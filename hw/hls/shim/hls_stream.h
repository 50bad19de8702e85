// hls::stream for C simulation and the simulated system only; the vendor's tool has its own.

#ifndef WEIR_SHIM_HLS_STREAM_H
#define WEIR_SHIM_HLS_STREAM_H

#include <cstddef>
#include <deque>
#include <limits>

namespace hls
{

template <class T> class stream
{
  public:
    stream() = default;
    explicit stream(const char *) {}
    stream(const stream &) = delete;
    stream &operator=(const stream &) = delete;

    // Not in the vendor's class: how many words wait before write_nb fails.
    void set_room(std::size_t words) { room = words; }

    bool empty() const { return words.empty(); }
    bool full() const { return words.size() >= room; }
    std::size_t size() const { return words.size(); }
    // Not in the vendor's class.
    const T &front() const { return words.front(); }
    void write(const T &word) { words.push_back(word); }
    T read()
    {
        T word = words.front();
        words.pop_front();
        return word;
    }
    bool write_nb(const T &word)
    {
        if (full())
            return false;
        write(word);
        return true;
    }
    bool read_nb(T &word)
    {
        if (empty())
            return false;
        word = read();
        return true;
    }

  private:
    std::deque<T> words;
    std::size_t room = std::numeric_limits<std::size_t>::max();
};

} // namespace hls

#endif
