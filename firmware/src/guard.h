// Guards the link: writes the inline path's heartbeat only while all it depends on is healthy.
//
// Once per period (BEAT_US) it looks at the host's heartbeat and at the measuring side. Anything unhealthy ends the
// heartbeat in the same call; the hardware is in bypass at most info.heartbeat_clocks later. The heartbeat goes on
// after HEALTHY_PERIODS healthy calls in a row.
// So a lost host is bypassed within HOST_TIMEOUT_US + BEAT_US + the hardware's time + a turn of the main loop.
#ifndef WEIR_GUARD_H
#define WEIR_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"

struct guard {
    uint64_t host_seen; // when the host's heartbeat last moved
    uint64_t out_moved; // when records_out last moved
    uint64_t records_out;
    uint32_t khz;
    uint32_t host_count;
    uint32_t bypass_faults[2]; // by port
    uint32_t healthy;          // periods in a row
    uint32_t unhealthy;        // HealthBits; 0: beats
    uint32_t bypasses;         // times the heartbeat stopped
    uint32_t held_ms;          // since records wait and none left
    bool stuck;                // records wait and none leaves
    bool beating;
};

// What a call found, for those who log it.
struct guard_report {
    uint32_t hardware; // bits of fault.status that were set, cleared by now
    uint32_t fresh;    // HealthBits that were not there at the call before; all at the first call of measuring
    bool stopped;
    bool resumed;
};

void guard_init(struct guard *guard, uint32_t clock_khz);

// Measuring begins.
void guard_start(struct guard *guard, uint64_t now);

// Once per BEAT_US.
void guard_beat(struct guard *guard, const struct config *config, bool running, uint64_t now,
                struct guard_report *report);

#endif
