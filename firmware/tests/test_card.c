// The card as a whole on mock registers: boot, requests, guard of the link, update, faults.
#include "check.h"

#include "crc32.h"
#include "tasks.h"
#include "trap_note.h"

static struct card card;
static struct tasks tasks;
static uint16_t sequence;

static void turn(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        tasks_turn(&tasks, &card);
    }
}

// Turns until so many us have passed.
static void run_us(uint32_t us)
{
    const uint64_t end = mock.clocks + (uint64_t)us * MOCK_KHZ / 1000u;
    while (mock.clocks < end) {
        // A turn takes some 20 us.
        mock.clocks += 6000u;
        turn(1);
    }
}

static void boot(void)
{
    card_init(&card, mock.clocks);
    tasks_init(&tasks, &card, mock.clocks);
}

static void host_beat(void) { (*mock_register(WEIR_REG_HOST_HEARTBEAT))++; }

static void run_us_with_host(uint32_t us)
{
    for (uint32_t passed = 0; passed < us; passed += 1000u) {
        host_beat();
        run_us(1000);
    }
}

// The reply to a request; unsolicited messages in between are left out.
static struct mock_reply ask(enum weir_opcode opcode, const uint32_t *payload, uint32_t count)
{
    struct mock_reply reply = {0};
    sequence++;
    mock_message((uint32_t)opcode, sequence, payload, count);
    for (uint32_t i = 0; i < 5000u; i++) {
        mock.clocks += 6000u;
        turn(1);
        while (mock_reply(&reply)) {
            if ((reply.opcode & WEIR_UNSOLICITED) == 0u) {
                assert_int_equal(reply.opcode, opcode);
                assert_int_equal(reply.sequence, sequence);
                return reply;
            }
        }
    }
    fail_msg("no reply to request %d", opcode);
    return reply;
}

static uint32_t status_of(enum weir_opcode opcode, const uint32_t *payload, uint32_t count)
{
    return ask(opcode, payload, count).status;
}

static void attach(void)
{
    const uint32_t words[] = {1, (WEIR_ABI_MAJOR << 16u) | WEIR_ABI_MINOR};
    struct mock_reply reply = ask(WEIR_OPCODE_HELLO, words, 2);
    assert_int_equal(reply.status, WEIR_STATUS_OK);
    assert_int_equal(reply.count, WEIR_HELLO_REPLY_WORDS);
    assert_int_equal(reply.payload[0], WEIR_FIRMWARE_VERSION);
}

static void set(uint32_t key, uint32_t value)
{
    const uint32_t words[] = {key, value};
    assert_int_equal(status_of(WEIR_OPCODE_CONFIGURE, words, 2), WEIR_STATUS_OK);
}

// A card that passed its tests, with an image in slot A.
static void ready_card(void)
{
    mock_image(0, 1, 100);
    boot();
    turn(200);
    assert_int_equal(card.state, WEIR_CARD_STATE_IDLE);
    attach();
}

static void running_card(void)
{
    ready_card();
    set(WEIR_KEY_HEALTHY_PERIODS, 10);
    assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_OK);
    run_us_with_host(20000);
    assert_int_equal(card.guard.unhealthy, 0);
}

static struct weir_fault_entry newest_fault(void)
{
    struct weir_fault_entry entry = {0};
    assert_true(fault_log_read(&card.fault_log, card.fault_log.newest, &entry));
    return entry;
}

// The next unsolicited message of this kind.
static bool told(enum weir_opcode opcode, struct mock_reply *reply)
{
    while (mock_reply(reply)) {
        if (reply->opcode == (uint32_t)opcode) {
            return true;
        }
    }
    return false;
}

// --- Boot and self-test ------------------------------------------------------------------------

static void boots_tests_itself_and_is_idle(void **state)
{
    (void)state;
    mock_image(0, 1, 100);
    boot();
    assert_int_equal(card.state, WEIR_CARD_STATE_SELF_TEST);
    assert_int_equal(*mock_register(WEIR_REG_SYSTEM_CONTROL), WEIR_REG_SYSTEM_CONTROL_MEASURE_RESET_MASK);
    turn(200);
    assert_int_equal(card.state, WEIR_CARD_STATE_IDLE);
    assert_int_equal(*mock_register(WEIR_REG_HOST_STATE), WEIR_CARD_STATE_IDLE);
    assert_int_equal(*mock_register(WEIR_REG_HOST_BOOT_STAGE), WEIR_BOOT_STAGE_TESTED);
    assert_int_equal(*mock_register(WEIR_REG_HOST_FIRMWARE_VERSION), WEIR_FIRMWARE_VERSION);
    // Only the missing boot record, which the boot ROM would have made.
    assert_int_equal(card.fault_log.newest, 1);
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_BOOT_RECORD);
    assert_int_equal(mock.beats, 0);
    assert_true(mock.kicks > 0u);
}

static void the_watchdog_is_what_the_book_says(void **state)
{
    (void)state;
    boot();
    assert_int_equal(*mock_register(WEIR_REG_WATCHDOG_TIMEOUT), 100u * MOCK_KHZ);
    assert_int_equal(*mock_register(WEIR_REG_WATCHDOG_CONTROL), 3);
    mock_image(0, 1, 100);
    // Which task hung is in the kept area.
    turn(1);
    assert_int_equal(ram_read32(WEIR_KEPT_BASE + (uint32_t)KEPT_TASK), 5);
}

static void a_boot_fills_the_host_registers(void **state)
{
    (void)state;
    *mock_register(WEIR_REG_HOST_SERVO_STATE) = 77;
    *mock_register(WEIR_REG_HOST_FIRMWARE_ABI) = 77;
    boot();
    assert_int_equal(*mock_register(WEIR_REG_HOST_SERVO_STATE), WEIR_SERVO_STATE_FREE_RUN);
    assert_int_equal(*mock_register(WEIR_REG_HOST_FIRMWARE_ABI), (WEIR_ABI_MAJOR << 16u) | WEIR_ABI_MINOR);
}

static void fails_test(uint32_t bit, uint32_t detail)
{
    boot();
    turn(20000);
    assert_int_equal(card.state, WEIR_CARD_STATE_FAULT);
    assert_int_equal(card.self_test_failed, bit);
    struct weir_fault_entry entry = newest_fault();
    assert_int_equal(entry.code, WEIR_FAULT_CODE_SELF_TEST);
    assert_int_equal(entry.detail0, bit);
    assert_int_equal(entry.detail1, detail);
    attach();
    assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_BAD_STATE);
    assert_int_equal(status_of(WEIR_OPCODE_STOP, NULL, 0), WEIR_STATUS_BAD_STATE);
}

static void a_stuck_scratch_register(void **state)
{
    (void)state;
    mock_image(0, 1, 100);
    mock.stuck = WEIR_REG_SYSTEM_SCRATCH;
    fails_test(WEIR_SELF_TEST_BIT_REGISTERS, WEIR_REG_SYSTEM_SCRATCH);
    // Repaired: a test, then STOP.
    mock.stuck = 0;
    const uint32_t words[] = {SELF_TEST_AT_BOOT, 0};
    struct mock_reply reply = ask(WEIR_OPCODE_SELF_TEST, words, 2);
    assert_int_equal(reply.payload[0], SELF_TEST_AT_BOOT);
    assert_int_equal(reply.payload[1], 0);
    assert_int_equal(status_of(WEIR_OPCODE_STOP, NULL, 0), WEIR_STATUS_OK);
    assert_int_equal(card.state, WEIR_CARD_STATE_IDLE);
}

static void a_bit_of_ram_is_stuck(void **state)
{
    (void)state;
    mock_image(0, 1, 100);
    mock.stuck_ram = SELF_TEST_SPARE_BASE + 4u * 77u;
    fails_test(WEIR_SELF_TEST_BIT_MEMORY, mock.stuck_ram);
    assert_int_equal(mock.stuck_ram, 0x40008134u);
}

static void no_card_there(void **state)
{
    (void)state;
    mock_image(0, 1, 100);
    *mock_register(WEIR_REG_INFO_MAGIC) = 0xFFFFFFFFu;
    fails_test(WEIR_SELF_TEST_BIT_REGISTERS, WEIR_REG_INFO_MAGIC);
}

static void a_register_is_missing(void **state)
{
    (void)state;
    mock_image(0, 1, 100);
    mock.missing = WEIR_REG_MEASURE_LINGER_HIGH;
    fails_test(WEIR_SELF_TEST_BIT_REGISTERS, WEIR_REG_MEASURE_LINGER_HIGH);
}

// A host may use an address without a register while the card tests itself: fault.bus_error_count counts both sides.
static void a_bus_error_of_the_host_fails_no_self_test(void **state)
{
    (void)state;
    mock_image(0, 1, 100);
    mock.host_error = WEIR_REG_INFO_MAILBOX_WORDS;
    boot();
    turn(200);
    assert_int_equal(mock.host_error, 0);
    assert_int_equal(card.state, WEIR_CARD_STATE_IDLE);
}

// What docs/src/firmware.md says of the walk over the registers.
static void each_block_that_is_named_is_read(void **state)
{
    (void)state;
    static const struct {
        uint32_t address;
        bool read;
    } cases[] = {
        {WEIR_REG_INFO_MAILBOX_WORDS, true},  {WEIR_REG_SYSTEM_BOOT, true},
        {WEIR_REG_CLOCK_PPS_COUNT, true},     {WEIR_REG_INLINE_PORT_FAULTS(1u), true},
        {WEIR_REG_MEASURE_NO_ROOM, true},     {WEIR_REG_DIGEST_WANTED, true},
        {WEIR_REG_RECORD_FRAMES_HIGH, true},  {WEIR_REG_PORT_SLICES(1u), true},
        {WEIR_REG_TIMER_CONTROL, true},       {WEIR_REG_WATCHDOG_LEFT, true},
        {WEIR_REG_HOST_SLOT, true},           {WEIR_REG_MAILBOX_CARD_IRQ_ENABLE, false},
        {WEIR_REG_FAULT_STUCK_CLOCKS, false}, {WEIR_REG_DEBUG_BUS_ADDRESS, false},
        {WEIR_REG_STATISTICS_RECORDS, false}, {WEIR_REG_DIGEST_ENTRY_VLANS(0u), false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct self_test test;
        mock_reset();
        mock.missing = cases[i].address;
        self_test_begin(&test, WEIR_SELF_TEST_BIT_REGISTERS, 0, MOCK_KHZ, 0);
        while (!self_test_step(&test, 0)) {
        }
        assert_int_equal(test.failed, cases[i].read ? WEIR_SELF_TEST_BIT_REGISTERS : 0u);
        assert_int_equal(test.detail, cases[i].read ? cases[i].address : 0u);
    }
}

static void the_clock_stands_still(void **state)
{
    (void)state;
    mock_image(0, 1, 100);
    mock.ns_per_read = 0;
    fails_test(WEIR_SELF_TEST_BIT_TIME, WEIR_REG_CLOCK_NOW_LOW);
}

static void the_timer_stands_still(void **state)
{
    (void)state;
    struct self_test test;
    self_test_begin(&test, WEIR_SELF_TEST_BIT_TIME, 0, MOCK_KHZ, 0);
    for (uint32_t i = 0; (i < 20000u) && !self_test_step(&test, 5); i++) {
    }
    assert_int_equal(test.failed, WEIR_SELF_TEST_BIT_TIME);
    assert_int_equal(test.detail, WEIR_REG_TIMER_NOW_LOW);
}

// TIME_SYNC is taken while the card tests itself; a clock that it sets back does not stand still.
static void a_clock_set_back_fails_no_self_test(void **state)
{
    (void)state;
    ready_card();
    mock.tai_ns = UINT64_C(500) * 1000000000u;
    const uint32_t words[] = {WEIR_SELF_TEST_BIT_TIME, 0};
    mock_message(WEIR_OPCODE_SELF_TEST, 99, words, 2);
    turn(1);
    assert_int_equal(card.state, WEIR_CARD_STATE_SELF_TEST);
    const uint64_t card_ns = mock.tai_ns;
    const uint64_t host_ns = card_ns - UINT64_C(5000000000);
    const uint32_t pair[] = {(uint32_t)card_ns, (uint32_t)(card_ns >> 32u), (uint32_t)host_ns,
                             (uint32_t)(host_ns >> 32u)};
    mock_message(WEIR_OPCODE_TIME_SYNC, 100, pair, 4);
    turn(20);
    assert_int_equal(card.state, WEIR_CARD_STATE_IDLE);
}

static void the_image_is_damaged(void **state)
{
    (void)state;
    ready_card();
    const uint32_t words[] = {WEIR_SELF_TEST_BIT_IMAGE, 0};
    assert_int_equal(ask(WEIR_OPCODE_SELF_TEST, words, 2).payload[1], 0);
    *mock_ram(WEIR_SLOT_A_BASE + 100u) ^= 1u;
    struct mock_reply reply = ask(WEIR_OPCODE_SELF_TEST, words, 2);
    assert_int_equal(reply.payload[1], WEIR_SELF_TEST_BIT_IMAGE);
    assert_int_equal(reply.payload[2], WEIR_IMAGE_ERROR_BODY_CRC);
    assert_int_equal(card.state, WEIR_CARD_STATE_FAULT);
}

static void loopback_wants_a_frame_at_each_port(void **state)
{
    (void)state;
    ready_card();
    const uint32_t words[] = {WEIR_SELF_TEST_BIT_LOOPBACK, 10};
    struct mock_reply reply = ask(WEIR_OPCODE_SELF_TEST, words, 2);
    assert_int_equal(reply.payload[1], WEIR_SELF_TEST_BIT_LOOPBACK);
    assert_int_equal(reply.payload[2], 3);
    // Nothing is broken by that.
    assert_int_equal(card.state, WEIR_CARD_STATE_IDLE);
    mock_message(WEIR_OPCODE_SELF_TEST, 99, words, 2);
    turn(3);
    // One request at a time takes time.
    assert_int_equal(status_of(WEIR_OPCODE_SELF_TEST, words, 2), WEIR_STATUS_BAD_STATE);
    (*mock_register(WEIR_REG_INLINE_PORT_FRAMES_OUT(0u)))++;
    (*mock_register(WEIR_REG_INLINE_PORT_FRAMES_OUT(1u)))++;
    turn(3);
    assert_true(told(WEIR_OPCODE_SELF_TEST, &reply));
    assert_int_equal(reply.sequence, 99);
    assert_int_equal(reply.payload[1], 0);
    const uint32_t bad[] = {1u << 20u, 0};
    assert_int_equal(status_of(WEIR_OPCODE_SELF_TEST, bad, 2), WEIR_STATUS_BAD_ARGUMENT);
    const uint32_t slow[] = {1, 10001};
    assert_int_equal(status_of(WEIR_OPCODE_SELF_TEST, slow, 2), WEIR_STATUS_BAD_ARGUMENT);
}

static void both_ports_want_a_frame(void **state)
{
    (void)state;
    ready_card();
    const uint32_t words[] = {WEIR_SELF_TEST_BIT_LOOPBACK, 10};
    mock_message(WEIR_OPCODE_SELF_TEST, 99, words, 2);
    turn(3);
    (*mock_register(WEIR_REG_INLINE_PORT_FRAMES_OUT(0u)))++;
    run_us(5000);
    (*mock_register(WEIR_REG_INLINE_PORT_FRAMES_OUT(1u)))++;
    run_us(1000);
    struct mock_reply reply;
    assert_true(told(WEIR_OPCODE_SELF_TEST, &reply));
    assert_int_equal(reply.payload[1], 0);
    mock_message(WEIR_OPCODE_SELF_TEST, 100, words, 2);
    turn(3);
    (*mock_register(WEIR_REG_INLINE_PORT_FRAMES_OUT(0u)))++;
    run_us(20000);
    assert_true(told(WEIR_OPCODE_SELF_TEST, &reply));
    assert_int_equal(reply.payload[1], WEIR_SELF_TEST_BIT_LOOPBACK);
    assert_int_equal(reply.payload[2], 2);
}

static void a_test_that_was_not_run_again_stays_failed(void **state)
{
    (void)state;
    mock_image(0, 1, 100);
    mock.stuck = WEIR_REG_SYSTEM_SCRATCH;
    boot();
    turn(200);
    attach();
    const uint32_t hash[] = {WEIR_SELF_TEST_BIT_HASH, 0};
    assert_int_equal(ask(WEIR_OPCODE_SELF_TEST, hash, 2).payload[1], 0);
    assert_int_equal(card.state, WEIR_CARD_STATE_FAULT);
}

static void what_happened_before_the_reset_is_logged(void **state)
{
    (void)state;
    struct boot_record record = {.boots = 4, .slot = 0, .reason = WEIR_BOOT_REASON_ROLLBACK, .faults = 10};
    record.slots[1].tries = 3;
    record.slots[1].error = WEIR_IMAGE_ERROR_BODY_CRC;
    boot_record_store(&record);
    mock_image(0, 1, 100);
    trap_note_write(7, 0x40000444u, 0);
    ram_write32(WEIR_KEPT_BASE + (uint32_t)KEPT_TASK, 3);
    *mock_register(WEIR_REG_SYSTEM_BOOT) = WEIR_REG_SYSTEM_BOOT_REASON_WATCHDOG | (4u << 16u);
    boot();
    static const uint32_t wanted[][3] = {
        {WEIR_FAULT_CODE_TRAP, 7, 0x40000444u},
        {WEIR_FAULT_CODE_WATCHDOG, 3, 0},
        {WEIR_FAULT_CODE_IMAGE_REFUSED, 1, WEIR_IMAGE_ERROR_BODY_CRC},
        {WEIR_FAULT_CODE_ROLLBACK, 1, 3},
    };
    turn(200);
    attach();
    uint32_t from = 11;
    struct mock_reply reply = ask(WEIR_OPCODE_READ_FAULT_LOG, &from, 1);
    assert_int_equal(reply.payload[0], 14);
    assert_int_equal(reply.payload[1], 4);
    for (uint32_t i = 0; i < 4u; i++) {
        const uint32_t *entry = reply.payload + 2u + 8u * i;
        assert_int_equal(entry[0], 11u + i);
        assert_int_equal(entry[1], wanted[i][0]);
        assert_int_equal(entry[2], 4);
        assert_int_equal(entry[5], wanted[i][1]);
        assert_int_equal(entry[6], wanted[i][2]);
        assert_int_equal(entry[7], crc32_words(entry, 7));
    }
    assert_int_equal(*mock_register(WEIR_REG_HOST_FAULT_COUNT), 14);
    // Only the boot record knows how far the numbers went once the log is empty.
    assert_int_equal(status_of(WEIR_OPCODE_CLEAR_FAULT_LOG, NULL, 0), WEIR_STATUS_OK);
    from = 0;
    assert_int_equal(ask(WEIR_OPCODE_READ_FAULT_LOG, &from, 1).payload[1], 0);
    *mock_register(WEIR_REG_SYSTEM_BOOT) = WEIR_REG_SYSTEM_BOOT_REASON_RESTART | (5u << 16u);
    boot();
    assert_int_equal(card.fault_log.newest, 16);
}

// A reset by the watchdog before the main loop runs names no task that ran a boot ago.
static void a_boot_that_hangs_names_no_task(void **state)
{
    (void)state;
    ready_card();
    ram_write32(WEIR_KEPT_BASE + (uint32_t)KEPT_TASK, 3);
    // RESTART; card_init() ends, tasks_init() or what follows hangs.
    *mock_register(WEIR_REG_SYSTEM_BOOT) = WEIR_REG_SYSTEM_BOOT_REASON_RESTART | (2u << 16u);
    card_init(&card, mock.clocks);
    *mock_register(WEIR_REG_SYSTEM_BOOT) = WEIR_REG_SYSTEM_BOOT_REASON_WATCHDOG | (3u << 16u);
    boot();
    struct weir_fault_entry entry = newest_fault();
    assert_int_equal(entry.code, WEIR_FAULT_CODE_WATCHDOG);
    assert_int_equal(entry.detail0, WEIR_NO_TASK);
}

static void a_new_record_without_power_on_is_a_fault(void **state)
{
    (void)state;
    struct boot_record record = {.boots = 1};
    boot_record_store(&record);
    boot();
    assert_int_equal(card.fault_log.newest, 0);
    *mock_register(WEIR_REG_SYSTEM_BOOT) = WEIR_REG_SYSTEM_BOOT_REASON_RESTART | (2u << 16u);
    boot();
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_BOOT_RECORD);
}

static void words_lost_before_the_boot_are_no_fault(void **state)
{
    (void)state;
    *mock_register(WEIR_REG_MAILBOX_TO_CARD_STATUS) = 9u << WEIR_REG_MAILBOX_TO_CARD_STATUS_LOST_SHIFT;
    ready_card();
    run_us(3000);
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_BOOT_RECORD);
}

// --- Requests ----------------------------------------------------------------------------------

static void every_request_is_answered(void **state)
{
    (void)state;
    ready_card();
    card.attached = false;
    assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_BAD_STATE);
    assert_int_equal(status_of((enum weir_opcode)0, NULL, 0), WEIR_STATUS_BAD_OPCODE);
    assert_int_equal(status_of((enum weir_opcode)16, NULL, 0), WEIR_STATUS_BAD_OPCODE);
    assert_int_equal(status_of((enum weir_opcode)0x7F, NULL, 0), WEIR_STATUS_BAD_OPCODE);
    assert_int_equal(status_of(WEIR_OPCODE_HELLO, NULL, 0), WEIR_STATUS_BAD_LENGTH);
    const uint32_t zeros[60] = {0};
    assert_int_equal(status_of(WEIR_OPCODE_HELLO, zeros, 2), WEIR_STATUS_BAD_VERSION);
    attach();
    assert_int_equal(status_of(WEIR_OPCODE_GET_STATE, zeros, 1), WEIR_STATUS_BAD_LENGTH);
    assert_int_equal(status_of(WEIR_OPCODE_CONFIGURE, zeros, 3), WEIR_STATUS_BAD_LENGTH);
    assert_int_equal(status_of(WEIR_OPCODE_CONFIGURE, zeros, 60), WEIR_STATUS_BAD_ARGUMENT);
    assert_int_equal(status_of(WEIR_OPCODE_CONFIRM, NULL, 0), WEIR_STATUS_BAD_STATE);
    assert_int_equal(ask(WEIR_OPCODE_STATISTICS, NULL, 0).count, WEIR_STATISTICS_WORDS);
    assert_int_equal(ask(WEIR_OPCODE_GET_STATE, NULL, 0).count, WEIR_STATE_WORDS);

    // Another protocol version, and a damaged message.
    struct mock_reply reply;
    const uint32_t words[] = {0x57020200u, 0x00050000u};
    const uint32_t crc = crc32_words(words, 2);
    mock_words(words, 2);
    mock_words(&crc, 1);
    turn(3);
    assert_true(mock_reply(&reply));
    assert_int_equal(reply.status, WEIR_STATUS_BAD_VERSION);
    mock_message(WEIR_OPCODE_GET_STATE, 5, NULL, 0);
    mock.to_card[1] ^= 1u;
    turn(3);
    assert_true(mock_reply(&reply));
    assert_int_equal(reply.status, WEIR_STATUS_BAD_CRC);
    // No reply looks like a message that nobody asked for.
    mock_message(WEIR_OPCODE_FAULT, 6, NULL, 0);
    mock.to_card[2] ^= 1u;
    turn(3);
    assert_true(mock_reply(&reply));
    assert_int_equal(reply.status, WEIR_STATUS_BAD_CRC);
    assert_int_equal(reply.opcode, WEIR_OPCODE_FAULT & ~WEIR_UNSOLICITED);
    assert_int_equal(card.replies_lost, 0);
}

static void a_host_that_does_not_read_only_waits(void **state)
{
    (void)state;
    running_card();
    while (mock.to_host_count != 0u) {
        struct mock_reply reply;
        (void)mock_reply(&reply);
    }
    mock.to_host_room = 0;
    uint32_t asked = 0;
    for (uint32_t i = 0; i < 3000u; i++) {
        if (mock.to_card_count == 0u) {
            asked++;
            mock_message(WEIR_OPCODE_STATISTICS, asked, NULL, 0);
        }
        run_us_with_host(1000);
    }
    // The link is still guarded, all that was asked is answered in the end, in order.
    assert_int_equal(card.guard.unhealthy, 0);
    assert_true(card.reports_lost > 0u);
    mock.to_host_room = UINT32_MAX;
    run_us_with_host(10000);
    struct mock_reply reply;
    uint32_t answered = 0;
    while (mock_reply(&reply)) {
        if (reply.opcode == (uint32_t)WEIR_OPCODE_STATISTICS) {
            answered++;
            assert_int_equal(reply.sequence, answered);
        }
    }
    assert_int_equal(answered, asked);
    assert_int_equal(card.replies_lost, 0);
}

static void configuration_is_checked(void **state)
{
    (void)state;
    ready_card();
    const uint32_t two[] = {WEIR_KEY_LANE, 3, WEIR_KEY_EPOCH, 0x10000};
    struct mock_reply reply = ask(WEIR_OPCODE_CONFIGURE, two, 4);
    assert_int_equal(reply.status, WEIR_STATUS_BAD_ARGUMENT);
    assert_int_equal(reply.payload[0], WEIR_KEY_EPOCH);
    // All or none.
    assert_int_equal(card.config.values[WEIR_KEY_LANE], 0);
    const uint32_t cases[][2] = {{0, 0},
                                 {WEIR_KEYS + 1u, 0},
                                 {WEIR_KEY_HANDSHAKE_TIMEOUT_MS, 2},
                                 {WEIR_KEY_HANDSHAKE_TIMEOUT_MS, 274878},
                                 {WEIR_KEY_SERVO_PERIOD_US, 300},
                                 {WEIR_KEY_SERVO_GATE_NS, 49},
                                 {WEIR_KEY_SERVO_SOURCE, 3}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(status_of(WEIR_OPCODE_CONFIGURE, cases[i], 2), WEIR_STATUS_BAD_ARGUMENT);
    }
    // Beyond the words of a 64-bit value.
    set(WEIR_KEY_IDLE_TIMEOUT_MS, 70368744);
    set(WEIR_KEY_LANE, 3);
    set(WEIR_KEY_EPOCH, 0xABCD);
    set((uint32_t)WEIR_KEY_SEED_0 + 12u, 0x7FFF);
    set(WEIR_KEY_STATISTICS_ENABLE, 1);
    set(WEIR_KEY_BURST_BYTES_1, 60000);
    set(WEIR_KEY_SERVICE_6, 443);
    set(WEIR_KEY_SKETCH_SEED_5, 0x5EED);
    set(WEIR_KEY_INLINE_ENABLE, 0);
    assert_int_equal(*mock_register(WEIR_REG_INLINE_CONTROL), 0);
    assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_OK);
    assert_int_equal(*mock_register(WEIR_REG_MEASURE_CONTROL), 0xABCD0303u);
    assert_int_equal(*mock_register(WEIR_REG_MEASURE_SEED(12u)), 0x7FFF);
    assert_int_equal(*mock_register(WEIR_REG_STATISTICS_CONTROL), 1);
    assert_int_equal(*mock_register(WEIR_REG_STATISTICS_BURST_BYTES(0u)), 0);
    assert_int_equal(*mock_register(WEIR_REG_STATISTICS_BURST_BYTES(1u)), 60000);
    assert_int_equal(*mock_register(WEIR_REG_STATISTICS_SERVICE(6u)), 443);
    assert_int_equal(*mock_register(WEIR_REG_STATISTICS_SEED(5u)), 0x5EED);
    const uint64_t idle = UINT64_C(70368744) * 1000000u;
    assert_int_equal(*mock_register(WEIR_REG_MEASURE_IDLE_LOW), (uint32_t)idle);
    assert_int_equal(*mock_register(WEIR_REG_MEASURE_IDLE_HIGH), (uint32_t)(idle >> 32u));
    assert_int_equal(*mock_register(WEIR_REG_RECORD_SOURCE_HIGH), 0x0200);
    assert_int_equal(*mock_register(WEIR_REG_SYSTEM_CONTROL), 0);
    // While it runs only live keys change.
    assert_int_equal(status_of(WEIR_OPCODE_CONFIGURE, two, 2), WEIR_STATUS_BAD_STATE);
    set(WEIR_KEY_INLINE_ENABLE, 1);
    assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_BAD_STATE);
    const uint32_t test[] = {1, 0};
    assert_int_equal(status_of(WEIR_OPCODE_SELF_TEST, test, 2), WEIR_STATUS_BAD_STATE);
}

// With a gate wider than a quarter of the period, any edge would lock.
static void a_gate_that_takes_anything_is_refused(void **state)
{
    (void)state;
    ready_card();
    const uint32_t both[] = {WEIR_KEY_SERVO_PERIOD_US, 100, WEIR_KEY_SERVO_GATE_NS, 25001};
    struct mock_reply reply = ask(WEIR_OPCODE_CONFIGURE, both, 4);
    assert_int_equal(reply.status, WEIR_STATUS_BAD_ARGUMENT);
    assert_int_equal(reply.payload[0], WEIR_KEY_SERVO_GATE_NS);
    assert_int_equal(card.config.values[WEIR_KEY_SERVO_PERIOD_US], 1000000);
    const uint32_t quarter[] = {WEIR_KEY_SERVO_GATE_NS, 25000, WEIR_KEY_SERVO_PERIOD_US, 100};
    assert_int_equal(status_of(WEIR_OPCODE_CONFIGURE, quarter, 4), WEIR_STATUS_OK);
    // One after the other, either way.
    const uint32_t gate[] = {WEIR_KEY_SERVO_GATE_NS, 25001};
    assert_int_equal(status_of(WEIR_OPCODE_CONFIGURE, gate, 2), WEIR_STATUS_BAD_ARGUMENT);
    set(WEIR_KEY_SERVO_PERIOD_US, 1000);
    set(WEIR_KEY_SERVO_GATE_NS, 25001);
    const uint32_t period[] = {WEIR_KEY_SERVO_PERIOD_US, 100};
    assert_int_equal(status_of(WEIR_OPCODE_CONFIGURE, period, 2), WEIR_STATUS_BAD_ARGUMENT);
}

// Each key has its register.
static void every_key_reaches_its_register(void **state)
{
    (void)state;
    ready_card();
    static const struct {
        uint32_t key;
        uint32_t value;
        uint32_t low;
        uint64_t wanted;
    } cases[] = {
        {WEIR_KEY_HANDSHAKE_TIMEOUT_MS, 11, WEIR_REG_MEASURE_HANDSHAKE_LOW, 11000000},
        {WEIR_KEY_LINGER_MS, 13, WEIR_REG_MEASURE_LINGER_LOW, 13000000},
        {WEIR_KEY_OTHER_TIMEOUT_MS, 17, WEIR_REG_MEASURE_OTHER_LOW, 17000000},
        {WEIR_KEY_TRIGGER_MS, 19, WEIR_REG_DIGEST_TRIGGER_NS_LOW, 19000000},
        {WEIR_KEY_TRIGGER_PACKETS, 23, WEIR_REG_DIGEST_TRIGGER_PACKETS, 23},
        {WEIR_KEY_PORT_OFFSET_0, 29, WEIR_REG_PORT_TIME_OFFSET(0u), 29},
        {WEIR_KEY_PORT_OFFSET_1, 0xFFFFFFE0u, WEIR_REG_PORT_TIME_OFFSET(1u), 0xFFFFFFE0u},
        {WEIR_KEY_DESTINATION_MAC_HIGH, 31, WEIR_REG_RECORD_DESTINATION_HIGH, 31},
        {WEIR_KEY_DESTINATION_MAC_LOW, 37, WEIR_REG_RECORD_DESTINATION_LOW, 37},
        {WEIR_KEY_SOURCE_MAC_HIGH, 41, WEIR_REG_RECORD_SOURCE_HIGH, 41},
        {WEIR_KEY_SOURCE_MAC_LOW, 43, WEIR_REG_RECORD_SOURCE_LOW, 43},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set(cases[i].key, cases[i].value);
    }
    set(WEIR_KEY_DIGEST_MODE, 2);
    set(WEIR_KEY_SLICES_ENABLE, 1);
    set(WEIR_KEY_VLAN_IN_KEY, 0);
    set(WEIR_KEY_SHED_ENABLE, 0);
    assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(*mock_register(cases[i].low), (uint32_t)cases[i].wanted);
    }
    assert_int_equal(*mock_register(WEIR_REG_DIGEST_CONTROL), 6);
    assert_int_equal(*mock_register(WEIR_REG_MEASURE_CONTROL), 0);
}

static void the_heartbeat_comes_four_times_in_what_the_hardware_waits(void **state)
{
    (void)state;
    ready_card();
    assert_int_equal(card.config.values[WEIR_KEY_BEAT_US], 1000);
    // 10 ms.
    set(WEIR_KEY_BEAT_US, 2500);
    const uint32_t slow[] = {WEIR_KEY_BEAT_US, 2501};
    struct mock_reply reply = ask(WEIR_OPCODE_CONFIGURE, slow, 2);
    assert_int_equal(reply.status, WEIR_STATUS_BAD_ARGUMENT);
    assert_int_equal(reply.payload[0], WEIR_KEY_BEAT_US);
    assert_int_equal(card.config.values[WEIR_KEY_BEAT_US], 2500);
    // Hardware that waits for less: 100 us, and for less than the key can say.
    *mock_register(WEIR_REG_INFO_HEARTBEAT_CLOCKS) = MOCK_KHZ / 10u;
    ready_card();
    assert_int_equal(card.config.values[WEIR_KEY_BEAT_US], 25);
    const uint32_t fast[] = {WEIR_KEY_BEAT_US, 26};
    assert_int_equal(status_of(WEIR_OPCODE_CONFIGURE, fast, 2), WEIR_STATUS_BAD_ARGUMENT);
    *mock_register(WEIR_REG_INFO_HEARTBEAT_CLOCKS) = 3000;
    ready_card();
    assert_int_equal(card.config.values[WEIR_KEY_BEAT_US], 10);
    // And for more.
    *mock_register(WEIR_REG_INFO_HEARTBEAT_CLOCKS) = UINT32_MAX;
    ready_card();
    set(WEIR_KEY_BEAT_US, 1000000);
    const uint32_t beyond[] = {WEIR_KEY_BEAT_US, 1000001};
    assert_int_equal(status_of(WEIR_OPCODE_CONFIGURE, beyond, 2), WEIR_STATUS_BAD_ARGUMENT);
}

// A host takes what it does not set for the default: it beats by that.
static void a_new_service_has_the_defaults(void **state)
{
    (void)state;
    running_card();
    set(WEIR_KEY_HOST_TIMEOUT_US, 1500);
    assert_int_equal(status_of(WEIR_OPCODE_STOP, NULL, 0), WEIR_STATUS_OK);
    // The next one beats four times in what it takes for HOST_TIMEOUT_US, 100 ms.
    attach();
    set(WEIR_KEY_EPOCH, 2);
    set(WEIR_KEY_BEAT_US, 1000);
    assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_OK);
    const uint32_t beats = mock.beats;
    for (uint32_t i = 0; i < 400u; i++) {
        host_beat();
        run_us(25000);
        struct mock_reply reply;
        while (mock_reply(&reply)) {
        }
    }
    // 10 s.
    assert_true(mock.beats > beats + 1000u);
}

static void a_new_service_under_way_has_them_when_it_has_ended(void **state)
{
    (void)state;
    running_card();
    set(WEIR_KEY_HOST_TIMEOUT_US, 50000);
    attach();
    assert_int_equal(card.config.values[WEIR_KEY_HOST_TIMEOUT_US], 50000);
    assert_int_equal(card.config.values[WEIR_KEY_HEALTHY_PERIODS], 10);
    assert_int_equal(status_of(WEIR_OPCODE_STOP, NULL, 0), WEIR_STATUS_OK);
    assert_int_equal(card.config.values[WEIR_KEY_HOST_TIMEOUT_US], 100000);
    assert_int_equal(card.config.values[WEIR_KEY_HEALTHY_PERIODS], 100);
    // Once: what is set from here on stays.
    set(WEIR_KEY_HEALTHY_PERIODS, 20);
    assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_OK);
    assert_int_equal(status_of(WEIR_OPCODE_STOP, NULL, 0), WEIR_STATUS_OK);
    assert_int_equal(card.config.values[WEIR_KEY_HEALTHY_PERIODS], 20);
}

static void a_register_that_does_not_hold_is_a_fault(void **state)
{
    (void)state;
    const uint32_t registers[] = {WEIR_REG_MEASURE_OTHER_HIGH, WEIR_REG_STATISTICS_SERVICE(3u),
                                  WEIR_REG_STATISTICS_CONTROL};
    for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
        mock_reset();
        ready_card();
        set(WEIR_KEY_SERVICE_3, 80);
        set(WEIR_KEY_STATISTICS_ENABLE, 1);
        mock.stuck = registers[i];
        assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_FAILED);
        assert_int_equal(card.state, WEIR_CARD_STATE_FAULT);
        assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_CONFIGURATION);
        assert_int_equal(newest_fault().detail0, registers[i]);
        assert_int_equal(*mock_register(WEIR_REG_SYSTEM_CONTROL), WEIR_REG_SYSTEM_CONTROL_MEASURE_RESET_MASK);
        // Its tests passed: STOP leads out.
        mock.stuck = 0;
        assert_int_equal(status_of(WEIR_OPCODE_STOP, NULL, 0), WEIR_STATUS_OK);
        assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_OK);
    }
}

static void fault_by_configuration(void)
{
    ready_card();
    mock.stuck = WEIR_REG_STATISTICS_CONTROL;
    set(WEIR_KEY_STATISTICS_ENABLE, 1);
    assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_FAILED);
    assert_int_equal(card.state, WEIR_CARD_STATE_FAULT);
}

static void a_self_test_of_nothing_does_not_end_a_fault(void **state)
{
    (void)state;
    fault_by_configuration();
    const uint32_t none[] = {0, 0};
    (void)ask(WEIR_OPCODE_SELF_TEST, none, 2);
    assert_int_equal(card.state, WEIR_CARD_STATE_FAULT);
    const uint32_t all[] = {SELF_TEST_AT_BOOT, 0};
    (void)ask(WEIR_OPCODE_SELF_TEST, all, 2);
    assert_int_equal(card.state, WEIR_CARD_STATE_FAULT);
    assert_int_equal(status_of(WEIR_OPCODE_STOP, NULL, 0), WEIR_STATUS_OK);
    assert_int_equal(card.state, WEIR_CARD_STATE_IDLE);
    (void)ask(WEIR_OPCODE_SELF_TEST, all, 2);
    assert_int_equal(card.state, WEIR_CARD_STATE_IDLE);
}

static void a_loopback_that_fails_does_not_end_a_fault(void **state)
{
    (void)state;
    fault_by_configuration();
    const uint32_t loopback[] = {WEIR_SELF_TEST_BIT_LOOPBACK, 1};
    assert_int_equal(ask(WEIR_OPCODE_SELF_TEST, loopback, 2).payload[1], WEIR_SELF_TEST_BIT_LOOPBACK);
    assert_int_equal(card.state, WEIR_CARD_STATE_FAULT);
}

static void measuring_that_does_not_begin_is_a_fault(void **state)
{
    (void)state;
    ready_card();
    mock.ready_reads = UINT32_MAX;
    assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_OK);
    run_us_with_host(CARD_READY_MS * 1000u - 10000u);
    assert_int_equal(card.state, WEIR_CARD_STATE_RUNNING);
    assert_int_equal(status_of(WEIR_OPCODE_CONFIRM, NULL, 0), WEIR_STATUS_BAD_STATE);
    run_us_with_host(20000);
    assert_int_equal(card.state, WEIR_CARD_STATE_FAULT);
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_NOT_READY);
    assert_int_equal(mock.beats, 0);
}

static void time_comes_from_the_host(void **state)
{
    (void)state;
    ready_card();
    const uint64_t host = UINT64_C(1800000000123456789);
    uint32_t words[] = {1000, 0, (uint32_t)host, (uint32_t)(host >> 32u)};
    struct mock_reply reply = ask(WEIR_OPCODE_TIME_SYNC, words, 4);
    assert_int_equal(reply.status, WEIR_STATUS_OK);
    assert_int_equal(reply.payload[1], WEIR_SYNC_ACTION_SET);
    assert_true(mock.tai_ns > host);
    words[1] = 0x7FFFFFFFu;
    assert_int_equal(status_of(WEIR_OPCODE_TIME_SYNC, words, 4), WEIR_STATUS_BAD_ARGUMENT);
    words[1] = 0;
    words[3] = 0xFFFFFFFFu;
    assert_int_equal(status_of(WEIR_OPCODE_TIME_SYNC, words, 4), WEIR_STATUS_BAD_ARGUMENT);
}

static void the_clock_is_reported(void **state)
{
    (void)state;
    running_card();
    set(WEIR_KEY_SERVO_PERIOD_US, 1000);
    set(WEIR_KEY_SERVO_SOURCE, WEIR_SERVO_SOURCE_PPS);
    for (uint32_t i = 0; i < 12u; i++) {
        (*mock_register(WEIR_REG_CLOCK_PPS_COUNT))++;
        mock_set64(WEIR_REG_CLOCK_PPS_NS_LOW, (i + 5u) * 1000000u);
        run_us_with_host(1000);
    }
    assert_int_equal(*mock_register(WEIR_REG_HOST_SERVO_STATE), WEIR_SERVO_STATE_LOCKED);
    run_us_with_host(6000);
    assert_int_equal(*mock_register(WEIR_REG_HOST_SERVO_STATE), WEIR_SERVO_STATE_HOLDOVER);
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_REFERENCE_LOST);
    // Locked with the sixth of twelve edges; three did not come.
    assert_int_equal(newest_fault().detail0, 9);
    assert_int_equal(newest_fault().detail1, *mock_register(WEIR_REG_CLOCK_RATE));
    struct mock_reply reply;
    assert_true(told(WEIR_OPCODE_LOG, &reply));
    // A step after a lock is a fault.
    uint32_t words[] = {1000, 0, 0xFFFFFFFFu, 0x7FFFFF};
    assert_int_equal(ask(WEIR_OPCODE_TIME_SYNC, words, 4).payload[1], WEIR_SYNC_ACTION_DOUBTED);
    assert_int_equal(ask(WEIR_OPCODE_TIME_SYNC, words, 4).payload[1], WEIR_SYNC_ACTION_DOUBTED);
    assert_int_equal(ask(WEIR_OPCODE_TIME_SYNC, words, 4).payload[1], WEIR_SYNC_ACTION_SET);
    run_us_with_host(3000);
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_TIME_STEP);
}

// Edges of a reference of 1 ms, seen `ns` off by the card.
static void card_edges(uint32_t count, uint32_t ns)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t at = (*mock_register(WEIR_REG_CLOCK_PPS_COUNT) + 5u) * UINT64_C(1000000);
        (*mock_register(WEIR_REG_CLOCK_PPS_COUNT))++;
        mock_set64(WEIR_REG_CLOCK_PPS_NS_LOW, at + ((uint64_t)ns * (i + 1u)));
        run_us_with_host(1000);
    }
}

static void follows_edges(void)
{
    const uint32_t words[] = {WEIR_KEY_SERVO_PERIOD_US, 1000, WEIR_KEY_SERVO_SOURCE, WEIR_SERVO_SOURCE_PPS};
    assert_int_equal(status_of(WEIR_OPCODE_CONFIGURE, words, 4), WEIR_STATUS_OK);
}

// A reference that gets noisy and then ends.
static void a_reference_lost_while_it_is_acquired_anew_is_a_fault(void **state)
{
    (void)state;
    running_card();
    follows_edges();
    card_edges(20, 0);
    assert_int_equal(card.servo_state, WEIR_SERVO_STATE_LOCKED);
    card_edges(5, 7919);
    run_us_with_host(60000);
    assert_int_equal(card.servo_state, WEIR_SERVO_STATE_HOLDOVER);
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_REFERENCE_LOST);
    // Stray edges later it is lost no more than it was.
    const uint32_t faults = card.fault_log.newest;
    card_edges(1, 7919);
    assert_int_equal(card.servo_state, WEIR_SERVO_STATE_LOCKING);
    run_us_with_host(60000);
    assert_int_equal(card.servo_state, WEIR_SERVO_STATE_HOLDOVER);
    assert_int_equal(card.fault_log.newest, faults);
    // It is back, and lost again.
    card_edges(1000, 0);
    assert_int_equal(card.servo_state, WEIR_SERVO_STATE_LOCKED);
    run_us_with_host(60000);
    assert_int_equal(card.fault_log.newest, faults + 1u);
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_REFERENCE_LOST);
}

static void a_lock_outlives_a_host_that_starts_anew(void **state)
{
    (void)state;
    running_card();
    follows_edges();
    card_edges(20, 0);
    assert_int_equal(status_of(WEIR_OPCODE_STOP, NULL, 0), WEIR_STATUS_OK);
    attach();
    set(WEIR_KEY_EPOCH, 2);
    card_edges(2, 0);
    assert_int_equal(card.servo_state, WEIR_SERVO_STATE_LOCKED);
    follows_edges();
    assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_OK);
    card_edges(2, 0);
    assert_int_equal(card.servo_state, WEIR_SERVO_STATE_LOCKED);
    // One that wants no reference follows none.
    assert_int_equal(status_of(WEIR_OPCODE_STOP, NULL, 0), WEIR_STATUS_OK);
    attach();
    assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_OK);
    card_edges(2, 0);
    assert_int_equal(card.timekeeper.source, WEIR_SERVO_SOURCE_NONE);
    assert_int_equal(card.servo_state, WEIR_SERVO_STATE_FREE_RUN);
}

// What the host does after measuring has ended by itself.
static void goes_on_with_another_epoch(void)
{
    assert_int_equal(status_of(WEIR_OPCODE_STOP, NULL, 0), WEIR_STATUS_OK);
    assert_int_equal(card.state, WEIR_CARD_STATE_IDLE);
    set(WEIR_KEY_EPOCH, 7);
    *mock_register(WEIR_REG_RECORD_RECORDS_IN_LOW) = 0;
    *mock_register(WEIR_REG_RECORD_RECORDS_OUT_LOW) = 0;
    assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_OK);
    run_us_with_host(20000);
    assert_int_equal(card.state, WEIR_CARD_STATE_RUNNING);
}

static void measuring_ends_when_the_clock_goes_back_by_a_second(void **state)
{
    (void)state;
    running_card();
    mock.tai_ns = UINT64_C(300) << 32u;
    // By less it goes on.
    uint32_t words[] = {1000000000, 100, 1, 100};
    assert_int_equal(ask(WEIR_OPCODE_TIME_SYNC, words, 4).payload[1], WEIR_SYNC_ACTION_SET);
    run_us_with_host(3000);
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_TIME_STEP);
    assert_int_equal(card.state, WEIR_CARD_STATE_RUNNING);
    // Nor does a step forward end it.
    words[3] = 200;
    assert_int_equal(ask(WEIR_OPCODE_TIME_SYNC, words, 4).payload[1], WEIR_SYNC_ACTION_SET);
    run_us_with_host(10000);
    assert_int_equal(card.state, WEIR_CARD_STATE_RUNNING);
    words[2] = 0;
    words[3] = 100;
    assert_int_equal(ask(WEIR_OPCODE_TIME_SYNC, words, 4).payload[1], WEIR_SYNC_ACTION_SET);
    run_us_with_host(10000);
    assert_int_equal(card.state, WEIR_CARD_STATE_FAULT);
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_TIME_STEP);
    struct mock_reply reply;
    uint32_t reason = 0;
    while (told(WEIR_OPCODE_STATE_CHANGE, &reply)) {
        reason = reply.payload[2];
    }
    assert_int_equal(reason, WEIR_FAULT_CODE_TIME_STEP);
    goes_on_with_another_epoch();
    // What is set while nothing is measured ends nothing later.
    assert_int_equal(card.timekeeper.went_back, false);
}

static void a_clock_that_is_set_while_it_measures_is_told(void **state)
{
    (void)state;
    running_card();
    const uint32_t faults = card.fault_log.newest;
    uint32_t words[] = {1000, 0, 0xFFFFFFFFu, 0x7FFFFF};
    assert_int_equal(ask(WEIR_OPCODE_TIME_SYNC, words, 4).payload[1], WEIR_SYNC_ACTION_SET);
    run_us_with_host(3000);
    assert_false(card.timekeeper.servo.was_locked);
    assert_int_equal(card.fault_log.newest, faults + 1u);
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_TIME_STEP);
    assert_int_equal(newest_fault().detail0, 0xFFFFFFFFu - 1000u);
    assert_int_equal(newest_fault().detail1, 0x7FFFFF);
    // Nobody has times of a clock that was never locked and by which nothing is measured.
    assert_int_equal(status_of(WEIR_OPCODE_STOP, NULL, 0), WEIR_STATUS_OK);
    words[3] = 0x3FFFFF;
    assert_int_equal(ask(WEIR_OPCODE_TIME_SYNC, words, 4).payload[1], WEIR_SYNC_ACTION_SET);
    run_us_with_host(3000);
    assert_int_equal(card.fault_log.newest, faults + 1u);
}

static void a_clock_that_goes_back_in_a_stop_changes_nothing(void **state)
{
    (void)state;
    running_card();
    mock.tai_ns = UINT64_C(500) * 1000000000u;
    // Records that do not leave keep the STOP for 5 ms.
    *mock_register(WEIR_REG_RECORD_RECORDS_IN_LOW) += 5u;
    mock_message(WEIR_OPCODE_STOP, 98, NULL, 0);
    run_us(1000);
    const uint64_t card_ns = mock.tai_ns;
    const uint64_t host_ns = card_ns - UINT64_C(5000000000);
    const uint32_t pair[] = {(uint32_t)card_ns, (uint32_t)(card_ns >> 32u), (uint32_t)host_ns,
                             (uint32_t)(host_ns >> 32u)};
    mock_message(WEIR_OPCODE_TIME_SYNC, 99, pair, 4);
    run_us(10000);
    assert_int_equal(card.state, WEIR_CARD_STATE_IDLE);
}

// --- The link ----------------------------------------------------------------------------------

static void the_heartbeat_follows_the_host(void **state)
{
    (void)state;
    running_card();
    struct mock_reply reply;
    uint32_t beats = mock.beats;
    run_us_with_host(50000);
    assert_in_range(mock.beats - beats, 45, 52);
    while (mock_reply(&reply)) {
    }
    // Silence: the last heartbeat comes at most HOST_TIMEOUT_US + BEAT_US + a turn later.
    const uint64_t lost = mock.clocks;
    uint64_t last = 0;
    for (uint32_t i = 0; i < 6000u; i++) {
        beats = mock.beats;
        run_us(20);
        last = (mock.beats != beats) ? mock.clocks : last;
    }
    assert_in_range((last - lost) * 1000u / MOCK_KHZ, 98000, 101100);
    assert_int_equal(card.guard.unhealthy, WEIR_HEALTH_BIT_HOST_LOST);
    assert_int_equal(card.state, WEIR_CARD_STATE_RUNNING);
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_HOST_LOST);
    assert_true(told(WEIR_OPCODE_LOG, &reply));
    assert_int_equal(reply.payload[0], WEIR_LOG_CODE_BYPASS);
    // Back after ten healthy periods, not before.
    beats = mock.beats;
    run_us_with_host(9000);
    assert_int_equal(mock.beats, beats);
    assert_int_equal(card.guard.unhealthy, WEIR_HEALTH_BIT_WAITING);
    run_us_with_host(3000);
    assert_true(mock.beats > beats);
    assert_int_equal(card.guard.bypasses, 1);
    // Without a host, if that is wanted.
    set(WEIR_KEY_HOST_REQUIRED, 0);
    beats = mock.beats;
    run_us(300000);
    assert_true(mock.beats - beats > 280u);
}

static void a_start_gives_the_host_its_time(void **state)
{
    (void)state;
    ready_card();
    run_us(3000000);
    assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_OK);
    run_us(5000);
    assert_int_equal(card.guard.unhealthy, WEIR_HEALTH_BIT_WAITING);
}

// A host that is lost between START and ready, and stays so, is a fault HOST_LOST as at any other time.
static void a_host_lost_before_ready_is_logged(void **state)
{
    (void)state;
    ready_card();
    mock.ready_reads = UINT32_MAX;
    set(WEIR_KEY_HOST_TIMEOUT_US, 20000);
    assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_OK);
    run_us_with_host(1000);
    // No heartbeat any more; 50 ms later measuring has begun.
    run_us(50000);
    mock.ready_reads = 0;
    run_us(3000000);
    assert_int_equal(card.state, WEIR_CARD_STATE_RUNNING);
    assert_int_equal(card.guard.unhealthy, WEIR_HEALTH_BIT_HOST_LOST);
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_HOST_LOST);
}

static void measured_again_is_told(void **state)
{
    (void)state;
    running_card();
    struct mock_reply reply;
    bool measured = false;
    while (told(WEIR_OPCODE_LOG, &reply)) {
        measured |= (reply.payload[0] == (uint32_t)WEIR_LOG_CODE_MEASURED) && (reply.payload[1] == 10u);
    }
    assert_true(measured);
}

static void a_fault_says_when_and_how_long(void **state)
{
    (void)state;
    mock.clocks = UINT64_C(50000) * MOCK_KHZ;
    running_card();
    mock.tai_ns = UINT64_C(1800000000) * 1000000000u;
    run_us(150000);
    struct weir_fault_entry entry = newest_fault();
    assert_int_equal(entry.code, WEIR_FAULT_CODE_HOST_LOST);
    assert_in_range(entry.detail1, 100, 103);
    assert_int_equal(entry.seconds, 1800000000);
    // Since the boot, not since power came.
    assert_true(entry.uptime_ms < 10000u);
    struct mock_reply reply;
    bool lost = false;
    while (told(WEIR_OPCODE_FAULT, &reply)) {
        lost |= reply.payload[1] == (uint32_t)WEIR_FAULT_CODE_HOST_LOST;
    }
    assert_true(lost);
}

static void differ(void) { (*mock_register(WEIR_REG_INLINE_PORT_FAULTS(1u)))++; }

static void ten_healthy_periods_are_ten(void **state)
{
    (void)state;
    struct guard guard;
    struct guard_report report;
    struct config config;
    config_init(&config);
    config.values[WEIR_KEY_HEALTHY_PERIODS] = 10;
    config.values[WEIR_KEY_HOST_REQUIRED] = 0;
    *mock_register(WEIR_REG_SYSTEM_CONTROL) = 0;
    guard_init(&guard, MOCK_KHZ);
    guard_start(&guard, mock.clocks);
    for (uint32_t i = 0; i < 10u; i++) {
        guard_beat(&guard, &config, true, mock.clocks, &report);
        assert_int_equal(mock.beats, 0);
    }
    guard_beat(&guard, &config, true, mock.clocks, &report);
    assert_int_equal(mock.beats, 1);
    assert_true(report.resumed);
    // One bad period, and they count from the start.
    differ();
    guard_beat(&guard, &config, true, mock.clocks, &report);
    assert_true(report.stopped);
    for (uint32_t i = 0; i < 10u; i++) {
        guard_beat(&guard, &config, true, mock.clocks, &report);
    }
    assert_int_equal(mock.beats, 1);
}

// With this, the heartbeat stops at once and comes back after it is gone.
static void breaks_the_link(void (*break_it)(void), void (*mend)(void), uint32_t bit)
{
    uint32_t bypasses = card.guard.bypasses;
    break_it();
    run_us_with_host(3000);
    assert_int_equal(card.guard.bypasses, bypasses + 1u);
    uint32_t beats = mock.beats;
    if (mend != NULL) {
        run_us_with_host(30000);
        assert_true((card.guard.unhealthy & bit) != 0u);
        assert_int_equal(mock.beats, beats);
        mend();
    }
    run_us_with_host(15000);
    assert_int_equal(card.guard.unhealthy, 0);
    assert_true(mock.beats > beats);
}

static void parity(void) { *mock_register(WEIR_REG_FAULT_STATUS) |= WEIR_REG_FAULT_STATUS_TABLE_PARITY_MASK; }
static void stick(void)
{
    *mock_register(WEIR_REG_FAULT_STATUS) |= WEIR_REG_FAULT_STATUS_STUCK_RECORDS_MASK;
    *mock_register(WEIR_REG_RECORD_RECORDS_IN_LOW) += 5u;
}
static void unstick(void) { *mock_register(WEIR_REG_RECORD_RECORDS_OUT_LOW) += 5u; }
static void unready(void) { mock.ready_reads = UINT32_MAX; }
static void ready(void) { mock.ready_reads = 0; }
static void disable(void) { card.config.values[WEIR_KEY_INLINE_ENABLE] = 0; }
static void enable(void) { card.config.values[WEIR_KEY_INLINE_ENABLE] = 1; }

static void the_heartbeat_follows_the_measuring_side(void **state)
{
    (void)state;
    running_card();
    breaks_the_link(differ, NULL, WEIR_HEALTH_BIT_BYPASS_FAULT);
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_MEASURE_UNHEALTHY);
    breaks_the_link(parity, NULL, WEIR_HEALTH_BIT_HARDWARE);
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_HARDWARE);
    assert_int_equal(*mock_register(WEIR_REG_FAULT_STATUS), 0);
    breaks_the_link(unready, ready, WEIR_HEALTH_BIT_NOT_READY);
    breaks_the_link(disable, enable, WEIR_HEALTH_BIT_DISABLED);
    breaks_the_link(stick, unstick, WEIR_HEALTH_BIT_RECORDS_STUCK);
}

static void differ_0(void) { (*mock_register(WEIR_REG_INLINE_PORT_FAULTS(0u)))++; }
static void ram_parity(void) { *mock_register(WEIR_REG_FAULT_STATUS) |= WEIR_REG_FAULT_STATUS_RAM_PARITY_MASK; }

static void each_port_and_each_parity_stops_the_heartbeat(void **state)
{
    (void)state;
    running_card();
    breaks_the_link(differ_0, NULL, WEIR_HEALTH_BIT_BYPASS_FAULT);
    breaks_the_link(ram_parity, NULL, WEIR_HEALTH_BIT_HARDWARE);
}

static void stuck_records_stop_the_heartbeat_until_they_move(void **state)
{
    (void)state;
    running_card();
    // Without the hardware's word.
    *mock_register(WEIR_REG_RECORD_RECORDS_IN_LOW) += 5u;
    run_us_with_host(15000);
    assert_int_equal(card.guard.unhealthy, 0);
    run_us_with_host(10000);
    assert_int_equal(card.guard.unhealthy, WEIR_HEALTH_BIT_RECORDS_STUCK);
    unstick();
    run_us_with_host(15000);
    assert_int_equal(card.guard.unhealthy, 0);
}

static void measuring_ends_when_records_are_held_up_too_long(void **state)
{
    (void)state;
    running_card();
    // Held up for not quite as long, and again: each time it goes on.
    for (uint32_t i = 0; i < 2u; i++) {
        *mock_register(WEIR_REG_RECORD_RECORDS_IN_LOW) += 5u;
        run_us_with_host((WEIR_RECORDS_HELD_MS - 100u) * 1000u);
        unstick();
        run_us_with_host(20000);
        assert_int_equal(card.state, WEIR_CARD_STATE_RUNNING);
        assert_int_equal(card.guard.unhealthy, 0);
    }
    // An update ends meanwhile; it is not answered by the end of measuring.
    *mock_register(WEIR_REG_RECORD_RECORDS_IN_LOW) += 5u;
    const uint32_t faults = card.fault_log.newest;
    run_us_with_host((WEIR_RECORDS_HELD_MS - 100u) * 1000u);
    assert_int_equal(card.state, WEIR_CARD_STATE_RUNNING);
    card.pending = (struct card_pending){.opcode = WEIR_OPCODE_UPDATE_END, .sequence = 9};
    run_us_with_host(120000);
    assert_int_equal(card.state, WEIR_CARD_STATE_FAULT);
    assert_int_equal(card.pending.opcode, WEIR_OPCODE_UPDATE_END);
    card.pending = (struct card_pending){0};
    assert_int_equal(card.fault_log.newest, faults + 2u);
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_RECORDS_HELD);
    assert_in_range(newest_fault().detail0, WEIR_RECORDS_HELD_MS, WEIR_RECORDS_HELD_MS + 2u);
    assert_int_equal(*mock_register(WEIR_REG_SYSTEM_CONTROL), WEIR_REG_SYSTEM_CONTROL_MEASURE_RESET_MASK);
    assert_int_equal(mock.cuts, 0);
    struct mock_reply reply;
    bool reason_told = false;
    while (told(WEIR_OPCODE_STATE_CHANGE, &reply)) {
        reason_told |= reply.payload[2] == (uint32_t)WEIR_FAULT_CODE_RECORDS_HELD;
    }
    assert_true(reason_told);
    assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_BAD_STATE);
    goes_on_with_another_epoch();
    assert_int_equal(card.guard.unhealthy, 0);
}

static void a_fault_that_stays_does_not_fill_the_log(void **state)
{
    (void)state;
    running_card();
    uint32_t before = card.fault_log.newest;
    for (uint32_t i = 0; i < 2500u; i++) {
        *mock_register(WEIR_REG_FAULT_STATUS) = WEIR_REG_FAULT_STATUS_BUS_ERROR_MASK;
        run_us_with_host(1000);
    }
    assert_in_range(card.fault_log.newest - before, 2, 4);
    assert_int_equal(card.guard.unhealthy, 0);
}

static void two_kinds_of_hardware_fault_are_two_entries(void **state)
{
    (void)state;
    running_card();
    const uint32_t before = card.fault_log.newest;
    *mock_register(WEIR_REG_FAULT_STATUS) = WEIR_REG_FAULT_STATUS_BUS_ERROR_MASK;
    run_us_with_host(3000);
    *mock_register(WEIR_REG_FAULT_STATUS) = WEIR_REG_FAULT_STATUS_STUCK_SLICES_0_MASK;
    run_us_with_host(3000);
    assert_int_equal(card.fault_log.newest, before + 2u);
    assert_int_equal(newest_fault().detail0, WEIR_REG_FAULT_STATUS_STUCK_SLICES_0_MASK);
}

// The fault TRAP of the boot.
static void assert_still_there(enum weir_fault_code code)
{
    struct weir_fault_entry entry;
    bool there = false;
    for (uint32_t i = 1; i <= card.fault_log.newest; i++) {
        there |= fault_log_read(&card.fault_log, i, &entry) && (entry.code == (uint32_t)code);
    }
    assert_true(there);
}

static void trapped_card(void)
{
    struct boot_record record = {.boots = 1};
    boot_record_store(&record);
    trap_note_write(7, 0x40000444u, 0);
    *mock_register(WEIR_REG_SYSTEM_BOOT) = WEIR_REG_SYSTEM_BOOT_REASON_RESTART | (1u << 16u);
    running_card();
    assert_still_there(WEIR_FAULT_CODE_TRAP);
}

static void records_that_trickle_do_not_fill_the_log(void **state)
{
    (void)state;
    trapped_card();
    *mock_register(WEIR_REG_RECORD_RECORDS_IN_LOW) += 5000u;
    for (uint32_t i = 0; i < 100u; i++) {
        run_us_with_host(50000);
        *mock_register(WEIR_REG_RECORD_RECORDS_OUT_LOW) += 1u;
    }
    // 5 s.
    assert_still_there(WEIR_FAULT_CODE_TRAP);
}

static void a_host_that_writes_too_much_does_not_fill_the_log(void **state)
{
    (void)state;
    trapped_card();
    const uint32_t zeros[100] = {0};
    for (uint32_t i = 0; i < 100u; i++) {
        mock_words(zeros, 100);
        run_us_with_host(1000);
    }
    // 0.1 s.
    assert_still_there(WEIR_FAULT_CODE_TRAP);
}

static void a_measured_stage_that_differs_again_and_again_does_not_fill_the_log(void **state)
{
    (void)state;
    trapped_card();
    set(WEIR_KEY_HEALTHY_PERIODS, 100);
    for (uint32_t i = 0; i < 100u; i++) {
        differ();
        run_us_with_host(120000);
    }
    // 12 s with the defaults.
    assert_still_there(WEIR_FAULT_CODE_TRAP);
}

static void what_is_not_logged_at_once_is_in_the_next_entry(void **state)
{
    (void)state;
    ready_card();
    set(WEIR_KEY_SERVO_SOURCE, WEIR_SERVO_SOURCE_HOST);
    card.timekeeper.servo.was_locked = true;
    const uint32_t before = card.fault_log.newest;
    for (uint32_t i = 0; i < 5u; i++) {
        const uint64_t card_ns = mock.tai_ns;
        const uint64_t host_ns = card_ns + UINT64_C(3000000000);
        const uint32_t pair[] = {(uint32_t)card_ns, (uint32_t)(card_ns >> 32u), (uint32_t)host_ns,
                                 (uint32_t)(host_ns >> 32u)};
        assert_int_equal(ask(WEIR_OPCODE_TIME_SYNC, pair, 4).payload[1], WEIR_SYNC_ACTION_SET);
        run_us(2000);
    }
    assert_int_equal(card.fault_log.newest, before + 1u);
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_TIME_STEP);
    run_us(1100000);
    assert_int_equal(card.fault_log.newest, before + 2u);
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_TIME_STEP);
    const uint64_t sum = ((uint64_t)newest_fault().detail1 << 32u) | newest_fault().detail0;
    assert_in_range(sum, UINT64_C(11999000000), UINT64_C(12001000000));
    // The same of words.
    const uint32_t zeros[60] = {0};
    for (uint32_t i = 0; i < 4u; i++) {
        mock_words(zeros, 60);
        mock_words(zeros, 60);
        run_us(3000);
    }
    assert_int_equal(card.fault_log.newest, before + 3u);
    assert_int_equal(newest_fault().detail0, 56);
    run_us(1100000);
    assert_int_equal(card.fault_log.newest, before + 4u);
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_MAILBOX_OVERFLOW);
    assert_int_equal(newest_fault().detail0, 3u * 56u);
}

static void stop_ends_the_heartbeat(void **state)
{
    (void)state;
    running_card();
    uint32_t flushes = mock.flushes;
    assert_int_equal(status_of(WEIR_OPCODE_STOP, NULL, 0), WEIR_STATUS_OK);
    assert_true(mock.flushes > flushes);
    assert_int_equal(*mock_register(WEIR_REG_SYSTEM_CONTROL), WEIR_REG_SYSTEM_CONTROL_MEASURE_RESET_MASK);
    run_us_with_host(2000);
    uint32_t beats = mock.beats;
    run_us_with_host(20000);
    assert_int_equal(mock.beats, beats);
    assert_int_equal(card.guard.unhealthy, WEIR_HEALTH_BIT_NOT_RUNNING);
}

// us from STOP to its reply, with the host beating.
static uint32_t stop_takes(void)
{
    const uint64_t begun = mock.clocks;
    assert_int_equal(status_of(WEIR_OPCODE_STOP, NULL, 0), WEIR_STATUS_OK);
    assert_int_equal(card.state, WEIR_CARD_STATE_IDLE);
    assert_int_equal(*mock_register(WEIR_REG_SYSTEM_CONTROL), WEIR_REG_SYSTEM_CONTROL_MEASURE_RESET_MASK);
    return (uint32_t)((mock.clocks - begun) * 1000u / MOCK_KHZ);
}

static void a_stop_takes_the_link_into_bypass_first(void **state)
{
    (void)state;
    running_card();
    assert_int_equal(*mock_register(WEIR_REG_INLINE_CONTROL), 1);
    // A long frame passes at the second port.
    *mock_register(WEIR_REG_INLINE_PORT_MODE(1u)) = 1;
    mock_message(WEIR_OPCODE_STOP, 99, NULL, 0);
    run_us_with_host(1000);
    assert_int_equal(*mock_register(WEIR_REG_INLINE_CONTROL), 0);
    assert_int_equal(*mock_register(WEIR_REG_SYSTEM_CONTROL), 0);
    // Nothing opens it again, nothing beats.
    uint32_t beats = mock.beats;
    set(WEIR_KEY_INLINE_ENABLE, 1);
    run_us_with_host(2000);
    assert_int_equal(mock.beats, beats);
    assert_int_equal(*mock_register(WEIR_REG_INLINE_CONTROL), 0);
    *mock_register(WEIR_REG_INLINE_PORT_MODE(1u)) = 0;
    run_us_with_host(1000);
    assert_int_equal(card.state, WEIR_CARD_STATE_IDLE);
    assert_int_equal(mock.cuts, 0);
    struct mock_reply reply;
    assert_true(told(WEIR_OPCODE_STOP, &reply));
    set(WEIR_KEY_INLINE_ENABLE, 1);
    assert_int_equal(*mock_register(WEIR_REG_INLINE_CONTROL), 0);
    // START: with the first heartbeat, not by what is left of those before.
    assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_OK);
    run_us_with_host(9000);
    assert_int_equal(*mock_register(WEIR_REG_INLINE_CONTROL), 0);
    run_us_with_host(4000);
    assert_true(mock.beats > beats);
    assert_int_equal(*mock_register(WEIR_REG_INLINE_CONTROL), 1);
    set(WEIR_KEY_INLINE_ENABLE, 0);
    assert_int_equal(*mock_register(WEIR_REG_INLINE_CONTROL), 0);
    set(WEIR_KEY_INLINE_ENABLE, 1);
    assert_int_equal(*mock_register(WEIR_REG_INLINE_CONTROL), 1);
    // A frame that never ends.
    *mock_register(WEIR_REG_INLINE_PORT_MODE(0u)) = 1;
    assert_in_range(stop_takes(), CARD_STOP_MS * 1000u, CARD_STOP_MS * 1000u + 100u);
    assert_int_equal(mock.cuts, 1);
}

static void a_start_right_behind_a_stop_waits_for_health_anew(void **state)
{
    (void)state;
    running_card();
    // Within a period of the guard.
    set(WEIR_KEY_BEAT_US, 2500);
    run_us_with_host(20000);
    const uint32_t beats = mock.beats;
    while (mock.beats == beats) {
        host_beat();
        run_us(20);
    }
    assert_int_equal(status_of(WEIR_OPCODE_STOP, NULL, 0), WEIR_STATUS_OK);
    assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_OK);
    assert_int_equal(mock.beats, beats + 1u);
    assert_int_equal(card.guard.unhealthy, WEIR_HEALTH_BIT_NOT_RUNNING);
    run_us_with_host(24000);
    assert_int_equal(mock.beats, beats + 1u);
    run_us_with_host(6000);
    assert_true(mock.beats > beats + 1u);
    assert_int_equal(*mock_register(WEIR_REG_INLINE_CONTROL), 1);
}

// Records wait at the first look after a START that comes long after a STOP, or after they were held up.
static void a_start_forgets_what_waited_before(void **state)
{
    (void)state;
    running_card();
    *mock_register(WEIR_REG_RECORD_RECORDS_IN_LOW) += 5u;
    run_us_with_host(30000);
    assert_int_equal(card.guard.unhealthy, WEIR_HEALTH_BIT_RECORDS_STUCK);
    assert_int_equal(status_of(WEIR_OPCODE_STOP, NULL, 0), WEIR_STATUS_OK);
    run_us_with_host(3000000);
    assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_OK);
    run_us_with_host(15000);
    assert_int_equal(card.state, WEIR_CARD_STATE_RUNNING);
    assert_int_equal(card.guard.unhealthy & WEIR_HEALTH_BIT_RECORDS_STUCK, 0);
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_MEASURE_UNHEALTHY);
}

static void inline_off_stays_off(void **state)
{
    (void)state;
    ready_card();
    set(WEIR_KEY_INLINE_ENABLE, 0);
    set(WEIR_KEY_HEALTHY_PERIODS, 10);
    assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_OK);
    run_us_with_host(30000);
    assert_int_equal(card.guard.unhealthy, WEIR_HEALTH_BIT_DISABLED);
    assert_int_equal(*mock_register(WEIR_REG_INLINE_CONTROL), 0);
    assert_int_equal(mock.beats, 0);
    assert_in_range(stop_takes(), CARD_STOP_LEAST_US, CARD_STOP_LEAST_US + 100u);
    // Switched on while it runs.
    assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_OK);
    run_us_with_host(5000);
    set(WEIR_KEY_INLINE_ENABLE, 1);
    assert_int_equal(*mock_register(WEIR_REG_INLINE_CONTROL), 0);
    run_us_with_host(15000);
    assert_int_equal(*mock_register(WEIR_REG_INLINE_CONTROL), 1);
    assert_int_equal(card.guard.unhealthy, 0);
}

static void a_boot_takes_the_link_into_bypass_first(void **state)
{
    (void)state;
    running_card();
    // The CPU alone was reset.
    boot();
    assert_int_equal(*mock_register(WEIR_REG_INLINE_CONTROL), 0);
    assert_int_equal(*mock_register(WEIR_REG_SYSTEM_CONTROL), WEIR_REG_SYSTEM_CONTROL_MEASURE_RESET_MASK);
    assert_int_equal(mock.cuts, 0);
}

static void records_leave_before_a_stop_ends(void **state)
{
    (void)state;
    running_card();
    mock_set64(WEIR_REG_RECORD_RECORDS_IN_LOW, UINT64_C(0x1000000A0));
    mock_set64(WEIR_REG_RECORD_RECORDS_OUT_LOW, UINT64_C(0x100000010));
    const uint32_t flushes = mock.flushes;
    struct mock_reply reply;
    while (mock_reply(&reply)) {
    }
    mock_message(WEIR_OPCODE_STOP, 99, NULL, 0);
    run_us_with_host(3000);
    assert_true(mock.flushes > flushes + 10u);
    assert_int_equal(*mock_register(WEIR_REG_SYSTEM_CONTROL), 0);
    assert_int_equal(card.state, WEIR_CARD_STATE_RUNNING);
    // Others are answered; what takes time has to wait, the same again, too.
    assert_int_equal(status_of(WEIR_OPCODE_GET_STATE, NULL, 0), WEIR_STATUS_OK);
    reply = ask(WEIR_OPCODE_STOP, NULL, 0);
    assert_int_equal(reply.status, WEIR_STATUS_BUSY);
    assert_int_equal(reply.payload[0], WEIR_OPCODE_STOP);
    assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_BAD_STATE);
    // They leave, others have come since: these are not waited for.
    mock_set64(WEIR_REG_RECORD_RECORDS_OUT_LOW, UINT64_C(0x1000000A0));
    mock_set64(WEIR_REG_RECORD_RECORDS_IN_LOW, UINT64_C(0x1000000A8));
    run_us_with_host(1000);
    assert_int_equal(*mock_register(WEIR_REG_SYSTEM_CONTROL), WEIR_REG_SYSTEM_CONTROL_MEASURE_RESET_MASK);
    assert_int_equal(card.state, WEIR_CARD_STATE_IDLE);
    assert_true(told(WEIR_OPCODE_STOP, &reply));
    assert_int_equal(reply.sequence, 99);
    assert_int_equal(reply.status, WEIR_STATUS_OK);
    assert_int_equal(card.fault_log.newest, 1);
}

// STOP, and a turn at once; then one after so many us.
static void stop_and_look(uint32_t us)
{
    mock_message(WEIR_OPCODE_STOP, 99, NULL, 0);
    turn(1);
    assert_int_equal(card.state, WEIR_CARD_STATE_RUNNING);
    mock.clocks += (uint64_t)us * MOCK_KHZ / 1000u;
    turn(1);
}

static void a_stop_waits_no_longer_than_it_helps(void **state)
{
    (void)state;
    // Nothing waits.
    running_card();
    stop_and_look(CARD_STOP_LEAST_US / 2u);
    assert_int_equal(card.state, WEIR_CARD_STATE_RUNNING);
    mock.clocks += (uint64_t)CARD_STOP_LEAST_US / 2u * MOCK_KHZ / 1000u;
    turn(1);
    assert_int_equal(card.state, WEIR_CARD_STATE_IDLE);
    // Already stopped: at once.
    struct mock_reply reply;
    while (mock_reply(&reply)) {
    }
    mock_message(WEIR_OPCODE_STOP, 100, NULL, 0);
    turn(1);
    assert_true(told(WEIR_OPCODE_STOP, &reply));
    // Some wait whenever it looks, but they leave.
    mock_reset();
    running_card();
    mock_set64(WEIR_REG_RECORD_RECORDS_IN_LOW, 20);
    mock_set64(WEIR_REG_RECORD_RECORDS_OUT_LOW, 20);
    mock_message(WEIR_OPCODE_STOP, 99, NULL, 0);
    turn(1);
    mock_set64(WEIR_REG_RECORD_RECORDS_IN_LOW, 30);
    mock.clocks += (uint64_t)(CARD_STOP_MOST_US - 10u) * MOCK_KHZ / 1000u;
    turn(1);
    assert_int_equal(card.state, WEIR_CARD_STATE_RUNNING);
    mock.clocks += (uint64_t)10u * MOCK_KHZ / 1000u;
    turn(1);
    assert_int_equal(card.state, WEIR_CARD_STATE_IDLE);
    // None leaves.
    mock_reset();
    running_card();
    mock_set64(WEIR_REG_RECORD_RECORDS_IN_LOW, 10);
    assert_in_range(stop_takes(), CARD_STOP_MS * 1000u, CARD_STOP_MS * 1000u + 100u);
    // That was known before.
    mock_reset();
    running_card();
    mock_set64(WEIR_REG_RECORD_RECORDS_IN_LOW, 10);
    run_us_with_host(30000);
    assert_int_equal(card.guard.unhealthy, WEIR_HEALTH_BIT_RECORDS_STUCK);
    assert_in_range(stop_takes(), CARD_STOP_MOST_US, CARD_STOP_MOST_US + 100u);
    // Measuring has not begun yet.
    mock_reset();
    ready_card();
    mock.ready_reads = UINT32_MAX;
    assert_int_equal(status_of(WEIR_OPCODE_START, NULL, 0), WEIR_STATUS_OK);
    assert_in_range(stop_takes(), 0, CARD_STOP_LEAST_US + 100u);
    run_us_with_host(300000);
    assert_int_equal(card.state, WEIR_CARD_STATE_IDLE);
}

static void records_are_flushed_and_counters_reported(void **state)
{
    (void)state;
    running_card();
    set(WEIR_KEY_FLUSH_US, 500);
    set(WEIR_KEY_STATISTICS_MS, 10);
    uint32_t flushes = mock.flushes;
    struct mock_reply reply;
    uint32_t reports = 0;
    *mock_register(WEIR_REG_MEASURE_IN_USE) = 42;
    run_us_with_host(100000);
    assert_in_range(mock.flushes - flushes, 180, 201);
    while (told(WEIR_OPCODE_STATISTICS_REPORT, &reply)) {
        reports++;
        assert_int_equal(reply.payload[2], 42);
    }
    assert_in_range(reports, 9, 11);
    set(WEIR_KEY_FLUSH_US, 0);
    flushes = mock.flushes;
    run_us_with_host(10000);
    assert_int_equal(mock.flushes, flushes);
}

// Each word of STATISTICS is its counter.
static void statistics_are_the_counters(void **state)
{
    (void)state;
    ready_card();
    uint32_t value = 1000;
    const uint32_t order[] = {WEIR_REG_MEASURE_USED, WEIR_REG_MEASURE_IN_USE, WEIR_REG_RECORD_RECORDS_IN_LOW,
                              WEIR_REG_RECORD_RECORDS_OUT_LOW, WEIR_REG_RECORD_FRAMES_LOW};
    for (size_t i = 0; i < 5; i++) {
        *mock_register(order[i]) = value++;
    }
    for (uint32_t i = 0; i < 5u; i++) {
        *mock_register(WEIR_REG_MEASURE_LEFT_OUT_PACKET + 4u * i) = 1u << i;
    }
    *mock_register(WEIR_REG_MEASURE_NO_INDEX) = 2000;
    *mock_register(WEIR_REG_MEASURE_NO_ROOM) = 2001;
    for (uint32_t port = 0; port < 2u; port++) {
        *mock_register(WEIR_REG_INLINE_PORT_FRAMES_IN(port)) = 3000u + 10u * port;
        *mock_register(WEIR_REG_INLINE_PORT_FRAMES_OUT(port)) = 3001u + 10u * port;
        *mock_register(WEIR_REG_INLINE_PORT_FRAMES_DROPPED(port)) = 3002u + 10u * port;
        *mock_register(WEIR_REG_INLINE_PORT_TAKEOVERS(port)) = 3003u + 10u * port;
        *mock_register(WEIR_REG_PORT_DROPPED(port)) = 3004u + 10u * port;
    }
    const struct mock_reply reply = ask(WEIR_OPCODE_STATISTICS, NULL, 0);
    assert_int_equal(reply.payload[1], 1000);
    assert_int_equal(reply.payload[2], 1001);
    assert_int_equal(reply.payload[3], 1002);
    assert_int_equal(reply.payload[5], 1003);
    assert_int_equal(reply.payload[7], 1004);
    assert_int_equal(reply.payload[9], 31);
    assert_int_equal(reply.payload[10], 2000);
    assert_int_equal(reply.payload[11], 2001);
    for (uint32_t i = 0; i < 5u; i++) {
        assert_int_equal(reply.payload[12u + i], 3000u + i);
        assert_int_equal(reply.payload[17u + i], 3010u + i);
    }
}

static void the_longest_turn_is_that_since_the_last_report(void **state)
{
    (void)state;
    running_card();
    set(WEIR_KEY_STATISTICS_MS, 10);
    card.loop_us = 4000000;
    run_us_with_host(30000);
    assert_true(card.loop_us < 4000000u);
}

// --- Update ------------------------------------------------------------------------------------

// Sends what mock_image() makes of `words` words.
static uint32_t send_image(uint32_t words, uint32_t damage)
{
    uint32_t image[8192];
    mock_image(1, 2, words);
    memcpy(image, mock_ram(WEIR_SLOT_B_BASE), 4u * (words + 8u));
    memset(mock_ram(WEIR_SLOT_B_BASE), 0, 32768);
    if (damage != 0u) {
        image[damage] ^= 1u;
    }
    const uint32_t bytes = 4u * (words + 8u);
    struct mock_reply reply = ask(WEIR_OPCODE_UPDATE_BEGIN, &bytes, 1);
    assert_int_equal(reply.status, WEIR_STATUS_OK);
    assert_int_equal(reply.payload[0], 1);
    for (uint32_t at = 0; at < words + 8u; at += WEIR_UPDATE_CHUNK_WORDS) {
        uint32_t chunk[60] = {4u * at};
        uint32_t count = words + 8u - at;
        count = (count > WEIR_UPDATE_CHUNK_WORDS) ? WEIR_UPDATE_CHUNK_WORDS : count;
        memcpy(chunk + 1, image + at, 4u * count);
        reply = ask(WEIR_OPCODE_UPDATE_DATA, chunk, count + 1u);
        assert_int_equal(reply.status, WEIR_STATUS_OK);
        assert_int_equal(reply.payload[0], 4u * (at + count));
        // A reply was lost and the host repeats.
        assert_int_equal(status_of(WEIR_OPCODE_UPDATE_DATA, chunk, count + 1u), WEIR_STATUS_OK);
        // Nothing that a boot would take.
        assert_int_equal(*mock_ram(WEIR_SLOT_B_BASE), 0);
    }
    return ask(WEIR_OPCODE_UPDATE_END, NULL, 0).status;
}

static void an_update_is_tried_confirmed_or_rolled_back(void **state)
{
    (void)state;
    running_card();
    assert_int_equal(send_image(8184, 0), WEIR_STATUS_OK);
    assert_int_equal(card.update.state, WEIR_UPDATE_STATE_READY);
    assert_int_equal(*mock_ram(WEIR_SLOT_B_BASE), WEIR_IMAGE_MAGIC);
    struct boot_record record;
    assert_true(boot_record_load(&record));
    assert_int_equal(record.next, 1);
    // The reply is read before the reset comes.
    assert_int_equal(status_of(WEIR_OPCODE_RESET, NULL, 0), WEIR_STATUS_OK);
    run_us_with_host(2000);
    assert_int_equal(mock.restarts, 1);
    assert_int_equal(status_of(WEIR_OPCODE_CONFIRM, NULL, 0), WEIR_STATUS_OK);
    assert_true(boot_record_load(&record));
    assert_int_equal(record.slots[0].confirmed, 1);
    assert_int_equal(record.slots[1].confirmed, 0);
}

static void the_slot_that_runs_is_confirmed(void **state)
{
    (void)state;
    struct boot_record record = {.boots = 3, .slot = 1, .next = 1, .reason = WEIR_BOOT_REASON_TRIAL};
    record.slots[1].tries = 2;
    boot_record_store(&record);
    running_card();
    assert_int_equal(status_of(WEIR_OPCODE_CONFIRM, NULL, 0), WEIR_STATUS_OK);
    assert_true(boot_record_load(&record));
    assert_int_equal(record.slots[1].confirmed, 1);
    assert_int_equal(record.slots[0].confirmed, 0);
}

static void an_update_that_begins_forgets_the_old_image(void **state)
{
    (void)state;
    struct boot_record record = {.boots = 3, .slot = 0, .next = 1};
    record.slots[1] = (struct boot_slot){.image = 5, .tries = 3, .confirmed = 1};
    boot_record_store(&record);
    ready_card();
    const uint32_t bytes = 432;
    assert_int_equal(status_of(WEIR_OPCODE_UPDATE_BEGIN, &bytes, 1), WEIR_STATUS_OK);
    assert_true(boot_record_load(&record));
    assert_int_equal(record.next, 0);
    assert_int_equal(record.slots[1].tries, 0);
    assert_int_equal(record.slots[1].confirmed, 0);
}

static void a_bad_update_is_refused(void **state)
{
    (void)state;
    ready_card();
    assert_int_equal(send_image(100, 50), WEIR_STATUS_FAILED);
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_IMAGE_REFUSED);
    assert_int_equal(*mock_ram(WEIR_SLOT_B_BASE), 0);
    assert_int_equal(send_image(100, 1), WEIR_STATUS_FAILED);
    assert_int_equal(newest_fault().detail1, WEIR_IMAGE_ERROR_HEADER_CRC);
    const uint32_t sizes[] = {0, 32, 38, 32772};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(status_of(WEIR_OPCODE_UPDATE_BEGIN, sizes + i, 1), WEIR_STATUS_BAD_ARGUMENT);
    }
    const uint32_t bytes = 432;
    assert_int_equal(status_of(WEIR_OPCODE_UPDATE_BEGIN, &bytes, 1), WEIR_STATUS_OK);
    const uint32_t ahead[] = {4, 1};
    assert_int_equal(status_of(WEIR_OPCODE_UPDATE_DATA, ahead, 2), WEIR_STATUS_BAD_ARGUMENT);
    const uint32_t begin[] = {0, 1, 2};
    assert_int_equal(status_of(WEIR_OPCODE_UPDATE_DATA, begin, 3), WEIR_STATUS_OK);
    const uint32_t overlap[] = {4, 1, 2};
    assert_int_equal(status_of(WEIR_OPCODE_UPDATE_DATA, overlap, 3), WEIR_STATUS_BAD_ARGUMENT);
    assert_int_equal(status_of(WEIR_OPCODE_UPDATE_END, NULL, 0), WEIR_STATUS_BAD_STATE);
    uint32_t rest[60] = {8};
    for (uint32_t at = 8; at < 432u; at += 4u * 53u) {
        rest[0] = at;
        assert_int_equal(status_of(WEIR_OPCODE_UPDATE_DATA, rest, 54), WEIR_STATUS_OK);
    }
    rest[0] = 432;
    assert_int_equal(status_of(WEIR_OPCODE_UPDATE_DATA, rest, 2), WEIR_STATUS_BAD_ARGUMENT);
    // No image at all; a second request while it is checked has to wait its turn.
    assert_int_equal(status_of(WEIR_OPCODE_UPDATE_END, NULL, 0), WEIR_STATUS_FAILED);
    assert_int_equal(status_of(WEIR_OPCODE_UPDATE_DATA, begin, 3), WEIR_STATUS_BAD_STATE);
}

static void an_image_shorter_than_announced_is_refused(void **state)
{
    (void)state;
    ready_card();
    uint32_t image[60] = {0};
    mock_image(1, 2, 20);
    memcpy(image + 1, mock_ram(WEIR_SLOT_B_BASE), 112);
    const uint32_t bytes = 116;
    assert_int_equal(status_of(WEIR_OPCODE_UPDATE_BEGIN, &bytes, 1), WEIR_STATUS_OK);
    assert_int_equal(status_of(WEIR_OPCODE_UPDATE_DATA, image, 30), WEIR_STATUS_OK);
    struct mock_reply reply = ask(WEIR_OPCODE_UPDATE_END, NULL, 0);
    assert_int_equal(reply.status, WEIR_STATUS_FAILED);
    assert_int_equal(reply.payload[0], WEIR_IMAGE_ERROR_LENGTH);
}

static void requests_wait_for_work_under_way(void **state)
{
    (void)state;
    ready_card();
    uint32_t image[60] = {0};
    mock_image(1, 2, 20);
    memcpy(image + 1, mock_ram(WEIR_SLOT_B_BASE), 112);
    const uint32_t bytes = 112;
    assert_int_equal(status_of(WEIR_OPCODE_UPDATE_BEGIN, &bytes, 1), WEIR_STATUS_OK);
    assert_int_equal(status_of(WEIR_OPCODE_UPDATE_DATA, image, 29), WEIR_STATUS_OK);
    const uint32_t words[] = {WEIR_SELF_TEST_BIT_LOOPBACK, 10000};
    mock_message(WEIR_OPCODE_SELF_TEST, 99, words, 2);
    turn(5);
    assert_int_equal(status_of(WEIR_OPCODE_UPDATE_END, NULL, 0), WEIR_STATUS_BUSY);
    assert_int_equal(status_of(WEIR_OPCODE_RESET, NULL, 0), WEIR_STATUS_BUSY);
    assert_int_equal(status_of(WEIR_OPCODE_CONFIGURE, words, 2), WEIR_STATUS_BAD_STATE);
}

static void a_reset_waits_for_the_reader_but_not_for_ever(void **state)
{
    (void)state;
    ready_card();
    mock.to_host_room = 0;
    mock_message(WEIR_OPCODE_RESET, 5, NULL, 0);
    run_us((CARD_RESET_MS - 10u) * 1000u);
    assert_int_equal(mock.restarts, 0);
    run_us(20000);
    assert_int_equal(mock.restarts, 1);
    // The reply is in the queue but not read yet.
    mock_reset();
    ready_card();
    *mock_register(WEIR_REG_MAILBOX_TO_HOST_STATUS) = 3;
    mock_message(WEIR_OPCODE_RESET, 5, NULL, 0);
    run_us(10000);
    assert_int_equal(mock.restarts, 0);
    *mock_register(WEIR_REG_MAILBOX_TO_HOST_STATUS) = 0;
    run_us(1000);
    assert_int_equal(mock.restarts, 1);
}

// --- The main loop -----------------------------------------------------------------------------

static void a_slow_task_is_a_fault_once_a_second(void **state)
{
    (void)state;
    ready_card();
    assert_in_range(tasks_bound_us(), 500, 2000);
    uint32_t before = card.fault_log.newest;
    // Each reading of the timer costs 1 ms.
    mock.clocks_per_read = 300000;
    for (uint32_t i = 0; i < 30u; i++) {
        turn(1);
    }
    assert_in_range(card.fault_log.newest - before, 1, 2);
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_TASK_OVERRUN);
    assert_int_equal(card.pending.opcode, 0);
}

static void an_overrun_is_told_in_us(void **state)
{
    (void)state;
    ready_card();
    mock.clocks_per_read = 300000;
    turn(1);
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_TASK_OVERRUN);
    assert_in_range(newest_fault().detail1, 1000, 100000);
}

static void lost_words_are_a_fault(void **state)
{
    (void)state;
    ready_card();
    const uint32_t zeros[60] = {0};
    mock_words(zeros, 60);
    mock_words(zeros, 60);
    run_us(3000);
    assert_int_equal(newest_fault().code, WEIR_FAULT_CODE_MAILBOX_OVERFLOW);
    assert_int_equal(newest_fault().detail0, 56);
}

// Any messages and any words, in any state: the card goes on, answers, and its watchdog is kicked each turn.
static void any_requests_leave_it_alive(void **state)
{
    (void)state;
    ready_card();
    uint32_t answers = 0;
    for (uint32_t round = 0; round < 5000u; round++) {
        uint64_t r = mock_random();
        uint32_t payload[60];
        for (uint32_t i = 0; i < 60u; i++) {
            payload[i] = (uint32_t)mock_random() >> (mock_random() % 32u);
        }
        mock_message((uint32_t)(r % 17u), (uint32_t)(r >> 16u) & 0xFFFFu, payload,
                     (uint32_t)(r >> 32u) % ((r & 64u) ? 5u : 61u));
        if (((r >> 40u) % 16u) == 0u) {
            mock.to_card[(r >> 48u) % mock.to_card_count] ^= 1u << (r >> 59u);
        }
        uint32_t kicks = mock.kicks;
        turn(5);
        assert_int_equal(mock.kicks, kicks + 5u);
        run_us(500);
        struct mock_reply reply;
        while (mock_reply(&reply)) {
            answers += ((reply.opcode & WEIR_UNSOLICITED) == 0u) ? 1u : 0u;
        }
        mock.to_card_count = ((r >> 44u) % 8u == 0u) ? 0u : mock.to_card_count;
    }
    assert_true(answers > 4000u);
    assert_int_equal(card.replies_lost, 0);
    // Silence, longer than any test that was asked for.
    struct mock_reply reply;
    for (uint32_t i = 0; i < 12u; i++) {
        mock.clocks += (uint64_t)MOCK_KHZ * 1000u;
        turn(100);
        while (mock_reply(&reply)) {
        }
    }
    assert_int_equal(card.pending.opcode, 0);
    assert_int_equal(ask(WEIR_OPCODE_GET_STATE, NULL, 0).status, WEIR_STATUS_OK);
}

int main(void)
{
    mock_seed_from_environment();
    const struct CMUnitTest tests[] = {
        TEST(boots_tests_itself_and_is_idle),
        TEST(the_watchdog_is_what_the_book_says),
        TEST(a_boot_fills_the_host_registers),
        TEST(a_stuck_scratch_register),
        TEST(a_bit_of_ram_is_stuck),
        TEST(no_card_there),
        TEST(a_register_is_missing),
        TEST(a_bus_error_of_the_host_fails_no_self_test),
        TEST(each_block_that_is_named_is_read),
        TEST(the_clock_stands_still),
        TEST(the_timer_stands_still),
        TEST(a_clock_set_back_fails_no_self_test),
        TEST(the_image_is_damaged),
        TEST(loopback_wants_a_frame_at_each_port),
        TEST(both_ports_want_a_frame),
        TEST(a_test_that_was_not_run_again_stays_failed),
        TEST(what_happened_before_the_reset_is_logged),
        TEST(a_boot_that_hangs_names_no_task),
        TEST(a_new_record_without_power_on_is_a_fault),
        TEST(words_lost_before_the_boot_are_no_fault),
        TEST(every_request_is_answered),
        TEST(a_host_that_does_not_read_only_waits),
        TEST(configuration_is_checked),
        TEST(a_gate_that_takes_anything_is_refused),
        TEST(every_key_reaches_its_register),
        TEST(the_heartbeat_comes_four_times_in_what_the_hardware_waits),
        TEST(a_new_service_has_the_defaults),
        TEST(a_new_service_under_way_has_them_when_it_has_ended),
        TEST(a_register_that_does_not_hold_is_a_fault),
        TEST(a_self_test_of_nothing_does_not_end_a_fault),
        TEST(a_loopback_that_fails_does_not_end_a_fault),
        TEST(measuring_that_does_not_begin_is_a_fault),
        TEST(time_comes_from_the_host),
        TEST(the_clock_is_reported),
        TEST(a_reference_lost_while_it_is_acquired_anew_is_a_fault),
        TEST(a_lock_outlives_a_host_that_starts_anew),
        TEST(a_clock_that_is_set_while_it_measures_is_told),
        TEST(a_clock_that_goes_back_in_a_stop_changes_nothing),
        TEST(measuring_ends_when_the_clock_goes_back_by_a_second),
        TEST(the_heartbeat_follows_the_host),
        TEST(a_start_gives_the_host_its_time),
        TEST(a_host_lost_before_ready_is_logged),
        TEST(measured_again_is_told),
        TEST(a_fault_says_when_and_how_long),
        TEST(ten_healthy_periods_are_ten),
        TEST(the_heartbeat_follows_the_measuring_side),
        TEST(each_port_and_each_parity_stops_the_heartbeat),
        TEST(stuck_records_stop_the_heartbeat_until_they_move),
        TEST(measuring_ends_when_records_are_held_up_too_long),
        TEST(a_fault_that_stays_does_not_fill_the_log),
        TEST(two_kinds_of_hardware_fault_are_two_entries),
        TEST(records_that_trickle_do_not_fill_the_log),
        TEST(a_host_that_writes_too_much_does_not_fill_the_log),
        TEST(a_measured_stage_that_differs_again_and_again_does_not_fill_the_log),
        TEST(what_is_not_logged_at_once_is_in_the_next_entry),
        TEST(stop_ends_the_heartbeat),
        TEST(a_stop_takes_the_link_into_bypass_first),
        TEST(a_start_right_behind_a_stop_waits_for_health_anew),
        TEST(a_start_forgets_what_waited_before),
        TEST(inline_off_stays_off),
        TEST(a_boot_takes_the_link_into_bypass_first),
        TEST(records_leave_before_a_stop_ends),
        TEST(a_stop_waits_no_longer_than_it_helps),
        TEST(records_are_flushed_and_counters_reported),
        TEST(statistics_are_the_counters),
        TEST(the_longest_turn_is_that_since_the_last_report),
        TEST(an_update_is_tried_confirmed_or_rolled_back),
        TEST(the_slot_that_runs_is_confirmed),
        TEST(an_update_that_begins_forgets_the_old_image),
        TEST(a_bad_update_is_refused),
        TEST(an_image_shorter_than_announced_is_refused),
        TEST(requests_wait_for_work_under_way),
        TEST(a_reset_waits_for_the_reader_but_not_for_ever),
        TEST(a_slow_task_is_a_fault_once_a_second),
        TEST(an_overrun_is_told_in_us),
        TEST(lost_words_are_a_fault),
        TEST(any_requests_leave_it_alive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
