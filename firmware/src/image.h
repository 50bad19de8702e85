// Check of a firmware image in a slot, some words at a time, so that a task's time stays bounded.
//
// image_check_begin() looks at the header and says NONE when the body is to be checked; image_check_step() then takes
// at most `words` words of it and returns false until it is done. `error` is the result: only NONE is a good image.
#ifndef WEIR_IMAGE_H
#define WEIR_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "io.h"

enum {
    IMAGE_SLOTS = 2
};

struct image_check {
    struct weir_image_header header;
    uint32_t base;
    uint32_t position; // of the next word of the body, in bytes
    uint32_t crc;
    enum weir_image_error error;
    bool done;
};

uint32_t image_slot_base(uint32_t slot);
void image_check_begin(struct image_check *check, uint32_t base, uint32_t card_abi);
WEIR_CHECKED bool image_check_step(struct image_check *check, uint32_t words);

#endif
