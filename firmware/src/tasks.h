// The main loop: cooperative tasks, each with a period and a bound on its time.
//
// A turn runs every task that is due, in the order of the table, and kicks the CPU's watchdog. No task waits for
// anything, so that a turn takes at most the sum of the bounds. A task beyond its bound is a fault (logged once a second
// at most), one that does not come back is found by the watchdog, and named: its number is in the kept area.
#ifndef WEIR_TASKS_H
#define WEIR_TASKS_H

#include "card.h"

enum {
    TASKS = 6
};

struct tasks {
    uint64_t due[TASKS];
};

void tasks_init(struct tasks *tasks, const struct card *card, uint64_t now);
void tasks_turn(struct tasks *tasks, struct card *card);

// Sum of the bounds.
uint32_t tasks_bound_us(void);

#endif
