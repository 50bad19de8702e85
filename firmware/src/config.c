#include "config.h"

#include "clocks.h"

static const struct weir_key_row rows[WEIR_KEYS + 1u] = WEIR_KEY_TABLE;

enum {
    SEED_WORDS = 13,
    SERVICES = 7,
    SKETCH_SEED_WORDS = 6
};

static_assert((uint32_t)WEIR_KEY_SEED_0 + (uint32_t)SEED_WORDS == (uint32_t)WEIR_KEY_STATISTICS_ENABLE,
              "a key for each word");
static_assert((uint32_t)WEIR_KEY_SERVICE_0 + (uint32_t)SERVICES == (uint32_t)WEIR_KEY_SKETCH_SEED_0,
              "a key for each service");
static_assert((uint32_t)WEIR_KEY_SKETCH_SEED_0 + (uint32_t)SKETCH_SEED_WORDS == WEIR_KEYS + 1u,
              "seed words of the sketch are the last keys");

// The inline path waits for four beats before it is in bypass: one that is late is no reason.
static uint32_t longest_beat_us(void)
{
    const uint64_t us = ((uint64_t)reg_read32(WEIR_REG_INFO_HEARTBEAT_CLOCKS) * 250u) / clocks_khz();
    const struct weir_key_row *row = &rows[WEIR_KEY_BEAT_US];
    if (us > row->maximum) {
        return row->maximum;
    }
    return (us < row->minimum) ? row->minimum : (uint32_t)us;
}

void config_init(struct config *config)
{
    for (uint32_t key = 0; key <= WEIR_KEYS; key++) {
        config->values[key] = rows[key].initial;
    }
    const uint32_t longest = longest_beat_us();
    if (config->values[WEIR_KEY_BEAT_US] > longest) {
        config->values[WEIR_KEY_BEAT_US] = longest;
    }
}

static enum weir_status check(uint32_t key, uint32_t value, bool stopped)
{
    if ((key == 0u) || (key > WEIR_KEYS) || (value < rows[key].minimum) || (value > rows[key].maximum)) {
        return WEIR_STATUS_BAD_ARGUMENT;
    }
    if ((key == (uint32_t)WEIR_KEY_BEAT_US) && (value > longest_beat_us())) {
        return WEIR_STATUS_BAD_ARGUMENT;
    }
    // The reference's edges are whole fractions of a second.
    if ((key == (uint32_t)WEIR_KEY_SERVO_PERIOD_US) && ((1000000u % value) != 0u)) {
        return WEIR_STATUS_BAD_ARGUMENT;
    }
    if ((key == (uint32_t)WEIR_KEY_SERVO_GATE_NS) && (value != 0u) && (value < WEIR_SERVO_GATE_LEAST_NS)) {
        return WEIR_STATUS_BAD_ARGUMENT;
    }
    return (stopped || (rows[key].live != 0u)) ? WEIR_STATUS_OK : WEIR_STATUS_BAD_STATE;
}

// What a key is after these pairs; the last one counts.
static uint32_t value_after(const struct config *config, const uint32_t *words, uint32_t pairs, uint32_t key)
{
    uint32_t value = config->values[key];
    for (uint32_t i = 0; i < pairs; i++) {
        value = (words[2u * i] == key) ? words[(2u * i) + 1u] : value;
    }
    return value;
}

enum weir_status config_set(struct config *config, const uint32_t *words, uint32_t pairs, bool stopped,
                            uint32_t *detail)
{
    for (uint32_t i = 0; i < pairs; i++) {
        const enum weir_status status = check(words[2u * i], words[(2u * i) + 1u], stopped);
        if (status != WEIR_STATUS_OK) {
            *detail = words[2u * i];
            return status;
        }
    }
    // A quarter of the period in ns: with a wider gate, any edge would be as good as one of the reference.
    const uint32_t widest_ns = value_after(config, words, pairs, (uint32_t)WEIR_KEY_SERVO_PERIOD_US) * 250u;
    if (value_after(config, words, pairs, (uint32_t)WEIR_KEY_SERVO_GATE_NS) > widest_ns) {
        *detail = (uint32_t)WEIR_KEY_SERVO_GATE_NS;
        return WEIR_STATUS_BAD_ARGUMENT;
    }
    for (uint32_t i = 0; i < pairs; i++) {
        config->values[words[2u * i]] = words[(2u * i) + 1u];
    }
    return WEIR_STATUS_OK;
}

static bool keep(uint32_t address, uint32_t value, uint32_t *failed)
{
    reg_write32(address, value);
    if (reg_read32(address) != value) {
        *failed = address;
        return false;
    }
    return true;
}

static bool keep_ms(uint32_t low_address, uint32_t ms, uint32_t *failed)
{
    const uint64_t ns = (uint64_t)ms * 1000000u;
    return keep(low_address, (uint32_t)ns, failed) && keep(low_address + 4u, (uint32_t)(ns >> 32u), failed);
}

static bool keep_statistics(const uint32_t *v, uint32_t *address)
{
    // A secret, too.
    for (uint32_t i = 0; i < (uint32_t)SKETCH_SEED_WORDS; i++) {
        reg_write32(WEIR_REG_STATISTICS_SEED(i), v[(uint32_t)WEIR_KEY_SKETCH_SEED_0 + i]);
    }
    for (uint32_t i = 0; i < (uint32_t)SERVICES; i++) {
        if (!keep(WEIR_REG_STATISTICS_SERVICE(i), v[(uint32_t)WEIR_KEY_SERVICE_0 + i], address)) {
            return false;
        }
    }
    return keep(WEIR_REG_STATISTICS_BURST_BYTES(0u), v[WEIR_KEY_BURST_BYTES_0], address) &&
           keep(WEIR_REG_STATISTICS_BURST_BYTES(1u), v[WEIR_KEY_BURST_BYTES_1], address) &&
           keep(WEIR_REG_STATISTICS_CONTROL, v[WEIR_KEY_STATISTICS_ENABLE], address);
}

bool config_apply_measure(const struct config *config, uint32_t *address)
{
    const uint32_t *v = config->values;
    const uint32_t control = ((v[WEIR_KEY_VLAN_IN_KEY] << WEIR_REG_MEASURE_CONTROL_VLAN_IN_KEY_SHIFT) |
                              (v[WEIR_KEY_SHED_ENABLE] << WEIR_REG_MEASURE_CONTROL_SHED_ENABLE_SHIFT) |
                              (v[WEIR_KEY_LANE] << WEIR_REG_MEASURE_CONTROL_LANE_SHIFT) |
                              (v[WEIR_KEY_EPOCH] << WEIR_REG_MEASURE_CONTROL_EPOCH_SHIFT));
    // The seed is secret: nobody can read it back.
    for (uint32_t i = 0; i < (uint32_t)SEED_WORDS; i++) {
        reg_write32(WEIR_REG_MEASURE_SEED(i), v[(uint32_t)WEIR_KEY_SEED_0 + i]);
    }
    const uint32_t digest = (v[WEIR_KEY_DIGEST_MODE] << WEIR_REG_DIGEST_CONTROL_MODE_SHIFT) |
                            (v[WEIR_KEY_SLICES_ENABLE] << WEIR_REG_DIGEST_CONTROL_SLICES_ENABLE_SHIFT);
    return keep(WEIR_REG_MEASURE_CONTROL, control, address) &&
           keep_ms(WEIR_REG_MEASURE_HANDSHAKE_LOW, v[WEIR_KEY_HANDSHAKE_TIMEOUT_MS], address) &&
           keep_ms(WEIR_REG_MEASURE_IDLE_LOW, v[WEIR_KEY_IDLE_TIMEOUT_MS], address) &&
           keep_ms(WEIR_REG_MEASURE_LINGER_LOW, v[WEIR_KEY_LINGER_MS], address) &&
           keep_ms(WEIR_REG_MEASURE_OTHER_LOW, v[WEIR_KEY_OTHER_TIMEOUT_MS], address) &&
           keep(WEIR_REG_RECORD_DESTINATION_HIGH, v[WEIR_KEY_DESTINATION_MAC_HIGH], address) &&
           keep(WEIR_REG_RECORD_DESTINATION_LOW, v[WEIR_KEY_DESTINATION_MAC_LOW], address) &&
           keep(WEIR_REG_RECORD_SOURCE_HIGH, v[WEIR_KEY_SOURCE_MAC_HIGH], address) &&
           keep(WEIR_REG_RECORD_SOURCE_LOW, v[WEIR_KEY_SOURCE_MAC_LOW], address) &&
           keep(WEIR_REG_PORT_TIME_OFFSET(0u), v[WEIR_KEY_PORT_OFFSET_0], address) &&
           keep(WEIR_REG_PORT_TIME_OFFSET(1u), v[WEIR_KEY_PORT_OFFSET_1], address) &&
           keep_ms(WEIR_REG_DIGEST_TRIGGER_NS_LOW, v[WEIR_KEY_TRIGGER_MS], address) &&
           keep(WEIR_REG_DIGEST_TRIGGER_PACKETS, v[WEIR_KEY_TRIGGER_PACKETS], address) &&
           keep(WEIR_REG_DIGEST_CONTROL, digest, address) && keep_statistics(v, address);
}

void config_apply_live(const struct config *config, bool open)
{
    const uint32_t enable = open ? config->values[WEIR_KEY_INLINE_ENABLE] : 0u;
    reg_write32(WEIR_REG_INLINE_CONTROL, enable << WEIR_REG_INLINE_CONTROL_ENABLE_SHIFT);
}
