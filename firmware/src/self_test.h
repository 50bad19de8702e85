// Self-test, in pieces: self_test_step() does one bounded piece per call and returns true when all is done.
#ifndef WEIR_SELF_TEST_H
#define WEIR_SELF_TEST_H

#include <stdbool.h>
#include <stdint.h>

#include "image.h"

// Spare RAM for the march test: no image is so long that it lies there. One step marches over all of it.
#define SELF_TEST_SPARE_BASE (WEIR_EXECUTION_BASE + WEIR_IMAGE_MAX_BYTES)
enum {
    SELF_TEST_SPARE_WORDS = 256
};

// Tests that the boot runs; the boot ROM has just checked the image.
#define SELF_TEST_AT_BOOT                                                                                              \
    (WEIR_SELF_TEST_BIT_MEMORY | WEIR_SELF_TEST_BIT_REGISTERS | WEIR_SELF_TEST_BIT_HASH | WEIR_SELF_TEST_BIT_TIME)

// Those whose failure is the card's: a loopback may fail because the host sent nothing.
#define SELF_TEST_OF_CARD (SELF_TEST_AT_BOOT | WEIR_SELF_TEST_BIT_IMAGE)

#define SELF_TEST_ALL (SELF_TEST_OF_CARD | WEIR_SELF_TEST_BIT_LOOPBACK)

struct self_test {
    uint32_t wanted; // SelfTestBits, at the start
    uint32_t left;
    uint32_t failed;
    uint32_t detail; // of the first that failed
    uint32_t place;  // within the test
    uint32_t slot;
    uint32_t khz;
    uint64_t loopback_clocks;
    uint64_t started;
    uint64_t clock_ns;
    uint32_t frames[2]; // by port, at the start
    struct image_check image;
};

// `slot` is the one whose image runs.
void self_test_begin(struct self_test *test, uint32_t tests, uint32_t slot, uint32_t clock_khz, uint32_t loopback_ms);

WEIR_CHECKED bool self_test_step(struct self_test *test, uint64_t now);

// Toeplitz hash, 80 bits of which the lower 32 are given: bit i is the parity of key & seed[i +: 320]. Words are
// lowest first; the hardware's hash (weir_hash) mixes this further.
WEIR_CHECKED uint32_t self_test_toeplitz(const uint32_t key[10], const uint32_t seed[13]);

#endif
