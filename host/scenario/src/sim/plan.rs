//! The description with names turned into places and texts into writes.

use crate::config::{Close, Reader, Response, Scenario, Span, Writes};
use std::collections::BTreeMap;

pub(super) struct Plan {
    pub(super) services: Vec<Service>,
    pub(super) exchanges: Vec<Exchange>,
    pub(super) dialogues: Vec<Dialogue>,
    pub(super) pools: Vec<Pool>,
    /// Dialogue of each load.
    pub(super) loads: Vec<usize>,
    /// Hosts of each sleep.
    pub(super) sleeps: Vec<Vec<usize>>,
}

pub(super) struct Service {
    pub(super) host: usize,
    pub(super) port: u16,
    pub(super) ports: u16,
    pub(super) workers: u32,
    pub(super) worker_per_connection: bool,
    pub(super) cpus: f64,
    pub(super) backlog: u32,
    pub(super) refuses: bool,
}

pub(super) struct Exchange {
    pub(super) name: String,
    pub(super) request: Writes,
    pub(super) request_pause_ms: Span,
    pub(super) cpu_ms: Span,
    pub(super) calls: Vec<usize>,
    pub(super) call_gap_ms: Span,
    pub(super) pool: Option<usize>,
    pub(super) responses: Vec<(Writes, Response)>,
}

pub(super) struct Dialogue {
    pub(super) name: String,
    pub(super) client: usize,
    pub(super) service: usize,
    pub(super) path: usize,
    pub(super) forward: bool,
    pub(super) open: Vec<usize>,
    pub(super) body: Vec<usize>,
    pub(super) count: Option<Span>,
    pub(super) think_ms: Span,
    pub(super) close: Close,
    pub(super) abandons: Option<usize>,
    pub(super) farewell: u32,
    pub(super) farewell_reply: u32,
    pub(super) reader: Option<Reader>,
}

pub(super) struct Pool {
    pub(super) name: String,
    pub(super) dialogue: usize,
    pub(super) limit: f64,
    pub(super) grow_per_s: f64,
    pub(super) max: f64,
    pub(super) reuse: bool,
}

impl Plan {
    pub(super) fn new(scenario: &Scenario) -> Result<Plan, String> {
        let services = scenario
            .service
            .iter()
            .map(|service| {
                Ok(Service {
                    host: scenario.host_index(&service.host)?,
                    port: service.port,
                    ports: service.ports,
                    workers: service.workers,
                    worker_per_connection: service.worker_per_connection,
                    cpus: service.cpus,
                    backlog: service.backlog,
                    refuses: service.refuses,
                })
            })
            .collect::<Result<_, String>>()?;
        let exchanges = scenario
            .exchange
            .iter()
            .map(|(name, exchange)| {
                let responses = exchange.response.iter();
                Ok(Exchange {
                    name: name.clone(),
                    request: Writes::parse(&exchange.request)?,
                    request_pause_ms: exchange.request_pause_ms,
                    cpu_ms: exchange.cpu_ms,
                    calls: places(&scenario.exchange, &exchange.calls)?,
                    call_gap_ms: exchange.call_gap_ms,
                    pool: exchange
                        .pool
                        .as_ref()
                        .map(|name| place(&scenario.pool, name))
                        .transpose()?,
                    responses: responses
                        .map(|response| Ok((Writes::parse(&response.writes)?, response.clone())))
                        .collect::<Result<_, String>>()?,
                })
            })
            .collect::<Result<_, String>>()?;
        let dialogues = scenario
            .dialogue
            .iter()
            .map(|(name, dialogue)| {
                let client = scenario.host_index(&dialogue.client)?;
                let service = scenario.service_index(&dialogue.service)?;
                let server = scenario.host_index(&scenario.service[service].host)?;
                let (path, forward) = scenario
                    .path_index(client, server)
                    .ok_or_else(|| format!("dialogue {name}: there is no path"))?;
                Ok(Dialogue {
                    name: name.clone(),
                    client,
                    service,
                    path,
                    forward,
                    open: places(&scenario.exchange, &dialogue.open)?,
                    body: places(&scenario.exchange, &dialogue.body)?,
                    count: dialogue.count,
                    think_ms: dialogue.think_ms,
                    close: dialogue.close,
                    abandons: dialogue
                        .abandons
                        .as_ref()
                        .map(|name| place(&scenario.exchange, name))
                        .transpose()?,
                    farewell: dialogue.farewell,
                    farewell_reply: dialogue.farewell_reply,
                    reader: dialogue.reader,
                })
            })
            .collect::<Result<_, String>>()?;
        let pools = scenario
            .pool
            .iter()
            .map(|(name, pool)| {
                Ok(Pool {
                    name: name.clone(),
                    dialogue: place(&scenario.dialogue, &pool.dialogue)?,
                    limit: pool.limit,
                    grow_per_s: pool.grow_per_s,
                    max: pool.max,
                    reuse: pool.reuse,
                })
            })
            .collect::<Result<_, String>>()?;
        let loads = scenario
            .load
            .iter()
            .map(|load| place(&scenario.dialogue, &load.dialogue));
        let sleeps = scenario.sleep.iter().map(|sleep| {
            let hosts = sleep.hosts.iter().map(|name| scenario.host_index(name));
            hosts.collect()
        });
        Ok(Plan {
            services,
            exchanges,
            dialogues,
            pools,
            loads: loads.collect::<Result<_, String>>()?,
            sleeps: sleeps.collect::<Result<_, String>>()?,
        })
    }
}

fn place<T>(map: &BTreeMap<String, T>, name: &str) -> Result<usize, String> {
    map.keys()
        .position(|key| key == name)
        .ok_or_else(|| format!("there is no `{name}`"))
}

fn places<T>(map: &BTreeMap<String, T>, names: &[String]) -> Result<Vec<usize>, String> {
    names.iter().map(|name| place(map, name)).collect()
}
