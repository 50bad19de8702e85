#include "timekeeper.h"

#include "clocks.h"

static const int64_t second_ns = INT64_C(1000000000);
// Beyond this the second is the wrong one.
static const int64_t set_ns = INT64_C(400000000);
static const int64_t max_step_ns = INT64_C(999999000);
// Packets would have one time for so long.
static const int64_t most_back_ns = INT64_C(1000000000);
// Pairs that say the same differ by the wander of two clocks between them, and by what reading them takes.
static const int64_t agree_ns = INT64_C(10000000);

// Most seconds that a clock is stepped by and keeps its phase: more than TAI and UTC are apart.
static const int64_t most_seconds = 60;

static uint32_t gate_of(const struct config *config)
{
    if (config->values[WEIR_KEY_SERVO_GATE_NS] != 0u) {
        return config->values[WEIR_KEY_SERVO_GATE_NS];
    }
    const bool host = config->values[WEIR_KEY_SERVO_SOURCE] == (uint32_t)WEIR_SERVO_SOURCE_HOST;
    return host ? WEIR_SERVO_GATE_HOST_NS : WEIR_SERVO_GATE_PPS_NS;
}

static struct servo_settings settings_of(const struct config *config, uint32_t khz)
{
    return (struct servo_settings){
        .clock_khz = khz,
        .period_us = config->values[WEIR_KEY_SERVO_PERIOD_US],
        .gate_ns = gate_of(config),
        .holdover_periods = config->values[WEIR_KEY_SERVO_HOLDOVER_PERIODS],
    };
}

// Samples come from now on; whatever came before has nothing to do with them.
static void follow(struct timekeeper *timekeeper, const struct config *config, uint64_t now)
{
    timekeeper->source = (enum weir_servo_source)config->values[WEIR_KEY_SERVO_SOURCE];
    timekeeper->period = clocks_of_us(timekeeper->khz, timekeeper->servo.settings.period_us);
    timekeeper->last = now;
    timekeeper->sampled = now;
    timekeeper->pair_seen = false;
    timekeeper->pps_count = reg_read32(WEIR_REG_CLOCK_PPS_COUNT);
    reg_write32(WEIR_REG_CLOCK_RATE, (uint32_t)timekeeper->servo.rate);
}

void timekeeper_init(struct timekeeper *timekeeper, const struct config *config, uint32_t clock_khz, uint64_t now)
{
    *timekeeper = (struct timekeeper){.khz = clock_khz};
    const struct servo_settings settings = settings_of(config, clock_khz);
    servo_init(&timekeeper->servo, &settings);
    follow(timekeeper, config, now);
}

void timekeeper_configure(struct timekeeper *timekeeper, const struct config *config, uint64_t now)
{
    const struct servo_settings settings = settings_of(config, timekeeper->khz);
    const bool other = (settings.period_us != timekeeper->servo.settings.period_us) ||
                       (config->values[WEIR_KEY_SERVO_SOURCE] != (uint32_t)timekeeper->source);
    servo_adjust(&timekeeper->servo, &settings);
    if (other) {
        // The oscillator is the same: what was learned of it stays.
        servo_restart(&timekeeper->servo);
        follow(timekeeper, config, now);
    }
}

// Times that somebody has, or records carry, are not those that come.
static void jumped(struct timekeeper *timekeeper, int64_t ns)
{
    if (timekeeper->servo.was_locked || timekeeper->measuring) {
        timekeeper->stepped_ns += ns;
        timekeeper->steps++;
    }
    timekeeper->went_back |= timekeeper->measuring && (ns <= -most_back_ns);
}

static void set_time(struct timekeeper *timekeeper, uint64_t tai_ns, int64_t change_ns)
{
    const uint64_t seconds = tai_ns / (uint64_t)second_ns;
    reg_write32(WEIR_REG_CLOCK_SET_SECONDS_LOW, (uint32_t)seconds);
    reg_write32(WEIR_REG_CLOCK_SET_SECONDS_HIGH, (uint32_t)(seconds >> 32u) & WEIR_REG_CLOCK_SET_SECONDS_HIGH_MASK);
    reg_write32(WEIR_REG_CLOCK_SET_NS, (uint32_t)(tai_ns % (uint64_t)second_ns));
    jumped(timekeeper, change_ns);
}

static void step(int64_t ns)
{
    reg_write32(WEIR_REG_CLOCK_STEP_NS, (uint32_t)(int32_t)ns & WEIR_REG_CLOCK_STEP_NS_MASK);
}

static void act(struct timekeeper *timekeeper, const struct servo_action *action)
{
    reg_write32(WEIR_REG_CLOCK_RATE, (uint32_t)action->rate);
    if (action->slew_ns != 0) {
        reg_write32(WEIR_REG_CLOCK_SLEW_NS, (uint32_t)action->slew_ns);
    }
    if ((action->step_ns != 0) && (action->step_ns <= max_step_ns) && (action->step_ns >= -max_step_ns)) {
        step(action->step_ns);
        jumped(timekeeper, action->step_ns);
    }
}

// Distance to the nearest whole period: 2^-16 ns.
static int64_t edge_offset(const struct timekeeper *timekeeper, uint64_t ns, uint32_t fraction)
{
    const int64_t period_ns = (int64_t)timekeeper->servo.settings.period_us * 1000;
    int64_t offset = (int64_t)(ns % (uint64_t)period_ns);
    if (offset >= (period_ns / 2)) {
        offset -= period_ns;
    }
    return (offset * 65536) + (int64_t)(fraction >> 16u);
}

static void sample(struct timekeeper *timekeeper, int64_t offset, int64_t clocks)
{
    struct servo_action action;
    timekeeper->offset_ns = offset / 65536;
    servo_sample(&timekeeper->servo, offset, clocks, &action);
    act(timekeeper, &action);
}

// The last edge, if there is one that is new. A capture that changes while it is read is read at the next poll.
static bool new_edge(const struct timekeeper *timekeeper, uint32_t *count, uint64_t *ns, uint32_t *fraction)
{
    *count = reg_read32(WEIR_REG_CLOCK_PPS_COUNT);
    if (*count == timekeeper->pps_count) {
        return false;
    }
    *ns = reg_read64(WEIR_REG_CLOCK_PPS_NS_LOW);
    *fraction = reg_read32(WEIR_REG_CLOCK_PPS_FRACTION);
    return reg_read32(WEIR_REG_CLOCK_PPS_COUNT) == *count;
}

void timekeeper_poll(struct timekeeper *timekeeper, uint64_t now)
{
    if (timekeeper->source == WEIR_SERVO_SOURCE_NONE) {
        return;
    }
    uint32_t count = 0;
    uint64_t ns = 0;
    uint32_t fraction = 0;
    if ((timekeeper->source == WEIR_SERVO_SOURCE_PPS) && new_edge(timekeeper, &count, &ns, &fraction)) {
        // Edges that were missed count as time that passed: a slope is what the offset changed by in all of it.
        const uint64_t passed = ((now - timekeeper->sampled) + (timekeeper->period / 2u)) / timekeeper->period;
        const int64_t periods = (passed == 0u) ? 1 : (int64_t)passed;
        timekeeper->pps_count = count;
        timekeeper->last = now;
        timekeeper->sampled = now;
        sample(timekeeper, edge_offset(timekeeper, ns, fraction), periods * timekeeper->servo.period_clocks);
    } else if ((now - timekeeper->last) > (timekeeper->period + (timekeeper->period / 2u))) {
        struct servo_action action;
        timekeeper->last += timekeeper->period;
        servo_missed(&timekeeper->servo, &action);
        act(timekeeper, &action);
    } else {
        // Nothing new.
    }
}

static enum weir_sync_action host_sample(struct timekeeper *timekeeper, uint64_t card_ns, int64_t difference,
                                         uint64_t now)
{
    const uint64_t period_ns = (uint64_t)timekeeper->servo.settings.period_us * 1000u;
    const uint64_t passed_ns = card_ns - timekeeper->pair_ns;
    if (timekeeper->pair_seen && (passed_ns < (period_ns / 2u))) {
        return WEIR_SYNC_ACTION_NONE;
    }
    // In clocks, from the card's own time; a first pair counts as one period behind another. Beyond 100 s the
    // distance tells nothing.
    const uint64_t most = 100u * (uint64_t)second_ns;
    const uint64_t span_ns = timekeeper->pair_seen ? ((passed_ns > most) ? most : passed_ns) : period_ns;
    timekeeper->pair_seen = true;
    timekeeper->pair_ns = card_ns;
    timekeeper->last = now;
    sample(timekeeper, difference * 65536, (int64_t)((span_ns * timekeeper->khz) / 1000000u));
    return WEIR_SYNC_ACTION_SAMPLE;
}

static bool was_right(const struct timekeeper *timekeeper)
{
    return (timekeeper->servo.state == WEIR_SERVO_STATE_LOCKED) ||
           (timekeeper->servo.state == WEIR_SERVO_STATE_HOLDOVER) || timekeeper->servo.holding;
}

// A clock that was locked is right until several pairs say otherwise: a pause of the host makes one wrong.
static bool believed(struct timekeeper *timekeeper, int64_t difference)
{
    if (!was_right(timekeeper)) {
        return true;
    }
    const int64_t change = difference - timekeeper->doubted_ns;
    const bool agrees = (timekeeper->doubted != 0u) && (change <= agree_ns) && (change >= -agree_ns);
    timekeeper->doubted = agrees ? (timekeeper->doubted + 1u) : 1u;
    timekeeper->doubted_ns = difference;
    return timekeeper->doubted >= WEIR_PAIRS_TO_SET;
}

static void set_off(struct timekeeper *timekeeper, int64_t difference)
{
    const uint64_t card_now = reg_read64(WEIR_REG_CLOCK_NOW_LOW);
    set_time(timekeeper, card_now - (uint64_t)difference, -difference);
    servo_restart(&timekeeper->servo);
    timekeeper->pair_seen = false;
}

// Exactly, which a set is not: the phase is that of the edges, and the lock stays. Each second takes two steps, since one
// is shorter than that.
static void step_seconds(struct timekeeper *timekeeper, int64_t seconds)
{
    const int64_t sign = (seconds < 0) ? -1 : 1;
    for (int64_t i = 0; (i < most_seconds) && (i < (sign * seconds)); i++) {
        step(sign * (second_ns - max_step_ns));
        step(sign * max_step_ns);
    }
    jumped(timekeeper, seconds * second_ns);
}

// A clock that follows edges, or did: a pair only tells it the second, since the host's phase is no better.
static enum weir_sync_action tell_second(struct timekeeper *timekeeper, int64_t difference)
{
    const int64_t half_ns = second_ns / 2;
    const int64_t seconds = (difference + ((difference < 0) ? -half_ns : half_ns)) / second_ns;
    const int64_t rest_ns = difference - (seconds * second_ns);
    if ((rest_ns >= set_ns) || (rest_ns <= -set_ns)) {
        timekeeper->doubted = 0;
        return WEIR_SYNC_ACTION_DOUBTED;
    }
    if (seconds == 0) {
        timekeeper->doubted = 0;
        return WEIR_SYNC_ACTION_NONE;
    }
    if (!believed(timekeeper, difference)) {
        return WEIR_SYNC_ACTION_DOUBTED;
    }
    timekeeper->doubted = 0;
    if ((seconds > most_seconds) || (seconds < -most_seconds)) {
        set_off(timekeeper, difference);
    } else {
        step_seconds(timekeeper, -seconds);
    }
    return WEIR_SYNC_ACTION_SET;
}

enum weir_sync_action timekeeper_pair(struct timekeeper *timekeeper, uint64_t card_ns, uint64_t host_ns, uint64_t now)
{
    const int64_t difference = (int64_t)(card_ns - host_ns);
    if ((timekeeper->source == WEIR_SERVO_SOURCE_PPS) && was_right(timekeeper)) {
        return tell_second(timekeeper, difference);
    }
    if ((difference >= set_ns) || (difference <= -set_ns)) {
        if (!believed(timekeeper, difference)) {
            return WEIR_SYNC_ACTION_DOUBTED;
        }
        set_off(timekeeper, difference);
        timekeeper->doubted = 0;
        return WEIR_SYNC_ACTION_SET;
    }
    timekeeper->doubted = 0;
    if (timekeeper->source == WEIR_SERVO_SOURCE_HOST) {
        return host_sample(timekeeper, card_ns, difference, now);
    }
    return WEIR_SYNC_ACTION_NONE;
}
