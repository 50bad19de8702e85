# Stands in for the vendor's tool: tclsh vivado.tcl SCRIPT... runs constraints or a build script against the names in the
# files that WEIR_CELLS and WEIR_PORTS name, one a line. What the scripts ask for and set is printed, a command and its
# arguments on a line.

proc lines {variable} {
    set file [open $::env($variable)]
    set names [split [string trim [read $file]] \n]
    close $file
    return $names
}

set cells [lines WEIR_CELLS]
set ports [lines WEIR_PORTS]

proc matching {names pattern} {
    lsearch -all -inline -regexp $names "^(?:$pattern)\$"
}

proc get_cells {args} {
    if {![regexp {^-quiet -hierarchical -regexp -filter \{NAME =~ (.*)\}$} $args -> pattern]} {
        error "get_cells: $args is not what match.tcl asks"
    }
    # As the interpreter sees it: without the list's quoting.
    regexp {^NAME =~ (.*)$} [lindex $args end] -> pattern
    set found [matching $::cells $pattern]
    puts [list matched cells $pattern [llength $found]]
    return $found
}

proc get_ports {args} {
    if {[lrange $args 0 1] ne {-quiet -regexp} || [llength $args] != 3} {
        error "get_ports: $args is not what match.tcl asks"
    }
    set found [matching $::ports [lindex $args 2]]
    puts [list matched ports [lindex $args 2] [llength $found]]
    return $found
}

proc all_clocks {} { return {all_clocks} }
proc current_design {} { return {design} }
proc current_project {} { return {project} }
proc get_ips {name} { return $name }
proc get_timing_paths {option} { return $option }
proc get_property {property of} { return 0.1 }

foreach command {
    set_property set_max_delay set_false_path create_clock set_operating_conditions create_project create_ip
    generate_target synth_ip update_ip_catalog read_verilog synth_design opt_design place_design phys_opt_design route_design
    write_checkpoint report_utilization report_timing_summary report_cdc write_bitstream write_cfgmem
} {
    proc $command {args} [format {
        foreach argument $args {
            if {$argument eq ""} { error "%1$s: an empty argument in $args" }
        }
        puts [list %1$s {*}$args]
    } $command]
}

foreach script $argv { source $script }
