// What the bench of weir_control has the CPU do: registers, kept memory, timer interrupt, mailbox, a hang.

#include <stdint.h>

#include "weir_registers.h"

#define CAUSE_TIMER 0x80000007u
#define CAUSE_EXTERNAL 0x8000000Bu
#define LINE_MAILBOX 1u
#define LINE_FAULT 2u
#define KEPT ((volatile uint32_t *)0x4000F000u)
#define WORD_HANG 0xDEADu
#define WORD_FAULT 0xFAu
// And the register's address.
#define WORD_READ 0xAD0000u

static void put(uint32_t address, uint32_t value) { *(volatile uint32_t *)(0xF0000000u + address) = value; }
static uint32_t get(uint32_t address) { return *(volatile uint32_t *)(0xF0000000u + address); }

static volatile uint32_t ticks;

static void timer_after(uint32_t clocks)
{
    uint32_t low = get(WEIR_REG_TIMER_NOW_LOW);
    uint32_t high = get(WEIR_REG_TIMER_NOW_HIGH);
    uint64_t then = (((uint64_t)high << 32) | low) + clocks;
    put(WEIR_REG_TIMER_COMPARE_HIGH, 0xFFFFFFFFu);
    put(WEIR_REG_TIMER_COMPARE_LOW, (uint32_t)then);
    put(WEIR_REG_TIMER_COMPARE_HIGH, (uint32_t)(then >> 32));
}

static void mail(void)
{
    uint32_t word = get(WEIR_REG_MAILBOX_TO_CARD_POP);
    put(WEIR_REG_MAILBOX_TO_HOST_PUSH, ~word);
    if (word == WORD_HANG) {
        for (;;) {
        }
    }
    if ((word & 0xFFFF0000u) == WORD_READ) {
        put(WEIR_REG_MAILBOX_TO_HOST_PUSH, get(word & 0xFFFFu));
    }
    if (word == WORD_FAULT) {
        // No register, no memory: 0 is read.
        put(WEIR_REG_MAILBOX_TO_HOST_PUSH, get(0x0FFCu) | *(volatile uint32_t *)0x80000000u);
    }
}

static void fault(void)
{
    put(WEIR_REG_MAILBOX_TO_HOST_PUSH, get(WEIR_REG_FAULT_STATUS));
    put(WEIR_REG_FAULT_STATUS, ~0u);
}

// Returns where to go on.
uint32_t trap(uint32_t cause, uint32_t where)
{
    if (cause == CAUSE_TIMER) {
        ticks = ticks + 1u;
        put(WEIR_REG_HOST_STATE, ticks);
        timer_after(3000u);
    } else if (cause == CAUSE_EXTERNAL) {
        uint32_t pending;
        __asm__ volatile("csrr %0, 0xFC0" : "=r"(pending));
        if ((pending & LINE_MAILBOX) != 0u) {
            mail();
        }
        if ((pending & LINE_FAULT) != 0u) {
            fault();
        }
    } else {
        put(WEIR_REG_HOST_SERVO_STATE, cause);
    }
    return where;
}

int main(void)
{
    ticks = 0u;
    put(WEIR_REG_HOST_BOOT_STAGE, get(WEIR_REG_INFO_MAGIC));
    put(WEIR_REG_HOST_SLOT, get(WEIR_REG_SYSTEM_BOOT));
    KEPT[0] = KEPT[0] + 1u;
    put(WEIR_REG_HOST_FAULT_COUNT, KEPT[0]);
    // Bytes, half words: the memory's strobes.
    volatile uint8_t *bytes = (volatile uint8_t *)&KEPT[1];
    for (uint32_t i = 0u; i < 4u; i++) {
        bytes[i] = (uint8_t)(0x11u * (i + 1u));
    }
    put(WEIR_REG_HOST_FIRMWARE_VERSION, KEPT[1]);

    timer_after(1000u);
    put(WEIR_REG_TIMER_CONTROL, WEIR_REG_TIMER_CONTROL_IRQ_ENABLE_MASK);
    put(WEIR_REG_MAILBOX_CARD_IRQ_ENABLE, WEIR_REG_MAILBOX_CARD_IRQ_ENABLE_TO_CARD_VALID_MASK);
    put(WEIR_REG_FAULT_CARD_IRQ_ENABLE, WEIR_REG_FAULT_STATUS_BUS_ERROR_MASK);
    __asm__ volatile("csrw 0xBC0, %0" ::"r"(LINE_MAILBOX | LINE_FAULT));
    __asm__ volatile("csrs mie, %0" ::"r"(0x880u));
    __asm__ volatile("csrs mstatus, %0" ::"r"(8u));
    for (;;) {
        put(WEIR_REG_WATCHDOG_KICK, WEIR_REG_WATCHDOG_KICK_KEY);
        put(WEIR_REG_INLINE_HEARTBEAT, WEIR_REG_INLINE_HEARTBEAT_BEAT_MASK);
    }
}
