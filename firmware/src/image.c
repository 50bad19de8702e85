#include "image.h"

#include "crc32.h"

uint32_t image_slot_base(uint32_t slot) { return (slot == 0u) ? WEIR_SLOT_A_BASE : WEIR_SLOT_B_BASE; }

static enum weir_image_error check_header(const struct weir_image_header *header, uint32_t header_crc,
                                          uint32_t card_abi)
{
    if (header->magic != WEIR_IMAGE_MAGIC) {
        return WEIR_IMAGE_ERROR_MAGIC;
    }
    if (header->header_crc != header_crc) {
        return WEIR_IMAGE_ERROR_HEADER_CRC;
    }
    if ((header->length == 0u) || ((header->length & 3u) != 0u) ||
        (header->length > (WEIR_IMAGE_MAX_BYTES - WEIR_IMAGE_HEADER_BYTES))) {
        return WEIR_IMAGE_ERROR_LENGTH;
    }
    // The body is never longer than the execution area: see the static_assert below.
    if ((header->load_address != WEIR_EXECUTION_BASE) || (header->entry < WEIR_EXECUTION_BASE) ||
        ((header->entry & 3u) != 0u) || ((header->entry - WEIR_EXECUTION_BASE) >= header->length)) {
        return WEIR_IMAGE_ERROR_ADDRESS;
    }
    if (((header->abi >> 16u) != (card_abi >> 16u)) || ((header->abi & 0xFFFFu) > (card_abi & 0xFFFFu))) {
        return WEIR_IMAGE_ERROR_ABI;
    }
    return WEIR_IMAGE_ERROR_NONE;
}

static_assert(WEIR_IMAGE_MAX_BYTES <= WEIR_EXECUTION_BYTES, "a body fits into the execution area");

void image_check_begin(struct image_check *check, uint32_t base, uint32_t card_abi)
{
    uint32_t words[WEIR_IMAGE_HEADER_WORDS];
    for (uint32_t i = 0; i < WEIR_IMAGE_HEADER_WORDS; i++) {
        words[i] = ram_read32(base + (4u * i));
    }
    check->header = (struct weir_image_header){
        .magic = words[0],
        .version = words[1],
        .length = words[2],
        .load_address = words[3],
        .entry = words[4],
        .abi = words[5],
        .body_crc = words[6],
        .header_crc = words[7],
    };
    check->base = base;
    check->position = 0;
    check->crc = crc32_begin();
    check->error = check_header(&check->header, crc32_words(words, WEIR_IMAGE_HEADER_WORDS - 1u), card_abi);
    check->done = check->error != WEIR_IMAGE_ERROR_NONE;
}

bool image_check_step(struct image_check *check, uint32_t words)
{
    for (uint32_t i = 0; (i < words) && !check->done; i++) {
        check->crc = crc32_word(check->crc, ram_read32(check->base + WEIR_IMAGE_HEADER_BYTES + check->position));
        check->position += 4u;
        if (check->position >= check->header.length) {
            check->done = true;
            if (crc32_end(check->crc) != check->header.body_crc) {
                check->error = WEIR_IMAGE_ERROR_BODY_CRC;
            }
        }
    }
    return check->done;
}
