//! The secret seed of the flow keys' hash.

use std::fs::File;
use std::io::Read;

use crate::error::CardError;
use crate::protocol::Key;

const WORDS: usize = 13;
const SOURCE: &str = "/dev/urandom";

/// A seed at random, as values of CONFIGURE. Never one whose words are all 0: with it all flows would have one key.
pub(crate) fn draw() -> Result<[(Key, u32); WORDS], CardError> {
    const { assert!(Key::Seed12 as usize - Key::Seed0 as usize + 1 == WORDS) };
    let mut source = File::open(SOURCE).map_err(CardError::Random)?;
    loop {
        let mut bytes = [0; 4 * WORDS];
        source.read_exact(&mut bytes).map_err(CardError::Random)?;
        let mut words = bytes
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        let seed = std::array::from_fn(|i| {
            let key = Key::from_u32(Key::Seed0 as u32 + i as u32).unwrap_or(Key::Seed0);
            (key, words.next().unwrap_or(0))
        });
        if seed.iter().any(|&(_, word)| word != 0) {
            return Ok(seed);
        }
    }
}
