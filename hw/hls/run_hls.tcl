# C simulation, synthesis and co-simulation of one kernel with the vendor's tool (Vitis HLS 2022.2 or later):
#
#   cd build/hls && vitis_hls -f ../../hw/hls/run_hls.tcl -tclargs bursts xcu250-figd2104-2L-e      (histograms, talkers)
#
# The vectors are those of the open C simulation (make hls-test). The IP is left in <kernel>/solution/impl/ip; it takes the
# place of hw/hls/dpi/weir_kernel_<kernel>.sv.

set hls [file dirname [file normalize [info script]]]
set period_ns 3.333

lassign [lrange $argv end-1 end] kernel part
if {$kernel ni {bursts histograms talkers} || ![regexp {^xc} $part]} {
    puts stderr "a kernel (bursts, histograms or talkers) and the part of the board, as its build.tcl has it"
    exit 2
}

set flags "-std=c++17 -I$hls -I$hls/include"
open_project -reset $kernel
set_top weir_kernel_$kernel
add_files $hls/weir_kernel_$kernel.cpp -cflags $flags
foreach file [list tb_$kernel.cpp vectors.cpp checks.cpp] {
    add_files -tb $hls/test/$file -cflags "$flags -I$hls/test -Wno-unknown-pragmas"
}

open_solution -reset solution -flow_target vivado
set_part $part
create_clock -period $period_ns
set_clock_uncertainty 12%
# Of the kernel's state, what it names itself (RESET pragma): with that, it clears its memories after reset.
config_rtl -reset control -reset_level low
config_interface -register_io off

csim_design -argv $hls/vectors/demo.pcap
csynth_design
cosim_design -argv $hls/vectors/demo.pcap
export_design -format ip_catalog -vendor weir -library hls -version 0.1.0

# What csim and cosim do not refuse: a kernel that does not take a word in each clock is no use.
set report [open $kernel/solution/syn/report/csynth.xml]
set text [read $report]
close $report
if {![regexp {<PipelineInitiationInterval>1<|<Interval-min>1<} $text]} {
    puts stderr "$kernel: the initiation interval is not 1"
    exit 1
}
exit
