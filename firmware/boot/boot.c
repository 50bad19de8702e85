// Boot ROM: checks the images of both slots, chooses one, copies it to the execution area and starts it.
//
// It never waits: without a good image it says so in host.boot_stage and stays until the host resets the CPU. Nothing it
// does touches the inline path, which is in bypass without the firmware's heartbeat.
#include "boot_choice.h"

// A few more than a body has: the loop is bounded by `done`.
enum {
    ALL_WORDS = 8192
};

_Noreturn void boot_main(void);
_Noreturn void boot_jump(uint32_t entry);
_Noreturn void boot_trap(void);

static void stage(uint32_t value) { reg_write32(WEIR_REG_HOST_BOOT_STAGE, value); }

static void kick(void) { reg_write32(WEIR_REG_WATCHDOG_KICK, WEIR_REG_WATCHDOG_KICK_KEY); }

_Noreturn void boot_main(void)
{
    struct boot_record record;
    struct image_check checks[IMAGE_SLOTS];
    const bool loaded = reg_read32(WEIR_REG_HOST_BOOT_STAGE) == (uint32_t)WEIR_BOOT_STAGE_LOADED;
    // A damaged record is a fresh one: all images are unknown to it.
    stage(boot_record_load(&record) ? (uint32_t)WEIR_BOOT_STAGE_ROM : (uint32_t)WEIR_BOOT_STAGE_ROM_FRESH);
    for (uint32_t slot = 0; slot < (uint32_t)IMAGE_SLOTS; slot++) {
        image_check_begin(&checks[slot], image_slot_base(slot), reg_read32(WEIR_REG_INFO_ABI));
        if (!image_check_step(&checks[slot], (uint32_t)ALL_WORDS)) {
            checks[slot].error = WEIR_IMAGE_ERROR_LENGTH;
        }
        kick();
    }
    const bool good = boot_choose(&record, checks, loaded);
    boot_record_store(&record);
    if (!good) {
        stage((uint32_t)WEIR_BOOT_STAGE_NO_IMAGE | ((uint32_t)checks[0].error << 8u) |
              ((uint32_t)checks[1].error << 16u));
        for (;;) {
            kick();
        }
    }
    stage((uint32_t)WEIR_BOOT_STAGE_CHECKED);
    reg_write32(WEIR_REG_HOST_SLOT, record.slot);

    const struct image_check *image = &checks[record.slot];
    for (uint32_t i = 0; i < image->header.length; i += 4u) {
        ram_write32(image->header.load_address + i, ram_read32(image->base + WEIR_IMAGE_HEADER_BYTES + i));
    }
    stage((uint32_t)WEIR_BOOT_STAGE_COPIED);
    boot_jump(image->header.entry);
}

// Something in the card's memory or bus is broken: another try, from the start.
_Noreturn void boot_trap(void)
{
    for (;;) {
        reg_write32(WEIR_REG_SYSTEM_REQUEST, WEIR_REG_SYSTEM_REQUEST_CPU_RESTART_MASK);
    }
}
