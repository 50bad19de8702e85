//! Ends that are known for servers (section 4.3).

use std::collections::HashSet;

use crate::meta::End;

/// Addresses and ports that answer others. Which end of a connection is its server, where its handshake was not seen, is
/// told by these before ports are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Servers(HashSet<End>);

impl Servers {
    /// Whether `source`, not `destination`, is the server; `None` where both or neither are known for one.
    pub(crate) fn is_source(&self, source: &End, destination: &End) -> Option<bool> {
        if self.0.is_empty() {
            return None;
        }
        let is_source = self.0.contains(source);
        (is_source != self.0.contains(destination)).then_some(is_source)
    }
}

impl FromIterator<End> for Servers {
    fn from_iter<T: IntoIterator<Item = End>>(ends: T) -> Self {
        Self(ends.into_iter().collect())
    }
}
