#include "trap_note.h"

#include "crc32.h"

#define NOTE_MAGIC 0x50415254u // "TRAP"

enum {
    NOTE_WORDS = 4
};

static uint32_t address(uint32_t word) { return WEIR_KEPT_BASE + (uint32_t)KEPT_NOTE + (4u * word); }

void trap_note_write(uint32_t cause, uint32_t pc, uint32_t value)
{
    const uint32_t words[NOTE_WORDS] = {NOTE_MAGIC, cause, pc, value};
    for (uint32_t i = 0; i < (uint32_t)NOTE_WORDS; i++) {
        ram_write32(address(i), words[i]);
    }
    ram_write32(address((uint32_t)NOTE_WORDS), crc32_words(words, (uint32_t)NOTE_WORDS));
}

bool trap_note_take(uint32_t *cause, uint32_t *pc)
{
    uint32_t words[NOTE_WORDS];
    for (uint32_t i = 0; i < (uint32_t)NOTE_WORDS; i++) {
        words[i] = ram_read32(address(i));
    }
    const bool good = (words[0] == NOTE_MAGIC) &&
                      (ram_read32(address((uint32_t)NOTE_WORDS)) == crc32_words(words, (uint32_t)NOTE_WORDS));
    *cause = words[1];
    *pc = words[2];
    ram_write32(address(0), 0);
    return good;
}
