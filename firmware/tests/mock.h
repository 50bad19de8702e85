// Registers and RAM of the card for tests on the host: memory that behaves where behaviour matters.
#ifndef WEIR_MOCK_H
#define WEIR_MOCK_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "io.h"

#define MOCK_KHZ 300000u

struct mock {
    uint32_t registers[0x2000 / 4];
    uint32_t ram[0x20000 / 4];
    uint32_t to_card[64];
    uint32_t to_card_count;
    uint32_t to_host[4096]; // what the card wrote; the queue's limit is to_host_room
    uint32_t to_host_count;
    uint32_t to_host_room;
    uint64_t clocks;
    uint64_t clocks_per_read; // of the timer
    uint64_t held;            // high word of the last low word read
    uint64_t tai_ns;
    uint64_t ns_per_read; // of the clock
    uint32_t beats;
    uint32_t flushes;
    uint32_t kicks;
    uint32_t restarts;
    uint32_t cuts;             // resets of measuring under frames that are, or may be, measured
    uint32_t stuck;            // register that ignores writes; 0: none
    uint32_t stuck_ram;        // word of RAM whose bit 0 is 0; 0: none
    uint32_t missing;          // register that is not there; 0: none
    uint32_t host_error;       // register at whose next reading the host makes an error of the bus; 0: none
    uint32_t ready_reads;      // of status until measuring is ready; UINT32_MAX: never
    uint32_t edges_in_capture; // that come while it is read
    int64_t step_ns;           // all of them
    int32_t slew_ns;
    uint32_t steps;
    uint32_t sets;
    jmp_buf *kicked; // where to go after kick_limit kicks
    uint32_t kick_limit;
    jmp_buf *restarted;
};

extern struct mock mock;

// As after power-on, with the CPU running.
void mock_reset(void);

// 64 bits of a pair of registers.
void mock_set64(uint32_t low_offset, uint64_t value);

static inline uint32_t *mock_register(uint32_t offset) { return &mock.registers[offset / 4u]; }
static inline uint32_t *mock_ram(uint32_t address) { return &mock.ram[(address - WEIR_RAM_BASE) / 4u]; }

// A good image of `words` words of body in a slot.
void mock_image(uint32_t slot, uint32_t version, uint32_t words);

// Random numbers from WEIR_SEED (printed once).
uint64_t mock_random(void);
void mock_seed(uint64_t seed);
uint64_t mock_seed_from_environment(void);

// Queues a message for the card.
void mock_message(uint32_t opcode, uint32_t sequence, const uint32_t *payload, uint32_t count);
void mock_words(const uint32_t *words, uint32_t count);

struct mock_reply {
    uint32_t opcode;
    uint32_t sequence;
    uint32_t status;
    uint32_t count;
    uint32_t payload[64];
};

// The next message that the card wrote; false: none. A damaged one fails the test.
bool mock_reply(struct mock_reply *reply);

#endif
