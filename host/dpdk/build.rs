//! Finds DPDK with pkg-config, generates the bindings and compiles the wrappers
//! of DPDK's inline functions (`rte_eth_rx_burst` and the like exist only in headers).

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

/// What to install, printed with every failure: the build needs nothing else.
const PACKAGES: &str = "install it with: apt-get install libdpdk-dev dpdk pkg-config libclang-dev gcc libpcap-dev";

/// Functions of DPDK in use; types follow from them.
const FUNCTIONS: &[&str] = &[
    "rte_eal_init",
    "rte_eal_cleanup",
    "rte_strerror",
    "rte_version",
    "rte_openlog_stream",
    "rte_dev_probe",
    "rte_dev_remove",
    "rte_thread_register",
    "rte_thread_unregister",
    "rte_mempool_create_empty",
    "rte_mempool_set_ops_byname",
    "rte_mempool_populate_default",
    "rte_mempool_obj_iter",
    "rte_mempool_free",
    "rte_pktmbuf_pool_init",
    "rte_pktmbuf_init",
    "rte_mempool_avail_count",
    "rte_pktmbuf_alloc",
    "rte_pktmbuf_free_bulk",
    "rte_pktmbuf_append",
    "rte_pktmbuf_refcnt_update",
    "rte_mbuf_dynfield_lookup",
    "rte_mbuf_dynflag_lookup",
    "rte_eth_dev_get_port_by_name",
    "rte_eth_dev_info_get",
    "rte_eth_dev_configure",
    "rte_eth_dev_adjust_nb_rx_tx_desc",
    "rte_eth_rx_queue_setup",
    "rte_eth_tx_queue_setup",
    "rte_eth_dev_start",
    "rte_eth_dev_stop",
    "rte_eth_dev_close",
    "rte_eth_promiscuous_enable",
    "rte_eth_stats_get",
    "rte_eth_stats_reset",
    "rte_eth_rx_burst",
    "rte_eth_tx_burst",
    "weir_rte_errno",
    "weir_socket_id_any",
];

/// Shared libraries of DPDK in use. Drivers are loaded by the EAL from the distribution's folder.
const LIBRARIES: &[&str] = &[
    "rte_eal",
    "rte_ethdev",
    "rte_mbuf",
    "rte_mempool",
    "rte_ring",
    "rte_kvargs",
];

fn fail(what: &str) -> ! {
    println!("cargo::error=weir-dpdk: {what}; {PACKAGES}");
    exit(1);
}

fn pkg_config(arguments: &[&str]) -> Vec<String> {
    let output = match Command::new("pkg-config").args(arguments).arg("libdpdk").output() {
        Ok(output) => output,
        Err(error) => fail(&format!("pkg-config cannot be run ({error})")),
    };
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        let first_line = reason.lines().next().unwrap_or("no reason given").to_owned();
        fail(&format!("DPDK was not found by pkg-config ({first_line})"));
    }
    String::from_utf8_lossy(&output.stdout)
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=csrc/weir_dpdk.h");
    println!("cargo::rerun-if-env-changed=PKG_CONFIG_PATH");

    let version = pkg_config(&["--modversion"]).concat();
    if !version.starts_with("22.11") {
        println!("cargo::warning=weir-dpdk is tested with DPDK 22.11, this is {version}");
    }
    // The raw flags matter: `-include rte_config.h -march=corei7` decide the
    // layout and the instructions of the inline functions.
    let flags = pkg_config(&["--cflags"]);
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let wrappers = out.join("wrappers.c");

    let mut builder = bindgen::Builder::default()
        .header("csrc/weir_dpdk.h")
        .clang_args(&flags)
        .opaque_type("rte_.*_hdr|rte_arp_ipv4")
        .blocklist_type("rte_l2tpv2_.*")
        .wrap_static_fns(true)
        .wrap_static_fns_path(&wrappers)
        .wrap_static_fns_suffix("_weir")
        .allowlist_var("RTE_PKTMBUF_HEADROOM|RTE_MEMPOOL_F_NO_SPREAD")
        .allowlist_type("rte_pktmbuf_pool_private")
        .prepend_enum_name(false)
        .layout_tests(false)
        .generate_comments(false);
    for function in FUNCTIONS {
        builder = builder.allowlist_function(format!("^{function}$"));
    }
    let bindings = match builder.generate() {
        Ok(bindings) => bindings,
        Err(error) => fail(&format!("the DPDK headers could not be read ({error})")),
    };
    if let Err(error) = bindings.write_to_file(out.join("bindings.rs")) {
        fail(&format!("bindings could not be written to {} ({error})", out.display()));
    }

    let mut compiler = cc::Build::new();
    compiler
        .file(&wrappers)
        .include(Path::new("."))
        .warnings(false)
        .opt_level(2);
    for flag in &flags {
        compiler.flag(flag);
    }
    if let Err(error) = compiler.try_compile("weir_dpdk_wrappers") {
        fail(&format!(
            "the wrappers of DPDK's inline functions did not compile ({error})"
        ));
    }

    for directory in pkg_config(&["--variable=libdir"]) {
        println!("cargo::rustc-link-search=native={directory}");
    }
    for library in LIBRARIES {
        println!("cargo::rustc-link-lib=dylib={library}");
    }
}
