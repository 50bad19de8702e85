//! Pairs of hosts by number, so that sums of each can be kept.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use weir_analysis::address;

/// Pairs that are told apart; all others have the number `MOST`.
pub(crate) const MOST: usize = 64;

/// Client and server.
pub(crate) type Hosts = ([u8; 16], [u8; 16]);

/// Client and server, where it is one.
type Common = (Option<[u8; 16]>, Option<[u8; 16]>);

/// The first [`MOST`] pairs: 4 kB.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairs {
    /// By addresses as numbers, which are hashed and compared at once.
    numbers: HashMap<(u128, u128), usize, FixedState>,
    list: Vec<Hosts>,
    /// What all others have in common: client, server.
    others: Option<Common>,
}

impl Pairs {
    /// The number of client and server, at most [`MOST`]; it stays.
    pub fn number(&mut self, client: [u8; 16], server: [u8; 16]) -> usize {
        match self.numbers.get(&as_numbers((client, server))) {
            Some(number) => *number,
            None => self.stranger((client, server)),
        }
    }

    /// The number of a pair that has none yet.
    fn stranger(&mut self, hosts: Hosts) -> usize {
        if self.list.len() < MOST {
            self.list.push(hosts);
            self.numbers.insert(as_numbers(hosts), self.list.len() - 1);
            return self.list.len() - 1;
        }
        let (client, server) = self.others.unwrap_or((Some(hosts.0), Some(hosts.1)));
        self.others = Some((
            client.filter(|client| *client == hosts.0),
            server.filter(|server| *server == hosts.1),
        ));
        MOST
    }

    /// Addresses of client and server as text.
    pub fn names(&self, number: usize) -> (String, String) {
        if let Some((client, server)) = self.list.get(number) {
            return (address(*client), address(*server));
        }
        let (client, server) = self.others.unwrap_or_default();
        (
            client.map_or_else(|| "many clients".to_owned(), address),
            server.map_or_else(|| "many servers".to_owned(), address),
        )
    }

    /// What all pairs have in common, as text.
    pub fn common(&self) -> (String, String) {
        let others = self.others.unwrap_or((None, None));
        let one = |of: fn(&Hosts) -> [u8; 16], others: Option<[u8; 16]>| {
            let first = self.list.first().map(of)?;
            let same = self.list.iter().all(|hosts| of(hosts) == first);
            let rest = self.others.is_none() || others == Some(first);
            (same && rest).then(|| address(first))
        };
        (
            one(|hosts| hosts.0, others.0).unwrap_or_else(|| "many clients".to_owned()),
            one(|hosts| hosts.1, others.1).unwrap_or_else(|| "many servers".to_owned()),
        )
    }

    /// As `Finding.who`.
    pub fn who(&self, number: usize) -> String {
        let (client, server) = self.names(number);
        format!("{client} > {server}")
    }
}

const fn as_numbers((client, server): Hosts) -> (u128, u128) {
    (u128::from_ne_bytes(client), u128::from_ne_bytes(server))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_is_for_all_others() {
        let mut pairs = Pairs::default();
        let mut number = |client: usize| pairs.number((client as u128).to_be_bytes(), 7u128.to_be_bytes());
        for client in 0..MOST + 3 {
            assert_eq!(number(client), client.min(MOST));
        }
        assert_eq!(number(5), 5);
        assert_eq!(pairs.who(5), "::5 > ::7");
        assert_eq!(pairs.who(MOST), "many clients > ::7");
        assert_eq!(pairs.common(), ("many clients".to_owned(), "::7".to_owned()));
    }
}
