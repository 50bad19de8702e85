//! Descriptions that cannot be meant are refused, with their place and what they may be.

use std::collections::HashSet;

use weir_lab::config::{MAX_SECONDS, in_range, span_in_range};

use super::{Close, Dialogue, Exchange, Link, Load, Path_, Scenario, Service, Stack, SynBatches, Tap, Writes};

/// Longest time of an application or a host, milliseconds.
const MAX_MS: f64 = MAX_SECONDS * 1e3;
/// Longest time that a leg takes, milliseconds.
const MAX_LEG_MS: f64 = 1e7;
/// Most connections of a load that come by chance.
const MAX_CHANCE: f64 = 1e8;
/// Most tiers of which one calls the next.
const MAX_TIERS: usize = 100;

impl Scenario {
    /// Refuses what would make no sense or no end; the message says which key and what it may be.
    pub fn check(&self) -> Result<(), String> {
        if !is_plain(&self.name) {
            return Err("name must be letters, digits, '-', '_' and '.', as it becomes part of file names".into());
        }
        // A nanosecond is the least that there is.
        in_range("duration_s", self.duration_s, 1e-9, MAX_SECONDS)?;
        in_range("snap_length", f64::from(self.snap_length), 54.0, 65_535.0)?;
        self.check_stamps("", 0.0, 0.0)?;
        if self.host.len() > 250 {
            return Err("at most 250 hosts".into());
        }
        no_twins("hosts", self.host.iter().map(|host| host.name.as_str()))?;
        for host in &self.host {
            host.stack()?;
            let [first, last] = host.ports;
            if first == 0 || first > last || host.next_port.is_some_and(|next| next < first || next > last) {
                return Err(format!(
                    "host {}: ports go from a first above 0 up to a last; next_port lies between",
                    host.name
                ));
            }
            if let Some(other) = self.host.iter().find(|other| other.address == host.address)
                && other.name != host.name
            {
                return Err(format!(
                    "hosts {} and {} have the same address, {}",
                    other.name, host.name, host.address
                ));
            }
        }
        for path in &self.path {
            let here = |problem: String| format!("path {}: {problem}", path.between.join(" - "));
            self.check_path(path).map_err(here)?;
        }
        for (name, tap) in &self.tap {
            if !self.path.iter().any(|path| path.taps.contains(name)) {
                return Err(format!("tap {name} stands in no path"));
            }
            let here = |problem: String| format!("tap {name}: {problem}");
            tap.check().map_err(here)?;
            self.check_stamps(&format!("tap {name}: "), tap.offset_us, tap.skew_ppm)?;
        }
        no_twins("services", self.service.iter().map(|service| service.name.as_str()))?;
        for service in &self.service {
            let here = |problem: String| format!("service {}: {problem}", service.name);
            self.check_service(service).map_err(here)?;
        }
        for (name, exchange) in &self.exchange {
            let here = |problem: String| format!("exchange {name}: {problem}");
            self.check_exchange(exchange).map_err(here)?;
        }
        for (name, pool) in &self.pool {
            let here = |problem: String| format!("pool {name}: {problem}");
            self.dialogue_named(&pool.dialogue).map_err(here)?;
            in_range("limit", pool.limit, 1.0, 1e9).map_err(here)?;
            in_range("grow_per_s", pool.grow_per_s, 0.0, 1e6).map_err(here)?;
            in_range("max", pool.max, 0.0, 1e9).map_err(here)?;
            if pool.grow_per_s > 0.0 && pool.max <= pool.limit {
                return Err(here("one that grows needs a max above its limit".into()));
            }
        }
        let mut calls_checked = HashSet::new();
        for (name, dialogue) in &self.dialogue {
            let here = |problem: String| format!("dialogue {name}: {problem}");
            self.check_dialogue(dialogue, &mut calls_checked).map_err(here)?;
        }
        for load in &self.load {
            let here = |problem: String| format!("load of {}: {problem}", load.dialogue);
            self.check_load(load).map_err(here)?;
        }
        for sleep in &self.sleep {
            for name in &sleep.hosts {
                self.host_index(name)?;
            }
            span_in_range("sleep: every_s", sleep.every_s, 0.001, MAX_SECONDS)?;
            span_in_range("sleep: length_ms", sleep.length_ms, 0.0, MAX_MS)?;
            if sleep.every_s.ends().0 * 1e3 <= sleep.length_ms.ends().1 {
                return Err("sleep: every_s must be longer than length_ms".into());
            }
        }
        Ok(())
    }

    /// A clock that is off by so much must stay within the 32 bits that a capture file has for seconds.
    fn check_stamps(&self, whose: &str, offset_us: f64, skew_ppm: f64) -> Result<(), String> {
        let begin = self.start_unix_s as f64 + offset_us / 1e6;
        let end = begin + self.duration_s * (1.0 + skew_ppm / 1e6);
        if begin < 0.0 || end > f64::from(u32::MAX) {
            return Err(format!(
                "{whose}start_unix_s and duration_s (with offset_us and skew_ppm of a tap) must be times from 1970 to 2106, the 32 bits of a capture file"
            ));
        }
        Ok(())
    }

    fn check_path(&self, path: &Path_) -> Result<(), String> {
        let [a, b] = &path.between;
        let hosts = [self.host_index(a)?, self.host_index(b)?];
        if a == b {
            return Err("it needs two hosts".into());
        }
        if self.paths_between(a, b).count() > 1 {
            return Err("there are two between these hosts".into());
        }
        if path.taps.len() + 1 != path.leg.len() {
            return Err("there must be one tap fewer than legs".into());
        }
        if let Some(name) = path.taps.iter().find(|name| !is_plain(name)) {
            return Err(format!("tap `{name}`: letters, digits, '-', '_' and '.' only"));
        }
        // The truth has one place for each tap of a frame's path.
        no_twins("taps", path.taps.iter().map(String::as_str))?;
        for (number, leg) in path.leg.iter().enumerate() {
            for (direction, link) in [("forward", &leg.forward), ("backward", &leg.backward)] {
                let here = |problem: String| format!("leg {}: {direction}: {problem}", number + 1);
                link.check().map_err(here)?;
            }
            for batches in &leg.syn_batches {
                let here = |problem: String| format!("leg {}: syn_batches: {problem}", number + 1);
                batches.check().map_err(here)?;
            }
        }
        let hops = |link: &Link| u32::from(link.hops.max(link.reroute.map_or(0, |to| to.hops)));
        let there: u32 = path.leg.iter().map(|leg| hops(&leg.forward)).sum();
        let back: u32 = path.leg.iter().map(|leg| hops(&leg.backward)).sum();
        for (host, hops) in hosts.into_iter().zip([there, back]) {
            let host = &self.host[host];
            let ttl = host.stack()?.ttl;
            if hops >= u32::from(ttl) {
                return Err(format!(
                    "{hops} hops are too many for the ttl of host {}, {ttl}",
                    host.name
                ));
            }
        }
        Ok(())
    }

    fn check_service(&self, service: &Service) -> Result<(), String> {
        self.host_index(&service.host)?;
        let last = |service: &Service| u32::from(service.port) + u32::from(service.ports) - 1;
        if service.port == 0 || service.ports == 0 || last(service) > 65_535 {
            return Err("port and ports are at least 1, and the last port at most 65535".into());
        }
        let shares = |other: &&Service| {
            other.name != service.name
                && other.host == service.host
                && u32::from(other.port) <= last(service)
                && u32::from(service.port) <= last(other)
        };
        if let Some(other) = self.service.iter().filter(|other| other.ports > 0).find(shares) {
            return Err(format!(
                "service {} listens on the same port of the same host",
                other.name
            ));
        }
        in_range("cpus", service.cpus, 0.0, 1e6)
    }

    fn check_dialogue<'a>(
        &'a self,
        dialogue: &'a Dialogue,
        calls_checked: &mut HashSet<(&'a str, &'a str)>,
    ) -> Result<(), String> {
        let client = self.host_index(&dialogue.client)?;
        let service = &self.service[self.service_index(&dialogue.service)?];
        self.path_index(client, self.host_index(&service.host)?)
            .ok_or_else(|| format!("no path from {} to its service's host", dialogue.client))?;
        for exchange in dialogue.open.iter().chain(&dialogue.body).chain(&dialogue.abandons) {
            self.exchange_named(exchange)?;
            self.check_calls(exchange, &service.host, 0, calls_checked)?;
        }
        let foresees = matches!(dialogue.close, Close::ServerFin | Close::ClientHalfClose);
        if foresees && dialogue.count.is_none() {
            return Err("this close needs a count, to know which request is the last".into());
        }
        if (dialogue.close == Close::ClientAbandons) != dialogue.abandons.is_some() {
            return Err("close = \"client_abandons\" and abandons go together".into());
        }
        if let Some(name) = &dialogue.abandons
            && Writes::parse(&self.exchange_named(name)?.request)?.has_pause()
        {
            return Err(format!(
                "abandons: the request of {name} has a pause, and the client closes at once"
            ));
        }
        if dialogue.farewell > 0 && dialogue.close != Close::ClientFin {
            return Err("a farewell needs close = \"client_fin\"".into());
        }
        if dialogue.farewell_reply > 0 && dialogue.farewell == 0 {
            return Err("farewell_reply needs a farewell".into());
        }
        if let Some(count) = dialogue.count {
            span_in_range("count", count, 0.0, 1e9)?;
            let (low, high) = count.ends();
            if low.fract() != 0.0 || high.fract() != 0.0 {
                return Err("count must be whole numbers".into());
            }
        }
        span_in_range("think_ms", dialogue.think_ms, 0.0, MAX_MS)?;
        if let Some(reader) = dialogue.reader {
            in_range("reader: bytes", reader.bytes as f64, 1.0, 1e9)?;
            in_range("reader: every_ms", reader.every_ms, 0.001, MAX_MS)?;
        }
        Ok(())
    }

    /// Calls are made by the host that serves the exchange, and have an end.
    fn check_calls<'a>(
        &'a self,
        exchange: &'a str,
        host: &'a str,
        tiers: usize,
        checked: &mut HashSet<(&'a str, &'a str)>,
    ) -> Result<(), String> {
        let Some((name, pool)) = self
            .exchange_named(exchange)?
            .pool
            .as_ref()
            .and_then(|name| self.pool.get_key_value(name))
        else {
            return Ok(());
        };
        if checked.contains(&(exchange, host)) {
            return Ok(());
        }
        let next = self.dialogue_named(&pool.dialogue)?;
        if next.client != host {
            return Err(format!(
                "exchange {exchange} is served on {host}, and its pool {name} makes calls from {}",
                next.client
            ));
        }
        if tiers > MAX_TIERS {
            return Err(format!(
                "exchange {exchange}: its calls never end, or go through more than {MAX_TIERS} tiers"
            ));
        }
        let next_host = &self.service[self.service_index(&next.service)?].host;
        for call in &self.exchange[exchange].calls {
            self.check_calls(call, next_host, tiers + 1, checked)?;
        }
        checked.insert((exchange, host));
        Ok(())
    }

    fn check_load(&self, load: &Load) -> Result<(), String> {
        let dialogue = self.dialogue_named(&load.dialogue)?;
        if dialogue.body.is_empty() && dialogue.count.is_none() && dialogue.close != Close::Never {
            return Err("its dialogue needs a body, or count = 0".into());
        }
        in_range("from_s", load.from_s, 0.0, MAX_SECONDS)?;
        in_range("to_s", load.to_s, load.from_s, MAX_SECONDS)?;
        in_range("users", load.users, 0.0, 1e6)?;
        in_range("per_s", load.per_s, 0.0, 1e6)?;
        if load.users == 0.0 && load.per_s == 0.0 {
            return Err("it needs users, or per_s".into());
        }
        if load.per_s * (load.to_s.min(self.duration_s) - load.from_s) > MAX_CHANCE {
            return Err(format!(
                "per_s from from_s to to_s are more than {MAX_CHANCE} connections"
            ));
        }
        span_in_range("spread_ms", load.spread_ms, 0.0, MAX_MS)?;
        span_in_range("gap_ms", load.gap_ms, 0.0, MAX_MS)
    }

    fn check_exchange(&self, exchange: &Exchange) -> Result<(), String> {
        if Writes::parse(&exchange.request)?.begins_with_pause() {
            return Err("request: a pause before the first write is none of it; think_ms is".into());
        }
        span_in_range("request_pause_ms", exchange.request_pause_ms, 0.0, MAX_MS)?;
        span_in_range("cpu_ms", exchange.cpu_ms, 0.0, MAX_MS)?;
        span_in_range("call_gap_ms", exchange.call_gap_ms, 0.0, MAX_MS)?;
        if exchange.response.is_empty() {
            return Err("it needs a response".into());
        }
        for response in &exchange.response {
            Writes::parse(&response.writes)?;
            in_range("response: weight", response.weight, 1e-9, 1e9)?;
            span_in_range("response: wait_ms", response.wait_ms, 0.0, MAX_MS)?;
            span_in_range("response: pause_ms", response.pause_ms, 0.0, MAX_MS)?;
        }
        for call in &exchange.calls {
            self.exchange_named(call)?;
        }
        match &exchange.pool {
            Some(pool) if !self.pool.contains_key(pool) => Err(format!("there is no pool `{pool}`")),
            None if !exchange.calls.is_empty() => Err("calls need a pool".into()),
            _ => Ok(()),
        }
    }
}

/// May become part of a file's name.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

fn no_twins<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut known = HashSet::new();
    for name in names {
        if !known.insert(name) {
            return Err(format!("two {what} have the name `{name}`"));
        }
    }
    Ok(())
}

impl Stack {
    pub(super) fn check(&self) -> Result<(), String> {
        // The largest IP packet has 65,535 bytes, 40 of them headers.
        in_range("mss", self.mss.into(), 88.0, 65_495.0)?;
        in_range("initial_window", self.initial_window.into(), 1.0, 65_535.0)?;
        in_range("window_bytes", self.window_bytes.into(), 1.0, u32::MAX.into())?;
        in_range("window_scale", self.window_scale.into(), -1.0, 14.0)?;
        in_range("send_buffer", self.send_buffer as f64, 1.0, 1e12)?;
        in_range("ack_every", self.ack_every.into(), 1.0, u32::MAX.into())?;
        in_range("ttl", self.ttl.into(), 1.0, 255.0)?;
        for (key, retries) in [
            ("syn_retries", self.syn_retries),
            ("syn_ack_retries", self.syn_ack_retries),
            ("data_retries", self.data_retries),
        ] {
            in_range(key, retries.into(), 0.0, 255.0)?;
        }
        // Timers that send again and again.
        for (key, seconds) in [
            ("syn_timeout_s", self.syn_timeout_s),
            ("syn_ack_timeout_s", self.syn_ack_timeout_s),
            ("initial_rto_s", self.initial_rto_s),
        ] {
            in_range(key, seconds, 0.001, MAX_SECONDS)?;
        }
        if self.keep_alive_s != 0.0 {
            in_range("keep_alive_s", self.keep_alive_s, 0.001, MAX_SECONDS)?;
        }
        for (key, seconds) in [
            ("half_open_s", self.half_open_s),
            ("half_open_spread_s", self.half_open_spread_s),
            ("time_wait_s", self.time_wait_s),
        ] {
            in_range(key, seconds, 0.0, MAX_SECONDS)?;
        }
        in_range("delayed_ack_ms", self.delayed_ack_ms, 0.0, MAX_MS)?;
        in_range("min_rto_ms", self.min_rto_ms, 0.0, MAX_MS)
    }
}

impl Tap {
    fn check(&self) -> Result<(), String> {
        in_range("from_s", self.from_s, 0.0, MAX_SECONDS)?;
        in_range("miss", self.miss, 0.0, 1.0)?;
        in_range("duplicate", self.duplicate, 0.0, 1.0)?;
        in_range("duplicate_us", self.duplicate_us, 0.0, 1e6)?;
        // A century, and a clock that runs at least at half speed.
        in_range("offset_us", self.offset_us, -3.2e15, 3.2e15)?;
        in_range("skew_ppm", self.skew_ppm, -5e5, 5e5)
    }
}

impl SynBatches {
    fn check(&self) -> Result<(), String> {
        in_range("from_s", self.from_s, 0.0, MAX_SECONDS)?;
        in_range("to_s", self.to_s, self.from_s, MAX_SECONDS)?;
        in_range("batches", self.batches.into(), 1.0, 1e5)?;
        in_range("connections", self.connections.into(), 0.0, 1e6)?;
        in_range("interval_factor", self.interval_factor, 0.001, 1000.0)?;
        let last = self.interval_factor.powi(self.batches as i32);
        in_range("interval_factor to the power of batches", last, 0.0, 1e300)
    }
}

impl Link {
    fn check(&self) -> Result<(), String> {
        in_range("delay_ms", self.delay_ms, 0.0, MAX_LEG_MS)?;
        in_range("jitter_ms", self.jitter_ms, 0.0, MAX_LEG_MS)?;
        in_range("loss", self.loss, 0.0, 1.0)?;
        in_range("syn_loss", self.syn_loss, 0.0, 1.0)?;
        if self.rate_mbit != 0.0 {
            in_range("rate_mbit", self.rate_mbit, 1e-6, 1e7)?;
            // A full frame must fit, or nothing large ever passes.
            in_range("queue_bytes", self.queue_bytes as f64, 1514.0, 1e9)?;
        }
        // What every path must carry (RFC 791), in a frame.
        if self.black_hole_above != 0 {
            in_range("black_hole_above", self.black_hole_above.into(), 82.0, u32::MAX.into())?;
        }
        if let Some(periodic) = &self.periodic {
            in_range("periodic: period_s", periodic.period_s, 0.001, MAX_SECONDS)?;
            in_range("periodic: lossy_s", periodic.lossy_s, 0.0, periodic.period_s)?;
            in_range("periodic: phase_s", periodic.phase_s, 0.0, MAX_SECONDS)?;
            in_range("periodic: probability", periodic.probability, 0.0, 1.0)?;
            span_in_range("periodic: setup_delay_ms", periodic.setup_delay_ms, 0.0, MAX_LEG_MS)?;
        }
        if let Some(burst) = &self.burst {
            in_range("burst: enter", burst.enter, 0.0, 1.0)?;
            in_range("burst: leave", burst.leave, 0.0, 1.0)?;
            in_range("burst: probability", burst.probability, 0.0, 1.0)?;
        }
        if let Some(reroute) = &self.reroute {
            in_range("reroute: at_s", reroute.at_s, 0.0, MAX_SECONDS)?;
            in_range("reroute: delay_ms", reroute.delay_ms, 0.0, MAX_LEG_MS)?;
        }
        if let Some(detour) = &self.detour {
            in_range("detour: probability", detour.probability, 0.0, 1.0)?;
            span_in_range("detour: later_ms", detour.later_ms, 0.0, MAX_LEG_MS)?;
        }
        if let Some(stall) = &self.stall {
            in_range("stall: period_s", stall.period_s, 0.001, MAX_SECONDS)?;
            in_range("stall: length_s", stall.length_s, 0.0, stall.period_s)?;
            in_range("stall: phase_s", stall.phase_s, 0.0, MAX_SECONDS)?;
        }
        Ok(())
    }
}
