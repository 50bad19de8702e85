// CRC-32 of Ethernet over the little-endian bytes of words.
//
//     uint32_t crc = crc32_begin();
//     crc = crc32_word(crc, word);    // for each word
//     crc = crc32_end(crc);
//
// A table of 256 entries, a step per byte: a boot looks at two images before anything runs.
#ifndef WEIR_CRC32_H
#define WEIR_CRC32_H

#include <stdint.h>

uint32_t crc32_begin(void);
uint32_t crc32_word(uint32_t crc, uint32_t word);
uint32_t crc32_end(uint32_t crc);

// Of `count` words at once.
uint32_t crc32_words(const uint32_t *words, uint32_t count);

#endif
