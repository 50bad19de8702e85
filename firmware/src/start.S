// Start of the image and entry of traps.
    .option arch, +zicsr, +zifencei
    .section .start, "ax"
    .globl _start
_start:
    csrw mie, zero
    la t0, trap_entry
    csrw mtvec, t0
    la sp, stack_top
    // .data from behind the code, .bss to 0.
    la a0, data_start
    la a1, data_load
    la a2, data_end
1:  bgeu a0, a2, 2f
    lw t0, 0(a1)
    sw t0, 0(a0)
    addi a0, a0, 4
    addi a1, a1, 4
    j 1b
2:  la a0, bss_start
    la a2, bss_end
3:  bgeu a0, a2, 4f
    sw zero, 0(a0)
    addi a0, a0, 4
    j 3b
4:  j firmware_main

    // Nothing is trusted but the registers of the trap; nobody returns from it.
    .align 4
trap_entry:
    csrr a0, mcause
    csrr a1, mepc
    csrr a2, mtval
    la sp, trap_stack_top
    j firmware_trap
