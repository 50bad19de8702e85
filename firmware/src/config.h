// Configuration: values by key, checked against the ranges of weir_card.h and against what this card's hardware wants,
// and their way into the registers.
//
// config_set() takes all pairs or none. config_apply_measure() writes what measuring takes at the end of its reset
// and reads it back; it is called while measuring is in reset, else keys that are not live do not change.
#ifndef WEIR_CONFIG_H
#define WEIR_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "io.h"

struct config {
    uint32_t values[WEIR_KEYS + 1u]; // by key
};

void config_init(struct config *config);

// `pairs` of key and value. `stopped`: nothing is measured. On a refusal `*detail` is the key.
WEIR_CHECKED enum weir_status config_set(struct config *config, const uint32_t *words, uint32_t pairs, bool stopped,
                                         uint32_t *detail);

// False: the register at `*address` did not keep what was written.
WEIR_CHECKED bool config_apply_measure(const struct config *config, uint32_t *address);

// What takes effect at once. `open`: the inline path may be measured, if it is enabled.
void config_apply_live(const struct config *config, bool open);

#endif
