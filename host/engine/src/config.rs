//! Settings.

pub(crate) const SECOND: u64 = 1_000_000_000;

/// Settings of the engine; times in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Boot epoch in the flow ids.
    pub epoch: u16,
    /// Lane of the records, 0..16.
    pub lane: u8,
    /// Contexts, at most 2²⁴.
    pub contexts: u32,
    /// Timeout while the handshake is pending.
    pub handshake_timeout: u64,
    /// Timeout of an open TCP flow.
    pub idle_timeout: u64,
    /// How long a closed flow stays to take in late packets.
    pub linger: u64,
    /// Timeout of flows that are not TCP.
    pub other_timeout: u64,
    /// Write a PACKET record for every packet.
    pub digests: bool,
    /// VLAN ids are part of the key.
    pub vlan_in_key: bool,
    /// Seed of the flow hash.
    pub seed: u64,
}

impl Config {
    /// For the card and for software that stands in for it.
    pub const fn appliance() -> Self {
        Self {
            epoch: 0,
            lane: 0,
            contexts: 1 << 18,
            handshake_timeout: 90 * SECOND,
            idle_timeout: 900 * SECOND,
            linger: 4 * SECOND,
            other_timeout: 60 * SECOND,
            digests: false,
            vlan_in_key: true,
            seed: 0,
        }
    }

    /// For capture files: long timeouts, as many contexts as a flow id can name.
    pub const fn file() -> Self {
        Self {
            contexts: 1 << 24,
            handshake_timeout: 180 * SECOND,
            idle_timeout: 86_400 * SECOND,
            linger: 60 * SECOND,
            other_timeout: 120 * SECOND,
            ..Self::appliance()
        }
    }
}
