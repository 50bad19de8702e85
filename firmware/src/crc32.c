#include "crc32.h"

static const uint32_t table[16] = {
    0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u, 0x4DB26158u, 0x5005713Cu,
    0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu, 0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu,
};

uint32_t crc32_begin(void) { return 0xFFFFFFFFu; }

uint32_t crc32_word(uint32_t crc, uint32_t word)
{
    uint32_t rest = crc ^ word;
    for (uint32_t i = 0; i < 8u; i++) {
        rest = (rest >> 4u) ^ table[rest & 15u];
    }
    return rest;
}

uint32_t crc32_end(uint32_t crc) { return ~crc; }

uint32_t crc32_words(const uint32_t *words, uint32_t count)
{
    uint32_t crc = crc32_begin();
    for (uint32_t i = 0; i < count; i++) {
        crc = crc32_word(crc, words[i]);
    }
    return crc32_end(crc);
}
