//! Names of addresses, from a file as /etc/hosts (hosts(5)).

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringViewArray};
use arrow::datatypes::DataType;

use super::{Function, Kind};

/// Names by address. Memory: the file's names and about 50 bytes for each.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    names: HashMap<IpAddr, String>,
}

/// A line that is no entry.
#[derive(Debug, PartialEq, Eq)]
pub struct BadLine {
    number: usize,
    address: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, address } = self;
        write!(
            f,
            "line {number}: {address:?} is no address; a line is an address and its names"
        )
    }
}

impl Hosts {
    /// Read a file.
    pub fn read(path: &Path) -> Result<Self, String> {
        let error = |error: &dyn fmt::Display| format!("hosts file {}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|e| error(&e))?;
        Self::parse(&text).map_err(|e| error(&e))
    }

    /// Names in a file's text: the first one of an address counts.
    fn parse(text: &str) -> Result<Self, BadLine> {
        let mut names = HashMap::new();
        for (line, number) in text.lines().zip(1..) {
            let entry = line.split('#').next().unwrap_or_default();
            let mut words = entry.split_whitespace();
            let (Some(address), Some(name)) = (words.next(), words.next()) else {
                continue;
            };
            // The zone of a link-local address means nothing elsewhere.
            let parsed: Result<IpAddr, _> = address.split('%').next().unwrap_or_default().parse();
            let Ok(parsed) = parsed else {
                let address = address.to_owned();
                return Err(BadLine { number, address });
            };
            names.entry(parsed.to_canonical()).or_insert_with(|| name.to_owned());
        }
        Ok(Self { names })
    }

    fn name(&self, address: &str) -> Option<&str> {
        let address: IpAddr = address.parse().ok()?;
        self.names.get(&address.to_canonical()).map(String::as_str)
    }
}

pub(super) fn host_name(hosts: Hosts) -> Function {
    Function::new(
        "host_name",
        &[("address", Kind::Text)],
        DataType::Utf8View,
        "The name of an address in the file given as --hosts; NULL where it has none.",
        move |arguments| {
            let addresses = arguments[0].as_string_view();
            let names = addresses.iter().map(|address| hosts.name(address?));
            Ok(Arc::new(names.collect::<StringViewArray>()) as ArrayRef)
        },
    )
}
