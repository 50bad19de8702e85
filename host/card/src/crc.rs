//! CRC-32 (IEEE 802.3) of words, lowest byte first.

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut value = i as u32;
        let mut bit = 0;
        while bit < 8 {
            value = value >> 1 ^ if value & 1 == 1 { 0xedb8_8320 } else { 0 };
            bit += 1;
        }
        table[i] = value;
        i += 1;
    }
    table
};

/// CRC-32 of words.
pub fn crc32(words: &[u32]) -> u32 {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    !bytes.fold(!0, |crc, byte| crc >> 8 ^ TABLE[usize::from(crc as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answer() {
        // "12345678" of the check value's nine digits, by zlib.
        assert_eq!(crc32(&[0x3433_3231, 0x3837_3635]), 0x9ae0_daaf);
        assert_eq!(crc32(&[]), 0);
    }
}
