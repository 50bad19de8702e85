#include "guard.h"

#include "clocks.h"

// Records that wait so long while none leaves do not wait for a frame to fill.
static const uint32_t stuck_ms = 20;

// Faults of the measuring side; the others say nothing about it.
static const uint32_t measuring_faults =
    WEIR_REG_FAULT_STATUS_TABLE_PARITY_MASK | WEIR_REG_FAULT_STATUS_RAM_PARITY_MASK;

void guard_init(struct guard *guard, uint32_t clock_khz)
{
    *guard = (struct guard){.khz = clock_khz, .unhealthy = WEIR_HEALTH_BIT_NOT_RUNNING};
    for (uint32_t port = 0; port < WEIR_REG_PORT_COUNT; port++) {
        guard->bypass_faults[port] = reg_read32(WEIR_REG_INLINE_PORT_FAULTS(port));
    }
}

void guard_start(struct guard *guard, uint64_t now)
{
    guard->host_seen = now;
    guard->out_moved = now;
    guard->healthy = 0;
    guard->held_ms = 0;
    guard->stuck = false;
    // A STOP may be less than a period ago.
    guard->beating = false;
    guard->unhealthy = WEIR_HEALTH_BIT_NOT_RUNNING;
}

static uint32_t look_at_host(struct guard *guard, const struct config *config, uint64_t now)
{
    const uint32_t count = reg_read32(WEIR_REG_HOST_HEARTBEAT);
    if (count != guard->host_count) {
        guard->host_count = count;
        guard->host_seen = now;
    }
    const uint64_t timeout = clocks_of_us(guard->khz, config->values[WEIR_KEY_HOST_TIMEOUT_US]);
    const bool lost = (config->values[WEIR_KEY_HOST_REQUIRED] != 0u) && ((now - guard->host_seen) > timeout);
    return lost ? WEIR_HEALTH_BIT_HOST_LOST : 0u;
}

static uint32_t look_at_records(struct guard *guard, uint32_t hardware, uint64_t now)
{
    const uint64_t out = reg_read64(WEIR_REG_RECORD_RECORDS_OUT_LOW);
    // Read behind it, so that records that arrive meanwhile look like waiting ones, not the other way round.
    const uint64_t in = reg_read64(WEIR_REG_RECORD_RECORDS_IN_LOW);
    if ((out != guard->records_out) || (in == out)) {
        guard->records_out = out;
        guard->out_moved = now;
        guard->stuck = false;
    }
    // The hardware tells once; it lasts until a record leaves.
    if (((hardware & WEIR_REG_FAULT_STATUS_STUCK_RECORDS_MASK) != 0u) ||
        ((now - guard->out_moved) > clocks_of_ms(guard->khz, stuck_ms))) {
        guard->stuck = true;
    }
    guard->held_ms = (uint32_t)((now - guard->out_moved) / guard->khz);
    return guard->stuck ? WEIR_HEALTH_BIT_RECORDS_STUCK : 0u;
}

static uint32_t look_at_bypass(struct guard *guard)
{
    uint32_t bits = 0;
    for (uint32_t port = 0; port < WEIR_REG_PORT_COUNT; port++) {
        const uint32_t faults = reg_read32(WEIR_REG_INLINE_PORT_FAULTS(port));
        if (faults != guard->bypass_faults[port]) {
            guard->bypass_faults[port] = faults;
            bits = WEIR_HEALTH_BIT_BYPASS_FAULT;
        }
    }
    return bits;
}

static uint32_t look(struct guard *guard, const struct config *config, bool running, uint32_t hardware, uint64_t now)
{
    uint32_t bits = look_at_host(guard, config, now) | look_at_bypass(guard);
    if (config->values[WEIR_KEY_INLINE_ENABLE] == 0u) {
        bits |= WEIR_HEALTH_BIT_DISABLED;
    }
    if ((hardware & measuring_faults) != 0u) {
        bits |= WEIR_HEALTH_BIT_HARDWARE;
    }
    if (!running) {
        return bits | WEIR_HEALTH_BIT_NOT_RUNNING;
    }
    bits |= look_at_records(guard, hardware, now);
    if ((reg_read32(WEIR_REG_SYSTEM_STATUS) & WEIR_REG_SYSTEM_STATUS_READY_MASK) == 0u) {
        bits |= WEIR_HEALTH_BIT_NOT_READY;
    }
    return bits;
}

void guard_beat(struct guard *guard, const struct config *config, bool running, uint64_t now,
                struct guard_report *report)
{
    const uint32_t hardware = reg_read32(WEIR_REG_FAULT_STATUS);
    if (hardware != 0u) {
        reg_write32(WEIR_REG_FAULT_STATUS, hardware);
    }
    uint32_t bits = look(guard, config, running, hardware, now);
    *report = (struct guard_report){.hardware = hardware, .fresh = bits & ~guard->unhealthy};
    // Nobody was told what was there before measuring began.
    if ((guard->unhealthy & WEIR_HEALTH_BIT_NOT_RUNNING) != 0u) {
        report->fresh = bits;
    }

    if (bits != 0u) {
        guard->healthy = 0;
        report->stopped = guard->beating;
        guard->bypasses += (guard->beating && running) ? 1u : 0u;
        guard->beating = false;
    } else if (guard->beating || (guard->healthy >= config->values[WEIR_KEY_HEALTHY_PERIODS])) {
        report->resumed = !guard->beating;
        guard->beating = true;
    } else {
        guard->healthy++;
        bits = WEIR_HEALTH_BIT_WAITING;
    }
    guard->unhealthy = bits;
    if (guard->beating) {
        reg_write32(WEIR_REG_INLINE_HEARTBEAT, WEIR_REG_INLINE_HEARTBEAT_BEAT_MASK);
    }
}
