//! `weir query`: ask a daemon over gRPC.

use std::fmt::Display;
use std::process::ExitCode;
use std::time::Duration;

use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use weir_analysis::several;
use weir_api::server::cause;
use weir_api::v1::appliance_service_client::ApplianceServiceClient;
use weir_api::v1::capture_service_client::CaptureServiceClient;
use weir_api::v1::flow_service_client::FlowServiceClient;
use weir_api::v1::record_service_client::RecordServiceClient;
use weir_command::Failure;
use weir_messages::v1::{
    Analysis, CardStatus, GetCaptureStatusRequest, GetStatusRequest, GetSummaryRequest, GetTimelineRequest,
    GetTimelineResponse, ListConnectionsRequest, ListFindingsRequest, ListSegmentsRequest, ListTransactionsRequest,
    SubscribeRequest, WatchEventsRequest, WatchFindingsRequest, finding_change::Kind, subscribe_response::Message,
    watch_findings_response,
};
use weir_record::raw::BYTES;
use weir_record::{Header, Kind as RecordKind, Record};

use crate::access::{self, Bearer};
use crate::cli::{Format, QueryArgs, RecordFormat, What};
use crate::format::{bytes, count};
use crate::{output, records, say, text};

/// Rows asked for at a time.
const PAGE: u64 = 1000;
/// Room for a page of connections or of 65,536 records.
const MAX_MESSAGE: usize = 64 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Within this a daemon answers a call, and begins a stream; a stream may then be silent for as long as it likes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// A daemon that stands still does not answer a ping for so long, sent after as much silence.
const PING: Duration = Duration::from_secs(30);
/// Records that a step in the numbering can show as missing: a longer one is none.
const LARGEST_JUMP: u64 = (1 << 31) - 1;
/// How often a daemon that replays a file is asked whether it has finished.
const POLL: Duration = Duration::from_millis(100);

/// Run the command.
pub fn run(args: &QueryArgs) -> Result<ExitCode, Failure> {
    if args.watch && args.what != What::Findings {
        return Err(Failure::new("--watch is for findings: weir query findings --watch"));
    }
    if args.what == What::Records && args.format == Format::Json {
        return Err(Failure::new(
            "records have no JSON: weir query records prints a line of text for each; weir analyze URL -f json tells what they say",
        ));
    }
    let takes_filter = matches!(
        args.what,
        What::Connections | What::Transactions | What::Segments | What::Findings
    );
    let options = [("--filter", &args.filter), ("--order-by", &args.order_by)];
    let given = options.iter().find(|(_, value)| !value.is_empty());
    if let Some((option, _)) = given
        && !takes_filter
    {
        return Err(Failure::new(format_args!(
            "{option} is for connections, transactions, segments and findings"
        )));
    }
    if args.watch && !args.order_by.is_empty() {
        return Err(Failure::new(
            "--order-by is for lists: what is watched comes as it happens",
        ));
    }
    runtime()?.block_on(ask(args))?;
    Ok(ExitCode::SUCCESS)
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::new)
}

/// A connection, with the token in each call.
type Daemon = InterceptedService<Channel, Bearer>;

async fn connect(url: &str) -> Result<Daemon, Failure> {
    connect_within(url, ANSWER_TIMEOUT).await
}

/// The same; its calls are answered within `answer`.
async fn connect_within(url: &str, answer: Duration) -> Result<Daemon, Failure> {
    let no_address = |why: &dyn Display| {
        Failure::new(format_args!(
            "{url}: {why}; an address looks like http://{}, or https:// for a daemon with TLS",
            weir_api::server::DEFAULT_ADDRESS
        ))
    };
    let is_tls = url.starts_with("https://");
    if !is_tls && !url.starts_with("http://") {
        return Err(no_address(&"it does not begin with http://"));
    }
    let mut endpoint = Endpoint::from_shared(url.to_owned()).map_err(|error| no_address(&error))?;
    if is_tls {
        endpoint = endpoint
            .tls_config(access::tls()?)
            .map_err(|error| no_address(&cause(&error)))?;
    }
    let bearer = Bearer::of_environment(url)?;
    let endpoint = endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(answer)
        .http2_keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    let connected = endpoint.connect().await;
    let channel = connected.map_err(|error| {
        let cause = cause(&error);
        let guess = if cause.contains("CaUsedAsEndEntity") {
            "the daemon's certificate is one of an authority: make it with basicConstraints=CA:FALSE"
        } else if cause.contains("certificate") {
            "it is checked against this system's roots, or those of the file that WEIR_CA names"
        } else if cause.contains("InvalidContentType") {
            "what answers has no TLS: a daemon without is asked by http://"
        } else {
            "is the daemon running? Start it with: weir serve --port ..."
        };
        Failure::new(format_args!("{url}: {cause}; {guess}"))
    })?;
    Ok(InterceptedService::new(channel, bearer))
}

/// Why a call failed, of the daemon at `url`.
fn refused(url: &str, status: &tonic::Status) -> Failure {
    let text = status.message();
    // What the transport tells when the time is over: a daemon cancels nothing.
    if status.code() == tonic::Code::Cancelled || is_silent(status) {
        return Failure::new(format_args!(
            "{url}: the daemon does not answer: it stands still, or has more to do than it can; what it says itself may tell why"
        ));
    }
    // The page, the metrics and others answer, but not with frames of gRPC.
    if text.contains("invalid compression flag") || text.contains("mapped from HTTP status") {
        return Failure::new(format_args!(
            "{url}: no gRPC of Weir answers at this address: is it that of the page or of the metrics? weir serve --listen names the \
             one of gRPC"
        ));
    }
    // What breaks off without an answer may want TLS.
    let breaks_off = status.code() == tonic::Code::Unknown || text.contains("h2 protocol error");
    let guess = if breaks_off {
        "; one with TLS is asked by https://"
    } else {
        ""
    };
    Failure::new(format_args!(
        "{url}: the daemon answered: {text} ({:?}){guess}",
        status.code()
    ))
}

/// Whether a ping had no answer.
fn is_silent(status: &tonic::Status) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(status);
    while let Some(error) = cause {
        if error.to_string().contains("keep-alive timed out") {
            return true;
        }
        cause = error.source();
    }
    false
}

async fn ask(args: &QueryArgs) -> Result<(), Failure> {
    let channel = connect(&args.server).await?;
    match args.what {
        What::Status => status(channel, args).await,
        What::Events => events(channel, args).await,
        What::Records => {
            let mut left = usize::try_from(args.limit).unwrap_or(usize::MAX);
            let mut is_all = true;
            let reclaimed = subscribe(channel, &args.server, false, |batch, _| {
                is_all = batch.len() <= left;
                let batch = &batch[..batch.len().min(left)];
                left -= batch.len();
                output::write(None, |out| records::print(batch, RecordFormat::Text, out))?;
                Ok(is_all)
            })
            .await?;
            if reclaimed > 0 {
                say::line(format_args!("weir: {}", gone(&args.server, reclaimed)));
            }
            if !is_all {
                more(format_args!("the oldest {} records", count(args.limit)));
            }
            Ok(())
        }
        What::Findings if args.watch => watch(channel, args).await,
        What::Timeline => timeline(channel, args).await,
        What::Connections | What::Transactions | What::Segments | What::Findings | What::Summary => {
            facts(channel, args).await
        }
    }
}

async fn facts(channel: Daemon, args: &QueryArgs) -> Result<(), Failure> {
    let mut client = FlowServiceClient::new(channel).max_decoding_message_size(MAX_MESSAGE);
    let mut answer = Analysis::default();
    let (mut total, mut all) = (0, 0);
    let mut page_token = String::new();
    loop {
        let (filter, order_by) = (args.filter.clone(), args.order_by.clone());
        let left = args.limit.saturating_sub(total);
        let page_size = left.min(PAGE) as u32;
        if page_size == 0 {
            break;
        }
        let next = match args.what {
            What::Connections => {
                let request = ListConnectionsRequest {
                    filter,
                    page_size,
                    page_token,
                    order_by,
                };
                let page = client
                    .list_connections(request)
                    .await
                    .map_err(|s| refused(&args.server, &s))?
                    .into_inner();
                total += page.connections.len() as u64;
                all = page.total_size;
                answer.connections.extend(page.connections);
                page.next_page_token
            }
            What::Transactions => {
                let request = ListTransactionsRequest {
                    filter,
                    page_size,
                    page_token,
                    order_by,
                };
                let page = client
                    .list_transactions(request)
                    .await
                    .map_err(|s| refused(&args.server, &s))?
                    .into_inner();
                total += page.transactions.len() as u64;
                all = page.total_size;
                answer.transactions.extend(page.transactions);
                page.next_page_token
            }
            What::Segments => {
                let request = ListSegmentsRequest {
                    filter,
                    page_size,
                    page_token,
                    order_by,
                };
                let page = client
                    .list_segments(request)
                    .await
                    .map_err(|s| refused(&args.server, &s))?
                    .into_inner();
                total += page.segments.len() as u64;
                all = page.total_size;
                answer.segments.extend(page.segments);
                page.next_page_token
            }
            What::Findings => {
                let request = ListFindingsRequest {
                    filter,
                    page_size,
                    page_token,
                    order_by,
                };
                let page = client
                    .list_findings(request)
                    .await
                    .map_err(|s| refused(&args.server, &s))?
                    .into_inner();
                total += page.findings.len() as u64;
                all = page.total_size;
                answer.findings.extend(page.findings);
                page.next_page_token
            }
            What::Summary | What::Timeline | What::Status | What::Events | What::Records => {
                let reply = client
                    .get_summary(GetSummaryRequest {})
                    .await
                    .map_err(|s| refused(&args.server, &s))?
                    .into_inner();
                answer.summary = reply.summary;
                String::new()
            }
        };
        if next.is_empty() {
            break;
        }
        page_token = next;
    }
    match args.format {
        Format::Json => {
            output::json(None, &answer)?;
            if total < all {
                more(format_args!("{} of {}", count(total), count(all)));
            }
            Ok(())
        }
        Format::Text => output::write(None, |out| text::print_answer(&answer, all, out)),
    }
}

/// There is more than was fetched.
fn more(fetched: impl Display) {
    say::line(format_args!("weir: {fetched}; --limit fetches more"));
}

/// The newest, of all that there are.
fn newest<'a, T>(all: &'a [T], limit: u64, what: &str) -> &'a [T] {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let older = all.len().saturating_sub(limit);
    if older > 0 {
        more(format_args!(
            "the newest {} of {} {what}",
            count(limit as u64),
            count(all.len() as u64)
        ));
    }
    &all[older..]
}

/// What happened when: the newest slices.
async fn timeline(channel: Daemon, args: &QueryArgs) -> Result<(), Failure> {
    let mut client = FlowServiceClient::new(channel).max_decoding_message_size(MAX_MESSAGE);
    let reply = client.get_timeline(GetTimelineRequest::default()).await;
    let slices = reply.map_err(|s| refused(&args.server, &s))?.into_inner().slices;
    let start = slices.first().and_then(|first| first.start);
    let slices = newest(&slices, args.limit, "slices");
    output::write(None, |out| match args.format {
        Format::Json => writeln!(
            out,
            "{}",
            serde_json::json!(GetTimelineResponse {
                slices: slices.to_vec()
            })
        ),
        Format::Text if slices.is_empty() => writeln!(out, "no packets"),
        Format::Text => {
            if let Some(start) = start {
                writeln!(out, "times are seconds since {start}")?;
            }
            text::load::print_timeline(slices, start.as_ref(), out)
        }
    })
}

/// Findings as they open, change and close.
async fn watch(channel: Daemon, args: &QueryArgs) -> Result<(), Failure> {
    let request = WatchFindingsRequest {
        filter: args.filter.clone(),
    };
    let mut client = FlowServiceClient::new(channel).max_decoding_message_size(MAX_MESSAGE);
    let stream = client.watch_findings(request).await;
    let mut stream = stream.map_err(|s| refused(&args.server, &s))?.into_inner();
    while let Some(response) = stream.message().await.map_err(|s| refused(&args.server, &s))? {
        match response.message {
            Some(watch_findings_response::Message::Change(change)) => output::write(None, |out| {
                if args.format == Format::Json {
                    return writeln!(out, "{}", serde_json::json!(change));
                }
                writeln!(out, "{}", text::findings::change(&change))?;
                let evidence = change.finding.iter().flat_map(|finding| &finding.evidence);
                evidence
                    .filter(|_| change.kind() == Kind::Opened)
                    .try_for_each(|line| writeln!(out, "      {line}"))
            })?,
            Some(watch_findings_response::Message::Gap(gap)) => {
                say::line(format_args!(
                    "weir: {} changes were missed; what is open follows",
                    gap.dropped
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

async fn events(channel: Daemon, args: &QueryArgs) -> Result<(), Failure> {
    let request = WatchEventsRequest {
        after: 0,
        follow: false,
    };
    let stream = ApplianceServiceClient::new(channel).watch_events(request).await;
    let mut stream = stream.map_err(|s| refused(&args.server, &s))?.into_inner();
    let mut events = Vec::new();
    while let Some(response) = stream.message().await.map_err(|s| refused(&args.server, &s))? {
        events.extend(response.event);
    }
    let newest = newest(&events, args.limit, "events");
    output::write(None, |out| {
        if args.format == Format::Json {
            return writeln!(out, "{}", serde_json::json!({ "events": newest }));
        }
        if newest.is_empty() {
            return writeln!(out, "no events");
        }
        for event in newest {
            let time = event.time.map_or_else(String::new, |time| time.to_string());
            let severity = event.severity().as_str_name().trim_start_matches("SEVERITY_");
            writeln!(
                out,
                "{} {time} {severity:7} {} {}: {}",
                event.number, event.source, event.name, event.text
            )?;
        }
        Ok(())
    })
}

/// What an operator wants to know of a card first.
fn in_words(card: &CardStatus) -> String {
    let link = if card.unhealthy.is_empty() {
        "measured".to_owned()
    } else {
        format!("bypassed ({})", card.unhealthy.join(", "))
    };
    format!(
        "{}, firmware {} {}{}, link {link}, {} of {} flows, {} faults",
        card.phase,
        card.firmware_version,
        card.state,
        if card.boots > 0 && !card.confirmed {
            " on trial"
        } else {
            ""
        },
        count(card.contexts_in_use.into()),
        count(card.contexts.into()),
        count(card.faults.values().sum::<u64>())
    )
}

async fn status(channel: Daemon, args: &QueryArgs) -> Result<(), Failure> {
    let appliance = ApplianceServiceClient::new(channel.clone())
        .get_status(GetStatusRequest {})
        .await;
    let appliance = appliance.map_err(|s| refused(&args.server, &s))?.into_inner();
    let capture = CaptureServiceClient::new(channel)
        .get_capture_status(GetCaptureStatusRequest {})
        .await;
    let capture = capture.map_err(|s| refused(&args.server, &s))?.into_inner();
    output::write(None, |out| {
        if args.format == Format::Json {
            let both = serde_json::json!({ "appliance": appliance, "capture": capture });
            return writeln!(out, "{both}");
        }
        let since = appliance.start_time.map_or_else(String::new, |t| format!(" since {t}"));
        writeln!(out, "weir {}{since}", appliance.version)?;
        writeln!(
            out,
            "  {} records, log {} of {}, {} subscribers",
            count(appliance.records),
            bytes(appliance.log_bytes),
            bytes(appliance.log_limit_bytes),
            appliance.subscribers
        )?;
        writeln!(
            out,
            "  {} flows in the table, {} connections and {} transactions in memory, {} resident",
            count(appliance.flows_in_table),
            count(appliance.connections),
            count(appliance.transactions),
            bytes(appliance.resident_bytes)
        )?;
        for port in &capture.ports {
            write!(
                out,
                "  port {} {}: {} frames, {} tracked, ",
                port.port,
                port.name,
                count(port.frames),
                count(port.tracked)
            )?;
            if port.drops_known {
                write!(out, "{} lost before Weir", count(port.dropped))?;
            } else {
                write!(out, "losses before Weir not known (at least {})", count(port.dropped))?;
            }
            writeln!(out, "{}", if port.link_up == Some(false) { ", link down" } else { "" })?;
        }
        if let Some(card) = &appliance.card {
            writeln!(out, "  card: {}", in_words(card))?;
        }
        if let Some(link) = &capture.link {
            writeln!(
                out,
                "  record link: {} records in {} frames, {} lost, {} frames not used",
                count(link.records),
                count(link.frames),
                count(link.lost_records),
                count(link.refused.values().sum::<u64>())
            )?;
        }
        if capture.forwarded + capture.forward_drops > 0 {
            writeln!(
                out,
                "  inline: {} forwarded, {} not",
                count(capture.forwarded),
                count(capture.forward_drops)
            )?;
        }
        if capture.unmeasured > 0 {
            writeln!(
                out,
                "  {} frames were not measured: measuring has failed",
                count(capture.unmeasured)
            )?;
        }
        writeln!(
            out,
            "  {}",
            if capture.finished {
                "the replay has ended"
            } else {
                "measuring"
            }
        )
    })
}

/// Give all records of a daemon's log to `take`; a daemon that replays a file is waited for. Returns how many of its records
/// are not there any more. Where they are the oldest ones, records without a meaning stand for them, whose numbering shows
/// how many are missing.
pub fn all_records(url: &str, mut take: impl FnMut(&[Record])) -> Result<u64, Failure> {
    runtime()?.block_on(async {
        let channel = connect(url).await?;
        let mut is_first = true;
        subscribe(channel, url, true, |records, reclaimed| {
            if std::mem::take(&mut is_first)
                && let Some(first) = records.first()
            {
                take(&before(first, reclaimed));
            }
            take(records);
            Ok(true)
        })
        .await
    })
}

/// So many records were reclaimed before they were read.
pub fn gone(url: &str, reclaimed: u64) -> String {
    format!(
        "{url}: {} not in the log any more: the oldest made room for newer ones; what they told is missing here; serve with a \
         larger --log-mib, or --store what is found",
        several(reclaimed, "record is", "records are")
    )
}

/// What stands before the first record of a log in the place of reclaimed ones. Nothing is made of a TOP record without its
/// continuation, but it has a number.
fn before(first: &Record, reclaimed: u64) -> Vec<Record> {
    let mut records = Vec::new();
    let (mut left, mut sequence) = (reclaimed, first.sequence());
    while left > 0 {
        let jump = left.min(LARGEST_JUMP);
        sequence = sequence.wrapping_sub(1 + jump as u32);
        let header = Header {
            lane: first.lane(),
            sequence,
            time: first.time(),
            ..Header::default()
        };
        records.push(header.start(RecordKind::Top, false));
        left -= jump;
    }
    records.reverse();
    records
}

/// Records from the oldest in the log to its end, until `take` says false; it also gets how many records that were before
/// the given ones are not in the log any more. Returns the sum of these.
async fn subscribe(
    channel: Daemon,
    url: &str,
    wait_for_replay: bool,
    mut take: impl FnMut(&[Record], u64) -> Result<bool, Failure>,
) -> Result<u64, Failure> {
    let mut capture = CaptureServiceClient::new(channel.clone());
    let mut client = RecordServiceClient::new(channel).max_decoding_message_size(MAX_MESSAGE);
    let mut resume_token = String::new();
    let mut records: Vec<Record> = Vec::new();
    // Positions count from the log's beginning: where they jump, the oldest ones went.
    let (mut position, mut reclaimed) = (0, 0);
    loop {
        // Asked before reading: what was replayed before is then in the log.
        let status = capture
            .get_capture_status(GetCaptureStatusRequest {})
            .await
            .map_err(|s| refused(url, &s))?;
        let status = status.into_inner();
        let replaying = !status.finished && status.ports.iter().all(|port| port.name.starts_with("pcap:"));
        let request = SubscribeRequest {
            resume_token: resume_token.clone(),
            stop_at_end: true,
            max_batch_records: 0,
        };
        let mut stream = client
            .subscribe(request)
            .await
            .map_err(|s| refused(url, &s))?
            .into_inner();
        while let Some(message) = stream.message().await.map_err(|s| refused(url, &s))? {
            match message.message {
                Some(Message::Batch(batch)) => {
                    records.clear();
                    records.extend(
                        batch
                            .records
                            .chunks_exact(BYTES)
                            .filter_map(|r| Record::from_slice(r).ok()),
                    );
                    let missing = batch.first_position.saturating_sub(position);
                    position = batch.first_position + records.len() as u64;
                    reclaimed += missing;
                    if !take(&records, missing)? {
                        return Ok(reclaimed);
                    }
                }
                Some(Message::Gap(gap)) => say::line(format_args!(
                    "weir: {url}: records {} to {} are not in the log any more ({})",
                    gap.from_position, gap.to_position, gap.reason
                )),
                Some(Message::Heartbeat(_) | Message::Sync(_)) | None => {}
            }
            resume_token = message.resume_token;
        }
        if !(wait_for_replay && replaying) {
            return Ok(reclaimed);
        }
        tokio::time::sleep(POLL).await;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn firmware_that_may_be_given_up_is_told() {
        let card = |confirmed| CardStatus {
            phase: "RUNNING".into(),
            state: "RUNNING".into(),
            firmware_version: "0.2.0".into(),
            boots: 1,
            confirmed,
            ..CardStatus::default()
        };
        let said = |confirmed| in_words(&card(confirmed));
        assert_eq!(
            said(true),
            "RUNNING, firmware 0.2.0 RUNNING, link measured, 0 of 0 flows, 0 faults"
        );
        assert!(
            said(false).contains("firmware 0.2.0 RUNNING on trial, link"),
            "{}",
            said(false)
        );
    }

    #[test]
    fn a_daemon_that_does_not_answer_is_not_waited_for() {
        // It takes the connection, and says nothing.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let failure = runtime().unwrap().block_on(async {
            let daemon = connect_within(&url, Duration::from_millis(100)).await?;
            let call = FlowServiceClient::new(daemon).get_summary(GetSummaryRequest {}).await;
            call.map_err(|status| refused(&url, &status)).map(drop)
        });
        let said = failure.unwrap_err().to_string();
        assert!(
            said.starts_with(&format!("{url}: the daemon does not answer")),
            "{said}"
        );
    }
}
