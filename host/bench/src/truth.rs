//! What a generated capture contains, written beside it as JSON.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Raised when the generator makes other files than before, so that cached captures are made again.
pub const GENERATOR_VERSION: u32 = 1;

/// Totals of one capture, counted by the generator as it writes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Truth {
    /// Version of the generator.
    pub generator: u32,
    /// Kind of capture: `connections`, `minimum`, `bulk`.
    pub name: String,
    /// Scale asked for.
    pub scale: f64,
    /// Seed asked for.
    pub seed: u64,
    /// Frames in the file; all are TCP over IPv4 over Ethernet.
    pub packets: u64,
    /// Octets of all frames, without the headers of the capture file.
    pub frame_bytes: u64,
    /// TCP connections; each begins with its SYN in the file.
    pub connections: u64,
    /// Connections that end with FIN both ways; the others are open at the end of the file.
    pub closed: u64,
    /// Largest number of connections open at once.
    pub concurrent: u64,
    /// Requests of a client that a server answered, or (`minimum`) that the file ends before the answer to.
    pub transactions: u64,
    /// Octets of TCP payload, client to server, every copy seen counted.
    pub payload_client_to_server: u64,
    /// Octets of TCP payload, server to client, every copy seen counted.
    pub payload_server_to_client: u64,
    /// Segments with payload that their sender sent again: `lost_upstream` + `lost_downstream`.
    pub retransmitted_segments: u64,
    /// Of these, the first copy was lost before the tap: the file has the second alone, later than its place.
    pub lost_upstream: u64,
    /// Of these, the first copy was lost after the tap: the file has both.
    pub lost_downstream: u64,
    /// Repeated SYNs (both copies in the file).
    pub retransmitted_syns: u64,
    /// Pure ACKs that carry SACK blocks.
    pub sack_segments: u64,
    /// Time of the first frame, ns since 1970 UTC.
    pub first_time_ns: u64,
    /// Time of the last frame, ns since 1970 UTC.
    pub last_time_ns: u64,
}

impl Truth {
    /// Length of the capture file: its header, and 16 octets before each frame.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        24 + 16 * self.packets + self.frame_bytes
    }

    /// Where the truth of a capture lies: `FILE.truth.json`.
    #[must_use]
    pub fn path_for(capture: &Path) -> PathBuf {
        let mut name = capture.as_os_str().to_owned();
        name.push(".truth.json");
        name.into()
    }

    /// Writes the truth beside its capture.
    pub fn save(&self, capture: &Path) -> Result<(), Error> {
        let path = Self::path_for(capture);
        let text = serde_json::to_string_pretty(self)
            .map_err(|e| Error::new(format!("cannot write {}: {e}", path.display())))?;
        std::fs::write(&path, text + "\n").map_err(|e| Error::file("cannot write", &path, &e))
    }

    /// Reads the truth that lies beside a capture.
    pub fn load(capture: &Path) -> Result<Self, Error> {
        let path = Self::path_for(capture);
        let text = std::fs::read_to_string(&path).map_err(|e| Error::file("cannot read", &path, &e))?;
        serde_json::from_str(&text)
            .map_err(|e| Error::new(format!("{}: {e}; generate the capture again", path.display())))
    }
}
