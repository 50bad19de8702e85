// Images, boot record, choice, boot ROM, fault log, trap note.
#include "check.h"

#include "boot_choice.h"
#include "crc32.h"
#include "fault_log.h"
#include "trap_note.h"

_Noreturn void boot_main(void);
_Noreturn void boot_trap(void);
_Noreturn void boot_jump(uint32_t entry);

static jmp_buf jumped;
static uint32_t entered;

_Noreturn void boot_jump(uint32_t entry)
{
    entered = entry;
    longjmp(jumped, 1);
}

// True: an image was started.
static bool boot(void)
{
    jmp_buf kicked;
    mock.kicked = &kicked;
    mock.kicks = 0;
    mock.kick_limit = 100;
    entered = 0;
    if (setjmp(kicked) != 0) {
        return false;
    }
    if (setjmp(jumped) != 0) {
        return true;
    }
    boot_main();
}

static struct boot_record record(void)
{
    struct boot_record r;
    assert_true(boot_record_load(&r));
    return r;
}

static void crc_of_a_known_text(void **state)
{
    (void)state;
    // CRC-32 of "12345678" is 0x9AE0DAAF.
    const uint32_t words[] = {0x34333231u, 0x38373635u};
    assert_int_equal(crc32_words(words, 2), 0x9AE0DAAFu);
    assert_int_equal(crc32_words(words, 0), 0);
}

static enum weir_image_error error_of(uint32_t slot)
{
    struct image_check check;
    image_check_begin(&check, image_slot_base(slot), *mock_register(WEIR_REG_INFO_ABI));
    for (uint32_t i = 0; i < 10000u; i++) {
        if (image_check_step(&check, 7)) {
            return check.error;
        }
    }
    fail();
    return check.error;
}

static void set_header(uint32_t slot, uint32_t word, uint32_t value)
{
    uint32_t *header = mock_ram(image_slot_base(slot));
    header[word] = value;
    header[7] = crc32_words(header, 7);
}

static void a_good_image_and_each_way_to_be_bad(void **state)
{
    (void)state;
    assert_int_equal(error_of(0), WEIR_IMAGE_ERROR_MAGIC);
    mock_image(0, 1, 100);
    assert_int_equal(error_of(0), WEIR_IMAGE_ERROR_NONE);
    mock_image(1, 1, (32768 - 32) / 4);
    assert_int_equal(error_of(1), WEIR_IMAGE_ERROR_NONE);
    *mock_ram(WEIR_SLOT_A_BASE + 4u) ^= 1u;
    assert_int_equal(error_of(0), WEIR_IMAGE_ERROR_HEADER_CRC);
    static const struct {
        uint32_t word;
        uint32_t value;
        enum weir_image_error error;
    } cases[] = {
        {2, 0, WEIR_IMAGE_ERROR_LENGTH},
        {2, 402, WEIR_IMAGE_ERROR_LENGTH},
        {2, 32768 - 28, WEIR_IMAGE_ERROR_LENGTH},
        {2, 0xFFFFFFFCu, WEIR_IMAGE_ERROR_LENGTH},
        {2, 396, WEIR_IMAGE_ERROR_BODY_CRC},
        {3, WEIR_DATA_BASE, WEIR_IMAGE_ERROR_ADDRESS},
        {4, WEIR_EXECUTION_BASE - 4u, WEIR_IMAGE_ERROR_ADDRESS},
        {4, WEIR_EXECUTION_BASE + 2u, WEIR_IMAGE_ERROR_ADDRESS},
        {4, WEIR_EXECUTION_BASE + 400u, WEIR_IMAGE_ERROR_ADDRESS},
        {4, WEIR_EXECUTION_BASE + 396u, WEIR_IMAGE_ERROR_NONE},
        {5, (WEIR_ABI_MAJOR + 1u) << 16u, WEIR_IMAGE_ERROR_ABI},
        {5, (WEIR_ABI_MAJOR << 16u) | 0xFFFFu, WEIR_IMAGE_ERROR_ABI},
        {6, 0, WEIR_IMAGE_ERROR_BODY_CRC},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        mock_image(0, 1, 100);
        set_header(0, cases[i].word, cases[i].value);
        assert_int_equal(error_of(0), cases[i].error);
    }
    mock_image(0, 1, 100);
    *mock_ram(WEIR_SLOT_A_BASE + 32u + 4u * 57u) ^= 0x100u;
    assert_int_equal(error_of(0), WEIR_IMAGE_ERROR_BODY_CRC);
}

static void any_header_is_looked_at_safely(void **state)
{
    (void)state;
    uint32_t good = 0;
    for (uint32_t round = 0; round < 20000u; round++) {
        mock_image(0, 1, 16);
        uint32_t *header = mock_ram(WEIR_SLOT_A_BASE);
        uint32_t before[8];
        memcpy(before, header, sizeof(before));
        for (uint32_t flips = 1u + (uint32_t)(mock_random() % 3u); flips > 0u; flips--) {
            uint64_t r = mock_random();
            header[(r >> 8u) % 8u] =
                ((r & 1u) != 0u) ? (uint32_t)(r >> 32u) : header[(r >> 8u) % 8u] ^ (1u << (r >> 59u));
        }
        bool resealed = (mock_random() & 1u) != 0u;
        if (resealed) {
            header[7] = crc32_words(header, 7);
        }
        enum weir_image_error error = error_of(0);
        good += (error == WEIR_IMAGE_ERROR_NONE) ? 1u : 0u;
        assert_true(resealed || (error != WEIR_IMAGE_ERROR_NONE) || (memcmp(before, header, sizeof(before)) == 0));
    }
    // Another version alone keeps an image good.
    assert_in_range(good, 1, 10000);
}

static void the_record_outlives_a_torn_store(void **state)
{
    (void)state;
    struct boot_record r;
    assert_false(boot_record_load(&r));
    for (uint32_t i = 1; i <= 5u; i++) {
        r.boots = i;
        boot_record_store(&r);
        assert_int_equal(record().boots, i);
    }
    // The newest copy is damaged: the one before it counts.
    *mock_ram(WEIR_KEPT_BASE + (uint32_t)KEPT_RECORD + 8u) ^= 4u;
    assert_int_equal(record().boots, 4);
    *mock_ram(WEIR_KEPT_BASE + (uint32_t)KEPT_RECORD_COPY + 8u) ^= 4u;
    assert_false(boot_record_load(&r));
    assert_int_equal(r.boots, 0);
}

static void generations_wrap(void **state)
{
    (void)state;
    struct boot_record r = {.generation = 0xFFFFFFFEu};
    boot_record_store(&r);
    r.boots = 7;
    boot_record_store(&r);
    assert_int_equal(record().boots, 7);
}

static void without_an_image_the_rom_waits_and_says_so(void **state)
{
    (void)state;
    mock_image(1, 1, 100);
    *mock_ram(WEIR_SLOT_B_BASE + 40u) ^= 1u;
    assert_false(boot());
    assert_int_equal(*mock_register(WEIR_REG_HOST_BOOT_STAGE),
                     WEIR_BOOT_STAGE_NO_IMAGE | (WEIR_IMAGE_ERROR_MAGIC << 8) | (WEIR_IMAGE_ERROR_BODY_CRC << 16));
    assert_int_equal(record().boots, 1);
}

static void the_image_is_copied_and_started(void **state)
{
    (void)state;
    mock_image(0, 1, 100);
    set_header(0, 4, WEIR_EXECUTION_BASE + 8u);
    assert_true(boot());
    assert_int_equal(entered, WEIR_EXECUTION_BASE + 8u);
    assert_memory_equal(mock_ram(WEIR_EXECUTION_BASE), mock_ram(WEIR_SLOT_A_BASE + 32u), 400);
    assert_int_equal(*mock_ram(WEIR_EXECUTION_BASE + 400u), 0);
    assert_int_equal(*mock_register(WEIR_REG_HOST_BOOT_STAGE), WEIR_BOOT_STAGE_COPIED);
    assert_int_equal(*mock_register(WEIR_REG_HOST_SLOT), 0);
    struct boot_record r = record();
    assert_int_equal(r.reason, WEIR_BOOT_REASON_FIRST);
    assert_int_equal(r.slots[0].tries, 1);
}

static void unconfirmed_images_are_given_up_after_three_boots(void **state)
{
    (void)state;
    mock_image(0, 1, 100);
    assert_true(boot());
    struct boot_record r = record();
    r.slots[0].confirmed = 1;
    boot_record_store(&r);
    assert_true(boot());
    assert_int_equal(record().reason, WEIR_BOOT_REASON_CONFIRMED);
    assert_int_equal(record().slots[0].tries, 1);

    mock_image(1, 2, 50);
    static const enum weir_boot_reason reasons[] = {WEIR_BOOT_REASON_FIRST, WEIR_BOOT_REASON_TRIAL,
                                                    WEIR_BOOT_REASON_TRIAL};
    for (size_t i = 0; i < 3; i++) {
        assert_true(boot());
        assert_int_equal(record().slot, 1);
        assert_int_equal(record().reason, reasons[i]);
    }
    assert_true(boot());
    assert_int_equal(record().slot, 0);
    assert_int_equal(record().reason, WEIR_BOOT_REASON_ROLLBACK);
    assert_true(boot());
    assert_int_equal(record().reason, WEIR_BOOT_REASON_CONFIRMED);
    // The other is tried when there is nothing else, and again when it is loaded anew.
    *mock_ram(WEIR_SLOT_A_BASE + 32u) ^= 1u;
    assert_true(boot());
    assert_int_equal(record().slot, 1);
    assert_int_equal(record().reason, WEIR_BOOT_REASON_LAST_RESORT);
    assert_int_equal(record().slots[0].error, WEIR_IMAGE_ERROR_BODY_CRC);
    mock_image(1, 3, 50);
    assert_true(boot());
    assert_int_equal(record().reason, WEIR_BOOT_REASON_FIRST);
}

// Through the load window, also if it is an image that was there and confirmed before an update.
static void the_image_that_the_host_loads_runs(void **state)
{
    (void)state;
    mock_image(0, 1, 100);
    assert_true(boot());
    struct boot_record r = record();
    r.slots[0].confirmed = 1;
    boot_record_store(&r);
    // An update to version 2, confirmed.
    mock_image(1, 2, 100);
    assert_true(boot());
    r = record();
    r.slots[1].confirmed = 1;
    boot_record_store(&r);
    assert_true(boot());
    assert_int_equal(record().slot, 1);
    mock_image(0, 1, 100);
    *mock_register(WEIR_REG_HOST_BOOT_STAGE) = WEIR_BOOT_STAGE_LOADED;
    assert_true(boot());
    assert_int_equal(record().slot, 0);
    assert_int_equal(record().reason, WEIR_BOOT_REASON_CONFIRMED);
    // One that is not good does not run.
    *mock_ram(WEIR_SLOT_A_BASE + 32u) ^= 1u;
    *mock_register(WEIR_REG_HOST_BOOT_STAGE) = WEIR_BOOT_STAGE_LOADED;
    assert_true(boot());
    assert_int_equal(record().slot, 1);
    // One that was given up is tried again, as often as a new one.
    mock_image(0, 5, 100);
    for (uint32_t i = 0; i < 3u; i++) {
        assert_true(boot());
        assert_int_equal(record().slot, 0);
    }
    assert_true(boot());
    assert_int_equal(record().slot, 1);
    *mock_register(WEIR_REG_HOST_BOOT_STAGE) = WEIR_BOOT_STAGE_LOADED;
    for (uint32_t i = 0; i < 3u; i++) {
        assert_true(boot());
        assert_int_equal(record().slot, 0);
        assert_int_equal(record().reason, WEIR_BOOT_REASON_TRIAL);
    }
    assert_true(boot());
    assert_int_equal(record().slot, 1);
    assert_int_equal(record().reason, WEIR_BOOT_REASON_ROLLBACK);
    // Before an update that waits for its first boot.
    mock_image(0, 1, 100);
    *mock_register(WEIR_REG_HOST_BOOT_STAGE) = WEIR_BOOT_STAGE_LOADED;
    assert_true(boot());
    assert_int_equal(record().slot, 0);
    mock_image(1, 4, 100);
    r = record();
    r.next = 1;
    boot_record_store(&r);
    *mock_register(WEIR_REG_HOST_BOOT_STAGE) = WEIR_BOOT_STAGE_LOADED;
    assert_true(boot());
    assert_int_equal(record().slot, 0);
}

static void a_trap_in_the_rom_restarts(void **state)
{
    (void)state;
    jmp_buf restarted;
    mock.restarted = &restarted;
    if (setjmp(restarted) == 0) {
        boot_trap();
    }
    assert_int_equal(mock.restarts, 1);
}

static void faults_survive_and_the_oldest_go(void **state)
{
    (void)state;
    struct fault_log log;
    struct weir_fault_entry entry = {.code = 5};
    fault_log_init(&log, 0);
    assert_false(fault_log_read(&log, 1, &entry));
    for (uint32_t i = 1; i <= 100u; i++) {
        entry = (struct weir_fault_entry){.code = 5, .detail0 = i};
        fault_log_append(&log, &entry);
        assert_int_equal(entry.sequence, i);
    }
    // A reset, and a damaged entry.
    *mock_ram(WEIR_KEPT_BASE + (uint32_t)KEPT_LOG + 32u * (80u % FAULT_LOG_ENTRIES) + 8u) ^= 1u;
    fault_log_init(&log, 0);
    assert_int_equal(log.newest, 100);
    for (uint32_t i = 1; i <= 101u; i++) {
        bool there = fault_log_read(&log, i, &entry);
        assert_int_equal(there, (i > 100u - FAULT_LOG_ENTRIES) && (i <= 100u) && (i != 80u));
        assert_true(!there || (entry.detail0 == i));
    }
    fault_log_clear(&log);
    assert_int_equal(log.oldest, 101);
    assert_false(fault_log_read(&log, 100, &entry));
    fault_log_init(&log, 100);
    fault_log_append(&log, &entry);
    assert_int_equal(entry.sequence, 101);
    assert_true(fault_log_read(&log, 101, &entry));
}

static void a_trap_note_is_read_once(void **state)
{
    (void)state;
    uint32_t cause;
    uint32_t pc;
    assert_false(trap_note_take(&cause, &pc));
    trap_note_write(5, 0x40000123u, 7);
    assert_true(trap_note_take(&cause, &pc));
    assert_int_equal(cause, 5);
    assert_int_equal(pc, 0x40000123u);
    assert_false(trap_note_take(&cause, &pc));
    trap_note_write(5, 0x40000123u, 7);
    *mock_ram(WEIR_KEPT_BASE + (uint32_t)KEPT_NOTE + 12u) ^= 1u;
    assert_false(trap_note_take(&cause, &pc));
}

int main(void)
{
    mock_seed_from_environment();
    const struct CMUnitTest tests[] = {
        TEST(crc_of_a_known_text),
        TEST(a_good_image_and_each_way_to_be_bad),
        TEST(any_header_is_looked_at_safely),
        TEST(the_record_outlives_a_torn_store),
        TEST(generations_wrap),
        TEST(without_an_image_the_rom_waits_and_says_so),
        TEST(the_image_is_copied_and_started),
        TEST(unconfirmed_images_are_given_up_after_three_boots),
        TEST(the_image_that_the_host_loads_runs),
        TEST(a_trap_in_the_rom_restarts),
        TEST(faults_survive_and_the_oldest_go),
        TEST(a_trap_note_is_read_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
