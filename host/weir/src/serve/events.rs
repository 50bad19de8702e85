//! Events of the appliance.

use std::time::{SystemTime, UNIX_EPOCH};

use weir_api::state::ApplianceState;
use weir_messages::Timestamp;
use weir_messages::v1::{Event, Severity};

use crate::say;

/// An event, and a line in the daemon's log.
pub fn tell(appliance: &ApplianceState, severity: Severity, source: &str, name: &str, text: String) {
    say::line(format_args!("weir: {text}"));
    appliance.events.add(Event {
        time: Some(now()),
        severity: severity.into(),
        source: source.to_owned(),
        name: name.to_owned(),
        text,
        ..Event::default()
    });
}

pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Timestamp::from_unix_nanos(since.map_or(0, |since| since.as_nanos() as i64))
}
