// What boot ROM and firmware tell each other over resets: which image runs and why, how often each was tried.
//
// Kept in RAM that no reset clears, twice: each store goes over the older copy, so that a reset in its midst leaves the
// other. Tries and confirmation belong to an image, named by its header's CRC, not to its slot.
#ifndef WEIR_BOOT_RECORD_H
#define WEIR_BOOT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "image.h"

// Layout of the kept area, in bytes from KEPT_BASE.
enum {
    KEPT_RECORD = 0x000,
    KEPT_RECORD_COPY = 0x080,
    KEPT_LOG = 0x100,
    KEPT_LOG_BYTES = 0x800,
    KEPT_NOTE = 0x900, // what the trap handler leaves
    KEPT_TASK = 0x940, // the task that runs
};

struct boot_slot {
    uint32_t image; // header CRC of the image that the rest is about
    uint32_t tries;
    uint32_t confirmed;
    uint32_t error; // enum weir_image_error at the last boot
};

struct boot_record {
    uint32_t magic;
    uint32_t generation;
    uint32_t boots;  // since power came
    uint32_t slot;   // that runs
    uint32_t reason; // enum weir_boot_reason
    uint32_t next;   // slot to prefer
    uint32_t faults; // sequence number of the newest fault ever
    struct boot_slot slots[IMAGE_SLOTS];
    uint32_t crc;
};

#define BOOT_RECORD_WORDS (sizeof(struct boot_record) / sizeof(uint32_t))

static_assert(sizeof(struct boot_record) == 64u, "16 words, no padding");
static_assert(sizeof(struct boot_record) <= (uint32_t)KEPT_RECORD_COPY, "two copies");

// The newer good copy; without one, a fresh record and false.
WEIR_CHECKED bool boot_record_load(struct boot_record *record);

// Over the older copy.
void boot_record_store(struct boot_record *record);

#endif
