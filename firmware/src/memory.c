// What the compiler may call for copies and clearing of structs.
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *restrict to, const void *restrict from, size_t count);
void *memset(void *to, int value, size_t count);

void *memcpy(void *restrict to, const void *restrict from, size_t count)
{
    uint8_t *target = to;
    const uint8_t *source = from;
    for (size_t i = 0; i < count; i++) {
        target[i] = source[i];
    }
    return to;
}

void *memset(void *to, int value, size_t count)
{
    uint8_t *target = to;
    for (size_t i = 0; i < count; i++) {
        target[i] = (uint8_t)value;
    }
    return to;
}
