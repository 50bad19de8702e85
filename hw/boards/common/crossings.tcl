# What passes from one clock to another (source after synthesis; match.tcl first). Clocks stay related to each other on
# purpose: a path between two of them that is not named here is timed, and fails.

# A bound below the shortest period (3.1 ns) keeps the bits of a Gray code less than one change apart.
set bound 2.5

# Into the first register of each weir_sync.
set_max_delay -datapath_only -from [all_clocks] -to [match cells {.*/crossing_reg.*}] $bound

# Words of each weir_async_fifo, written long before they are read; block RAM has no such path.
set_max_delay -datapath_only -from [match cells {.*/async_memory_reg.*}] -to [match cells {.*/async_data_reg.*}] $bound
