//! Internet checksums of frames that a box on the path changes.

/// Puts `value` into the byte at `at` and keeps the checksum at `check_at` right, as routers do: from the old value and
/// the new one (RFC 1624 3, equation 3). `start` is the first byte that the checksum covers. Without that much frame
/// nothing happens.
pub(crate) fn replace(frame: &mut [u8], start: usize, check_at: usize, at: usize, value: u8) {
    // The checksum sums words of two bytes, counted from `start`.
    let word_at = at - (at - start) % 2;
    let word = |frame: &[u8], at: usize| Some(u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?));
    let (Some(check), Some(old)) = (word(frame, check_at), word(frame, word_at)) else {
        return;
    };
    frame[at] = value;
    let Some(new) = word(frame, word_at) else { return };
    let mut sum = u32::from(!check) + u32::from(!old) + u32::from(new);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    frame[check_at..check_at + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::replace;
    use crate::frame::tests::tcp_frame;
    use crate::rng::Rng;

    fn sum(bytes: &[u8]) -> u32 {
        let words = bytes.chunks(2);
        words
            .map(|w| u32::from(w[0]) * 256 + w.get(1).map_or(0, |b| u32::from(*b)))
            .sum()
    }

    fn folded(mut sum: u32) -> u16 {
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// What the pseudo header adds (RFC 9293 3.1).
    fn pseudo(frame: &[u8]) -> u32 {
        sum(&frame[26..34]) + 6 + (frame.len() - 34) as u32
    }

    /// Both checksums of a frame without IP options are right.
    pub(crate) fn is_right(frame: &[u8]) -> bool {
        folded(sum(&frame[14..34])) == 0xffff && folded(sum(&frame[34..]) + pseudo(frame)) == 0xffff
    }

    /// A frame with right checksums, `options` and random addresses, ports, numbers and payload.
    pub(crate) fn checked_frame(rng: &mut Rng, flags: u8, options: &[u8]) -> Vec<u8> {
        assert_eq!(options.len() % 4, 0);
        let payload = rng.between(0, 9) as usize;
        let mut frame = tcp_frame(80, flags, rng.next_u64() as u32, options.len() + payload);
        frame[46] = (5 + options.len() as u8 / 4) << 4;
        for byte in frame.iter_mut().take(38).skip(26) {
            *byte = rng.next_u64() as u8;
        }
        frame[54..54 + options.len()].copy_from_slice(options);
        for byte in frame.iter_mut().skip(54 + options.len()) {
            *byte = rng.next_u64() as u8;
        }
        let ip = !folded(sum(&frame[14..34]));
        frame[24..26].copy_from_slice(&ip.to_be_bytes());
        let tcp = !folded(sum(&frame[34..]) + pseudo(&frame));
        frame[50..52].copy_from_slice(&tcp.to_be_bytes());
        frame
    }

    /// As right as summed anew, to the bit, whatever byte changes to whatever.
    #[test]
    fn an_adjusted_checksum_is_the_one_summed_anew() {
        for seed in 0..20_000 {
            let mut rng = Rng::new(seed, 0);
            let mut frame = checked_frame(&mut rng, 0x18, &[]);
            assert!(is_right(&frame));
            let extreme = [0, 0xff, rng.next_u64() as u8];
            let value = extreme[rng.between(0, 2) as usize];
            // The window, which nothing else of the frame depends on, and the type of service.
            for at in [48, 49] {
                replace(&mut frame, 34, 50, at, value);
                assert!(frame[at] == value && is_right(&frame), "seed {seed}");
            }
            replace(&mut frame, 14, 24, 15, value);
            assert!(frame[15] == value && is_right(&frame), "seed {seed}");
            let mut anew = frame.clone();
            anew[50..52].fill(0);
            let check = !folded(sum(&anew[34..]) + pseudo(&anew));
            assert_eq!(frame[50..52], check.to_be_bytes(), "seed {seed}");
        }
    }

    #[test]
    fn a_short_frame_stays() {
        let mut frame = vec![7; 20];
        replace(&mut frame, 14, 24, 15, 0);
        assert_eq!(frame, [7; 20]);
    }
}
