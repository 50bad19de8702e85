//! Every generated frame is well formed, and the truth equals what others count.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_bench::floor;
use weir_bench::generate::{Kind, generate};
use weir_bench::truth::Truth;

fn made(kind: Kind, scale: f64, seed: u64, test: &str) -> (PathBuf, Truth) {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}-{seed}.pcap", kind.name()));
    let truth = generate(kind, scale, seed, &path).unwrap();
    (path, truth)
}

/// Scales at which every kind has losses, where it has them at all.
fn scale(kind: Kind) -> f64 {
    match kind {
        Kind::Connections => 0.03,
        Kind::Minimum => 0.005,
        Kind::Bulk => 0.05,
    }
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// RFC 1071: the sum over everything, checksum included, is all ones.
fn checksum_holds(parts: &[&[u8]]) -> bool {
    let all = parts.concat();
    let mut sum: u32 = 0;
    for pair in all.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum == 0xffff
}

/// What a reader that knows nothing of the generator counts.
#[derive(Default)]
struct Count {
    packets: u64,
    frame_bytes: u64,
    /// Payload by direction of the SYN: client to server, server to client.
    payload: [u64; 2],
    /// Repeated data segments, both copies in the file.
    seen_twice: u64,
    /// Data segments that fill a gap with bytes never seen.
    filled: u64,
    syns_twice: u64,
    sacks: u64,
    fins: u64,
    clients: HashMap<Vec<u8>, Stream>,
    largest_concurrency: usize,
}

#[derive(Default)]
struct Stream {
    syns: u64,
    /// Client, server: next expected sequence number; FIN seen.
    next: [Option<u32>; 2],
    fins: [bool; 2],
    /// Bytes seen: [start, end) of every data segment.
    seen: [Vec<(u32, u32)>; 2],
    packets: u64,
    last_data: Option<usize>,
    turns: u64,
}

fn count(path: &Path) -> Count {
    let data = std::fs::read(path).unwrap();
    assert_eq!(le32(&data, 0), 0xa1b2_3c4d, "nanosecond magic");
    assert_eq!(le32(&data, 20), 1, "Ethernet");
    let mut counted = Count::default();
    let mut at = 24;
    let mut before = 0u64;
    let mut open = 0usize;
    while at < data.len() {
        let (seconds, nanos) = (le32(&data, at), le32(&data, at + 4));
        assert!(nanos < 1_000_000_000);
        let time = u64::from(seconds) * 1_000_000_000 + u64::from(nanos);
        assert!(time >= before, "times never run backwards");
        before = time;
        let length = le32(&data, at + 8) as usize;
        assert_eq!(length, le32(&data, at + 12) as usize);
        assert!((60..=1514).contains(&length));
        let frame = &data[at + 16..at + 16 + length];
        at += 16 + length;

        assert_eq!(be16(frame, 12), 0x0800);
        let ip = &frame[14..];
        assert_eq!((ip[0], ip[9]), (0x45, 6));
        let total = usize::from(be16(ip, 2));
        assert!(
            total <= ip.len() && (total == ip.len() || length == 60),
            "padding only up to 60 octets"
        );
        assert!(checksum_holds(&[&ip[..20]]), "IP checksum");
        let tcp = &ip[20..total];
        let pseudo = [&ip[12..20], &[0, 6], &((total - 20) as u16).to_be_bytes()].concat();
        assert!(
            checksum_holds(&[&pseudo, tcp]),
            "TCP checksum of frame {}",
            counted.packets + 1
        );
        let header = usize::from(tcp[12] >> 4) * 4;
        assert!((20..=60).contains(&header) && header <= tcp.len());
        let sack = options(&tcp[20..header]);
        let (flags, seq, len) = (tcp[13], be32(tcp, 4), (tcp.len() - header) as u32);
        let (syn, fin, ack) = (flags & 2 != 0, flags & 1 != 0, flags & 16 != 0);

        counted.packets += 1;
        counted.frame_bytes += length as u64;
        counted.sacks += u64::from(sack);
        let source = [&ip[12..16], &tcp[0..2]].concat();
        let destination = [&ip[16..20], &tcp[2..4]].concat();
        let here = [source.clone(), destination.clone()].concat();
        let there = [destination, source].concat();
        let side = usize::from(counted.clients.contains_key(&there));
        if side == 0 && !counted.clients.contains_key(&here) {
            assert!(syn && !ack, "a connection begins with its SYN");
            open += 1;
            counted.largest_concurrency = counted.largest_concurrency.max(open);
        }
        let stream = counted.clients.entry(if side == 1 { there } else { here }).or_default();
        stream.packets += 1;
        if syn && !ack {
            stream.syns += 1;
            counted.syns_twice += u64::from(stream.syns > 1);
        }
        counted.payload[side] += u64::from(len);
        if ack
            && !(syn && side == 0)
            && let Some(next) = stream.next[1 - side]
        {
            let acked = be32(tcp, 8);
            assert!(
                next.wrapping_sub(acked) < 1 << 30,
                "nothing is acknowledged that was not sent"
            );
        }
        let end = seq.wrapping_add(len).wrapping_add(u32::from(syn || fin));
        match stream.next[side] {
            None => assert!(syn),
            Some(next) if len > 0 => {
                let seen = &mut stream.seen[side];
                if seen.contains(&(seq, end)) {
                    counted.seen_twice += 1;
                } else if (seq.wrapping_sub(next) as i32) < 0 {
                    counted.filled += 1;
                }
                seen.push((seq, end));
                if stream.last_data != Some(side) {
                    stream.turns += u64::from(side == 0);
                    stream.last_data = Some(side);
                }
            }
            Some(next) => assert!(syn || seq == next, "a segment without data stands at the next byte"),
        }
        let next = stream.next[side].unwrap_or(end);
        stream.next[side] = Some(if (end.wrapping_sub(next) as i32) > 0 { end } else { next });
        if fin {
            assert!(!stream.fins[side]);
            stream.fins[side] = true;
            counted.fins += 1;
        }
    }
    counted
}

/// Walks TCP options; true when there is a SACK block.
fn options(mut options: &[u8]) -> bool {
    let mut sack = false;
    while let Some(&kind) = options.first() {
        let length = match kind {
            1 => 1,
            2 | 3 | 4 | 5 | 8 => usize::from(options[1]),
            _ => panic!("option {kind}"),
        };
        sack |= kind == 5;
        options = &options[length..];
    }
    sack
}

#[test]
fn frames_are_well_formed_and_the_truth_is_what_an_independent_reader_counts() {
    for kind in Kind::ALL {
        for seed in [1, 2] {
            let (path, truth) = made(kind, scale(kind), seed, "truth");
            let counted = count(&path);
            assert_eq!(truth.packets, counted.packets);
            assert_eq!(truth.frame_bytes, counted.frame_bytes);
            assert_eq!(truth.file_bytes(), std::fs::metadata(&path).unwrap().len());
            assert_eq!(truth.connections, counted.clients.len() as u64);
            assert_eq!(truth.closed * 2, counted.fins);
            assert_eq!(
                [truth.payload_client_to_server, truth.payload_server_to_client],
                counted.payload
            );
            assert_eq!(truth.lost_downstream, counted.seen_twice, "{kind:?} {seed}");
            assert_eq!(truth.lost_upstream, counted.filled, "{kind:?} {seed}");
            assert_eq!(
                truth.retransmitted_segments,
                truth.lost_downstream + truth.lost_upstream
            );
            assert_eq!(truth.retransmitted_syns, counted.syns_twice);
            assert_eq!(truth.sack_segments, counted.sacks);
            assert_eq!(
                truth.transactions,
                counted.clients.values().map(|s| s.turns).sum::<u64>(),
                "{kind:?} {seed}"
            );
            if kind != Kind::Minimum {
                assert!(
                    truth.lost_upstream > 0 && truth.lost_downstream > 0 && truth.sack_segments > 0,
                    "{truth:?}"
                );
            } else {
                assert_eq!(counted.largest_concurrency as u64, truth.connections);
                assert!(counted.clients.values().all(|s| s.packets == 4));
            }
            std::fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn the_same_seed_makes_the_same_file_and_the_floor_counts_it() {
    for kind in Kind::ALL {
        let (path, truth) = made(kind, 0.01, 7, "same");
        let first = std::fs::read(&path).unwrap();
        let (again, same) = made(kind, 0.01, 7, "again");
        assert!(first == std::fs::read(&again).unwrap());
        assert_eq!(truth, same);
        let (_, different) = made(kind, 0.01, 8, "again");
        assert!(
            kind == Kind::Minimum
                || different
                    != Truth {
                        seed: 8,
                        ..truth.clone()
                    }
        );
        assert_eq!(Truth::load(&path).unwrap(), truth);
        let counts = floor::walk(&path).unwrap();
        let payload = truth.payload_client_to_server + truth.payload_server_to_client;
        assert_eq!(
            (counts.packets, counts.tcp_packets, counts.flows, counts.payload),
            (truth.packets, truth.packets, truth.connections, payload)
        );
    }
}

#[test]
fn the_floor_says_where_a_file_is_broken() {
    let (path, _) = made(Kind::Minimum, 0.001, 1, "cut");
    let data = std::fs::read(&path).unwrap();
    std::fs::write(&path, &data[..data.len() - 1]).unwrap();
    let message = floor::walk(&path).unwrap_err().to_string();
    assert!(message.contains(&format!("offset {}", data.len() - 76)), "{message}");
    std::fs::write(&path, b"something else entirely, and long enough").unwrap();
    assert!(
        floor::walk(&path)
            .unwrap_err()
            .to_string()
            .contains("not a classic pcap")
    );
}

/// tshark's own verdict on every frame: checksums good, nothing malformed, losses as the truth says.
#[test]
fn tshark_agrees() {
    if Command::new("tshark").arg("--version").output().is_err() {
        println!("tshark is not installed: skipped");
        return;
    }
    let fields = [
        "ip.checksum.status",
        "tcp.checksum.status",
        "_ws.malformed",
        "tcp.stream",
        "tcp.len",
        "tcp.analysis.ack_lost_segment",
    ];
    for kind in Kind::ALL {
        let (path, truth) = made(kind, scale(kind) / 2.0, 3, "tshark");
        let mut command = Command::new("tshark");
        command
            .args(["-n", "-r"])
            .arg(&path)
            .args(["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"]);
        command.args(["-o", "tcp.desegment_tcp_streams:FALSE", "-T", "fields"]);
        for field in fields {
            command.args(["-e", field]);
        }
        let output = command.output().unwrap();
        assert!(output.status.success());
        let (mut packets, mut payload, mut streams) = (0, 0, std::collections::HashSet::new());
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let columns: Vec<&str> = line.split('\t').collect();
            assert_eq!(columns[..3], ["1", "1", ""], "{line}");
            assert_eq!(columns[5], "", "no ACK of bytes that were never there");
            packets += 1;
            payload += columns[4].parse::<u64>().unwrap();
            streams.insert(columns[3].to_owned());
        }
        assert_eq!(packets, truth.packets);
        assert_eq!(payload, truth.payload_client_to_server + truth.payload_server_to_client);
        assert_eq!(streams.len() as u64, truth.connections);
    }
}

/// tcptrace: connections, complete ones, packets, repeated and out-of-order data.
#[test]
fn tcptrace_agrees() {
    if Command::new("tcptrace").arg("-v").output().is_err() {
        println!("tcptrace is not installed: skipped");
        return;
    }
    for kind in Kind::ALL {
        let (path, truth) = made(kind, scale(kind), 4, "tcptrace");
        let output = Command::new("tcptrace").args(["-n", "-l"]).arg(&path).output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // Lines with the figures of both directions.
        let sum = |label: &str| -> u64 {
            text.lines()
                .filter(|line| line.matches(label).count() == 2)
                .flat_map(|line| line.split_whitespace().filter_map(|word| word.parse::<u64>().ok()))
                .sum()
        };
        let connections = text
            .lines()
            .filter(|line| line.starts_with("TCP connection ") && !line.contains("info") && line.ends_with(':'))
            .count() as u64;
        let complete = text.lines().filter(|line| line.contains("complete conn: yes")).count() as u64;
        assert_eq!(connections, truth.connections);
        assert_eq!(complete, truth.closed);
        assert_eq!(sum("total packets:"), truth.packets);
        assert_eq!(
            sum("actual data bytes:"),
            truth.payload_client_to_server + truth.payload_server_to_client
        );
        // It counts a repeated SYN as repeated data, and a gap filled late as out of order.
        let repeated = truth.lost_downstream + truth.retransmitted_syns;
        assert_eq!(
            (sum("rexmt data pkts:"), sum("outoforder pkts:")),
            (repeated, truth.lost_upstream),
            "{kind:?}"
        );
    }
}
