// Clock servo: makes of offsets (card minus reference, one per period) a rate, and at the start a step or slew.
//
// Pure arithmetic on integers; the caller reads and writes the hardware (timekeeper.h). Fixed point:
//   offset   2^-16 ns
//   rate     2^-32 ns per clock, as the register has it; inside 2^-40 ns per clock
// FREE_RUN --sample--> LOCKING --three good ones in a row--> LOCKED --three missed--> HOLDOVER --sample--> LOCKING.
// LOCKING --three missed--> HOLDOVER if it came from there or from LOCKED, else FREE_RUN.
// LOCKING first takes three samples that lie on a line, sets the rate from its slope and jumps onto it (a step; a
// slew when that ends within half a period), then pulls in. LOCKED never jumps: a reference that really moved shows
// as MAX_OUTLIERS outliers in a row and is acquired anew.
//
// The loop is PI with kp = 1/2, later 1/4, and ki = kp^2 / 2 per period (damping 0.71); docs/src/firmware.md derives that. All steps are bounded: no call loops over more than the five last offsets.
#ifndef WEIR_SERVO_H
#define WEIR_SERVO_H

#include <stdbool.h>
#include <stdint.h>

#include "weir_card.h"

enum {
    SERVO_WINDOW = 5
};

struct servo_settings {
    uint32_t clock_khz;
    uint32_t period_us; // 100 .. 1,000,000
    uint32_t gate_ns;
    uint32_t holdover_periods;
};

struct servo {
    struct servo_settings settings;
    int64_t period_clocks;
    int64_t frequency; // learned, 2^-40 ns per clock
    int64_t held;      // smoothed frequency, for HOLDOVER
    int64_t limit;     // of the learned frequency
    int64_t window[SERVO_WINDOW];
    int64_t points[2]; // the last two offsets of an acquisition
    int64_t spans[2];  // clocks before each of them
    enum weir_servo_state state;
    uint32_t window_count;
    uint32_t window_next;
    uint32_t point_count;
    uint32_t good;     // good samples in a row
    uint32_t bad;      // outliers in a row
    uint32_t absent;   // periods without a sample, in a row
    uint32_t gear;     // how narrow the loop is
    uint32_t outliers; // in all
    uint32_t missed;   // in all
    uint32_t locked;   // periods in LOCKED, the last time that it was
    uint32_t held_for; // periods without a sample since it was LOCKED, while HOLDOVER lasts
    bool acquiring;
    bool holding; // LOCKING out of LOCKED or HOLDOVER: without samples HOLDOVER goes on
    bool was_locked;
    int32_t rate;
};

// What is to be done to the hardware, at most one of step and slew.
struct servo_action {
    int64_t step_ns;
    int32_t slew_ns;
    int32_t rate;
};

// Keeps nothing of what was learned.
void servo_init(struct servo *servo, const struct servo_settings *settings);

// The clock was set by somebody else, or the reference is another one: acquire anew, the frequency stays.
void servo_restart(struct servo *servo);

// Gate and holdover, in any state: what was learned and the lock stay. A new period also needs a servo_restart().
void servo_adjust(struct servo *servo, const struct servo_settings *settings);

// A sample: `offset` in 2^-16 ns, below 2^46 either way; `clocks` since the sample before.
void servo_sample(struct servo *servo, int64_t offset, int64_t clocks, struct servo_action *action);

// A period passed without a sample.
void servo_missed(struct servo *servo, struct servo_action *action);

#endif
