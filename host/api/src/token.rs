//! Opaque tokens: a version, what the token is for, some words and a checksum, in hex.

use std::fmt::Write as _;

use crate::checksum::fnv1a;

const VERSION: u8 = 1;

/// What a token is for; one kind is never taken for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Purpose {
    Resume = 1,
    RecordPage = 2,
    ListPage = 3,
}

/// Make a token.
pub(crate) fn encode<const N: usize>(purpose: Purpose, words: [u64; N]) -> String {
    let mut bytes = vec![VERSION, purpose as u8];
    bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
    bytes.extend(fnv1a(&bytes).to_be_bytes());
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// The words of a token that [`encode`] made for the same purpose.
pub(crate) fn decode<const N: usize>(purpose: Purpose, token: &str) -> Option<[u64; N]> {
    if token.len() != 2 * (2 + 8 * N + 4) || !token.is_ascii() {
        return None;
    }
    let mut words = [0; N];
    for (index, word) in words.iter_mut().enumerate() {
        let at = 2 * (2 + 8 * index);
        *word = u64::from_str_radix(token.get(at..at + 16)?, 16).ok()?;
    }
    // Comparing the whole encoding also checks version, purpose, checksum and spelling.
    (encode(purpose, words) == token).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_and_nothing_else_does() {
        let token = encode(Purpose::Resume, [1, u64::MAX, 3]);
        assert_eq!(decode(Purpose::Resume, &token), Some([1, u64::MAX, 3]));
        assert_eq!(decode::<3>(Purpose::RecordPage, &token), None);
        assert_eq!(decode::<2>(Purpose::Resume, &token), None);
        for at in 0..token.len() {
            let mut wrong = token.clone().into_bytes();
            wrong[at] = if wrong[at] == b'0' { b'1' } else { b'0' };
            let wrong = String::from_utf8_lossy(&wrong).into_owned();
            assert_eq!(decode::<3>(Purpose::Resume, &wrong), None, "{wrong}");
        }
        for wrong in ["", "é", "zz", &token.to_uppercase(), &format!("+{}", &token[1..])] {
            assert_eq!(decode::<3>(Purpose::Resume, wrong), None, "{wrong}");
        }
    }
}
