//! A firmware image, checked before it goes to a card. The card checks it again.

use std::fmt;

use crate::crc::crc32;
use crate::protocol::{ABI_MAJOR, EXECUTION_BASE, IMAGE_HEADER_BYTES, IMAGE_MAGIC, IMAGE_MAX_BYTES, ImageHeader};

/// A good image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its header.
    pub header: ImageHeader,
    words: Vec<u32>,
}

/// Why bytes are no good image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageProblem {
    /// Not a whole number of words, too short, or longer than a slot.
    Size(usize),
    /// It does not begin as an image does.
    Magic(u32),
    /// The header is damaged.
    HeaderCrc,
    /// The header tells another length.
    Length(u32),
    /// It is for another place in memory.
    Address(u32),
    /// The body is damaged.
    BodyCrc,
    /// It is made for another major version of the registers.
    Abi(u32),
}

impl fmt::Display for ImageProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(bytes) => write!(
                f,
                "{bytes} bytes, not {IMAGE_HEADER_BYTES} to {IMAGE_MAX_BYTES} in whole words"
            ),
            Self::Magic(word) => write!(f, "it begins with {word:#010x}, not 'WFW1'"),
            Self::HeaderCrc => f.write_str("its header is damaged"),
            Self::Length(bytes) => write!(f, "its header tells of {bytes} bytes, which it does not have"),
            Self::Address(address) => write!(f, "it is made for address {address:#010x}"),
            Self::BodyCrc => f.write_str("its body is damaged"),
            Self::Abi(abi) => write!(
                f,
                "it is made for registers of version {}.{}, this program knows {ABI_MAJOR}",
                abi >> 16,
                abi & 0xffff
            ),
        }
    }
}

impl Image {
    /// Check the bytes of an image file.
    ///
    /// # Errors
    /// The first problem.
    pub fn parse(bytes: &[u8]) -> Result<Self, ImageProblem> {
        let size = bytes.len();
        let fits = size > IMAGE_HEADER_BYTES as usize && size <= IMAGE_MAX_BYTES as usize && size.is_multiple_of(4);
        if !fits {
            return Err(ImageProblem::Size(size));
        }
        let words: Vec<u32> = bytes
            .chunks_exact(4)
            .map(|chunk| chunk.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte)))
            .collect();
        let (head, body) = words
            .split_first_chunk::<{ IMAGE_HEADER_BYTES as usize / 4 }>()
            .ok_or(ImageProblem::Size(size))?;
        let header = ImageHeader::decode(head);
        if header.magic != IMAGE_MAGIC {
            return Err(ImageProblem::Magic(header.magic));
        }
        if header.header_crc != crc32(&head[..head.len() - 1]) {
            return Err(ImageProblem::HeaderCrc);
        }
        if header.length as usize != 4 * body.len() {
            return Err(ImageProblem::Length(header.length));
        }
        if header.load_address != EXECUTION_BASE {
            return Err(ImageProblem::Address(header.load_address));
        }
        if header.body_crc != crc32(body) {
            return Err(ImageProblem::BodyCrc);
        }
        if header.abi >> 16 != ABI_MAJOR {
            return Err(ImageProblem::Abi(header.abi));
        }
        Ok(Self { header, words })
    }

    /// Its words, header first.
    pub fn words(&self) -> &[u32] {
        &self.words
    }
}
