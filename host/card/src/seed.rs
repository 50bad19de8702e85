//! The secret seeds of the card's hashes: of the flow keys, of the sketch.

use std::fs::File;
use std::io::Read;

use crate::error::CardError;
use crate::protocol::Key;

const KEY_WORDS: usize = Key::Seed12 as usize - Key::Seed0 as usize + 1;
const SKETCH_WORDS: usize = Key::SketchSeed5 as usize - Key::SketchSeed0 as usize + 1;
const SOURCE: &str = "/dev/urandom";

/// Seeds at random, as values of CONFIGURE. Never one whose words are all 0: with it all flows would have one key.
pub(crate) fn draw() -> Result<Vec<(Key, u32)>, CardError> {
    let mut source = File::open(SOURCE).map_err(CardError::Random)?;
    let mut seeds = words::<KEY_WORDS>(&mut source, Key::Seed0)?.to_vec();
    seeds.extend(words::<SKETCH_WORDS>(&mut source, Key::SketchSeed0)?);
    Ok(seeds)
}

fn words<const N: usize>(source: &mut File, first: Key) -> Result<[(Key, u32); N], CardError> {
    loop {
        let mut bytes = [[0; 4]; N];
        source.read_exact(bytes.as_flattened_mut()).map_err(CardError::Random)?;
        let seed = std::array::from_fn(|i| {
            let key = Key::from_u32(first as u32 + i as u32).unwrap_or(first);
            (key, u32::from_le_bytes(bytes[i]))
        });
        if seed.iter().any(|&(_, word)| word != 0) {
            return Ok(seed);
        }
    }
}
