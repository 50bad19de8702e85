# Stands in for the vendor's tool: tclsh vitis_hls.tcl SCRIPT ARGUMENT... runs the script that makes a kernel's IP. What it
# asks for is printed, a command and its arguments on a line.

foreach command {
    open_project set_top add_files open_solution set_part create_clock set_clock_uncertainty config_rtl config_interface
    csim_design cosim_design export_design
} {
    proc $command {args} [format {puts [list %s {*}$args]} $command]
}

# The report that the script looks at.
proc csynth_design {} {
    set folder [file join $::kernel solution syn report]
    file mkdir $folder
    set report [open [file join $folder csynth.xml] w]
    puts $report {<PipelineInitiationInterval>1</PipelineInitiationInterval>}
    close $report
}

set argv [lassign $argv script]
source $script
