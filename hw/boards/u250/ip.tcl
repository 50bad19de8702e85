# The vendor's cells of weir_u250, made into the folder $ip_folder.

# properties: of the cell, without their CONFIG.
proc cell {name vendor_name properties {vendor xilinx.com} {library ip}} {
    global ip_folder
    create_ip -name $vendor_name -vendor $vendor -library $library -module_name $name -dir $ip_folder
    set settings {}
    foreach {property value} $properties {
        lappend settings CONFIG.$property $value
    }
    if {$settings ne {}} { set_property -dict $settings [get_ips $name] }
    generate_target all [get_ips $name]
    synth_ip [get_ips $name]
}

cell clk_wiz_0 clk_wiz {
    PRIM_SOURCE Differential_clock_capable_pin
    PRIM_IN_FREQ 300.000
    CLKOUT1_REQUESTED_OUT_FREQ 300.000
    CLKOUT2_USED true
    CLKOUT2_REQUESTED_OUT_FREQ 100.000
    USE_RESET false
    USE_LOCKED true
}

# The cage's MAC block and transceivers; the rest is the same for both. 9220: the longest frame with its check sequence.
foreach {name block group} {
    cmac_usplus_0 CMACE4_X0Y8 X1Y44~X1Y47
    cmac_usplus_1 CMACE4_X0Y7 X1Y40~X1Y43
} {
    cell $name cmac_usplus [list \
        CMAC_CAUI4_MODE 1 \
        NUM_LANES 4x25 \
        USER_INTERFACE AXIS \
        GT_REF_CLK_FREQ 156.25 \
        GT_DRP_CLK 100.00 \
        CMAC_CORE_SELECT $block \
        GT_GROUP_SELECT $group \
        ENABLE_AXI_INTERFACE 0 \
        INCLUDE_STATISTICS_COUNTERS 0 \
        INCLUDE_RS_FEC 1 \
        TX_FLOW_CONTROL 0 \
        RX_FLOW_CONTROL 0 \
        RX_MIN_PACKET_LEN 64 \
        RX_MAX_PACKET_LEN 9220 \
        ENABLE_PIPELINE_REG 1]
}

# One function, streams with completions, internal descriptors, BAR 2 for weir_board_registers.
cell qdma_0 qdma {
    mode_selection Advanced
    pl_link_cap_max_link_width X16
    pl_link_cap_max_link_speed 8.0_GT/s
    dma_intf_sel_qdma AXI_Stream_with_Completion
    en_axi_mm_qdma false
    dsc_byp_mode None
    tl_pf_enable_reg 1
    num_queues 512
    pf0_bar2_scale_qdma Kilobytes
    pf0_bar2_size_qdma 64
    pf0_class_code_qdma 028000
    PF0_MSIX_CAP_TABLE_SIZE_qdma 009
    xlnx_ref_board AU250
    PCIE_BOARD_INTERFACE pci_express_x16
    SYS_RST_N_BOARD_INTERFACE pcie_perstn
    dma_reset_source_sel Phy_Ready
}

# Check bits over the DMA's control word (PG302).
cell ecc_0 ecc {
    C_ECC_MODE Encoder
    C_DATA_WIDTH 57
    C_CHK_BIT_WIDTH 7
    C_REG_INPUT false
    C_REG_OUTPUT true
    C_USE_CLK_ENABLE true
}
