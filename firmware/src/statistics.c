#include "statistics.h"

static void put64(uint32_t *words, uint32_t *n, uint64_t value)
{
    words[*n] = (uint32_t)value;
    words[*n + 1u] = (uint32_t)(value >> 32u);
    *n += 2u;
}

void statistics_collect(uint32_t words[WEIR_STATISTICS_WORDS], uint32_t uptime_ms, uint32_t loop_us,
                        const struct timekeeper *timekeeper)
{
    uint32_t n = 0;
    words[n++] = uptime_ms;
    words[n++] = reg_read32(WEIR_REG_MEASURE_USED);
    words[n++] = reg_read32(WEIR_REG_MEASURE_IN_USE);
    put64(words, &n, reg_read64(WEIR_REG_RECORD_RECORDS_IN_LOW));
    put64(words, &n, reg_read64(WEIR_REG_RECORD_RECORDS_OUT_LOW));
    put64(words, &n, reg_read64(WEIR_REG_RECORD_FRAMES_LOW));
    words[n++] = reg_read32(WEIR_REG_MEASURE_LEFT_OUT_PACKET) + reg_read32(WEIR_REG_MEASURE_LEFT_OUT_RTT) +
                 reg_read32(WEIR_REG_MEASURE_LEFT_OUT_INTERVAL) + reg_read32(WEIR_REG_MEASURE_LEFT_OUT_BLOCK) +
                 reg_read32(WEIR_REG_MEASURE_LEFT_OUT_EVENT);
    words[n++] = reg_read32(WEIR_REG_MEASURE_NO_INDEX);
    words[n++] = reg_read32(WEIR_REG_MEASURE_NO_ROOM);
    for (uint32_t port = 0; port < WEIR_REG_PORT_COUNT; port++) {
        words[n++] = reg_read32(WEIR_REG_INLINE_PORT_FRAMES_IN(port));
        words[n++] = reg_read32(WEIR_REG_INLINE_PORT_FRAMES_OUT(port));
        words[n++] = reg_read32(WEIR_REG_INLINE_PORT_FRAMES_DROPPED(port));
        words[n++] = reg_read32(WEIR_REG_INLINE_PORT_TAKEOVERS(port));
        words[n++] = reg_read32(WEIR_REG_PORT_DROPPED(port));
    }
    words[n++] = (uint32_t)(int32_t)timekeeper->offset_ns;
    words[n++] = (uint32_t)timekeeper->servo.rate;
    words[n] = loop_us;
}

static_assert(WEIR_REG_PORT_COUNT == 2u, "STATISTICS has two ports");
