#include "update.h"

enum {
    WORDS_PER_STEP = 256
};

void update_init(struct update *update) { *update = (struct update){.state = WEIR_UPDATE_STATE_NONE}; }

enum weir_status update_begin(struct update *update, struct boot_record *record, uint32_t bytes)
{
    if (update->checking) {
        return WEIR_STATUS_BUSY;
    }
    if ((bytes <= WEIR_IMAGE_HEADER_BYTES) || (bytes > WEIR_IMAGE_MAX_BYTES) || ((bytes & 3u) != 0u)) {
        return WEIR_STATUS_BAD_ARGUMENT;
    }
    *update = (struct update){.state = WEIR_UPDATE_STATE_OPEN, .slot = record->slot ^ 1u, .bytes = bytes};
    ram_write32(image_slot_base(update->slot), 0);
    // Tries of an image that was here before are not those of the new one, even if it is the same again.
    record->slots[update->slot] = (struct boot_slot){0};
    record->next = record->slot;
    boot_record_store(record);
    return WEIR_STATUS_OK;
}

enum weir_status update_data(struct update *update, uint32_t offset, const uint32_t *words, uint32_t count)
{
    if ((update->state != WEIR_UPDATE_STATE_OPEN) || update->checking) {
        return WEIR_STATUS_BAD_STATE;
    }
    // All below IMAGE_MAX_BYTES: no sum wraps.
    if ((offset > update->next) || (count == 0u) || ((offset + (4u * count)) > update->bytes)) {
        return WEIR_STATUS_BAD_ARGUMENT;
    }
    if (offset < update->next) {
        return ((offset + (4u * count)) <= update->next) ? WEIR_STATUS_OK : WEIR_STATUS_BAD_ARGUMENT;
    }
    for (uint32_t i = 0; i < count; i++) {
        if ((offset + (4u * i)) == 0u) {
            update->first = words[i];
        } else {
            ram_write32(image_slot_base(update->slot) + offset + (4u * i), words[i]);
        }
    }
    update->next = offset + (4u * count);
    return WEIR_STATUS_OK;
}

enum weir_status update_end(struct update *update, uint32_t card_abi)
{
    if (update->checking) {
        return WEIR_STATUS_BUSY;
    }
    if ((update->state != WEIR_UPDATE_STATE_OPEN) || (update->next != update->bytes)) {
        return WEIR_STATUS_BAD_STATE;
    }
    ram_write32(image_slot_base(update->slot), update->first);
    image_check_begin(&update->check, image_slot_base(update->slot), card_abi);
    if ((update->check.error == WEIR_IMAGE_ERROR_NONE) &&
        ((update->check.header.length + WEIR_IMAGE_HEADER_BYTES) != update->bytes)) {
        update->check.error = WEIR_IMAGE_ERROR_LENGTH;
        update->check.done = true;
    }
    update->checking = true;
    return WEIR_STATUS_OK;
}

bool update_step(struct update *update, struct boot_record *record)
{
    if (!update->checking || !image_check_step(&update->check, (uint32_t)WORDS_PER_STEP)) {
        return false;
    }
    update->checking = false;
    if (update->check.error == WEIR_IMAGE_ERROR_NONE) {
        update->state = WEIR_UPDATE_STATE_READY;
        record->next = update->slot;
        boot_record_store(record);
    } else {
        update->state = WEIR_UPDATE_STATE_NONE;
        ram_write32(image_slot_base(update->slot), 0);
    }
    return true;
}
