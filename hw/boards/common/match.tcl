# Objects of the netlist by a regular expression over their whole names: a name that changed is an error, not a constraint
# that silently applies to nothing.

proc match {kind pattern} {
    switch $kind {
        cells { set found [get_cells -quiet -hierarchical -regexp -filter "NAME =~ $pattern"] }
        ports { set found [get_ports -quiet -regexp $pattern] }
        clocks { set found [get_clocks -quiet -regexp $pattern] }
        default { error "match: no objects of kind $kind" }
    }
    if {[llength $found] == 0} {
        error "no $kind match $pattern: [info script] is out of step with the design"
    }
    return $found
}
