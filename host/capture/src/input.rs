//! A window that slides over a byte stream.

use std::io::{self, Read};

/// Largest piece that may be asked for: more than any packet block of a sane capture, and a bound
/// on what a damaged length can make us allocate.
pub(crate) const MAX_PIECE: usize = 16 << 20;
/// What the processor's cache still holds when the packets are read.
const WINDOW: usize = 1 << 18;

/// Bytes read ahead of a stream; pieces are contiguous slices of it.
pub(crate) struct Input {
    reader: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset in the stream of the buffer.
    offset: u64,
}

impl Input {
    pub fn new(reader: Box<dyn Read + Send>) -> Self {
        Self {
            reader,
            buffer: vec![0; WINDOW],
            start: 0,
            end: 0,
            offset: 0,
        }
    }

    /// Offset of the next byte.
    pub fn offset(&self) -> u64 {
        self.offset + self.start as u64
    }

    /// Make `n` bytes available if the stream has them; returns how many are (at most `n`).
    #[inline]
    pub fn fill(&mut self, n: usize) -> io::Result<usize> {
        if self.end - self.start >= n {
            Ok(n)
        } else {
            self.read_more(n)
        }
    }

    #[cold]
    fn read_more(&mut self, n: usize) -> io::Result<usize> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.offset += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        if n > self.buffer.len() {
            self.buffer.resize(n.min(MAX_PIECE).next_power_of_two(), 0);
        }
        while self.end < n.min(self.buffer.len()) {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(n.min(self.end))
    }

    /// The bytes that [`Self::fill`] made available, from `from` to `to`.
    #[inline]
    pub fn peek(&self, from: usize, to: usize) -> &[u8] {
        &self.buffer[self.start + from..self.start + to]
    }

    /// Bytes that can be had without reading.
    pub fn available(&self) -> usize {
        self.end - self.start
    }

    /// Go on by `n` bytes, which are available.
    #[inline]
    pub fn skip(&mut self, n: usize) {
        self.start += n;
    }

    /// The bytes from `from` to `to`, and go on by `n`, all of them available.
    #[inline]
    pub fn take(&mut self, from: usize, to: usize, n: usize) -> &[u8] {
        let start = self.start;
        self.skip(n);
        &self.buffer[start + from..start + to]
    }
}
