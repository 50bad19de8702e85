//! The receive loop on capture files: it ends at the known number of frames, when nothing comes any more, when told to
//! stop, and when the sink fails.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_dpdk::{
    Device, Eal, EalConfig, ErrorKind, FrameSink, LoopConfig, Port, PortConfig, Progress, Until, inline, receive,
};

struct Collect<'a> {
    frames: Vec<(u8, u64, Vec<u8>)>,
    stop_at: Option<(usize, &'a AtomicBool)>,
    panic_at: Option<usize>,
    idle: u64,
}

impl FrameSink for Collect<'_> {
    fn frame(&mut self, port: u8, time_utc_ns: u64, data: &[u8], wire_len: Option<u32>) {
        assert_eq!(wire_len.map(|length| length as usize), Some(data.len()));
        self.frames.push((port, time_utc_ns, data.to_vec()));
        if let Some((_, stop)) = self.stop_at.filter(|(count, _)| *count == self.frames.len()) {
            stop.store(true, Ordering::Relaxed);
        }
        assert_ne!(self.panic_at, Some(self.frames.len()), "failing as the test asks");
    }

    fn idle(&mut self, _now_utc_ns: u64) {
        self.idle += 1;
    }
}

fn collect() -> Collect<'static> {
    Collect {
        frames: Vec::new(),
        stop_at: None,
        panic_at: None,
        idle: 0,
    }
}

#[test]
fn files_are_received_to_their_end() {
    let (first, second) = (common::generated_frames(500), common::generated_frames(200));
    let paths = [common::scratch("first.pcap"), common::scratch("second.pcap")];
    common::write_pcap(&paths[0], &first);
    common::write_pcap(&paths[1], &second);
    let eal = Eal::init(&EalConfig {
        memory_mib: 256,
        ..EalConfig::default()
    })
    .unwrap();
    let config = PortConfig {
        buffers: Some(4096),
        ..PortConfig::default()
    };
    let open = |path: &std::path::PathBuf| Port::open(&eal, &Device::Pcap(path.clone()), &config).unwrap();
    let go = AtomicBool::new(false);
    let progress = Progress::default();

    // A known number of frames, over two ports.
    let until = LoopConfig {
        cpu: Some(0),
        until: Until {
            frames: Some(700),
            quiet: None,
        },
    };
    let mut sink = collect();
    receive(
        &mut [open(&paths[0]), open(&paths[1])],
        &until,
        &mut sink,
        &go,
        &progress,
    )
    .unwrap();
    for (port, frames) in [(0, &first), (1, &second)] {
        let got: Vec<_> = sink
            .frames
            .iter()
            .filter(|frame| frame.0 == port)
            .map(|(_, time, data)| (time / 1000, data.clone()))
            .collect();
        assert!(got == *frames, "port {port} gives its file");
        let report = progress.reports()[usize::from(port)];
        assert_eq!(
            (report.received, report.measured),
            (frames.len() as u64, frames.len() as u64)
        );
        assert_eq!(report.device.received, report.received);
    }
    assert_eq!(sink.idle, 0, "a replay has no now");

    // Nothing more comes.
    let until = LoopConfig {
        cpu: None,
        until: Until {
            frames: None,
            quiet: Some(Duration::from_millis(200)),
        },
    };
    let mut sink = collect();
    let begin = Instant::now();
    receive(&mut [open(&paths[0])], &until, &mut sink, &go, &progress).unwrap();
    assert_eq!(sink.frames.len(), 500);
    assert!(begin.elapsed() < Duration::from_secs(5));

    // The stop flag.
    let stop = AtomicBool::new(false);
    let mut sink = Collect {
        stop_at: Some((100, &stop)),
        ..collect()
    };
    receive(
        &mut [open(&paths[0])],
        &LoopConfig::default(),
        &mut sink,
        &stop,
        &progress,
    )
    .unwrap();
    assert!((100..500).contains(&sink.frames.len()));

    // A sink that fails.
    let mut sink = Collect {
        panic_at: Some(50),
        ..collect()
    };
    let failed = receive(&mut [open(&paths[0])], &until, &mut sink, &go, &progress).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Measuring);
    let report = progress.reports()[0];
    assert_eq!(report.received, report.measured + report.unmeasured);
    assert!(progress.sink_failed());

    // What cannot be run is said.
    let refuse = |result: weir_dpdk::Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::Argument);
    refuse(receive(&mut [], &until, &mut collect(), &go, &progress));
    let no_cpu = LoopConfig {
        cpu: Some(100_000),
        ..until
    };
    refuse(receive(&mut [open(&paths[0])], &no_cpu, &mut collect(), &go, &progress));
    refuse(inline(
        &mut [open(&paths[0]), open(&paths[1])],
        &until,
        &mut collect(),
        &go,
        &progress,
    ));

    for path in paths {
        std::fs::remove_file(path).unwrap();
    }
}
