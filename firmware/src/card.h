// State of the card, and what changes it.
//
//   BOOT -> SELF_TEST -> IDLE <-> RUNNING        any -> FAULT (a test failed, measuring did not begin, a register
//             ^  |         |                     did not hold its value, records were held up, the clock went back)
//             |  +-> FAULT |                     -> IDLE by STOP once a SELF_TEST passed
//             +------------+  (SELF_TEST requests)
#ifndef WEIR_CARD_STATE_H
#define WEIR_CARD_STATE_H

#include "config.h"
#include "fault_log.h"
#include "guard.h"
#include "mailbox.h"
#include "self_test.h"
#include "timekeeper.h"
#include "update.h"

#ifndef WEIR_FIRMWARE_VERSION
#define WEIR_FIRMWARE_VERSION 0x00010000u // 0.1.0
#endif

// Measuring has to begin within this time from START.
#define CARD_READY_MS 200u
// Records that were made before a STOP get this long to leave;
#define CARD_STOP_MS 5u
// when they are gone, those that came since; and so long what has no counter.
#define CARD_STOP_MOST_US 50u
#define CARD_STOP_LEAST_US 20u
// A reset waits this long for the host to read the reply.
#define CARD_RESET_MS 100u

// A request whose reply comes later.
struct card_pending {
    uint32_t opcode; // 0: none
    uint32_t sequence;
};

// A code is logged again after this time.
#define CARD_FAULT_MS 1000u

// When a code is logged again at the earliest, and which of its kinds were logged since.
struct card_limit {
    uint64_t due;
    uint32_t known;
};

struct card {
    struct config config;
    struct mailbox mailbox;
    struct timekeeper timekeeper;
    struct guard guard;
    struct self_test self_test;
    struct fault_log fault_log;
    struct boot_record record;
    struct update update;
    struct card_pending pending;
    struct card_limit limits[WEIR_FAULT_CODE_RECORDS_HELD + 1]; // by FaultCode
    uint64_t booted;                                            // clocks
    uint64_t started;                                           // when measuring was let go
    uint64_t reset_due;                                         // when a reset comes at the latest
    uint64_t reported;                                          // when the last STATISTICS_REPORT went
    uint64_t flushed;                                           // when record frames were last flushed
    uint64_t stopped;                                           // when STOP came
    uint64_t stop_records;                                      // made until then
    uint32_t khz;
    uint32_t self_test_failed;
    uint32_t ended_by;     // fault that ends measuring, or 0
    uint32_t broken_by;    // fault that led to FAULT, until it is left; 0: none
    uint32_t loop_us;      // longest turn of the main loop since the last report
    uint32_t steps;        // of the clock, as logged
    uint32_t words_lost;   // of the mailbox, not logged yet
    uint32_t replies_lost; // 0, or the room for replies is wrong
    uint32_t reports_lost; // unsolicited messages without room
    enum weir_card_state state;
    enum weir_servo_state servo_state; // as reported
    bool attached;                     // HELLO was there
    bool defaults_due;                 // HELLO was there while RUNNING
    bool reference_lost;               // told since the clock was last LOCKED
    bool ready;                        // measuring has begun
    bool stopping;                     // measuring ends when its records have left
    bool open;                         // the inline path had a heartbeat since START
    bool reset_wanted;
};

// Takes up what resets left, brings the hardware into a known state, begins the self-test.
void card_init(struct card *card, uint64_t now);

uint32_t card_uptime_ms(const struct card *card, uint64_t now);

// A code is logged, published and reported once a second at most: one that stays must not push the others out of the
// log. Other bits of HARDWARE, MEASURE_UNHEALTHY and SELF_TEST and another error of an image are told at once.
void card_fault(struct card *card, enum weir_fault_code code, uint32_t detail0, uint32_t detail1, uint64_t now);
void card_log(struct card *card, enum weir_log_code code, uint32_t detail0, uint32_t detail1);

// Changes the state and reports it; `reason` is a fault code or 0.
void card_enter(struct card *card, enum weir_card_state state, uint32_t reason);

// A host says HELLO: it finds the configuration's defaults, at once or, while RUNNING, when measuring has ended.
void card_attach(struct card *card);

// Writes the configuration and begins to measure; only in IDLE.
WEIR_CHECKED enum weir_status card_start(struct card *card, uint64_t now);

// Ends measuring: to IDLE, or to FAULT when the last self-test failed. False: records leave first, and the end comes
// with the reply to `pending`.
WEIR_CHECKED bool card_stop(struct card *card, uint64_t now);

// Pieces of work, one bounded piece per call each.
void card_work(struct card *card, uint64_t now);   // self-test, update, start, stop, reset
void card_guard(struct card *card, uint64_t now);  // the inline path's heartbeat
void card_flush(struct card *card, uint64_t now);  // record frames
void card_report(struct card *card, uint64_t now); // statistics, clock state, lost words

#endif
