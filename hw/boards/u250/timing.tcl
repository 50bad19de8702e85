# Clocks at the ports of weir_u250, and ports without timing (match.tcl first). Those of cages and card come with their IP.

create_clock -name pcie_refclk -period 10.000 [match ports pcie_refclk_p]

set_false_path -from [match ports pcie_perst_n]
set_false_path -from [match ports {qsfp_modprsl\[.*\]}]
set_false_path -from [match ports {qsfp_intl\[.*\]}]
set_false_path -to [match ports {qsfp_resetl\[.*\]}]
set_false_path -to [match ports {qsfp_lpmode\[.*\]}]
set_false_path -to [match ports {qsfp_modsell\[.*\]}]
set_false_path -to [match ports {led\[.*\]}]
