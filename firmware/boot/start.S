// Reset vector of the CPU.
    .option arch, +zicsr, +zifencei
    .section .start, "ax"
    .globl _start
_start:
    csrw mie, zero
    la t0, trap_entry
    csrw mtvec, t0
    la sp, stack_top
    j boot_main

    .align 4
trap_entry:
    la sp, stack_top
    j boot_trap

    // The image was written as data.
    .globl boot_jump
boot_jump:
    fence
    fence.i
    jr a0
