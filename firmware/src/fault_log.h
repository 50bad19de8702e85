// Fault log in RAM that no reset clears: the newest FAULT_LOG_ENTRIES faults, each with its own CRC.
//
// A reset while an entry is written loses this one. Numbers go on over clears and resets (the boot record keeps the
// newest of them). fault_log_init() looks at each entry once, later calls touch one.
#ifndef WEIR_FAULT_LOG_H
#define WEIR_FAULT_LOG_H

#include "boot_record.h"

#define FAULT_LOG_ENTRIES ((uint32_t)KEPT_LOG_BYTES / (4u * WEIR_FAULT_ENTRY_WORDS))

struct fault_log {
    uint32_t newest; // sequence number; 0: never an entry
    uint32_t oldest; // lowest that may still be there
};

// `known` is the newest sequence number that the boot record knows.
void fault_log_init(struct fault_log *log, uint32_t known);

// Gives the entry its number and CRC.
void fault_log_append(struct fault_log *log, struct weir_fault_entry *entry);

// False: not there any more, or damaged.
WEIR_CHECKED bool fault_log_read(const struct fault_log *log, uint32_t sequence, struct weir_fault_entry *entry);

void fault_log_clear(struct fault_log *log);

#endif
