#include "tasks.h"

#include "clocks.h"
#include "protocol.h"

// Time without a turn until the watchdog resets the CPU.
enum {
    WATCHDOG_MS = 100
};

static void run_clock(struct card *card, uint64_t now) { timekeeper_poll(&card->timekeeper, now); }

// In the order of their number, which FaultCode TASK_OVERRUN and WATCHDOG tell. Period 0: each turn; a period of
// BEAT is the key BEAT_US.
#define BEAT UINT32_MAX

static const struct {
    void (*run)(struct card *card, uint64_t now);
    uint32_t period_us;
    uint32_t bound_us;
} table[TASKS] = {
    {run_clock, 0, 50},       // 0
    {card_guard, BEAT, 100},  // 1
    {card_flush, 0, 20},      // 2
    {protocol_poll, 0, 300},  // 3
    {card_work, 0, 300},      // 4
    {card_report, 1000, 200}, // 5
};

uint32_t tasks_bound_us(void)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < (uint32_t)TASKS; i++) {
        sum += table[i].bound_us;
    }
    return sum;
}

void tasks_init(struct tasks *tasks, const struct card *card, uint64_t now)
{
    for (uint32_t i = 0; i < (uint32_t)TASKS; i++) {
        tasks->due[i] = now;
    }
    reg_write32(WEIR_REG_WATCHDOG_TIMEOUT, (uint32_t)WATCHDOG_MS * card->khz);
    reg_write32(WEIR_REG_WATCHDOG_CONTROL, WEIR_REG_WATCHDOG_CONTROL_ENABLE_MASK | WEIR_REG_WATCHDOG_CONTROL_LOCK_MASK);
}

static void run(struct tasks *tasks, struct card *card, uint32_t task, uint64_t now)
{
    const uint32_t period =
        (table[task].period_us == BEAT) ? card->config.values[WEIR_KEY_BEAT_US] : table[task].period_us;
    tasks->due[task] = now + clocks_of_us(card->khz, period);
    ram_write32(WEIR_KEPT_BASE + (uint32_t)KEPT_TASK, task);
    table[task].run(card, now);

    const uint64_t end = clocks_now();
    if ((end - now) > clocks_of_us(card->khz, table[task].bound_us)) {
        card_fault(card, WEIR_FAULT_CODE_TASK_OVERRUN, task, (uint32_t)(((end - now) * 1000u) / card->khz), end);
    }
}

void tasks_turn(struct tasks *tasks, struct card *card)
{
    const uint64_t begin = clocks_now();
    for (uint32_t task = 0; task < (uint32_t)TASKS; task++) {
        const uint64_t now = clocks_now();
        if (now >= tasks->due[task]) {
            run(tasks, card, task, now);
        }
    }
    reg_write32(WEIR_REG_WATCHDOG_KICK, WEIR_REG_WATCHDOG_KICK_KEY);
    const uint32_t us = (uint32_t)(((clocks_now() - begin) * 1000u) / card->khz);
    if (us > card->loop_us) {
        card->loop_us = us;
    }
}
