#include "self_test.h"

#include "clocks.h"
#include "crc32.h"

enum {
    KEY_WORDS = 10,
    SEED_WORDS = 13,
    IMAGE_WORDS_PER_STEP = 256,
    // Until the clock has to have moved.
    TIME_US = 10,
};

static_assert(WEIR_IMAGE_MAX_BYTES + (4u * (uint32_t)SELF_TEST_SPARE_WORDS) <= WEIR_EXECUTION_BYTES,
              "the march stays within the execution area");

// Registers that stay as they are when read, first and last offset of each row. docs/src/firmware.md names the blocks.
static const struct {
    uint32_t first;
    uint32_t last;
} walk[] = {
    {WEIR_REG_INFO_MAGIC, WEIR_REG_INFO_MAILBOX_WORDS},
    {WEIR_REG_SYSTEM_STATUS, WEIR_REG_SYSTEM_BOOT},
    {WEIR_REG_CLOCK_RATE, WEIR_REG_CLOCK_SET_SECONDS_HIGH},
    {WEIR_REG_CLOCK_STATUS, WEIR_REG_CLOCK_NOW_HIGH},
    {WEIR_REG_INLINE_PORT_MODE(0u), WEIR_REG_INLINE_PORT_FRAMES_CUT(0u)},
    {WEIR_REG_INLINE_PORT_MODE(1u), WEIR_REG_INLINE_PORT_FRAMES_CUT(1u)},
    {WEIR_REG_MEASURE_CONTROL, WEIR_REG_MEASURE_OTHER_HIGH},
    {WEIR_REG_MEASURE_USED, WEIR_REG_MEASURE_NO_ROOM},
    {WEIR_REG_DIGEST_CONTROL, WEIR_REG_DIGEST_WANTED},
    {WEIR_REG_RECORD_DESTINATION_LOW, WEIR_REG_RECORD_SOURCE_HIGH},
    {WEIR_REG_RECORD_RECORDS_IN_LOW, WEIR_REG_RECORD_FRAMES_HIGH},
    {WEIR_REG_PORT_TIME_OFFSET(0u), WEIR_REG_PORT_SLICES_DROPPED(0u)},
    {WEIR_REG_PORT_TIME_OFFSET(1u), WEIR_REG_PORT_SLICES_DROPPED(1u)},
    {WEIR_REG_TIMER_NOW_LOW, WEIR_REG_TIMER_CONTROL},
    {WEIR_REG_WATCHDOG_CONTROL, WEIR_REG_WATCHDOG_STATUS},
    {WEIR_REG_HOST_HEARTBEAT, WEIR_REG_HOST_SLOT},
};

static const uint32_t known_key[KEY_WORDS] = {
    0x04030201u, 0x08070605u, 0x0C0B0A09u, 0x100F0E0Du, 0x14131211u,
    0x18171615u, 0x1C1B1A19u, 0x201F1E1Du, 0x24232221u, 0x28272625u,
};
static const uint32_t known_seed[SEED_WORDS] = {
    0x6D5A56DAu, 0x255B0EC2u, 0x4167253Du, 0x43A38FB0u, 0xD0CA2BCBu, 0xAE7B30B4u, 0x77CB2DA3u,
    0x8030F20Cu, 0x6A42B73Bu, 0xBEAC01FAu, 0x12345678u, 0x9ABCDEF0u, 0x00007531u,
};
static const uint32_t known_hash = 0x842C4A04u;
static const uint32_t known_crc = 0x4FB420C5u; // of known_key

void self_test_begin(struct self_test *test, uint32_t tests, uint32_t slot, uint32_t clock_khz, uint32_t loopback_ms)
{
    *test = (struct self_test){
        .wanted = tests & SELF_TEST_ALL,
        .left = tests & SELF_TEST_ALL,
        .slot = slot,
        .khz = clock_khz,
        .loopback_clocks = clocks_of_ms(clock_khz, loopback_ms),
    };
}

static void finish(struct self_test *test, uint32_t bit, bool passed, uint32_t detail)
{
    if (!passed) {
        if (test->failed == 0u) {
            test->detail = detail;
        }
        test->failed |= bit;
    }
    test->left &= ~bit;
    test->place = 0;
}

// One pass of a march: each word is read as `expected` and left as `value`, upwards or downwards.
static bool march(uint32_t expected, uint32_t value, bool up, bool check, uint32_t *failed)
{
    for (uint32_t i = 0; i < (uint32_t)SELF_TEST_SPARE_WORDS; i++) {
        const uint32_t place = up ? i : ((uint32_t)SELF_TEST_SPARE_WORDS - 1u - i);
        const uint32_t address = SELF_TEST_SPARE_BASE + (4u * place);
        *failed = address;
        if (check && (ram_read32(address) != expected)) {
            return false;
        }
        ram_write32(address, value);
        if (ram_read32(address) != value) {
            return false;
        }
    }
    return true;
}

// March C-: finds stuck bits, bits that do not change, bits that change with others, wrong addresses. A pass per step;
// the second round has a background of alternating bits.
static void test_memory(struct self_test *test)
{
    static const struct {
        bool inverted_before;
        bool inverted;
        bool up;
        bool check;
    } passes[] = {
        {false, false, true, false}, {false, true, true, true},  {true, false, true, true},
        {false, true, false, true},  {true, false, false, true}, {false, false, true, true},
    };
    const uint32_t count = (uint32_t)(sizeof(passes) / sizeof(passes[0]));
    const uint32_t background = (test->place < count) ? 0u : 0xAAAAAAAAu;
    const uint32_t pass = test->place % count;
    uint32_t failed = 0;
    const bool good =
        march(passes[pass].inverted_before ? ~background : background, passes[pass].inverted ? ~background : background,
              passes[pass].up, passes[pass].check, &failed);
    test->place++;
    if (!good || (test->place == (2u * count))) {
        finish(test, WEIR_SELF_TEST_BIT_MEMORY, good, failed);
    }
}

static bool scratch_holds(void)
{
    const uint32_t before = reg_read32(WEIR_REG_SYSTEM_SCRATCH);
    bool good = true;
    for (uint32_t i = 0; i < 32u; i++) {
        reg_write32(WEIR_REG_SYSTEM_SCRATCH, 1u << i);
        good = good && (reg_read32(WEIR_REG_SYSTEM_SCRATCH) == (1u << i));
    }
    reg_write32(WEIR_REG_SYSTEM_SCRATCH, before);
    return good;
}

// The first register that says that this is another map, or that does not work; `none` if all is well.
static uint32_t map_fault(uint32_t none)
{
    const uint32_t abi = reg_read32(WEIR_REG_INFO_ABI);
    const uint32_t minor = WEIR_ABI_MINOR;
    if (reg_read32(WEIR_REG_INFO_MAGIC) != WEIR_REG_INFO_MAGIC_RESET) {
        return WEIR_REG_INFO_MAGIC;
    }
    if (((abi >> 16u) != WEIR_ABI_MAJOR) || ((abi & 0xFFFFu) < minor)) {
        return WEIR_REG_INFO_ABI;
    }
    return scratch_holds() ? none : WEIR_REG_SYSTEM_SCRATCH;
}

static void test_registers(struct self_test *test)
{
    const uint32_t fault = (test->place == 0u) ? map_fault(UINT32_MAX) : UINT32_MAX;
    if (fault != UINT32_MAX) {
        finish(test, WEIR_SELF_TEST_BIT_REGISTERS, false, fault);
        return;
    }
    // A register that is not there counts as an error of the bus.
    for (uint32_t offset = walk[test->place].first; offset <= walk[test->place].last; offset += 4u) {
        bool there = false;
        // The host's errors count, too; a register that is not there fails each time.
        for (uint32_t i = 0; (i < 4u) && !there; i++) {
            const uint32_t errors = reg_read32(WEIR_REG_FAULT_BUS_ERROR_COUNT);
            (void)reg_read32(offset);
            there = reg_read32(WEIR_REG_FAULT_BUS_ERROR_COUNT) == errors;
        }
        if (!there) {
            finish(test, WEIR_SELF_TEST_BIT_REGISTERS, false, offset);
            return;
        }
    }
    test->place++;
    if (test->place == (sizeof(walk) / sizeof(walk[0]))) {
        finish(test, WEIR_SELF_TEST_BIT_REGISTERS, true, 0);
    }
}

uint32_t self_test_toeplitz(const uint32_t key[KEY_WORDS], const uint32_t seed[SEED_WORDS])
{
    uint32_t hash = 0;
    for (uint32_t i = 0; i < 32u; i++) {
        uint32_t sum = 0;
        for (uint32_t word = 0; word < (uint32_t)KEY_WORDS; word++) {
            const uint64_t pair = ((uint64_t)seed[word + 1u] << 32u) | seed[word];
            sum ^= (uint32_t)(pair >> i) & key[word];
        }
        for (uint32_t shift = 16u; shift != 0u; shift >>= 1u) {
            sum ^= sum >> shift;
        }
        hash |= (sum & 1u) << i;
    }
    return hash;
}

static void test_hash(struct self_test *test)
{
    const uint32_t hash = self_test_toeplitz(known_key, known_seed);
    const uint32_t crc = crc32_words(known_key, (uint32_t)KEY_WORDS);
    finish(test, WEIR_SELF_TEST_BIT_HASH, (hash == known_hash) && (crc == known_crc),
           (hash != known_hash) ? hash : crc);
}

static void test_time(struct self_test *test, uint64_t now)
{
    if (test->place == 0u) {
        test->started = now;
        test->clock_ns = reg_read64(WEIR_REG_CLOCK_NOW_LOW);
        test->place = 1;
        return;
    }
    test->place++;
    const bool timer = (now - test->started) >= clocks_of_us(test->khz, (uint32_t)TIME_US);
    // TIME_SYNC may set it back meanwhile.
    const bool clock = reg_read64(WEIR_REG_CLOCK_NOW_LOW) != test->clock_ns;
    if (timer && clock) {
        finish(test, WEIR_SELF_TEST_BIT_TIME, true, 0);
    } else if (timer || (test->place > 10000u)) {
        finish(test, WEIR_SELF_TEST_BIT_TIME, false, timer ? WEIR_REG_CLOCK_NOW_LOW : WEIR_REG_TIMER_NOW_LOW);
    } else {
        // Not long enough yet.
    }
}

static void test_image(struct self_test *test)
{
    if (test->place == 0u) {
        image_check_begin(&test->image, image_slot_base(test->slot), reg_read32(WEIR_REG_INFO_ABI));
        test->place = 1;
    } else if (image_check_step(&test->image, (uint32_t)IMAGE_WORDS_PER_STEP)) {
        finish(test, WEIR_SELF_TEST_BIT_IMAGE, test->image.error == WEIR_IMAGE_ERROR_NONE, (uint32_t)test->image.error);
    } else {
        // More words.
    }
}

static void test_loopback(struct self_test *test, uint64_t now)
{
    if (test->place == 0u) {
        test->started = now;
        for (uint32_t port = 0; port < WEIR_REG_PORT_COUNT; port++) {
            test->frames[port] = reg_read32(WEIR_REG_INLINE_PORT_FRAMES_OUT(port));
        }
        test->place = 1;
        return;
    }
    uint32_t without = 0;
    for (uint32_t port = 0; port < WEIR_REG_PORT_COUNT; port++) {
        if (reg_read32(WEIR_REG_INLINE_PORT_FRAMES_OUT(port)) == test->frames[port]) {
            without |= 1u << port;
        }
    }
    if ((without == 0u) || ((now - test->started) >= test->loopback_clocks)) {
        finish(test, WEIR_SELF_TEST_BIT_LOOPBACK, without == 0u, without);
    }
}

bool self_test_step(struct self_test *test, uint64_t now)
{
    if ((test->left & WEIR_SELF_TEST_BIT_MEMORY) != 0u) {
        test_memory(test);
    } else if ((test->left & WEIR_SELF_TEST_BIT_REGISTERS) != 0u) {
        test_registers(test);
    } else if ((test->left & WEIR_SELF_TEST_BIT_HASH) != 0u) {
        test_hash(test);
    } else if ((test->left & WEIR_SELF_TEST_BIT_TIME) != 0u) {
        test_time(test, now);
    } else if ((test->left & WEIR_SELF_TEST_BIT_IMAGE) != 0u) {
        test_image(test);
    } else if ((test->left & WEIR_SELF_TEST_BIT_LOOPBACK) != 0u) {
        test_loopback(test, now);
    } else {
        // All done.
    }
    return test->left == 0u;
}
