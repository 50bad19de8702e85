#include "fault_log.h"

#include "crc32.h"

static_assert(((uint32_t)KEPT_LOG_BYTES % (4u * WEIR_FAULT_ENTRY_WORDS)) == 0u, "whole entries");

static uint32_t address(uint32_t place)
{
    return WEIR_KEPT_BASE + (uint32_t)KEPT_LOG + (4u * WEIR_FAULT_ENTRY_WORDS * place);
}

static bool read_place(uint32_t place, struct weir_fault_entry *entry)
{
    uint32_t words[WEIR_FAULT_ENTRY_WORDS];
    for (uint32_t i = 0; i < WEIR_FAULT_ENTRY_WORDS; i++) {
        words[i] = ram_read32(address(place) + (4u * i));
    }
    *entry = (struct weir_fault_entry){
        .sequence = words[0],
        .code = words[1],
        .boot = words[2],
        .uptime_ms = words[3],
        .seconds = words[4],
        .detail0 = words[5],
        .detail1 = words[6],
        .crc = words[7],
    };
    return (entry->sequence != 0u) && ((entry->sequence % FAULT_LOG_ENTRIES) == place) &&
           (entry->crc == crc32_words(words, WEIR_FAULT_ENTRY_WORDS - 1u));
}

static void blank(uint32_t place)
{
    for (uint32_t i = 0; i < WEIR_FAULT_ENTRY_WORDS; i++) {
        ram_write32(address(place) + (4u * i), 0);
    }
}

void fault_log_init(struct fault_log *log, uint32_t known)
{
    struct weir_fault_entry entry;
    log->newest = known;
    for (uint32_t place = 0; place < FAULT_LOG_ENTRIES; place++) {
        if (!read_place(place, &entry)) {
            blank(place);
        } else if (entry.sequence > log->newest) {
            log->newest = entry.sequence;
        } else {
            // An older one.
        }
    }
    log->oldest = (log->newest >= FAULT_LOG_ENTRIES) ? (log->newest - FAULT_LOG_ENTRIES + 1u) : 1u;
}

void fault_log_append(struct fault_log *log, struct weir_fault_entry *entry)
{
    log->newest++;
    entry->sequence = log->newest;
    uint32_t words[WEIR_FAULT_ENTRY_WORDS] = {
        entry->sequence, entry->code, entry->boot, entry->uptime_ms, entry->seconds, entry->detail0, entry->detail1, 0u,
    };
    entry->crc = crc32_words(words, WEIR_FAULT_ENTRY_WORDS - 1u);
    words[WEIR_FAULT_ENTRY_WORDS - 1u] = entry->crc;
    for (uint32_t i = 0; i < WEIR_FAULT_ENTRY_WORDS; i++) {
        ram_write32(address(log->newest % FAULT_LOG_ENTRIES) + (4u * i), words[i]);
    }
    if ((log->newest - log->oldest) >= FAULT_LOG_ENTRIES) {
        log->oldest = log->newest - FAULT_LOG_ENTRIES + 1u;
    }
}

bool fault_log_read(const struct fault_log *log, uint32_t sequence, struct weir_fault_entry *entry)
{
    if ((sequence < log->oldest) || (sequence > log->newest)) {
        return false;
    }
    return read_place(sequence % FAULT_LOG_ENTRIES, entry) && (entry->sequence == sequence);
}

void fault_log_clear(struct fault_log *log)
{
    for (uint32_t place = 0; place < FAULT_LOG_ENTRIES; place++) {
        blank(place);
    }
    log->oldest = log->newest + 1u;
}
