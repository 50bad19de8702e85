#include "boot_choice.h"

enum {
    UNUSABLE = 0,
    EXHAUSTED = 1,
    USABLE = 2,
    FRESH = 3
};

// Takes note of what the slot holds; returns how much it is wanted.
static uint32_t rank(struct boot_slot *slot, const struct image_check *check)
{
    slot->error = (uint32_t)check->error;
    if (check->error != WEIR_IMAGE_ERROR_NONE) {
        return (uint32_t)UNUSABLE;
    }
    if (slot->image != check->header.header_crc) {
        *slot = (struct boot_slot){.image = check->header.header_crc};
        return (uint32_t)FRESH;
    }
    if ((slot->confirmed != 0u) || (slot->tries < WEIR_BOOT_TRIES)) {
        return (uint32_t)USABLE;
    }
    return (uint32_t)EXHAUSTED;
}

static enum weir_boot_reason why(const struct boot_slot *slot, uint32_t rank_of_slot, bool preferred)
{
    if (rank_of_slot == (uint32_t)FRESH) {
        return WEIR_BOOT_REASON_FIRST;
    }
    if (rank_of_slot == (uint32_t)EXHAUSTED) {
        return WEIR_BOOT_REASON_LAST_RESORT;
    }
    if (!preferred) {
        return WEIR_BOOT_REASON_ROLLBACK;
    }
    return (slot->confirmed != 0u) ? WEIR_BOOT_REASON_CONFIRMED : WEIR_BOOT_REASON_TRIAL;
}

bool boot_choose(struct boot_record *record, const struct image_check checks[IMAGE_SLOTS], bool loaded)
{
    if (loaded) {
        // Also if it is one that was given up.
        record->slots[0].tries = 0;
    }
    uint32_t first = loaded ? 0u : (record->next & 1u);
    uint32_t second = first ^ 1u;
    uint32_t first_rank = rank(&record->slots[first], &checks[first]);
    uint32_t second_rank = rank(&record->slots[second], &checks[second]);
    const bool wanted = loaded && (first_rank != (uint32_t)UNUSABLE);
    uint32_t chosen = (!wanted && (second_rank > first_rank)) ? second : first;
    uint32_t chosen_rank = (chosen == first) ? first_rank : second_rank;

    record->boots++;
    if (chosen_rank == (uint32_t)UNUSABLE) {
        return false;
    }
    record->reason = (uint32_t)why(&record->slots[chosen], chosen_rank, chosen == first);
    record->slot = chosen;
    record->next = chosen;
    if (record->slots[chosen].confirmed == 0u) {
        record->slots[chosen].tries++;
    }
    return true;
}
