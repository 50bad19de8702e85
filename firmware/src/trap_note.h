// What a trap leaves for the next boot: written by the trap handler, which trusts no variable, read once.
#ifndef WEIR_TRAP_NOTE_H
#define WEIR_TRAP_NOTE_H

#include "boot_record.h"

void trap_note_write(uint32_t cause, uint32_t pc, uint32_t value);

// False: no trap since the last call.
WEIR_CHECKED bool trap_note_take(uint32_t *cause, uint32_t *pc);

#endif
