//! A TCP transfer between two network namespaces passes through the inline loop, and the counts of the loop, the sink
//! and the kernel agree. Needs root; says so and passes otherwise.
#![allow(clippy::unwrap_used)]

mod common;

use std::net::UdpSocket;
use std::process::Command;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use weir_dpdk::{
    Burst, Device, Eal, EalConfig, ErrorKind, FrameSink, LoopConfig, Port, PortConfig, PortReport, Progress, Until,
    inline, receive,
};

/// Set in the child that runs inside the middle namespace.
const INSIDE: &str = "WEIR_TEST_INSIDE";

/// Bytes of the transfer.
const TRANSFER: usize = 20_000_000;

/// Three namespaces in a row; removed on drop.
struct Lab {
    tag: String,
}

impl Lab {
    fn new() -> Option<Self> {
        let lab = Self {
            tag: format!("wd{}", std::process::id() % 100_000),
        };
        for side in ["c", "m", "s"] {
            let space = lab.space(side);
            // In a plain chroot they are made and cannot be entered.
            if !quiet(&format!("ip netns add {space}")) || !quiet(&format!("ip netns exec {space} true")) {
                return None;
            }
        }
        for (end, address) in [("c", "10.99.0.1/24"), ("s", "10.99.0.2/24")] {
            let (middle, space) = (format!("{}m", lab.tag), format!("{}{end}", lab.tag));
            // No IPv6: the kernel's own announcements would be counted as traffic.
            sh(&format!(
                "ip netns exec {middle} sysctl -qw net.ipv6.conf.default.disable_ipv6=1"
            ));
            sh(&format!(
                "ip netns exec {space} sysctl -qw net.ipv6.conf.default.disable_ipv6=1"
            ));
            sh(&format!(
                "ip -n {middle} link add m{end} type veth peer name e0 netns {space}"
            ));
            sh(&format!("ip -n {space} addr add {address} dev e0"));
            // Frames on a veth carry no checksums unless the sender is told to fill them in,
            // and come in pieces of up to 64 KiB.
            sh(&format!("ip netns exec {space} ethtool -K e0 tx off"));
            sh(&format!("ip -n {space} link set e0 up"));
            sh(&format!("ip -n {middle} link set m{end} up"));
        }
        Some(lab)
    }

    fn space(&self, side: &str) -> String {
        format!("{}{side}", self.tag)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for side in ["c", "m", "s"] {
            quiet(&format!("ip netns del {}{side}", self.tag));
        }
    }
}

fn quiet(command: &str) -> bool {
    Command::new("sh")
        .arg("-c")
        .arg(format!("{command} 2>/dev/null >&2"))
        .status()
        .is_ok_and(|status| status.success())
}

fn sh(command: &str) {
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{command} >&2"))
        .status()
        .unwrap();
    assert!(status.success(), "{command}");
}

fn output(command: &str) -> String {
    let output = Command::new("sh").arg("-c").arg(command).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Ends the loop also when an assertion fails: the test would wait for it without end.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Counting {
    frames: [u64; 2],
    bytes: [u64; 2],
    last_time: u64,
    idle: u64,
    /// Panics at this many frames.
    fails_at: Option<u64>,
}

impl FrameSink for Counting {
    fn frame(&mut self, port: u8, time_utc_ns: u64, data: &[u8], wire_len: Option<u32>) {
        assert_eq!(Some(data.len()), wire_len.map(|length| length as usize));
        self.frames[usize::from(port)] += 1;
        self.bytes[usize::from(port)] += data.len() as u64;
        assert!(time_utc_ns >= self.last_time);
        self.last_time = time_utc_ns;
        assert!(
            self.fails_at.is_none_or(|limit| self.frames[0] < limit),
            "failing as the test asks"
        );
    }

    fn idle(&mut self, _now_utc_ns: u64) {
        self.idle += 1;
    }
}

#[test]
fn a_transfer_passes_and_every_count_agrees() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let programs = ["ip", "ethtool", "python3", "ping"]
        .iter()
        .find(|name| !quiet(&format!("command -v {name}")));
    if let Some(missing) = programs.filter(|&&name| name != "ping") {
        println!("skipped: {missing} is not installed");
        return;
    }
    let Some(lab) = Lab::new() else {
        println!("skipped: network namespaces cannot be made and used here");
        return;
    };
    let this = std::env::current_exe().unwrap();
    let status = Command::new("ip")
        .args(["netns", "exec", &lab.space("m")])
        .arg(this)
        .args(["--exact", "a_transfer_passes_and_every_count_agrees", "--nocapture"])
        .env(INSIDE, &lab.tag)
        .status()
        .unwrap();
    assert!(status.success());
}

/// Runs in the middle namespace.
fn inside() {
    let tag = std::env::var(INSIDE).unwrap();
    let eal = Eal::init(&EalConfig::default()).unwrap();
    for kind in ["eth", "xdp", "xdp"] {
        pass_traffic(&eal, &tag, kind, None);
    }
    // A fault in measuring never touches the traffic.
    pass_traffic(&eal, &tag, "eth", Some(1000));
    promiscuous(&eal);
    others(&eal);
    several_queues(&eal);
    oversize(&eal, &tag);
    lowered(&eal, &tag);
    refused_by_the_interface(&eal, &tag);
    losses(&eal, &tag);

    let missing = Port::open(&eal, &"eth:nosuch0".parse().unwrap(), &PortConfig::default()).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Device);
}

fn open(eal: &Eal, device: &str) -> Port {
    Port::open(eal, &device.parse::<Device>().unwrap(), &PortConfig::default()).unwrap()
}

fn kernel_count(interface: &str, counter: &str) -> u64 {
    output(&format!("cat /sys/class/net/{interface}/statistics/{counter}"))
        .parse()
        .unwrap()
}

fn pass_traffic(eal: &Eal, tag: &str, kind: &str, fails_at: Option<u64>) {
    let mut ports = [open(eal, &format!("{kind}:mc")), open(eal, &format!("{kind}:ms"))];
    assert!(ports[0].stats().drops_known, "the {kind} driver's sockets were found");
    let before = [kernel_count("mc", "rx_packets"), kernel_count("ms", "rx_packets")];
    let (stop, progress) = (AtomicBool::new(false), Progress::default());
    let mut sink = Counting {
        fails_at,
        ..Counting::default()
    };
    let loop_stop = &stop;
    let loop_progress = &progress;
    let counting = &mut sink;
    std::thread::scope(|scope| {
        let stop = StopOnDrop(&stop);
        let ports = &mut ports;
        let running = scope.spawn(move || inline(ports, &LoopConfig::default(), counting, loop_stop, loop_progress));
        transfer(tag);
        if quiet("command -v ping") {
            assert!(
                quiet(&format!("ip netns exec {tag}c ping -c 3 -i 0.05 -W 2 10.99.0.2")),
                "ping through {kind}"
            );
        }
        std::thread::sleep(Duration::from_millis(300));
        drop(stop);
        running.join().unwrap().unwrap();
    });
    let reports = progress.reports();
    let after = [kernel_count("mc", "rx_packets"), kernel_count("ms", "rx_packets")];
    println!("{kind}: {reports:#?}\nidle rounds {}", sink.idle);
    for (number, report) in reports.iter().enumerate() {
        assert_eq!(report.received, report.forwarded + report.forward_drops.total());
        assert_eq!(report.received, report.measured + report.unmeasured);
        assert_eq!(report.device.received, report.received);
        assert_eq!(report.probably_cut, 0);
        assert!(report.device.drops_known);
        assert_eq!(
            after[number] - before[number],
            report.received + report.device.missed,
            "{kind}: the kernel's count"
        );
        assert_eq!(reports[1 - number].device.sent, report.forwarded);
        if fails_at.is_none() {
            assert_eq!(sink.frames[number], report.forwarded);
            assert_eq!(sink.bytes[number], report.received_bytes);
        }
    }
    assert!(reports[0].received_bytes > TRANSFER as u64);
    assert_eq!(progress.sink_failed(), fails_at.is_some());
    if fails_at.is_some() {
        assert!(reports[0].unmeasured > 1000);
    }
}

/// Sends [`TRANSFER`] bytes from the client to the server; the server checks their number.
fn transfer(tag: &str) {
    let server = format!(
        "import socket\nl=socket.create_server(('10.99.0.2',5001))\nprint('ready',flush=True)\n\
         c,_=l.accept()\nc.settimeout(20)\nn=0\nwhile True:\n d=c.recv(65536)\n if not d: break\n n+=len(d)\n\
         c.sendall(b'got %d' % n)\nc.close()\nassert n=={TRANSFER}, n\n"
    );
    let client = format!(
        "import socket,time\nfor i in range(100):\n try:\n  s=socket.create_connection(('10.99.0.2',5001),timeout=20)\n  break\n \
         except ConnectionRefusedError: time.sleep(0.05)\ns.sendall(bytes({TRANSFER}))\ns.shutdown(socket.SHUT_WR)\n\
         assert s.recv(100)==b'got {TRANSFER}'\n"
    );
    let python = |side: &str, program: &str| {
        Command::new("ip")
            .args(["netns", "exec", &format!("{tag}{side}"), "python3", "-c", program])
            .spawn()
            .unwrap()
    };
    let mut serving = python("s", &server);
    let mut sending = python("c", &client);
    let sent = sending.wait().unwrap();
    if !sent.success() {
        serving.kill().unwrap();
    }
    assert!(
        serving.wait().unwrap().success() && sent.success(),
        "the transfer failed"
    );
}

/// A frame that the other side's MTU does not take is dropped and counted, not sent cut or lost unseen.
fn oversize(eal: &Eal, tag: &str) {
    for end in ["ip link set mc mtu 4000", &format!("ip -n {tag}c link set e0 mtu 4000")] {
        sh(end);
    }
    let report = forwarding(eal, "eth", || send_lengths(tag, "1514,1515,3000,4014"));
    assert_eq!(
        (report.received, report.forwarded, report.forward_drops.too_long),
        (4, 1, 3),
        "{report:?}"
    );
    assert_eq!(report.measured, 4);
}

/// Sends frames of these lengths from the client.
fn send_lengths(tag: &str, lengths: &str) {
    let send = format!(
        "import socket\ns=socket.socket(socket.AF_PACKET,socket.SOCK_RAW)\ns.bind(('e0',0))\n\
         for n in ({lengths}):\n s.send(b'\\xff'*6+b'\\x02'*6+b'\\x88\\xb5'+bytes(n-14))\n"
    );
    let client = format!("{tag}c");
    let status = Command::new("ip")
        .args(["netns", "exec", &client, "python3", "-c", &send])
        .status()
        .unwrap();
    assert!(status.success());
}

/// Runs an inline loop over `mc` and `ms` while `traffic` goes on; the report of `mc`.
fn forwarding(eal: &Eal, kind: &str, traffic: impl FnOnce()) -> PortReport {
    let mut ports = [open(eal, &format!("{kind}:mc")), open(eal, &format!("{kind}:ms"))];
    let (stop, progress) = (AtomicBool::new(false), Progress::default());
    let mut sink = Counting::default();
    let (loop_stop, loop_progress, counting) = (&stop, &progress, &mut sink);
    std::thread::scope(|scope| {
        let stop = StopOnDrop(&stop);
        let ports = &mut ports;
        let running = scope.spawn(move || inline(ports, &LoopConfig::default(), counting, loop_stop, loop_progress));
        traffic();
        std::thread::sleep(Duration::from_millis(300));
        drop(stop);
        running.join().unwrap().unwrap();
    });
    progress.reports()[0]
}

/// An MTU that is lowered while frames are forwarded: the kernel drops what is longer and tells nobody, so every frame that did not
/// arrive is to be counted here, those of the first burst, too.
fn lowered(eal: &Eal, tag: &str) {
    // An XDP socket sends what is longer all the same, and one burst of it may be on its way before the MTU is asked for: not where the first is
    // longer than either.
    for (kind, behind) in [("eth", "1514,1515,1314,1315,60"), ("xdp", "1515,1514,1314,1315,60")] {
        sh(&format!("ip link set mc mtu 3000; ip -n {tag}c link set e0 mtu 3000"));
        let arrived = || {
            let count = format!("ip netns exec {tag}s cat /sys/class/net/e0/statistics/rx_packets");
            output(&count).parse::<u64>().unwrap()
        };
        let before = arrived();
        let report = forwarding(eal, kind, || {
            send_lengths(tag, "1514,1300,1514");
            std::thread::sleep(Duration::from_millis(100));
            sh("ip link set ms mtu 1300");
            send_lengths(tag, behind);
            // And up again.
            sh("ip link set ms mtu 1500");
            send_lengths(tag, "60,1514,1514");
        });
        let drops = report.forward_drops;
        assert_eq!(report.received, 11, "{kind}: {report:?}");
        assert_eq!(report.forwarded, arrived() - before, "{kind}: {report:?}");
        assert_eq!(
            (report.forwarded, drops.too_long, drops.total()),
            (8, 3, 3),
            "{kind}: {report:?}"
        );
    }
}

/// What the interface drops after it was handed to it is counted: here as the other end of the wire takes less. (This driver says so
/// to the packet socket, which tries again with each burst; what is behind waits.)
fn refused_by_the_interface(eal: &Eal, tag: &str) {
    let report = forwarding(eal, "eth", || {
        sh(&format!("ip -n {tag}s link set e0 mtu 1200"));
        for length in ["60,", "1514,", "60,"] {
            send_lengths(tag, length);
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    assert_eq!((report.received, report.forwarded), (3, 1), "{report:?}");
    assert_eq!(report.forward_drops.send_errors, 2, "{report:?}");
    sh(&format!("ip -n {tag}s link set e0 mtu 1500"));
}

/// What the kernel joins is told, and the interface is as it was when the port is closed.
fn promiscuous(eal: &Eal) {
    let asking = || output("ip -d link show mc | grep -o 'promiscuity [0-9]*'");
    assert_eq!(asking(), "promiscuity 0");
    for kind in ["eth", "xdp"] {
        let port = open(eal, &format!("{kind}:mc"));
        assert_eq!(asking(), "promiscuity 1", "{kind}");
        // Another one that looks at the interface does not lose it.
        let other = open(eal, "eth:mc");
        assert_eq!(asking(), "promiscuity 2", "{kind}");
        drop(other);
        assert_eq!(asking(), "promiscuity 1", "{kind}");
        assert!(port.joining().is_empty());
        drop(port);
        assert_eq!(asking(), "promiscuity 0", "{kind}");
    }
    sh("ethtool -K mc gro on");
    assert_eq!(open(eal, "eth:mc").joining(), ["gro"]);
    sh("ethtool -K mc gro off");
}

/// What other interfaces get while a port is opened is none of its frames.
fn others(eal: &Eal) {
    let (stop, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let stop = StopOnDrop(&stop);
        let (is_over, sent) = (stop.0, &sent);
        scope.spawn(move || {
            sh("ip link set lo up");
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let to = socket.local_addr().unwrap();
            while !is_over.load(Ordering::Relaxed) {
                socket.send_to(b"of another interface", to).unwrap();
                sent.fetch_add(1, Ordering::Relaxed);
            }
        });
        while sent.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        for _ in 0..3 {
            let port = open(eal, "eth:mc");
            let mut burst = Burst::new();
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(port.rx_burst(&mut burst), 0);
            let stats = port.stats();
            assert_eq!((stats.received, stats.missed), (0, 0));
        }
    });
    assert!(sent.into_inner() > 1000);
}

/// Of several receive queues an XDP socket takes one: nobody would count the frames of the others.
fn several_queues(eal: &Eal) {
    sh("ip link add q0 numrxqueues 2 numtxqueues 2 type veth peer name q1 numrxqueues 2 numtxqueues 2");
    sh("ip link set q0 up; ip link set q1 up; ethtool -L q0 rx 2");
    let refused = Port::open(eal, &"xdp:q0".parse().unwrap(), &PortConfig::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Device);
    assert!(refused.to_string().contains("ethtool -L q0 rx 1"), "{refused}");
    sh("ethtool -L q0 rx 1; ethtool -L q1 tx 1");
    drop(open(eal, "xdp:q0"));
    sh("ip link del q0");
}

/// Frames that come while the sink is slow and the ring is full are lost, and the loss has a number.
fn losses(eal: &Eal, tag: &str) {
    struct Slow(u64);
    impl FrameSink for Slow {
        fn frame(&mut self, _port: u8, _time_utc_ns: u64, _data: &[u8], _wire_len: Option<u32>) {
            // Far below the rate of the sender, only while it sends: the ring has 8192 slots for this MTU.
            static SEEN: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
            if SEEN.fetch_add(1, Ordering::Relaxed) < 2000 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        fn idle(&mut self, _now_utc_ns: u64) {}
        fn lost(&mut self, port: u8, frames: u64) {
            assert!(port == 0 && frames > self.0);
            self.0 = frames;
        }
    }
    let mut slow = Slow(0);
    let mut ports = [open(eal, "eth:mc")];
    let before = kernel_count("mc", "rx_packets");
    let config = LoopConfig {
        cpu: Some(0),
        until: Until {
            frames: None,
            quiet: Some(Duration::from_secs(2)),
        },
    };
    let (stop, progress) = (AtomicBool::new(false), Progress::default());
    let send = "import socket\ns=socket.socket(socket.AF_PACKET,socket.SOCK_RAW)\ns.bind(('e0',0))\n\
                f=b'\\xff'*6+b'\\x02'*6+b'\\x88\\xb5'+bytes(46)\nfor n in range(30000):\n s.send(f)\n";
    let mut sender = Command::new("ip")
        .args(["netns", "exec", &format!("{tag}c"), "python3", "-c", send])
        .spawn()
        .unwrap();
    receive(&mut ports, &config, &mut slow, &stop, &progress).unwrap();
    assert!(sender.wait().unwrap().success());
    let report = progress.reports()[0];
    println!("losses: {report:?}");
    assert!(report.device.missed > 1000, "{report:?}");
    assert_eq!(slow.0, report.device.missed);
    assert_eq!(
        kernel_count("mc", "rx_packets") - before,
        report.received + report.device.missed
    );
}
