#include "mock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crc32.h"
#include "image.h"

struct mock mock;

static uint64_t random_state = 1;

void mock_seed(uint64_t seed) { random_state = (seed * UINT64_C(0x9E3779B97F4A7C15)) | 1u; }

uint64_t mock_seed_from_environment(void)
{
    const char *text = getenv("WEIR_SEED");
    uint64_t seed = (text != NULL) ? strtoull(text, NULL, 0) : 20261121u;
    printf("WEIR_SEED=%" PRIu64 "\n", seed);
    mock_seed(seed);
    return seed;
}

uint64_t mock_random(void)
{
    random_state ^= random_state >> 12u;
    random_state ^= random_state << 25u;
    random_state ^= random_state >> 27u;
    return random_state * UINT64_C(0x2545F4914F6CDD1D);
}

void mock_set64(uint32_t low_offset, uint64_t value)
{
    *mock_register(low_offset) = (uint32_t)value;
    *mock_register(low_offset + 4u) = (uint32_t)(value >> 32u);
}

void mock_reset(void)
{
    memset(&mock, 0, sizeof(mock));
    mock.to_host_room = UINT32_MAX;
    mock.clocks = 1000;
    mock.clocks_per_read = 30;
    mock.tai_ns = UINT64_C(1000000000);
    mock.ns_per_read = 100;
    *mock_register(WEIR_REG_INFO_MAGIC) = WEIR_REG_INFO_MAGIC_RESET;
    *mock_register(WEIR_REG_INFO_ABI) = (WEIR_ABI_MAJOR << 16u) | WEIR_ABI_MINOR;
    *mock_register(WEIR_REG_INFO_PORTS) = 2;
    *mock_register(WEIR_REG_INFO_CLOCK_KHZ) = MOCK_KHZ;
    *mock_register(WEIR_REG_INFO_HEARTBEAT_CLOCKS) = 10u * MOCK_KHZ;
    *mock_register(WEIR_REG_SYSTEM_CONTROL) = WEIR_REG_SYSTEM_CONTROL_MEASURE_RESET_MASK;
    *mock_register(WEIR_REG_SYSTEM_BOOT) = WEIR_REG_SYSTEM_BOOT_REASON_HOST | (1u << 16u);
}

static uint32_t read_pair(uint32_t offset, uint32_t low_offset, uint64_t value)
{
    if (offset == low_offset) {
        mock.held = value >> 32u;
        return (uint32_t)value;
    }
    return (uint32_t)mock.held;
}

static uint32_t pop(void)
{
    if (mock.to_card_count == 0u) {
        return 0;
    }
    uint32_t word = mock.to_card[0];
    mock.to_card_count--;
    memmove(mock.to_card, mock.to_card + 1, sizeof(uint32_t) * mock.to_card_count);
    return word;
}

static uint32_t status(void)
{
    if ((*mock_register(WEIR_REG_SYSTEM_CONTROL) & WEIR_REG_SYSTEM_CONTROL_MEASURE_RESET_MASK) != 0u) {
        return WEIR_REG_SYSTEM_STATUS_MEASURE_IN_RESET_MASK;
    }
    if (mock.ready_reads > 0u) {
        mock.ready_reads -= (mock.ready_reads == UINT32_MAX) ? 0u : 1u;
        return 0;
    }
    return WEIR_REG_SYSTEM_STATUS_READY_MASK;
}

uint32_t reg_read32(uint32_t offset)
{
    if ((offset >= sizeof(mock.registers)) || ((offset & 3u) != 0u)) {
        abort();
    }
    if ((mock.missing != 0u) && (offset == mock.missing)) {
        (*mock_register(WEIR_REG_FAULT_BUS_ERROR_COUNT))++;
        return 0;
    }
    if ((mock.host_error != 0u) && (offset == mock.host_error)) {
        mock.host_error = 0;
        (*mock_register(WEIR_REG_FAULT_BUS_ERROR_COUNT))++;
    }
    switch (offset) {
    case WEIR_REG_TIMER_NOW_LOW:
        mock.clocks += mock.clocks_per_read;
        return read_pair(offset, WEIR_REG_TIMER_NOW_LOW, mock.clocks);
    case WEIR_REG_CLOCK_NOW_LOW:
        mock.tai_ns += mock.ns_per_read;
        return read_pair(offset, WEIR_REG_CLOCK_NOW_LOW, mock.tai_ns);
    case WEIR_REG_TIMER_NOW_HIGH:
    case WEIR_REG_CLOCK_NOW_HIGH:
        return (uint32_t)mock.held;
    case WEIR_REG_MAILBOX_TO_CARD_STATUS:
        return *mock_register(offset) | mock.to_card_count |
               ((mock.to_card_count != 0u) ? WEIR_REG_MAILBOX_TO_CARD_STATUS_VALID_MASK : 0u);
    case WEIR_REG_MAILBOX_TO_CARD_POP:
        return pop();
    case WEIR_REG_MAILBOX_TO_HOST_STATUS:
        return *mock_register(offset) | ((mock.to_host_room > 0u) ? WEIR_REG_MAILBOX_TO_HOST_STATUS_READY_MASK : 0u);
    case WEIR_REG_SYSTEM_STATUS:
        return status();
    case WEIR_REG_CLOCK_PPS_FRACTION:
        // An edge while the capture is read.
        *mock_register(WEIR_REG_CLOCK_PPS_COUNT) += mock.edges_in_capture;
        mock.edges_in_capture = 0;
        return *mock_register(offset);
    default:
        return *mock_register(offset);
    }
}

static void sign_of_life(uint32_t value)
{
    if (value != WEIR_REG_WATCHDOG_KICK_KEY) {
        abort();
    }
    mock.kicks++;
    if ((mock.kicked != NULL) && (mock.kicks >= mock.kick_limit)) {
        longjmp(*mock.kicked, 1);
    }
}

void reg_write32(uint32_t offset, uint32_t value)
{
    if ((offset >= sizeof(mock.registers)) || ((offset & 3u) != 0u)) {
        abort();
    }
    if ((mock.stuck != 0u) && (offset == mock.stuck)) {
        return;
    }
    switch (offset) {
    case WEIR_REG_MAILBOX_TO_HOST_PUSH:
        if ((mock.to_host_room == 0u) || (mock.to_host_count == (sizeof(mock.to_host) / 4u))) {
            abort();
        }
        mock.to_host[mock.to_host_count++] = value;
        mock.to_host_room -= (mock.to_host_room == UINT32_MAX) ? 0u : 1u;
        break;
    case WEIR_REG_FAULT_STATUS:
        *mock_register(offset) &= ~value;
        break;
    case WEIR_REG_INLINE_HEARTBEAT:
        mock.beats += value;
        break;
    case WEIR_REG_RECORD_REQUEST:
        mock.flushes += value;
        break;
    case WEIR_REG_SYSTEM_CONTROL:
        mock.cuts += (((value & ~*mock_register(offset)) & WEIR_REG_SYSTEM_CONTROL_MEASURE_RESET_MASK) != 0u) &&
                     ((*mock_register(WEIR_REG_INLINE_CONTROL) | *mock_register(WEIR_REG_INLINE_PORT_MODE(0u)) |
                       *mock_register(WEIR_REG_INLINE_PORT_MODE(1u))) != 0u);
        *mock_register(offset) = value;
        break;
    case WEIR_REG_WATCHDOG_KICK:
        sign_of_life(value);
        break;
    case WEIR_REG_SYSTEM_REQUEST:
        mock.restarts += value;
        if (mock.restarted != NULL) {
            longjmp(*mock.restarted, 1);
        }
        break;
    case WEIR_REG_CLOCK_STEP_NS:
        // 31 bits, signed.
        mock.step_ns += (int32_t)((value & 0x40000000u) != 0u ? (value | 0x80000000u) : value);
        mock.steps++;
        break;
    case WEIR_REG_CLOCK_SLEW_NS:
        mock.slew_ns = (int32_t)value;
        break;
    case WEIR_REG_CLOCK_SET_NS:
        mock.sets++;
        mock.tai_ns = (((uint64_t)*mock_register(WEIR_REG_CLOCK_SET_SECONDS_HIGH) << 32u) |
                       *mock_register(WEIR_REG_CLOCK_SET_SECONDS_LOW)) *
                          UINT64_C(1000000000) +
                      value;
        break;
    default:
        *mock_register(offset) = value;
        break;
    }
}

static uint32_t *cell(uint32_t address)
{
    if ((address < WEIR_RAM_BASE) || ((address - WEIR_RAM_BASE) >= sizeof(mock.ram)) || ((address & 3u) != 0u)) {
        abort();
    }
    return mock_ram(address);
}

uint32_t ram_read32(uint32_t address) { return *cell(address); }

void ram_write32(uint32_t address, uint32_t value)
{
    const bool stuck = (mock.stuck_ram != 0u) && (address == mock.stuck_ram);
    *cell(address) = stuck ? (value & ~1u) : value;
}

void mock_image(uint32_t slot, uint32_t version, uint32_t words)
{
    uint32_t base = image_slot_base(slot);
    uint32_t crc = crc32_begin();
    for (uint32_t i = 0; i < words; i++) {
        uint32_t word = (version * 0x01000193u) ^ (i * 0x9E3779B9u);
        *mock_ram(base + 32u + 4u * i) = word;
        crc = crc32_word(crc, word);
    }
    uint32_t header[8] = {WEIR_IMAGE_MAGIC,    version,
                          4u * words,          WEIR_EXECUTION_BASE,
                          WEIR_EXECUTION_BASE, (WEIR_ABI_MAJOR << 16u) | WEIR_ABI_MINOR,
                          crc32_end(crc),      0};
    header[7] = crc32_words(header, 7);
    memcpy(mock_ram(base), header, sizeof(header));
}

void mock_words(const uint32_t *words, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (mock.to_card_count == 64u) {
            *mock_register(WEIR_REG_MAILBOX_TO_CARD_STATUS) += 1u << WEIR_REG_MAILBOX_TO_CARD_STATUS_LOST_SHIFT;
        } else {
            mock.to_card[mock.to_card_count++] = words[i];
        }
    }
}

void mock_message(uint32_t opcode, uint32_t sequence, const uint32_t *payload, uint32_t count)
{
    uint32_t words[64] = {(WEIR_MESSAGE_MAGIC << 24u) | (WEIR_PROTOCOL_VERSION << 16u) | (opcode << 8u) | count,
                          sequence << 16u};
    if (count > 0u) {
        memcpy(words + 2, payload, 4u * count);
    }
    words[count + 2u] = crc32_words(words, count + 2u);
    mock_words(words, count + 3u);
}

bool mock_reply(struct mock_reply *reply)
{
    if (mock.to_host_count == 0u) {
        return false;
    }
    uint32_t count = mock.to_host[0] & 0xFFu;
    if (((mock.to_host[0] >> 16u) != ((WEIR_MESSAGE_MAGIC << 8u) | WEIR_PROTOCOL_VERSION)) ||
        (mock.to_host_count < count + 3u) || (crc32_words(mock.to_host, count + 2u) != mock.to_host[count + 2u])) {
        fprintf(stderr, "the card wrote no message: %08x\n", mock.to_host[0]);
        abort();
    }
    reply->opcode = (mock.to_host[0] >> 8u) & 0xFFu;
    reply->sequence = mock.to_host[1] >> 16u;
    reply->status = mock.to_host[1] & 0xFFFFu;
    reply->count = count;
    memcpy(reply->payload, mock.to_host + 2, 4u * count);
    mock.to_host_count -= count + 3u;
    memmove(mock.to_host, mock.to_host + count + 3u, 4u * mock.to_host_count);
    return true;
}
