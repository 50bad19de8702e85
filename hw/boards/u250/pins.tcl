# Where the ports of weir_u250 are on an Alveo U250 (its board file and user guide, UG1289; match.tcl first). The lanes of
# transceivers are placed by their IP.

proc pins {properties places} {
    foreach {port pin} $places {
        set_property -dict [concat [list PACKAGE_PIN $pin] $properties] [match ports $port]
    }
}

# 300 MHz of the board.
pins {IOSTANDARD LVDS} {sysclk_p AY37 sysclk_n AY38}

# Reference clocks of the transceivers: 156.25 MHz for the cages (Si570, its default), 100 MHz from the slot.
pins {} {
    {qsfp_refclk_p\[0\]} M11 {qsfp_refclk_n\[0\]} M10
    {qsfp_refclk_p\[1\]} T11 {qsfp_refclk_n\[1\]} T10
    pcie_refclk_p AM11 pcie_refclk_n AM10
}

pins {IOSTANDARD LVCMOS12} {pcie_perst_n BD21}

pins {IOSTANDARD LVCMOS12 DRIVE 8 SLEW SLOW} {
    {qsfp_resetl\[0\]} BE17 {qsfp_lpmode\[0\]} BD18 {qsfp_modsell\[0\]} BE16
    {qsfp_resetl\[1\]} BC18 {qsfp_lpmode\[1\]} AV22 {qsfp_modsell\[1\]} AY20
    {led\[0\]} BC21 {led\[1\]} BB21 {led\[2\]} BA20
}
pins {IOSTANDARD LVCMOS12 PULLUP true} {
    {qsfp_modprsl\[0\]} BE20 {qsfp_intl\[0\]} BE21
    {qsfp_modprsl\[1\]} BC19 {qsfp_intl\[1\]} AV21
}

# Configuration memory: quad SPI.
set_property -dict {
    CONFIG_VOLTAGE 1.8
    CONFIG_MODE SPIx4
    BITSTREAM.CONFIG.SPI_BUSWIDTH 4
    BITSTREAM.CONFIG.SPI_32BIT_ADDR YES
    BITSTREAM.CONFIG.SPI_FALL_EDGE YES
    BITSTREAM.CONFIG.EXTMASTERCCLK_EN DISABLE
    BITSTREAM.CONFIG.CONFIGRATE 63.8
    BITSTREAM.CONFIG.CONFIGFALLBACK ENABLE
    BITSTREAM.CONFIG.UNUSEDPIN PULLUP
    BITSTREAM.GENERAL.COMPRESS TRUE
} [current_design]
# Watts that the board can feed.
set_operating_conditions -design_power_budget 160
