// The card's clock: brings edges of the PPS input, or pairs of card and host time, to the servo, and what the servo
// wants to the clock's registers.
//
// Steps only happen while the servo is not LOCKED; a LOCKED clock, or one in HOLDOVER or LOCKING out of either, is set
// by three pairs in a row that agree, another one by the first. One that follows the PPS input is stepped by whole
// seconds then, and keeps its phase and state. A call touches a bounded number of registers.
#ifndef WEIR_TIMEKEEPER_H
#define WEIR_TIMEKEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"
#include "servo.h"

struct timekeeper {
    struct servo servo;
    uint64_t period;    // in clocks
    uint64_t last;      // when the last sample came, or was missed
    uint64_t sampled;   // when the last one came, however many were missed since
    uint64_t pair_ns;   // card time of the last pair
    int64_t offset_ns;  // of the last sample
    int64_t stepped_ns; // steps and sets of `steps`, until they are told
    int64_t doubted_ns; // by how much the last pair that was doubted is off
    uint32_t khz;
    uint32_t pps_count;
    uint32_t doubted; // pairs in a row that are far off and agree
    uint32_t steps;   // steps and sets after the first lock or while measuring
    enum weir_servo_source source;
    bool pair_seen;
    bool measuring; // records carry its time
    bool went_back; // by a second or more, while measuring
};

void timekeeper_init(struct timekeeper *timekeeper, const struct config *config, uint32_t clock_khz, uint64_t now);

// Keys of the servo may have changed. Another source or period is acquired anew, with the rate that was learned; gate and
// holdover take effect in the state that it is in.
void timekeeper_configure(struct timekeeper *timekeeper, const struct config *config, uint64_t now);

// Looks for an edge, or for its absence.
void timekeeper_poll(struct timekeeper *timekeeper, uint64_t now);

// Card and host time of one moment, ns of TAI.
WEIR_CHECKED enum weir_sync_action timekeeper_pair(struct timekeeper *timekeeper, uint64_t card_ns, uint64_t host_ns,
                                                   uint64_t now);

#endif
