//! The connections that a finding is about where it names hosts or services, not connections.

use std::net::{IpAddr, SocketAddr};

use weir_messages::v1::{Connection, Endpoint, Finding};

/// Hosts and services of a finding: `Finding.who`.
pub(super) struct About {
    places: Vec<Place>,
    /// A connection is between them; else one of its ends is one of them.
    is_pair: bool,
}

/// A host, or a service there.
#[derive(Clone, Copy)]
struct Place {
    address: IpAddr,
    port: Option<u16>,
}

impl About {
    /// None where a finding names neither: it is about the capture or its times.
    pub fn of(finding: &Finding) -> Option<Self> {
        // What follows a pair is a third host, for which its packets took another way.
        let who = finding.who.split(" to ").next().unwrap_or_default();
        let ends: Vec<&str> = who.split(" > ").collect();
        let places: Vec<Place> = ends
            .iter()
            .flat_map(|end| end.split(", "))
            .filter_map(Place::read)
            .collect();
        // Of "many clients > server" the server is known; a front end and a back end are two services.
        let is_pair = ends.len() == 2 && places.len() == 2 && places.iter().any(|place| place.port.is_none());
        (!places.is_empty()).then_some(Self { places, is_pair })
    }

    /// Whether it is about this connection.
    pub fn is_about(&self, connection: &Connection) -> bool {
        let ends = [&connection.client, &connection.server];
        let is_end = |place: &Place| ends.iter().any(|end| end.as_ref().is_some_and(|end| place.is(end)));
        match self.is_pair {
            true => self.places.iter().all(is_end),
            false => self.places.iter().any(is_end),
        }
    }
}

impl Place {
    fn read(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse() {
            return Some(Self { address, port: None });
        }
        let end: SocketAddr = text.parse().ok()?;
        Some(Self {
            address: end.ip(),
            port: Some(end.port()),
        })
    }

    fn is(&self, end: &Endpoint) -> bool {
        end.address.parse() == Ok(self.address) && self.port.is_none_or(|port| u32::from(port) == end.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_about_the_connections_of_its_hosts_and_services() {
        let end = |(address, port): (&str, u32)| {
            Some(Endpoint {
                address: address.into(),
                port,
            })
        };
        let rows = [
            (("10.0.0.1", 40_000), ("10.0.0.2", 80)),
            (("10.0.0.1", 40_001), ("10.0.0.3", 81)),
            (("2001:db8::1", 40_002), ("2001:db8::2", 80)),
            (("10.0.0.3", 40_003), ("10.0.0.4", 80)),
            (("10.0.0.5", 40_004), ("10.0.0.2", 443)),
        ];
        let about = |who: &str| {
            let finding = Finding {
                who: who.into(),
                ..Finding::default()
            };
            let about = About::of(&finding)?;
            let rows = (0..).zip(rows).filter(|(_, (client, server))| {
                about.is_about(&Connection {
                    client: end(*client),
                    server: end(*server),
                    ..Connection::default()
                })
            });
            Some(rows.map(|(row, _)| row).collect::<Vec<u32>>())
        };
        for (who, expected) in [
            ("10.0.0.2:80", vec![0]),
            ("10.0.0.2", vec![0, 4]),
            ("[2001:db8::2]:80", vec![2]),
            ("10.0.0.1, 2001:db8:0::2", vec![0, 1, 2]),
            ("10.0.0.1 > 10.0.0.2", vec![0]),
            ("10.0.0.2 > 10.0.0.1", vec![0]),
            ("10.0.0.5 > 10.0.0.2:443", vec![4]),
            ("10.0.0.5 > 10.0.0.2:80", vec![]),
            ("many clients > 10.0.0.2", vec![0, 4]),
            // A front end and what is behind it.
            ("10.0.0.3:81 > 10.0.0.4:80", vec![1, 3]),
            ("10.0.0.1 > 10.0.0.3 to 10.0.0.9", vec![1]),
        ] {
            assert_eq!(about(who), Some(expected), "{who}");
        }
        assert_eq!([about(""), about("many clients")], [None, None]);
    }
}
