// Access to the card's registers and to the CPU's RAM outside of the program's own variables.
//
// All access goes through these four functions. On the card they are single loads and stores; host-side tests link
// their own (tests/mock.h), with registers that behave. Addresses are multiples of 4: registers as byte offsets
// of weir_registers.h, RAM as the CPU's addresses of weir_card.h.
#ifndef WEIR_IO_H
#define WEIR_IO_H

#include <stdint.h>

#include "weir_card.h"
#include "weir_registers.h"

// A result that is not looked at is an error.
#define WEIR_CHECKED __attribute__((warn_unused_result))

#ifdef WEIR_TARGET

static inline uint32_t reg_read32(uint32_t offset)
{
    return *(volatile const uint32_t *)(WEIR_REGISTERS_BASE + offset);
}

static inline void reg_write32(uint32_t offset, uint32_t value)
{
    *(volatile uint32_t *)(WEIR_REGISTERS_BASE + offset) = value;
}

static inline uint32_t ram_read32(uint32_t address) { return *(volatile const uint32_t *)address; }

static inline void ram_write32(uint32_t address, uint32_t value) { *(volatile uint32_t *)address = value; }

#else

uint32_t reg_read32(uint32_t offset);
void reg_write32(uint32_t offset, uint32_t value);
uint32_t ram_read32(uint32_t address);
void ram_write32(uint32_t address, uint32_t value);

#endif

// A value of 64 bits: reading the low word holds the high one.
static inline uint64_t reg_read64(uint32_t low_offset)
{
    uint32_t low = reg_read32(low_offset);
    return ((uint64_t)reg_read32(low_offset + 4u) << 32u) | low;
}

#endif
