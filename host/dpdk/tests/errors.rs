//! What cannot be opened gives an error that says so; the process lives on.
#![allow(clippy::unwrap_used)]

mod common;

use weir_dpdk::{Eal, EalConfig, ErrorKind, Mempool, Port, PortConfig};

#[test]
fn failures_are_errors() {
    let little = Eal::init(&EalConfig {
        memory_mib: 1,
        ..EalConfig::default()
    })
    .unwrap_err();
    assert_eq!(little.kind(), ErrorKind::Argument, "{little}");

    // A refused setting does not count as a start.
    let eal = Eal::init(&EalConfig {
        memory_mib: 128,
        ..EalConfig::default()
    })
    .unwrap();
    let again = Eal::init(&EalConfig::default()).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::AlreadyStarted, "{again}");
    assert!(Eal::version().starts_with("DPDK "), "{}", Eal::version());

    let no_capture = common::scratch("text.pcap");
    std::fs::write(&no_capture, "this is no capture file").unwrap();
    let empty = common::scratch("empty.pcap");
    std::fs::write(&empty, "").unwrap();
    let config = PortConfig {
        buffers: Some(1024),
        ..PortConfig::default()
    };
    let cases = [
        (
            "pcap:/nonexistent/file.pcap".to_owned(),
            ErrorKind::Device,
            "/nonexistent/file.pcap",
        ),
        ("pcap:/tmp".to_owned(), ErrorKind::Device, "not a regular file"),
        (format!("pcap:{}", no_capture.display()), ErrorKind::Device, "DPDK says"),
        (format!("pcap:{}", empty.display()), ErrorKind::Device, "DPDK says"),
        ("eth:nosuch0".to_owned(), ErrorKind::Device, "no such network interface"),
        ("xdp:nosuch0".to_owned(), ErrorKind::Device, "no such network interface"),
        ("net_unknown0".to_owned(), ErrorKind::Device, "net_unknown0"),
        ("0000:ff:1f.7".to_owned(), ErrorKind::Argument, "PCI"),
        ("net_af_packet0".to_owned(), ErrorKind::Device, "net_af_packet0"),
        ("net_pcap0,bad=1".to_owned(), ErrorKind::Device, "net_pcap0"),
    ];
    for (name, kind, text) in &cases {
        let error = Port::open(&eal, &name.parse().unwrap(), &config).unwrap_err();
        println!("{name}\n    {error}");
        assert_eq!(error.kind(), *kind, "{name}: {error}");
        assert!(error.to_string().contains(text), "{name}: {error}");
    }

    let ring = Port::open(&eal, &"net_ring1".parse().unwrap(), &config).unwrap();
    let twice = Port::open(&eal, &"net_ring1".parse().unwrap(), &config).unwrap_err();
    assert!(twice.to_string().contains("open already"), "{twice}");
    drop(ring);
    Port::open(&eal, &"net_ring1".parse().unwrap(), &config).unwrap();

    for (buffers, bytes) in [(10, 2048), (1024, 0), (1024, u16::MAX)] {
        let error = Mempool::new(&eal, buffers, bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
    }
    let huge = Mempool::new(&eal, 1_000_000, 9000).unwrap_err();
    println!("{huge}");
    assert_eq!(huge.kind(), ErrorKind::Memory, "{huge}");

    std::fs::remove_file(no_capture).unwrap();
    std::fs::remove_file(empty).unwrap();
}
