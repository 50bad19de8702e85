// The timer's clocks since power-on, and conversions. Times of tasks and timeouts are in clocks.
#ifndef WEIR_CLOCKS_H
#define WEIR_CLOCKS_H

#include "io.h"

static inline uint64_t clocks_now(void) { return reg_read64(WEIR_REG_TIMER_NOW_LOW); }

static inline uint32_t clocks_khz(void) { return reg_read32(WEIR_REG_INFO_CLOCK_KHZ); }

static inline uint64_t clocks_of_us(uint32_t khz, uint32_t us) { return ((uint64_t)us * khz) / 1000u; }

static inline uint64_t clocks_of_ms(uint32_t khz, uint32_t ms) { return (uint64_t)ms * khz; }

#endif
