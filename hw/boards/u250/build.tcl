# Bitstream of weir_u250, from the repository's root:
#
#   make firmware
#   VEXRISCV=<VexRiscv.v> KERNELS=<folder that run_hls.tcl ran in> vivado -mode batch -source hw/boards/u250/build.tcl
#
# Everything goes into build/u250. Needs a licence for cmac_usplus (free of charge).

set root [file normalize [file join [file dirname [info script]] .. .. ..]]
set out [file join $root build u250]
set ip_folder [file join $out ip]
file mkdir $ip_folder

proc needed {what file} {
    if {![file isfile $file]} { error "$what is not there: $file" }
    return $file
}

set rom [needed "the boot ROM (make firmware)" [file join $root build firmware boot.hex]]
if {![info exists env(VEXRISCV)]} { error "VEXRISCV must name VexRiscv.v (docs/src/bring-up.md)" }
if {![info exists env(KERNELS)]} { error "KERNELS must name the folder in which hw/hls/run_hls.tcl ran (docs/src/bring-up.md)" }
set cpu [needed "the CPU" $env(VEXRISCV)]

create_project -in_memory -part xcu250-figd2104-2L-e
set_property board_part xilinx.com:au250:part0:1.3 [current_project]
source [file join $root hw boards u250 ip.tcl]

# hw/weir.core has the card's sources, packages first.
set core [open [needed "the list of sources" [file join $root hw weir.core]]]
foreach {line source} [regexp -all -inline -line {^ +- (rtl/\S+\.sv)$} [read $core]] {
    lappend sources [needed "a source of hw/weir.core" [file join $root hw $source]]
}
close $core
lappend sources [needed "the kernels' wrapper" [file join $root hw hls weir_kernels.sv]]

# What Vitis HLS made of hw/hls: hw/hls/run_hls.tcl, run for each kernel.
foreach kernel {bursts histograms talkers} {
    set made [file join $env(KERNELS) $kernel solution impl ip]
    needed "the kernel $kernel (hw/hls/run_hls.tcl)" [file join $made component.xml]
    set_property ip_repo_paths [concat [get_property ip_repo_paths [current_project]] $made] [current_project]
    update_ip_catalog
    cell weir_kernel_$kernel weir_kernel_$kernel {} weir hls
}
lappend sources {*}[glob [file join $root hw boards common *_pkg.sv]]
foreach folder {common u250} {
    foreach source [lsort [glob [file join $root hw boards $folder *.sv]]] {
        if {$source ni $sources} { lappend sources $source }
    }
}
read_verilog $cpu
read_verilog -sv $sources

synth_design -top weir_u250 -generic "RomFile=\"$rom\"" -flatten_hierarchy rebuilt
foreach constraints {common/match.tcl u250/pins.tcl u250/timing.tcl common/crossings.tcl} {
    source [file join $root hw boards $constraints]
}

opt_design
place_design
phys_opt_design
route_design
write_checkpoint -force [file join $out weir_u250.dcp]
report_utilization -hierarchical -file [file join $out utilization.rpt]
report_timing_summary -file [file join $out timing.rpt]
report_cdc -details -file [file join $out cdc.rpt]

foreach {kind option} {setup -setup hold -hold} {
    set slack [get_property SLACK [get_timing_paths $option]]
    if {$slack < 0} { error "the worst $kind slack is $slack ns: see $out/timing.rpt" }
}
write_bitstream -force [file join $out weir_u250.bit]
write_cfgmem -force -format mcs -size 128 -interface SPIx4 -loadbit "up 0x01002000 [file join $out weir_u250.bit]" \
    [file join $out weir_u250.mcs]
