//! Which capture a file is, whatever it is called.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::StoreError;

/// Bytes looked at, at the begin, in the middle and at the end.
const LOOK: u64 = 1 << 20;

/// A name for the content of a file: of its size and of 1 MiB at its begin, in its middle and at its end (FNV-1a of
/// 128 bits). Two captures begin with packets of different times.
pub fn identify(path: &Path) -> Result<String, StoreError> {
    let failed = |error| StoreError::io("read", path)(error);
    // Before it is opened: that would wait for a pipe's other end.
    if path == Path::new("-") || !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(StoreError::NoFile(path.to_owned()));
    }
    let file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let mut hash = Fnv::default();
    hash.add(&size.to_le_bytes());
    for at in [0, (size / 2).saturating_sub(LOOK / 2), size.saturating_sub(LOOK)] {
        let mut bytes = vec![0; LOOK.min(size) as usize];
        file.read_exact_at(&mut bytes, at).map_err(failed)?;
        hash.add(&bytes);
    }
    Ok(format!("{:032x}", hash.0))
}

/// FNV-1a (draft-eastlake-fnv), 128 bits.
struct Fnv(u128);

impl Default for Fnv {
    fn default() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn content_counts_and_names_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str, content: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            identify(&path).unwrap()
        };
        assert_eq!(of("a", b"abc"), of("b", b"abc"));
        assert_ne!(of("a", b"abc"), of("b", b"abd"));
        assert_eq!(of("a", b""), of("b", b""));
        assert!(matches!(identify(folder.path()), Err(StoreError::NoFile(_))));
        assert!(matches!(identify(Path::new("-")), Err(StoreError::NoFile(_))));
        // A change in the middle of a large file is seen.
        let mut large = vec![7; 5 << 20];
        let before = of("a", &large);
        large[5 << 19] = 8;
        assert_ne!(of("b", &large), before);
        // FNV-1a 128 of "a" in the draft's test vectors.
        let mut hash = Fnv::default();
        hash.add(b"a");
        assert_eq!(hash.0, 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }
}
