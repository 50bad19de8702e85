// Entry of the image: start.S has set up the stack and the variables.
#include "tasks.h"
#include "trap_note.h"

static struct card card;
static struct tasks tasks;

_Noreturn void firmware_main(void);
_Noreturn void firmware_trap(uint32_t cause, uint32_t pc, uint32_t value);

_Noreturn void firmware_main(void)
{
    const uint64_t now = reg_read64(WEIR_REG_TIMER_NOW_LOW);
    card_init(&card, now);
    tasks_init(&tasks, &card, now);
    for (;;) {
        tasks_turn(&tasks, &card);
    }
}

// On a stack of its own. The next boot logs the note.
_Noreturn void firmware_trap(uint32_t cause, uint32_t pc, uint32_t value)
{
    trap_note_write(cause, pc, value);
    for (;;) {
        reg_write32(WEIR_REG_SYSTEM_REQUEST, WEIR_REG_SYSTEM_REQUEST_CPU_RESTART_MASK);
    }
}
