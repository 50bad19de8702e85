//! A capture file replayed through DPDK: every frame with its length, bytes and microsecond time.
#![allow(clippy::unwrap_used)]

mod common;

use weir_dpdk::{Burst, Device, Eal, EalConfig, ErrorKind, Port, PortConfig};

#[test]
fn every_frame_comes_out() {
    let frames = common::generated_frames(3000);
    // A comma and brackets: DPDK's own settings could not hold this name.
    let path = common::scratch("a,b[1].pcap");
    common::write_pcap(&path, &frames);

    let eal = Eal::init(&EalConfig::default()).unwrap();
    assert_eq!(
        Eal::init(&EalConfig::default()).unwrap_err().kind(),
        ErrorKind::AlreadyStarted
    );

    // Twice: a closed file can be opened again.
    for _ in 0..2 {
        let port = Port::open(&eal, &Device::Pcap(path.clone()), &PortConfig::default()).unwrap();
        assert_eq!(port.driver(), "net_pcap");
        let mut burst = Burst::new();
        let mut scratch = Vec::new();
        let mut segmented = 0;
        let mut got = Vec::new();
        let mut empty = 0;
        while empty < 10 {
            if port.rx_burst(&mut burst) == 0 {
                empty += 1;
            }
            for frame in burst.iter() {
                segmented += usize::from(frame.segment_count() > 1);
                let data = frame.contiguous(&mut scratch).to_vec();
                assert_eq!(data.len(), frame.length() as usize);
                got.push((frame.driver_time_ns().unwrap(), data));
            }
        }
        assert_eq!(got.len(), frames.len());
        for ((time_ns, data), (time_us, expected)) in got.iter().zip(&frames) {
            assert_eq!(*time_ns, time_us * 1000);
            assert_eq!(data, expected);
        }
        assert!(segmented > 2000, "large frames come in segments: {segmented}");
        let stats = port.stats();
        assert_eq!(stats.received, 3000);
        assert!(
            stats.drops_known && stats.missed == 0 && stats.no_buffer == 0,
            "{stats:?}"
        );
        burst.clear();
        assert_eq!(port.pool().available(), port.pool().buffers());
    }
    std::fs::remove_file(path).unwrap();
}
