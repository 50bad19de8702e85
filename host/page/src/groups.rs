//! Transactions by signature, position, server, client or losses: the kinds of a chart.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

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

/// Groups of all transactions. Those of most rows come first, setups not counted.
#[derive(Debug)]
pub struct Grouping {
    /// Names by number.
    pub names: Vec<String>,
    /// Number of each row.
    pub of: Vec<u32>,
}

impl Grouping {
    /// Names of the kinds of a chart.
    pub fn kinds(&self) -> Vec<String> {
        let mut kinds: Vec<String> = self.names.iter().take(MOST).cloned().collect();
        if self.names.len() > MOST {
            kinds.push("other".into());
        }
        kinds
    }

    /// Kind of a row in a chart.
    pub fn kind(&self, row: usize) -> u8 {
        self.of[row].min(MOST as u32) as u8
    }
}

/// Made when they are asked for first.
#[derive(Debug, Default)]
pub struct Groups([OnceLock<Grouping>; 5]);

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
        By::Position => position(transaction.index)
            .map_or("setup", |place| POSITIONS[place])
            .into(),
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
pub fn position(index: u32) -> Option<usize> {
    let place = (index as usize).checked_sub(1)?;
    Some(place.min(POSITIONS.len() - 1))
}

impl Groups {
    /// Groups of all rows.
    pub fn by(&self, data: &Dataset, by: By) -> &Grouping {
        let place = CHART_WORDS.iter().position(|(_, known)| *known == by).unwrap_or(0);
        self.0[place].get_or_init(|| grouping(data, by))
    }
}

fn grouping(data: &Dataset, by: By) -> Grouping {
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
    ranked.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
    let mut rank_of = vec![0; ranked.len()];
    for (rank, (_, number, _)) in (0..).zip(&ranked) {
        rank_of[*number as usize] = rank;
    }
    Grouping {
        names: ranked.into_iter().map(|(name, ..)| name.into_owned()).collect(),
        of: of.into_iter().map(|number| rank_of[number as usize]).collect(),
    }
}
