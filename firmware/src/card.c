#include "card.h"

#include <stddef.h>

#include "clocks.h"
#include "statistics.h"
#include "trap_note.h"

// A reply at the end of work has room: mailbox_can_reply() counts it.
static void reply_pending(struct card *card, enum weir_status status, const uint32_t *payload, uint32_t count)
{
    if (card->pending.opcode != 0u) {
        if (!mailbox_send(&card->mailbox, card->pending.opcode, card->pending.sequence, (uint32_t)status, payload,
                          count)) {
            card->replies_lost++;
        }
        card->pending = (struct card_pending){0};
    }
}

static void tell(struct card *card, enum weir_opcode opcode, const uint32_t *payload, uint32_t count)
{
    // Without room it is lost: the host sees states in GET_STATE and faults in the fault log.
    if (card->attached &&
        !mailbox_send(&card->mailbox, (uint32_t)opcode, 0, (uint32_t)WEIR_STATUS_OK, payload, count)) {
        card->reports_lost++;
    }
}

uint32_t card_uptime_ms(const struct card *card, uint64_t now) { return (uint32_t)((now - card->booted) / card->khz); }

// What of a code is told apart.
static uint32_t kinds(enum weir_fault_code code, uint32_t detail0, uint32_t detail1)
{
    if ((code == WEIR_FAULT_CODE_HARDWARE) || (code == WEIR_FAULT_CODE_MEASURE_UNHEALTHY) ||
        (code == WEIR_FAULT_CODE_SELF_TEST)) {
        return detail0;
    }
    return (code == WEIR_FAULT_CODE_IMAGE_REFUSED) ? (1u << ((8u * detail0) + detail1)) : 1u;
}

static bool may_log(const struct card *card, enum weir_fault_code code, uint32_t kind, uint64_t now)
{
    const struct card_limit *limit = &card->limits[code];
    return (now >= limit->due) || ((kind & ~limit->known) != 0u);
}

void card_fault(struct card *card, enum weir_fault_code code, uint32_t detail0, uint32_t detail1, uint64_t now)
{
    const uint32_t kind = kinds(code, detail0, detail1);
    struct card_limit *limit = &card->limits[code];
    if (!may_log(card, code, kind, now)) {
        return;
    }
    limit->known = kind | ((now >= limit->due) ? 0u : limit->known);
    limit->due = now + clocks_of_ms(card->khz, CARD_FAULT_MS);
    struct weir_fault_entry entry = {
        .code = (uint32_t)code,
        .boot = card->record.boots,
        .uptime_ms = card_uptime_ms(card, now),
        .seconds = (uint32_t)(reg_read64(WEIR_REG_CLOCK_NOW_LOW) / 1000000000u),
        .detail0 = detail0,
        .detail1 = detail1,
    };
    fault_log_append(&card->fault_log, &entry);
    reg_write32(WEIR_REG_HOST_FAULT_COUNT, card->fault_log.newest);
    const uint32_t words[WEIR_FAULT_ENTRY_WORDS] = {
        entry.sequence, entry.code, entry.boot, entry.uptime_ms, entry.seconds, entry.detail0, entry.detail1, entry.crc,
    };
    tell(card, WEIR_OPCODE_FAULT, words, WEIR_FAULT_ENTRY_WORDS);
}

void card_log(struct card *card, enum weir_log_code code, uint32_t detail0, uint32_t detail1)
{
    const uint32_t words[WEIR_LOG_WORDS] = {(uint32_t)code, detail0, detail1};
    tell(card, WEIR_OPCODE_LOG, words, WEIR_LOG_WORDS);
}

// What a host did not set is as the protocol says, whatever another one had set before.
static void restore_defaults(struct card *card)
{
    // The clock goes on as it is until somebody says what it follows: a lock outlives a host that starts anew.
    config_init(&card->config);
    card->defaults_due = false;
}

void card_enter(struct card *card, enum weir_card_state state, uint32_t reason)
{
    const uint32_t words[WEIR_STATE_CHANGE_WORDS] = {(uint32_t)state, (uint32_t)card->state, reason};
    card->state = state;
    if (state == WEIR_CARD_STATE_FAULT) {
        card->broken_by = reason;
    } else if (state == WEIR_CARD_STATE_IDLE) {
        card->broken_by = 0;
    } else {
        // A self-test does not mend.
    }
    card->timekeeper.measuring = state == WEIR_CARD_STATE_RUNNING;
    reg_write32(WEIR_REG_HOST_STATE, (uint32_t)state);
    tell(card, WEIR_OPCODE_STATE_CHANGE, words, WEIR_STATE_CHANGE_WORDS);
    if (card->defaults_due && (state != WEIR_CARD_STATE_RUNNING)) {
        restore_defaults(card);
    }
}

// Measuring is held in reset; the CPU is not.
static void hold_measuring(void) { reg_write32(WEIR_REG_SYSTEM_CONTROL, WEIR_REG_SYSTEM_CONTROL_MEASURE_RESET_MASK); }

static void fail(struct card *card, enum weir_fault_code code, uint32_t detail0, uint32_t detail1, uint64_t now)
{
    hold_measuring();
    card->ready = false;
    card_fault(card, code, detail0, detail1, now);
    card_enter(card, WEIR_CARD_STATE_FAULT, (uint32_t)code);
}

void card_attach(struct card *card)
{
    card->attached = true;
    if (card->state == WEIR_CARD_STATE_RUNNING) {
        card->defaults_due = true;
    } else {
        restore_defaults(card);
    }
}

// Faults of the time before this boot.
static void take_up(struct card *card, bool record_good, uint64_t now)
{
    uint32_t cause = 0;
    uint32_t pc = 0;
    const uint32_t task = ram_read32(WEIR_KEPT_BASE + (uint32_t)KEPT_TASK);
    // A boot that hangs must not name a task of the boot before.
    ram_write32(WEIR_KEPT_BASE + (uint32_t)KEPT_TASK, WEIR_NO_TASK);
    const uint32_t boot = reg_read32(WEIR_REG_SYSTEM_BOOT);
    // The boot ROM made a new record, but this is not the first boot.
    const bool fresh = (card->record.boots == 1u) && ((boot >> WEIR_REG_SYSTEM_BOOT_COUNT_SHIFT) > 1u);
    if (!record_good || fresh) {
        card_fault(card, WEIR_FAULT_CODE_BOOT_RECORD, 0, 0, now);
    }
    if (trap_note_take(&cause, &pc)) {
        card_fault(card, WEIR_FAULT_CODE_TRAP, cause, pc, now);
    }
    const uint32_t reason = (boot & WEIR_REG_SYSTEM_BOOT_REASON_MASK) >> WEIR_REG_SYSTEM_BOOT_REASON_SHIFT;
    if (reason == WEIR_REG_SYSTEM_BOOT_REASON_WATCHDOG) {
        card_fault(card, WEIR_FAULT_CODE_WATCHDOG, task, 0, now);
    }
    for (uint32_t slot = 0; slot < (uint32_t)IMAGE_SLOTS; slot++) {
        // An empty slot is no fault.
        if (card->record.slots[slot].error > (uint32_t)WEIR_IMAGE_ERROR_MAGIC) {
            card_fault(card, WEIR_FAULT_CODE_IMAGE_REFUSED, slot, card->record.slots[slot].error, now);
        }
    }
    if (card->record.reason == (uint32_t)WEIR_BOOT_REASON_ROLLBACK) {
        const uint32_t other = card->record.slot ^ 1u;
        card_fault(card, WEIR_FAULT_CODE_ROLLBACK, other, card->record.slots[other].tries, now);
    }
}

void card_init(struct card *card, uint64_t now)
{
    *card = (struct card){.booted = now, .khz = clocks_khz(), .state = WEIR_CARD_STATE_BOOT};
    reg_write32(WEIR_REG_HOST_STATE, (uint32_t)WEIR_CARD_STATE_BOOT);
    config_init(&card->config);
    config_apply_live(&card->config, card->open);
    mailbox_init(&card->mailbox, card->khz);
    guard_init(&card->guard, card->khz);
    timekeeper_init(&card->timekeeper, &card->config, card->khz, now);
    update_init(&card->update);
    const bool record_good = boot_record_load(&card->record);
    fault_log_init(&card->fault_log, card->record.faults);
    // What was measured before the reset; by now the frame that passed when bypass was asked for has ended.
    hold_measuring();

    reg_write32(WEIR_REG_HOST_FIRMWARE_VERSION, WEIR_FIRMWARE_VERSION);
    reg_write32(WEIR_REG_HOST_FIRMWARE_ABI, (WEIR_ABI_MAJOR << 16u) | WEIR_ABI_MINOR);
    reg_write32(WEIR_REG_HOST_BOOT_STAGE, (uint32_t)WEIR_BOOT_STAGE_FIRMWARE);
    reg_write32(WEIR_REG_HOST_SERVO_STATE, (uint32_t)card->servo_state);
    reg_write32(WEIR_REG_HOST_FAULT_COUNT, card->fault_log.newest);
    take_up(card, record_good, now);

    self_test_begin(&card->self_test, SELF_TEST_AT_BOOT, card->record.slot, card->khz, 0);
    card_enter(card, WEIR_CARD_STATE_SELF_TEST, 0);
}

enum weir_status card_start(struct card *card, uint64_t now)
{
    uint32_t address = 0;
    hold_measuring();
    if (!config_apply_measure(&card->config, &address)) {
        fail(card, WEIR_FAULT_CODE_CONFIGURATION, address, reg_read32(address), now);
        return WEIR_STATUS_FAILED;
    }
    timekeeper_configure(&card->timekeeper, &card->config, now);
    reg_write32(WEIR_REG_SYSTEM_CONTROL, 0);
    guard_start(&card->guard, now);
    card->started = now;
    card->flushed = now;
    card->reported = now;
    card->ready = false;
    card_enter(card, WEIR_CARD_STATE_RUNNING, 0);
    return WEIR_STATUS_OK;
}

static void end_measuring(struct card *card)
{
    const bool failed = (card->self_test_failed != 0u) || (card->ended_by != 0u);
    hold_measuring();
    card->ready = false;
    card->stopping = false;
    card_enter(card, failed ? WEIR_CARD_STATE_FAULT : WEIR_CARD_STATE_IDLE, card->ended_by);
}

static void begin_stop(struct card *card, uint64_t now)
{
    card->stopping = true;
    // A reset under frames that are measured would be a fault of the inline path.
    card->open = false;
    config_apply_live(&card->config, card->open);
    card->stopped = now;
    card->stop_records = reg_read64(WEIR_REG_RECORD_RECORDS_IN_LOW);
}

bool card_stop(struct card *card, uint64_t now)
{
    card->ended_by = 0;
    if (card->state != WEIR_CARD_STATE_RUNNING) {
        end_measuring(card);
        return true;
    }
    begin_stop(card, now);
    return false;
}

// Visits that are late for longer leave what flows keep of times in short: blocks and pauses would be off by multiples
// of 2^32 ns, and no record would tell.
static void end_held_up(struct card *card, uint64_t now)
{
    card_fault(card, WEIR_FAULT_CODE_RECORDS_HELD, card->guard.held_ms, 0, now);
    card->ended_by = (uint32_t)WEIR_FAULT_CODE_RECORDS_HELD;
    begin_stop(card, now);
}

static void work_self_test(struct card *card, uint64_t now)
{
    if (!self_test_step(&card->self_test, now)) {
        return;
    }
    const struct self_test *test = &card->self_test;
    const uint32_t words[WEIR_SELF_TEST_REPLY_WORDS] = {test->wanted, test->failed, test->detail};
    card->self_test_failed = (card->self_test_failed & ~test->wanted) | test->failed;
    reg_write32(WEIR_REG_HOST_BOOT_STAGE, (uint32_t)WEIR_BOOT_STAGE_TESTED);
    if (test->failed != 0u) {
        card_fault(card, WEIR_FAULT_CODE_SELF_TEST, test->failed, test->detail, now);
    }
    // A loopback that fails may be the host's doing: it breaks nothing.
    card->self_test_failed &= SELF_TEST_OF_CARD;
    if (card->self_test_failed != 0u) {
        card_enter(card, WEIR_CARD_STATE_FAULT, (uint32_t)WEIR_FAULT_CODE_SELF_TEST);
    } else if (card->broken_by != 0u) {
        card_enter(card, WEIR_CARD_STATE_FAULT, card->broken_by);
    } else {
        card_enter(card, WEIR_CARD_STATE_IDLE, 0);
    }
    reply_pending(card, WEIR_STATUS_OK, words, WEIR_SELF_TEST_REPLY_WORDS);
}

static void work_update(struct card *card, uint64_t now)
{
    if (!update_step(&card->update, &card->record)) {
        return;
    }
    const uint32_t error = (uint32_t)card->update.check.error;
    if (error != (uint32_t)WEIR_IMAGE_ERROR_NONE) {
        card_fault(card, WEIR_FAULT_CODE_IMAGE_REFUSED, card->update.slot, error, now);
        reply_pending(card, WEIR_STATUS_FAILED, &error, 1);
    } else {
        reply_pending(card, WEIR_STATUS_OK, NULL, 0);
    }
}

static void work_start(struct card *card, uint64_t now)
{
    if ((reg_read32(WEIR_REG_SYSTEM_STATUS) & WEIR_REG_SYSTEM_STATUS_READY_MASK) != 0u) {
        card->ready = true;
    } else if ((now - card->started) > clocks_of_ms(card->khz, CARD_READY_MS)) {
        fail(card, WEIR_FAULT_CODE_NOT_READY, CARD_READY_MS, 0, now);
    } else {
        // It clears its memories.
    }
}

static bool bypassed(void)
{
    uint32_t measured = 0;
    for (uint32_t port = 0; port < WEIR_REG_PORT_COUNT; port++) {
        measured |= reg_read32(WEIR_REG_INLINE_PORT_MODE(port)) & WEIR_REG_INLINE_PORT_MODE_MEASURED_MASK;
    }
    return measured == 0u;
}

static void work_stop(struct card *card, uint64_t now)
{
    const bool passes = !bypassed();
    // What is in a frame that fills leaves, too. A look right behind that finds none waiting if few come.
    reg_write32(WEIR_REG_RECORD_REQUEST, WEIR_REG_RECORD_REQUEST_FLUSH_MASK);
    const uint64_t out = reg_read64(WEIR_REG_RECORD_RECORDS_OUT_LOW);
    const uint64_t in = reg_read64(WEIR_REG_RECORD_RECORDS_IN_LOW);
    const uint64_t passed = now - card->stopped;
    // A link that stands still takes none however long.
    const bool waits = passes || ((out < card->stop_records) && !card->guard.stuck);
    const uint64_t most = waits ? clocks_of_ms(card->khz, CARD_STOP_MS) : clocks_of_us(card->khz, CARD_STOP_MOST_US);
    if ((passed >= most) || (!passes && (out == in) && (passed >= clocks_of_us(card->khz, CARD_STOP_LEAST_US)))) {
        end_measuring(card);
        // What else is under way is not done.
        if (card->pending.opcode == (uint32_t)WEIR_OPCODE_STOP) {
            reply_pending(card, WEIR_STATUS_OK, NULL, 0);
        }
    }
}

void card_work(struct card *card, uint64_t now)
{
    if (card->state == WEIR_CARD_STATE_SELF_TEST) {
        work_self_test(card, now);
    }
    if (card->stopping) {
        work_stop(card, now);
    } else if ((card->state == WEIR_CARD_STATE_RUNNING) && !card->ready) {
        work_start(card, now);
    } else {
        // Nothing begins or ends.
    }
    work_update(card, now);
    if (card->reset_wanted && (mailbox_drained(&card->mailbox) || (now >= card->reset_due))) {
        card->reset_wanted = false;
        reg_write32(WEIR_REG_SYSTEM_REQUEST, WEIR_REG_SYSTEM_REQUEST_CPU_RESTART_MASK);
    }
}

void card_guard(struct card *card, uint64_t now)
{
    struct guard_report report;
    const bool running = (card->state == WEIR_CARD_STATE_RUNNING) && card->ready && !card->stopping;
    guard_beat(&card->guard, &card->config, running, now, &report);
    if (report.hardware != 0u) {
        card_fault(card, WEIR_FAULT_CODE_HARDWARE, report.hardware, 0, now);
    }
    if (report.stopped) {
        card_log(card, WEIR_LOG_CODE_BYPASS, card->guard.unhealthy, 0);
    }
    if (report.resumed) {
        card->open = true;
        config_apply_live(&card->config, card->open);
        card_log(card, WEIR_LOG_CODE_MEASURED, card->config.values[WEIR_KEY_HEALTHY_PERIODS], 0);
    }
    const uint32_t unhealthy = WEIR_HEALTH_BIT_BYPASS_FAULT | WEIR_HEALTH_BIT_RECORDS_STUCK | WEIR_HEALTH_BIT_NOT_READY;
    if (!running) {
        return;
    }
    if ((report.fresh & WEIR_HEALTH_BIT_HOST_LOST) != 0u) {
        card_fault(card, WEIR_FAULT_CODE_HOST_LOST, card->guard.host_count,
                   (uint32_t)((now - card->guard.host_seen) / card->khz), now);
    }
    if ((report.fresh & unhealthy) != 0u) {
        card_fault(card, WEIR_FAULT_CODE_MEASURE_UNHEALTHY, report.fresh & unhealthy, 0, now);
    }
    if (card->guard.held_ms >= WEIR_RECORDS_HELD_MS) {
        end_held_up(card, now);
    }
}

void card_flush(struct card *card, uint64_t now)
{
    const uint32_t us = card->config.values[WEIR_KEY_FLUSH_US];
    if ((card->state == WEIR_CARD_STATE_RUNNING) && (us != 0u) &&
        ((now - card->flushed) >= clocks_of_us(card->khz, us))) {
        reg_write32(WEIR_REG_RECORD_REQUEST, WEIR_REG_RECORD_REQUEST_FLUSH_MASK);
        card->flushed = now;
    }
}

static void report_clock(struct card *card, uint64_t now)
{
    const enum weir_servo_state state = card->timekeeper.servo.state;
    if (state != card->servo_state) {
        card_log(card, WEIR_LOG_CODE_SERVO, (uint32_t)state, (uint32_t)card->servo_state);
        card->servo_state = state;
        reg_write32(WEIR_REG_HOST_SERVO_STATE, (uint32_t)state);
        // Stray edges interrupt HOLDOVER; the reference is lost once.
        if (state == WEIR_SERVO_STATE_LOCKED) {
            card->reference_lost = false;
        } else if ((state == WEIR_SERVO_STATE_HOLDOVER) && !card->reference_lost) {
            card->reference_lost = true;
            card_fault(card, WEIR_FAULT_CODE_REFERENCE_LOST, card->timekeeper.servo.locked,
                       (uint32_t)card->timekeeper.servo.rate, now);
        } else {
            // LOG tells it.
        }
    }
    if ((card->timekeeper.steps != card->steps) && may_log(card, WEIR_FAULT_CODE_TIME_STEP, 0, now)) {
        card->steps = card->timekeeper.steps;
        const uint64_t ns = (uint64_t)card->timekeeper.stepped_ns;
        card->timekeeper.stepped_ns = 0;
        card_fault(card, WEIR_FAULT_CODE_TIME_STEP, (uint32_t)ns, (uint32_t)(ns >> 32u), now);
    }
    if (card->timekeeper.went_back) {
        card->timekeeper.went_back = false;
        // The engine's time would stand until the clock is there again.
        if ((card->state == WEIR_CARD_STATE_RUNNING) && !card->stopping) {
            card->ended_by = (uint32_t)WEIR_FAULT_CODE_TIME_STEP;
            begin_stop(card, now);
        }
    }
}

void card_report(struct card *card, uint64_t now)
{
    report_clock(card, now);
    card->words_lost += mailbox_lost(&card->mailbox);
    if ((card->words_lost != 0u) && may_log(card, WEIR_FAULT_CODE_MAILBOX_OVERFLOW, 0, now)) {
        card_fault(card, WEIR_FAULT_CODE_MAILBOX_OVERFLOW, card->words_lost, 0, now);
        card->words_lost = 0;
    }
    const uint32_t ms = card->config.values[WEIR_KEY_STATISTICS_MS];
    if ((card->state == WEIR_CARD_STATE_RUNNING) && (ms != 0u) &&
        ((now - card->reported) >= clocks_of_ms(card->khz, ms))) {
        uint32_t words[WEIR_STATISTICS_WORDS];
        statistics_collect(words, card_uptime_ms(card, now), card->loop_us, &card->timekeeper);
        tell(card, WEIR_OPCODE_STATISTICS_REPORT, words, WEIR_STATISTICS_WORDS);
        card->loop_us = 0;
        card->reported = now;
    }
}
