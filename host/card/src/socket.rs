//! Registers of the simulated card, over its Unix socket (`docs/src/nic-sim.md`).
//!
//! ```text
//! request   version u8, operation u8 (1 read, 2 write), tag u16, address u32, value u32
//! answer    version u8, status u8 (0 done, 1 refused, 2 malformed), tag u16, value u32
//! ```

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::access::{AccessError, Registers};
use crate::registers::Register;

const VERSION: u8 = 1;
const READ: u8 = 1;
const WRITE: u8 = 2;
/// A simulated card that does not answer for so long is gone.
const PATIENCE: Duration = Duration::from_secs(30);

/// The registers of a simulated card.
#[derive(Debug)]
pub struct SocketRegisters {
    stream: UnixStream,
    tag: u16,
    /// After an error the place in the stream is lost.
    broken: bool,
}

impl SocketRegisters {
    /// Connect to the socket of `weir nic-sim --socket PATH`.
    ///
    /// # Errors
    /// [`AccessError::Link`] when nobody listens there.
    pub fn connect(path: &Path) -> Result<Self, AccessError> {
        let stream = UnixStream::connect(path)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
            .map_err(AccessError::Link)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(AccessError::Link)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(AccessError::Link)?;
        Ok(Self {
            stream,
            tag: 0,
            broken: false,
        })
    }

    fn access(&mut self, operation: u8, register: Register, value: u32) -> Result<u32, AccessError> {
        if self.broken {
            return Err(AccessError::Protocol("the connection failed before"));
        }
        self.broken = true;
        let value = self.exchange(operation, register, value)?;
        self.broken = false;
        value.ok_or(AccessError::Refused(register))
    }

    fn exchange(&mut self, operation: u8, register: Register, value: u32) -> Result<Option<u32>, AccessError> {
        self.tag = self.tag.wrapping_add(1);
        let mut request = [0; 12];
        request[..2].copy_from_slice(&[VERSION, operation]);
        request[2..4].copy_from_slice(&self.tag.to_le_bytes());
        request[4..8].copy_from_slice(&register.0.to_le_bytes());
        request[8..].copy_from_slice(&value.to_le_bytes());
        self.stream.write_all(&request).map_err(AccessError::Link)?;
        let mut answer = [0; 8];
        self.stream.read_exact(&mut answer).map_err(AccessError::Link)?;
        let [version, status, tag_low, tag_high, a, b, c, d] = answer;
        if version != VERSION {
            return Err(AccessError::Protocol("another version of the socket's protocol"));
        }
        if u16::from_le_bytes([tag_low, tag_high]) != self.tag {
            return Err(AccessError::Protocol("an answer to something else"));
        }
        match status {
            0 => Ok(Some(u32::from_le_bytes([a, b, c, d]))),
            1 => Ok(None),
            _ => Err(AccessError::Protocol("it did not understand the request")),
        }
    }
}

impl Registers for SocketRegisters {
    fn read32(&mut self, register: Register) -> Result<u32, AccessError> {
        self.access(READ, register, 0)
    }

    fn write32(&mut self, register: Register, value: u32) -> Result<(), AccessError> {
        self.access(WRITE, register, value).map(|_| ())
    }
}
