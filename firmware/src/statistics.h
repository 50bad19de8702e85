// The counters of STATISTICS, as words of its payload.
#ifndef WEIR_STATISTICS_H
#define WEIR_STATISTICS_H

#include "timekeeper.h"

void statistics_collect(uint32_t words[WEIR_STATISTICS_WORDS], uint32_t uptime_ms, uint32_t loop_us,
                        const struct timekeeper *timekeeper);

#endif
