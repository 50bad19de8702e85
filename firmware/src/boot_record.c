#include "boot_record.h"

#include "crc32.h"

#define RECORD_MAGIC 0x52425731u // "1WBR"

static void to_words(const struct boot_record *record, uint32_t words[BOOT_RECORD_WORDS])
{
    uint32_t n = 0;
    words[n++] = record->magic;
    words[n++] = record->generation;
    words[n++] = record->boots;
    words[n++] = record->slot;
    words[n++] = record->reason;
    words[n++] = record->next;
    words[n++] = record->faults;
    for (uint32_t i = 0; i < (uint32_t)IMAGE_SLOTS; i++) {
        words[n++] = record->slots[i].image;
        words[n++] = record->slots[i].tries;
        words[n++] = record->slots[i].confirmed;
        words[n++] = record->slots[i].error;
    }
    words[n] = record->crc;
}

static bool read_copy(uint32_t offset, struct boot_record *record)
{
    uint32_t words[BOOT_RECORD_WORDS] = {0};
    for (uint32_t i = 0; i < BOOT_RECORD_WORDS; i++) {
        words[i] = ram_read32(WEIR_KEPT_BASE + offset + (4u * i));
    }
    uint32_t n = 0;
    record->magic = words[n++];
    record->generation = words[n++];
    record->boots = words[n++];
    record->slot = words[n++];
    record->reason = words[n++];
    record->next = words[n++];
    record->faults = words[n++];
    for (uint32_t i = 0; i < (uint32_t)IMAGE_SLOTS; i++) {
        record->slots[i].image = words[n++];
        record->slots[i].tries = words[n++];
        record->slots[i].confirmed = words[n++];
        record->slots[i].error = words[n++];
    }
    record->crc = words[n];
    return (record->magic == RECORD_MAGIC) && (record->crc == crc32_words(words, BOOT_RECORD_WORDS - 1u)) &&
           (record->slot < (uint32_t)IMAGE_SLOTS) && (record->next < (uint32_t)IMAGE_SLOTS);
}

bool boot_record_load(struct boot_record *record)
{
    struct boot_record other;
    bool first = read_copy((uint32_t)KEPT_RECORD, record);
    bool second = read_copy((uint32_t)KEPT_RECORD_COPY, &other);
    // Generations wrap: the newer one is less than half the range ahead.
    if (second && (!first || ((other.generation - record->generation) < 0x80000000u))) {
        *record = other;
    }
    if (!first && !second) {
        *record = (struct boot_record){.magic = RECORD_MAGIC};
    }
    return first || second;
}

void boot_record_store(struct boot_record *record)
{
    uint32_t words[BOOT_RECORD_WORDS] = {0};
    record->magic = RECORD_MAGIC;
    record->generation++;
    to_words(record, words);
    record->crc = crc32_words(words, BOOT_RECORD_WORDS - 1u);
    words[BOOT_RECORD_WORDS - 1u] = record->crc;
    // Odd and even generations have a copy each.
    uint32_t offset = ((record->generation & 1u) != 0u) ? (uint32_t)KEPT_RECORD : (uint32_t)KEPT_RECORD_COPY;
    for (uint32_t i = 0; i < BOOT_RECORD_WORDS; i++) {
        ram_write32(WEIR_KEPT_BASE + offset + (4u * i), words[i]);
    }
}
