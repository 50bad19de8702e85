// Update of the firmware's image: words of a new one go into the slot that does not run.
//
// From update_begin() on, the slot is no image: its first word is written last, when all words are there, so that a
// reset in between leaves nothing that the boot ROM would take. The image is tried at the next boot; boot_choice.h says
// what happens when nobody confirms it.
#ifndef WEIR_UPDATE_H
#define WEIR_UPDATE_H

#include "boot_record.h"

struct update {
    struct image_check check;
    enum weir_update_state state;
    uint32_t slot;
    uint32_t bytes;
    uint32_t next;  // offset wanted
    uint32_t first; // first word, kept back
    bool checking;
};

void update_init(struct update *update);

WEIR_CHECKED enum weir_status update_begin(struct update *update, struct boot_record *record, uint32_t bytes);

WEIR_CHECKED enum weir_status update_data(struct update *update, uint32_t offset, const uint32_t *words,
                                          uint32_t count);

// Begins the check; update_step() ends it.
WEIR_CHECKED enum weir_status update_end(struct update *update, uint32_t card_abi);

// True: the check is done, `state` and `check.error` say how it ended.
WEIR_CHECKED bool update_step(struct update *update, struct boot_record *record);

#endif
