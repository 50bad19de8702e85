#include "servo.h"

enum {
    GEARS = 2,
    GOOD_TO_LOCK = 3,
    BAD_TO_ACQUIRE = 3,
    MAX_OUTLIERS = 5,
    ABSENT_TO_HOLD = 3,
    LIMIT_PPM = 200,       // of the learned frequency
    TOTAL_LIMIT_PPM = 500, // with the proportional part
};

static const int64_t kp_divisor[GEARS] = {2, 4};
static const int64_t ki_divisor[GEARS] = {8, 32};
// Good samples in LOCKED after which the next gear comes.
static const uint32_t gear_after[GEARS] = {16u, UINT32_MAX};

static const int64_t one_ns = INT64_C(1) << 16;
static const int64_t rate_scale = INT64_C(1) << 24; // offset (2^-16 ns) to frequency times clocks (2^-40 ns)
static const int64_t held_divisor = 32;

static int64_t clamp(int64_t value, int64_t limit)
{
    if (value > limit) {
        return limit;
    }
    return (value < -limit) ? -limit : value;
}

static int64_t magnitude(int64_t value) { return (value < 0) ? -value : value; }

static int64_t gate(const struct servo *servo) { return (int64_t)servo->settings.gate_ns * one_ns; }

// Rate that undoes `offset` within `clocks`. Offsets of more than 8 ms are beyond every limit.
static int64_t rate_for(int64_t offset, int64_t clocks)
{
    const int64_t most = INT64_C(8000000) * one_ns;
    return (clamp(offset, most) * rate_scale) / clocks;
}

static int32_t to_register(int64_t rate) { return (int32_t)(rate / 256); }

static void set_rate(struct servo *servo, int64_t rate)
{
    servo->rate = to_register(clamp(rate, (servo->limit / LIMIT_PPM) * TOTAL_LIMIT_PPM));
}

static void enter(struct servo *servo, enum weir_servo_state state)
{
    if (state == WEIR_SERVO_STATE_LOCKED) {
        servo->locked = 0;
    }
    servo->state = state;
    servo->good = 0;
    servo->bad = 0;
    servo->gear = 0;
    servo->window_count = 0;
    servo->window_next = 0;
    servo->point_count = 0;
}

static void acquire(struct servo *servo)
{
    enter(servo, WEIR_SERVO_STATE_LOCKING);
    servo->acquiring = true;
}

void servo_adjust(struct servo *servo, const struct servo_settings *settings)
{
    servo->settings = *settings;
    servo->period_clocks = ((int64_t)settings->period_us * (int64_t)settings->clock_khz) / 1000;
    // A clock is 10^6 / kHz ns.
    servo->limit = ((INT64_C(1000000) << 40) / (int64_t)settings->clock_khz / 1000000) * LIMIT_PPM;
}

void servo_init(struct servo *servo, const struct servo_settings *settings)
{
    *servo = (struct servo){0};
    servo_adjust(servo, settings);
    enter(servo, WEIR_SERVO_STATE_FREE_RUN);
}

void servo_restart(struct servo *servo)
{
    enter(servo, WEIR_SERVO_STATE_FREE_RUN);
    servo->absent = 0;
    servo->holding = false;
    servo->held_for = 0;
    set_rate(servo, servo->frequency);
}

static int64_t median(const struct servo *servo)
{
    int64_t sorted[SERVO_WINDOW];
    uint32_t count = servo->window_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = i;
        while ((place > 0u) && (sorted[place - 1u] > servo->window[i])) {
            sorted[place] = sorted[place - 1u];
            place--;
        }
        sorted[place] = servo->window[i];
    }
    return (count == 0u) ? 0 : sorted[count / 2u];
}

static void remember(struct servo *servo, int64_t offset)
{
    servo->window[servo->window_next] = offset;
    servo->window_next = (servo->window_next + 1u) % (uint32_t)SERVO_WINDOW;
    if (servo->window_count < (uint32_t)SERVO_WINDOW) {
        servo->window_count++;
    }
}

static void count_locked(struct servo *servo)
{
    if ((servo->state == WEIR_SERVO_STATE_LOCKED) && (servo->locked < UINT32_MAX)) {
        servo->locked++;
    }
}

static void jump(const struct servo *servo, int64_t offset, struct servo_action *action)
{
    int64_t ns = (offset + ((offset < 0) ? -(one_ns / 2) : (one_ns / 2))) / one_ns;
    // A slew goes at 500 ppm: this ends within half a period.
    if (magnitude(ns) <= ((int64_t)servo->settings.period_us / 4)) {
        action->slew_ns = (int32_t)-ns;
    } else {
        action->step_ns = -ns;
    }
}

// Three samples on a line: its slope is what the rate lacks.
static void acquisition(struct servo *servo, int64_t offset, int64_t clocks, struct servo_action *action)
{
    const int64_t latest = (servo->point_count == 0u) ? 0 : rate_for(offset - servo->points[1], clocks);
    if (servo->point_count == 2u) {
        const int64_t before = rate_for(servo->points[1] - servo->points[0], servo->spans[1]);
        const int64_t slope = (latest + before) / 2;
        const int64_t tolerance = rate_for(2 * gate(servo), servo->period_clocks);
        if ((magnitude(latest - before) <= tolerance) && (magnitude(slope) <= (2 * servo->limit))) {
            servo->frequency = clamp(servo->frequency - slope, servo->limit);
            servo->held = servo->frequency;
            set_rate(servo, servo->frequency);
            jump(servo, offset, action);
            servo->acquiring = false;
            servo->point_count = 0;
            return;
        }
    }
    if (servo->point_count < 2u) {
        servo->point_count++;
    }
    servo->points[0] = servo->points[1];
    servo->points[1] = offset;
    servo->spans[0] = servo->spans[1];
    servo->spans[1] = clocks;
}

static void control(struct servo *servo, int64_t offset)
{
    const int64_t error = rate_for(offset, servo->period_clocks);
    servo->frequency = clamp(servo->frequency - (error / ki_divisor[servo->gear]), servo->limit);
    set_rate(servo, servo->frequency - (error / kp_divisor[servo->gear]));
}

static void outlier(struct servo *servo, int64_t offset, uint32_t most)
{
    servo->outliers++;
    servo->bad++;
    servo->good = 0;
    set_rate(servo, servo->frequency);
    if (servo->bad >= most) {
        servo->holding |= servo->state == WEIR_SERVO_STATE_LOCKED;
        acquire(servo);
        servo->points[1] = offset;
        servo->point_count = 1;
    }
}

static void pull_in(struct servo *servo, int64_t offset)
{
    if (magnitude(offset) > (2 * gate(servo))) {
        outlier(servo, offset, (uint32_t)BAD_TO_ACQUIRE);
        return;
    }
    servo->bad = 0;
    control(servo, offset);
    servo->good = (magnitude(offset) <= (gate(servo) / 2)) ? (servo->good + 1u) : 0u;
    if (servo->good >= (uint32_t)GOOD_TO_LOCK) {
        enter(servo, WEIR_SERVO_STATE_LOCKED);
        servo->held = servo->frequency;
        servo->was_locked = true;
        servo->holding = false;
        servo->held_for = 0;
        remember(servo, offset);
    }
}

static void follow(struct servo *servo, int64_t offset)
{
    if (magnitude(offset - median(servo)) > gate(servo)) {
        outlier(servo, offset, (uint32_t)MAX_OUTLIERS);
        return;
    }
    servo->bad = 0;
    remember(servo, offset);
    servo->good++;
    if (magnitude(median(servo)) > (gate(servo) / 2)) {
        // The oscillator wanders faster than a narrow loop follows.
        servo->gear = 0;
        servo->good = 0;
    } else if (servo->good >= gear_after[servo->gear]) {
        servo->gear++;
    } else {
        // Goes on.
    }
    control(servo, offset);
    servo->held += (servo->frequency - servo->held) / held_divisor;
    if (servo->gear < ((uint32_t)GEARS - 1u)) {
        servo->held = servo->frequency;
    }
}

void servo_sample(struct servo *servo, int64_t offset, int64_t clocks, struct servo_action *action)
{
    *action = (struct servo_action){0};
    servo->absent = 0;
    count_locked(servo);
    switch (servo->state) {
    case WEIR_SERVO_STATE_FREE_RUN:
        acquire(servo);
        acquisition(servo, offset, clocks, action);
        break;
    case WEIR_SERVO_STATE_HOLDOVER:
        servo->holding = true;
        enter(servo, WEIR_SERVO_STATE_LOCKING);
        servo->acquiring = magnitude(offset) > (2 * gate(servo));
        if (servo->acquiring) {
            acquisition(servo, offset, clocks, action);
        } else {
            pull_in(servo, offset);
        }
        break;
    case WEIR_SERVO_STATE_LOCKING:
        if (servo->acquiring) {
            acquisition(servo, offset, clocks, action);
        } else {
            pull_in(servo, offset);
        }
        break;
    case WEIR_SERVO_STATE_LOCKED:
        follow(servo, offset);
        break;
    default:
        servo_restart(servo);
        break;
    }
    action->rate = servo->rate;
}

void servo_missed(struct servo *servo, struct servo_action *action)
{
    *action = (struct servo_action){0};
    count_locked(servo);
    if (servo->absent < UINT32_MAX) {
        servo->absent++;
    }
    if (servo->state != WEIR_SERVO_STATE_FREE_RUN) {
        servo->missed++;
        // The proportional part was meant for one period.
        set_rate(servo, servo->frequency);
    }
    if (servo->state == WEIR_SERVO_STATE_HOLDOVER) {
        set_rate(servo, servo->held);
        servo->held_for++;
        if (servo->held_for >= servo->settings.holdover_periods) {
            enter(servo, WEIR_SERVO_STATE_FREE_RUN);
            servo->holding = false;
        }
    } else if (servo->absent >= (uint32_t)ABSENT_TO_HOLD) {
        if ((servo->state == WEIR_SERVO_STATE_LOCKED) || servo->holding) {
            servo->held_for += servo->absent;
            servo->frequency = servo->held;
            enter(servo, WEIR_SERVO_STATE_HOLDOVER);
            set_rate(servo, servo->held);
        } else if (servo->state == WEIR_SERVO_STATE_LOCKING) {
            enter(servo, WEIR_SERVO_STATE_FREE_RUN);
        } else {
            // FREE_RUN stays.
        }
    } else {
        // Not yet.
    }
    action->rate = servo->rate;
}
