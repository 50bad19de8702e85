//! Transactions by signature, position, server, client or losses: the kinds of a chart.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use weir_messages::v1::Transaction;

use crate::dataset::Dataset;

/// Kinds of a chart that have a number of their own; the rest is `other`.
const MOST: usize = 15;

/// What transactions are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Signature,
    Position,
    Server,
    Client,
    Loss,
    Connection,
    None,
}

/// Words of the parameter of charts; the first is the default.
pub const CHART_WORDS: &[(&str, By)] = &[
    ("signature", By::Signature),
    ("position", By::Position),
    ("server", By::Server),
    ("client", By::Client),
    ("loss", By::Loss),
];

/// Kinds of all transactions.
#[derive(Debug)]
pub struct Kinds {
    /// Names by number.
    pub names: Vec<String>,
    /// Number of each row.
    pub of: Vec<u8>,
}

/// Made when they are asked for first.
#[derive(Debug, Default)]
pub struct Groups([OnceLock<Kinds>; 5]);

/// Whose connection is not kept.
const UNKNOWN: &str = "unknown";

/// Name of a transaction's group.
pub fn name(data: &Dataset, row: usize, by: By) -> Cow<'_, str> {
    let transaction = &data.transactions[row];
    let connection = data.exchanges[row]
        .connection
        .map(|row| &data.connections[row as usize]);
    match by {
        By::Signature => transaction.signature.as_str().into(),
        By::Position => position(transaction).map_or("setup", |place| POSITIONS[place]).into(),
        By::Server => match connection.and_then(|c| c.server.as_ref()) {
            Some(end) => endpoint(&end.address, end.port).into(),
            None => UNKNOWN.into(),
        },
        By::Client => connection
            .and_then(|c| c.client.as_ref())
            .map_or(UNKNOWN, |end| &end.address)
            .into(),
        By::Loss if transaction.losses > 0 => "with losses".into(),
        By::Loss => "without losses".into(),
        By::Connection => transaction.connection_id.to_string().into(),
        By::None => "".into(),
    }
}

/// `address:port`.
pub fn endpoint(address: &str, port: u32) -> String {
    match address.contains(':') {
        true => format!("[{address}]:{port}"),
        false => format!("{address}:{port}"),
    }
}

const POSITIONS: [&str; 4] = ["first", "second", "third", "later"];

/// First, second, third, later of its connection; a setup has none.
pub fn position(transaction: &Transaction) -> Option<usize> {
    let place = (transaction.index as usize).checked_sub(1)?;
    Some(place.min(POSITIONS.len() - 1))
}

impl Groups {
    /// Kinds of all rows; those of most rows first, setups not counted.
    pub fn kinds(&self, data: &Dataset, by: By) -> &Kinds {
        let place = CHART_WORDS.iter().position(|(_, known)| *known == by).unwrap_or(0);
        self.0[place].get_or_init(|| kinds(data, by))
    }
}

fn kinds(data: &Dataset, by: By) -> Kinds {
    let mut numbers: HashMap<Cow<'_, str>, (u32, u64)> = HashMap::new();
    let of: Vec<u32> = (0..data.transactions.len())
        .map(|row| {
            let next = numbers.len() as u32;
            let entry = numbers.entry(name(data, row, by)).or_insert((next, 0));
            entry.1 += u64::from(!data.exchanges[row].is_setup);
            entry.0
        })
        .collect();
    let mut ranked: Vec<(Cow<'_, str>, u32, u64)> =
        numbers.into_iter().map(|(name, (n, count))| (name, n, count)).collect();
    let all = ranked.len();
    ranked.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
    let mut kind_of = vec![MOST as u8; all];
    let mut names = Vec::new();
    for (kind, (name, number, _)) in ranked.into_iter().take(MOST).enumerate() {
        kind_of[number as usize] = kind as u8;
        names.push(name.into_owned());
    }
    if all > MOST {
        names.push("other".into());
    }
    Kinds {
        names,
        of: of.into_iter().map(|number| kind_of[number as usize]).collect(),
    }
}
