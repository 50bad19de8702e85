//! The simulated Linux against the kernel's: the same conversation in the lab and in a scenario, and the same figures of
//! both captures. Needs root; says so and passes without it. This program is also the lab's client and server.
#![allow(clippy::unwrap_used)]

mod support;

use std::process::ExitCode;
use support::{Frame, Pair, frames, since_first};
use tempfile::tempdir;
use weir_lab::{LabConfig, LabError, Scenario};
use weir_scenario::packet::flag::ACK;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == "lab-app") {
        return weir_lab::app_main(arguments);
    }
    let tests: [fn() -> Result<bool, LabError>; 3] = [timers, growth_and_setup, delayed_acks];
    for test in tests {
        // A busy machine disturbs the lab's side now and then, but not three times in a row.
        let mut alike = false;
        for _ in 0..3 {
            match test() {
                Ok(result) => alike = result,
                Err(error @ (LabError::NotRoot | LabError::Command { .. })) => {
                    println!("skipped: {error}");
                    return ExitCode::SUCCESS;
                }
                Err(error) => panic!("{error}"),
            }
            if alike {
                break;
            }
        }
        assert!(alike, "the simulation differs from the kernel");
    }
    ExitCode::SUCCESS
}

/// Frames at the lab's middle tap.
fn lab(text: &str) -> Result<Vec<Frame>, LabError> {
    let folder = tempdir().unwrap();
    let config = LabConfig {
        scenario: Scenario::parse(text, "test")?,
        output: folder.path().to_owned(),
        program: std::env::current_exe().unwrap(),
    };
    weir_lab::run(&config)?;
    Ok(frames(&folder.path().join("lab.pcap")))
}

fn data_of_server(frames: &[Frame]) -> Vec<&Frame> {
    let data = |frame: &&Frame| frame.tcp.src_port == 9000 && frame.tcp.len > 0;
    frames.iter().filter(data).collect()
}

fn compare(what: &str, kernel: &[f64], simulated: &[f64], within: impl Fn(f64) -> f64) -> bool {
    println!("{what}: kernel {kernel:.3?}, simulated {simulated:.3?}");
    kernel.len() == simulated.len() && kernel.iter().zip(simulated).all(|(a, b)| (a - b).abs() <= within(*a))
}

/// A response into a silent path: tail loss probe, then the retransmission timer, doubling.
fn timers() -> Result<bool, LabError> {
    let kernel = lab("time_limit_s = 30\n\
         [leg1.c2s]\ndelay_ms = 20\n\
         [leg1.s2c]\ndelay_ms = 20\nperiodic = { period_s = 1000, lossy_s = 5, phase_s = 1.5 }\n\
         [app]\nconnections = 1\nrequests = 1\nrequest_bytes = 100\nserver_ms = 2500\nresponse_bytes = 14000")?;
    let simulated = Pair {
        near: [
            "delay_ms = 20",
            "delay_ms = 20, periodic = { period_s = 1000, lossy_s = 5, phase_s = 1.5, probability = 1.0 }",
        ],
        far: ["", ""],
        exchange: "request = \"100\"\nresponse = [{ writes = \"14000\", wait_ms = 2500 }]",
        ..Pair::default()
    }
    .run("kernel-timers");
    // The first transmissions go together; whatever comes later came of a timer. Until the path speaks again.
    let repeats = |frames: &[Frame]| {
        let data = data_of_server(frames);
        let first = data[0].at;
        let later = data
            .iter()
            .filter(|frame| frame.at > first + 0.03 && frame.at < first + 2.5);
        let times: Vec<f64> = later.map(|frame| frame.at - first).collect();
        let mut distinct: Vec<f64> = Vec::new();
        for at in times {
            if distinct.last().is_none_or(|last| at - last > 0.03) {
                distinct.push(at);
            }
        }
        distinct
    };
    Ok(compare(
        "seconds from the response to its repeats",
        &repeats(&kernel),
        &repeats(&simulated),
        |at| 0.03 + 0.1 * at,
    ))
}

/// Flights of slow start, and SYNs into silence.
fn growth_and_setup() -> Result<bool, LabError> {
    let kernel = lab("time_limit_s = 30\n\
         [leg1.c2s]\ndelay_ms = 30\n[leg1.s2c]\ndelay_ms = 30\n\
         [app]\nconnections = 1\nconcurrency = 2\nrequests = 1\nrequest_bytes = 100\nresponse_bytes = 150000\n\
         ignored = 1\nignored_timeout_ms = 7500\n\
         [client_sysctl]\n\"net.ipv4.tcp_syn_linear_timeouts\" = \"0\"\n\
         [server_sysctl]\n\"net.ipv4.tcp_congestion_control\" = \"reno\"")?;
    let path = ["delay_ms = 30, rate_mbit = 10000"; 2];
    let simulated = Pair {
        near: path,
        far: ["rate_mbit = 10000"; 2],
        server_tcp: "congestion = \"reno\"",
        exchange: "request = \"100\"\nresponse = [{ writes = \"150000\" }]",
        ..Pair::default()
    }
    .run("kernel-growth");
    // A little more than a round trip each, so that frames that are late on a busy machine stay in their flight.
    let flights = |frames: &[Frame]| {
        let data = data_of_server(frames);
        let mut flights = vec![0.0; 3];
        for frame in &data {
            let round = ((frame.at - data[0].at + 0.01) / 0.0605) as usize;
            if let Some(flight) = flights.get_mut(round) {
                *flight += 1.0;
            }
        }
        flights
    };
    let growth = compare(
        "segments in each flight",
        &flights(&kernel),
        &flights(&simulated),
        |n| 2.0 + 0.15 * n,
    );

    let ignored = kernel.iter().filter(|frame| frame.tcp.dst_port == 9002);
    let silent = Pair {
        far: ["syn_loss = 1.0", ""],
        seconds: 7.4,
        ..Pair::default()
    }
    .run("kernel-syn");
    // The kernel's timer wheel fires up to an eighth late.
    let setup = compare("SYNs", &since_first(ignored), &since_first(&silent), |at| {
        0.03 + 0.05 * at
    });
    Ok(growth && setup)
}

/// How long the server's ACK of a request waits, when the response comes later than that.
fn delayed_acks() -> Result<bool, LabError> {
    let kernel = lab("time_limit_s = 30\n\
         [leg1.c2s]\ndelay_ms = 5\n[leg1.s2c]\ndelay_ms = 5\n\
         [app]\nconnections = 1\nrequests = 26\nrequest_bytes = 100\nserver_ms = [5, 90]\nresponse_bytes = 500")?;
    let simulated = Pair {
        near: ["delay_ms = 5", "delay_ms = 5"],
        far: ["", ""],
        exchange: "request = \"100\"\nresponse = [{ writes = \"500\", wait_ms = [5, 90] }]",
        dialogue: "body = [\"x\"]\ncount = 26\nthink_ms = 10\nclose = \"client_fin\"",
        ..Pair::default()
    }
    .run("kernel-acks");
    // Quick answers make it a conversation; then the ACK of a request whose answer is slow.
    let waits = |frames: &[Frame]| {
        let requests = frames
            .iter()
            .enumerate()
            .filter(|(_, f)| f.tcp.dst_port == 9000 && f.tcp.len > 0);
        let mut waits: Vec<f64> = requests
            .skip(6)
            .filter_map(|(place, request)| {
                let answers = || frames[place..].iter().filter(|f| f.tcp.src_port == 9000 && f.has(ACK));
                let slow = answers().find(|f| f.tcp.len > 0)?.at - request.at > 0.055;
                slow.then(|| answers().next().map(|ack| ack.at - request.at))?
            })
            .collect();
        waits.sort_by(f64::total_cmp);
        vec![waits[0], waits[waits.len() - 1]]
    };
    Ok(compare(
        "least and longest wait of an ACK",
        &waits(&kernel),
        &waits(&simulated),
        |_| 0.012,
    ))
}
