//! What the simulated TCP does, against the numbers of the RFCs and of the stacks that it stands for.
#![allow(clippy::unwrap_used)]

mod support;

use support::{Frame, Pair, assert_near, since_first};
use weir_scenario::packet::flag::{ACK, FIN, PSH, RST, SYN};

fn from_client(frame: &&Frame) -> bool {
    frame.tcp.dst_port == 9000
}

fn from_server(frame: &&Frame) -> bool {
    frame.tcp.src_port == 9000
}

const WINDOW_SCALE: u8 = 3;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// Windows before 2012: SYNs at 0, 3 and 9 s, the third without scale; the server that hears the third alone does not scale.
#[test]
fn windows_syns_at_0_3_9_and_the_third_is_bare() {
    let pair = Pair {
        client: "windows",
        server: "windows",
        far: ["syn_loss = 1.0", ""],
        ..Pair::default()
    };
    let frames = pair.run("windows-syn");
    assert_near(&since_first(&frames), &[0.0, 3.0, 9.0], 1e-6);
    let scales: Vec<bool> = frames
        .iter()
        .map(|frame| frame.option(WINDOW_SCALE).is_some())
        .collect();
    assert_eq!(scales, [true, true, false]);
}

/// RFC 6298 2.1 and 5.5: one second, doubled.
#[test]
fn linux_syns_double_from_one_second() {
    let pair = Pair {
        far: ["syn_loss = 1.0", ""],
        seconds: 140.0,
        ..Pair::default()
    };
    let times = since_first(&pair.run("linux-syn"));
    assert_near(&times, &[0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 63.0], 1e-6);
}

/// A server whose SYN-ACKs are all lost answers each SYN, repeats on its own timer, and resets 60 to 67 s after the last SYN.
#[test]
fn windows_server_resets_what_stays_half_open() {
    let pair = Pair {
        client: "windows",
        server: "windows",
        near: ["", "syn_loss = 1.0"],
        far: ["", ""],
        seconds: 90.0,
        ..Pair::default()
    };
    let frames = pair.run("half-open");
    let answers: Vec<&Frame> = frames.iter().filter(|frame| frame.has(SYN) && frame.has(ACK)).collect();
    let times = since_first(answers);
    // Its own timer at 3 and 9 s as well as an answer to each SYN.
    assert_near(&times, &[0.0, 3.0, 3.0, 9.0, 9.0], 0.01);
    let reset = frames.iter().find(|frame| frame.has(RST)).unwrap();
    let waited = reset.at - frames[0].at;
    assert!((69.0..76.1).contains(&waited), "reset after {waited} s");
}

/// RFC 6298: SRTT and RTTVAR of the first sample R are R and R/2; Windows has a floor of 300 ms for the whole, Linux one
/// of 200 ms for the variance; the timer doubles.
#[test]
fn retransmission_timers() {
    for (stack, rto) in [("windows", 0.3), ("linux", 0.24)] {
        let pair = Pair {
            server: stack,
            server_tcp: "tail_loss_probe = false",
            near: ["delay_ms = 10", "delay_ms = 10, black_hole_above = 500"],
            exchange: "request = \"100\"\nresponse = [{ writes = \"1000\" }]",
            seconds: 6.0,
            ..Pair::default()
        };
        let frames = pair.run(&format!("rto-{stack}"));
        let data: Vec<&Frame> = frames
            .iter()
            .filter(from_server)
            .filter(|frame| frame.tcp.len > 0)
            .collect();
        let times = since_first(data);
        assert_near(&times[..4], &[0.0, rto, 3.0 * rto, 7.0 * rto], 0.02);
    }
}

/// RFC 6298 3 (Karn): a handshake that was repeated gives no sample; without timestamps the first timer is the initial one.
#[test]
fn no_sample_no_adaptive_timer() {
    let pair = Pair {
        client: "windows",
        server: "windows",
        near: ["", "periodic = { period_s = 100, lossy_s = 1, probability = 1.0 }"],
        far: ["", ""],
        ..Pair::default()
    };
    // The first SYN-ACK is lost; the answer to the second SYN passes. Then the response is lost for a while.
    let frames = pair.run("karn");
    let data: Vec<&Frame> = frames
        .iter()
        .filter(from_client)
        .filter(|frame| frame.tcp.len > 0)
        .collect();
    assert_eq!(data.len(), 1);
    let pair = Pair {
        near: [
            "",
            "periodic = { period_s = 100, lossy_s = 1, probability = 1.0 }, black_hole_above = 500",
        ],
        ..pair
    };
    let frames = pair.run("karn-loss");
    let data: Vec<&Frame> = frames
        .iter()
        .filter(from_server)
        .filter(|frame| frame.tcp.len > 0)
        .collect();
    assert_near(&since_first(data)[..2], &[0.0, 3.0], 0.01);
}

/// RFC 5681 3.1 and RFC 6928: the flights of a long response double from the initial window.
#[test]
fn slow_start_from_the_initial_window() {
    for (stack, initial) in [("linux", 10), ("windows", 4)] {
        let pair = Pair {
            server: stack,
            near: ["delay_ms = 25", "delay_ms = 25, rate_mbit = 10000"],
            far: ["", "rate_mbit = 10000"],
            exchange: "request = \"100\"\nresponse = [{ writes = \"200000\" }]",
            ..Pair::default()
        };
        let frames = pair.run(&format!("growth-{stack}"));
        let mut flights: Vec<u32> = Vec::new();
        let mut last = 0.0;
        for frame in frames.iter().filter(from_server).filter(|frame| frame.tcp.len > 0) {
            if frame.at - last > 0.02 {
                flights.push(0);
            }
            last = frame.at;
            *flights.last_mut().unwrap() += 1;
        }
        assert_eq!(flights[..3], [initial, 2 * initial, 4 * initial]);
    }
}

/// Linux pushes when a write has to wait for the buffer: the segments that leave no room for another.
#[test]
fn a_full_send_buffer_pushes() {
    for (buffer, waits) in [("send_buffer = 32768", true), ("", false)] {
        let pair = Pair {
            server_tcp: buffer,
            near: ["delay_ms = 25", "delay_ms = 25"],
            exchange: "request = \"100\"\nresponse = [{ writes = \"100000\" }]",
            ..Pair::default()
        };
        let frames = pair.run(&format!("full-{waits}"));
        let data = frames.iter().filter(from_server).filter(|frame| frame.tcp.len > 0);
        let pushed = data.filter(|frame| frame.has(PSH)).count();
        assert_eq!(pushed > 1, waits, "{pushed}");
    }
}

/// RFC 1122 4.2.3.2: an ACK for every second segment; a single one waits 200 ms (Windows).
#[test]
fn delayed_acks() {
    let pair = Pair {
        client: "windows",
        exchange: "request = \"100\"\nresponse = [{ writes = \"13141\" }]",
        near: ["", ""],
        far: ["delay_ms = 10", "delay_ms = 10"],
        dialogue: "body = [\"x\"]\ncount = 1\nclose = \"server_fin\"",
        ..Pair::default()
    };
    // Nine full segments and one byte.
    let frames = pair.run("delayed");
    let data = frames
        .iter()
        .filter(from_server)
        .filter(|frame| frame.tcp.len > 0)
        .count();
    let acks = frames
        .iter()
        .filter(from_client)
        .filter(|f| f.tcp.len == 0 && !f.has(SYN | FIN))
        .count();
    assert_eq!(data, 10);
    // Of the handshake, of five pairs, of the FIN.
    assert_eq!(acks, 1 + 5 + 1);

    let pair = Pair {
        client: "windows",
        exchange: "request = \"100\"\nrequest_pause_ms = 0\nresponse = [{ writes = \"1000 ~ 500\", pause_ms = 600 }]",
        ..pair
    };
    let frames = pair.run("delayed-single");
    let first = frames
        .iter()
        .filter(from_server)
        .find(|frame| frame.tcp.len > 0)
        .unwrap();
    let ack = frames.iter().filter(from_client).find(|f| f.at > first.at).unwrap();
    assert!((ack.at - first.at - 0.2).abs() < 0.001, "after {} s", ack.at - first.at);
}

/// RFC 6675 and 2018: a hole shown by three SACKed segments is filled at once, and the window is halved, not collapsed.
#[test]
fn fast_retransmission_with_sack() {
    let pair = Pair {
        near: ["delay_ms = 20", "delay_ms = 20, loss = 0.01"],
        far: ["", ""],
        exchange: "request = \"100\"\nresponse = [{ writes = \"2000000\" }]",
        ..Pair::default()
    };
    let frames = pair.run("fast");
    let mut seen = std::collections::HashMap::new();
    let mut fast = 0;
    for frame in frames.iter().filter(from_server).filter(|frame| frame.tcp.len > 0) {
        if let Some(first) = seen.insert(frame.tcp.seq, frame.at) {
            let after = frame.at - first;
            assert!(after > 0.04, "before anybody could know: {after}");
            fast += u32::from(after < 0.07); // a probe of the tail would take two round trips
        }
    }
    assert!(fast >= 5, "{fast} fast retransmissions");
    let sacks = frames
        .iter()
        .filter(from_client)
        .filter(|frame| frame.option(SACK).is_some())
        .count();
    assert!(sacks >= 15, "{sacks} SACKs");
    let end = frames.last().unwrap().at - frames[0].at;
    assert!(end < 5.0, "1,400 segments with 1 % lost in {end} s");
}

/// RFC 2883: what came twice is named in the first block, below the acknowledgment.
#[test]
fn d_sack_for_a_needless_retransmission() {
    let pair = Pair {
        client: "windows",
        server: "windows",
        // ACKs of the client are lost for a while.
        near: [
            "delay_ms = 1, periodic = { period_s = 100, lossy_s = 0.5, phase_s = 0.006, probability = 1.0 }",
            "delay_ms = 1",
        ],
        far: ["", ""],
        exchange: "request = \"100\"\nresponse = [{ writes = \"3031\", wait_ms = 20 }]",
        dialogue: "body = [\"x\"]\ncount = 1\nclose = \"never\"",
        ..Pair::default()
    };
    let frames = pair.run("d-sack");
    let d_sack = frames
        .iter()
        .filter(from_client)
        .find_map(|frame| Some((frame, frame.option(SACK)?)))
        .unwrap();
    let left = u32::from_be_bytes(d_sack.1[..4].try_into().unwrap());
    assert!(left < d_sack.0.tcp.ack, "the block lies below the acknowledgment");
}

/// A client that closes and then hears data answers with RST; a half close does not.
#[test]
fn closing() {
    let flags = |close: &str| {
        let farewell = match close {
            "client_fin" => "farewell = 29\nfarewell_reply = 29\n",
            _ => "",
        };
        let dialogue = format!("body = [\"x\"]\ncount = 1\n{farewell}close = \"{close}\"");
        let pair = Pair {
            dialogue: &dialogue,
            near: ["", ""],
            far: ["", ""],
            ..Pair::default()
        };
        let frames = pair.run(&format!("close-{close}"));
        let last: Vec<(bool, u8, u32)> = frames
            .iter()
            .rev()
            .take(4)
            .rev()
            .map(|f| (f.tcp.dst_port == 9000, f.tcp.flags, f.tcp.len))
            .collect();
        last
    };
    assert_eq!(
        flags("client_fin"),
        [
            (true, FIN | ACK, 0),
            (false, ACK, 0),
            (false, ACK | PSH, 29),
            (true, RST | ACK, 0)
        ]
    );
    assert_eq!(flags("client_rst").last(), Some(&(true, RST | ACK, 0)));
    for close in ["client_half_close", "server_fin"] {
        let last = flags(close);
        assert!(last.iter().all(|&(_, flags, _)| flags & RST == 0), "{close}: {last:?}");
        assert_eq!(last.last().map(|l| l.1), Some(ACK));
    }
}

/// RFC 7323 3.2 and 4.3: whoever acknowledges echoes, the SYN-ACK too; as on Linux, every SYN-ACK echoes the first SYN that arrived. Its
/// echo tells a client that sent two how long the round trip is.
#[test]
fn a_syn_ack_echoes_the_syn() {
    // One SYN is lost, in front of the tap; then the first request.
    let lost_syn = Pair {
        near: [
            "delay_ms = 10, periodic = { period_s = 100, lossy_s = 0.5, probability = 1.0 }",
            "delay_ms = 10",
        ],
        far: [
            "delay_ms = 10, periodic = { period_s = 100, lossy_s = 0.03, phase_s = 1.03, probability = 1.0 }",
            "delay_ms = 10",
        ],
        ..Pair::default()
    };
    let frames = lost_syn.run("echo");
    let (syn, answer) = (&frames[0], &frames[1]);
    assert!(syn.has(SYN) && answer.has(SYN) && answer.has(ACK));
    let stamps = |frame: &Frame| frame.option(TIMESTAMPS).map(<[u8]>::to_vec).unwrap();
    assert_eq!(stamps(syn)[..4], stamps(answer)[4..]);
    let requests: Vec<&Frame> = frames
        .iter()
        .filter(from_client)
        .filter(|frame| frame.tcp.len > 0)
        .collect();
    let times = since_first(requests);
    // RFC 6298 2.2 with the floor of Linux.
    assert_near(&times[..2], &[0.0, 0.24], 0.02);

    // The SYN-ACK is lost behind the tap: the second SYN is answered with the echo of the first.
    let lost_answer = Pair {
        near: [
            "delay_ms = 10",
            "delay_ms = 10, periodic = { period_s = 100, lossy_s = 0.5, probability = 1.0 }",
        ],
        ..Pair::default()
    };
    let frames = lost_answer.run("echo-again");
    let echoes: Vec<Vec<u8>> = frames
        .iter()
        .filter(|frame| frame.has(SYN) && frame.has(ACK))
        .map(|frame| stamps(frame)[4..].to_vec())
        .collect();
    assert!(echoes.len() > 1);
    assert!(echoes.iter().all(|echo| echo[..] == stamps(&frames[0])[..4]));
}

/// RFC 9293 3.8.6: a reader that stops closes the window; probes ask, an update opens.
#[test]
fn zero_window_and_persist() {
    let pair = Pair {
        client_tcp: "window_bytes = 16384",
        near: ["delay_ms = 1", "delay_ms = 1"],
        far: ["delay_ms = 1", "delay_ms = 1"],
        exchange: "request = \"100\"\nresponse = [{ writes = \"200000\" }]",
        dialogue: "body = [\"x\"]\ncount = 1\nclose = \"client_fin\"\nreader = { bytes = 16384, every_ms = 900 }",
        ..Pair::default()
    };
    let frames = pair.run("zero-window");
    let zero = frames
        .iter()
        .filter(from_client)
        .filter(|f| f.window() == 0 && !f.has(RST))
        .count();
    assert!(zero >= 10, "{zero} zero windows");
    let probes = frames
        .iter()
        .filter(from_server)
        .filter(|f| f.tcp.len == 0 && !f.has(SYN | FIN))
        .count();
    assert!(probes >= 10, "{probes} probes");
    let whole: u64 = frames.iter().filter(from_server).map(|f| u64::from(f.tcp.len)).sum();
    assert_eq!(whole, 200_000, "everything arrives, nothing twice");
}
