//! How long the slowest link of a leg takes for a packet.
//!
//! Two packets, one right behind the other, leave such a link as far apart as it takes for the second (packet pairs: Keshav 1991,
//! Dovrolis, Ramanathan and Moore 2001). What comes further apart than it was sent has waited there, and most of it shows the same
//! time for each byte. No two pass at once: where they do, a shaper has let them (or stamps are coarse).

/// Spacings that must be alike, and how many of all.
const LEAST: u32 = 8;
const SHARE: u32 = 2;
/// Pairs that passed ten times as fast: one, and one in so many, may be a host that was late.
const FAST: f64 = 10.0;
const LATE: u32 = 200;
/// Steps of the spacings for each power of two, and powers, from 2⁻⁴ ns for each byte (128 Gbit/s) on.
const STEPS: usize = 8;
const POWERS: usize = 24;
const LOWEST: f64 = 1.0 / 16.0;

/// Of a larger frame and a smaller one before it: bytes between them, and ns, in which no clock drifts far.
const LARGER: u16 = 64;
const SOON: u64 = 1_000_000_000;
/// Larger frames that must have taken longer.
const FEW: u32 = 3;

/// Spacings, ns for each byte of the second packet: how many of each step, and their sum.
type Spacings = Vec<(u32, f64)>;

fn add(spacings: &mut Spacings, each: f64) {
    let step = ((each / LOWEST).log2() * STEPS as f64).max(0.0) as usize;
    let (count, sum) = &mut spacings[step.min(STEPS * POWERS - 1)];
    *count = count.saturating_add(1);
    *sum += each;
}

/// How many are in steps whose mean is such.
fn number(spacings: &Spacings, is_such: impl Fn(f64) -> bool) -> u32 {
    let used = spacings.iter().filter(|(count, _)| *count > 0);
    let such = used.filter(|(count, sum)| is_such(sum / f64::from(*count)));
    such.map(|(count, _)| count).sum()
}

/// One direction of a leg.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    /// When the last packet was sent and seen.
    last: Option<(u64, u64)>,
    /// Of packets that came further apart than they were sent.
    waited: Spacings,
    /// Of all: the larger one of both spacings.
    passed: Spacings,
    /// Of larger frames behind a smaller one: how much longer than that they were on their way, ns for each byte more.
    grown: Spacings,
    /// The last frame that was no larger than the one before: when it was sent, its way (with the offset of the clocks), and its bytes.
    small: Option<(u64, i64, u16)>,
    /// Bytes of the smallest frame.
    smallest: u16,
}

impl Link {
    /// Nothing known.
    pub fn new() -> Self {
        Self {
            last: None,
            waited: vec![(0, 0.0); STEPS * POWERS],
            passed: vec![(0, 0.0); STEPS * POWERS],
            grown: vec![(0, 0.0); STEPS * POWERS],
            small: None,
            smallest: u16::MAX,
        }
    }

    /// A frame of `wire` bytes, in about the order of sending. Times of the two taps are not compared with each other.
    pub fn add(&mut self, sent: u64, seen: u64, wire: u16) {
        let wire = wire.max(1);
        self.smallest = self.smallest.min(wire);
        self.compare(sent, seen.wrapping_sub(sent) as i64, wire);
        let Some((sent_before, seen_before)) = self.last.replace((sent, seen)) else {
            return;
        };
        let (Some(before), Some(behind)) = (sent.checked_sub(sent_before), seen.checked_sub(seen_before)) else {
            return;
        };
        let each = |ns: u64| ns as f64 / f64::from(wire);
        add(&mut self.passed, each(before.max(behind)));
        if before <= behind / 2 {
            add(&mut self.waited, each(behind));
        }
    }

    /// A larger frame takes longer than a smaller one on a slow link, whoever else is on it (Jacobson's pathchar, 1997).
    fn compare(&mut self, sent: u64, way: i64, wire: u16) {
        let small = self.small.filter(|(at, _, _)| sent.abs_diff(*at) <= SOON);
        match small {
            Some((_, least, bytes)) if wire >= bytes.saturating_add(LARGER) => {
                let longer = way.wrapping_sub(least).max(0) as f64;
                add(&mut self.grown, longer / f64::from(wire - bytes));
            }
            Some((_, _, bytes)) if wire > bytes => {}
            _ => self.small = Some((sent, way, wire)),
        }
    }

    /// ns for each byte; `None`: no slow link shows.
    fn each(&self) -> Option<f64> {
        let neighbours = self
            .waited
            .windows(2)
            .map(|two| (two[0].0 + two[1].0, two[0].1 + two[1].1));
        let (count, sum) = neighbours.max_by_key(|(count, _)| *count)?;
        let each = sum / f64::from(count.max(1));
        let all: u32 = self.waited.iter().map(|(count, _)| count).sum();
        let fast = number(&self.passed, |spacing| spacing * FAST <= each);
        (count >= LEAST && count >= all / SHARE && fast <= 1 + count / LATE).then_some(each)
    }

    /// Whether most of its larger frames took as much longer as over a link of so many ns for each byte.
    fn is_as_slow(&self, each: f64) -> bool {
        let faster = number(&self.grown, |longer| longer < each / 2.0);
        let alike = number(&self.grown, |longer| (each / 2.0..each * 2.0).contains(&longer));
        alike >= FEW && alike > faster
    }
}

/// What the smallest frames of either direction take on its slowest link, ns; 0 where no slow one shows. Where few came one behind the other
/// (ACKs), it shows by the sizes whether the link is that of the other direction.
pub(crate) fn passages(links: &[Link; 2]) -> [f64; 2] {
    let [forward, backward] = links.each_ref().map(Link::each);
    let also = |own: Option<f64>, other: Option<f64>, link: &Link| {
        let each = own.or_else(|| other.filter(|each| link.is_as_slow(*each)));
        each.unwrap_or(0.0) * f64::from(link.smallest)
    };
    [also(forward, backward, &links[0]), also(backward, forward, &links[1])]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the smallest frames take, as it shows by itself.
    fn own(link: &Link) -> f64 {
        passages(&[link.clone(), Link::new()])[0]
    }

    /// Bursts of ten full frames, 12 µs apart, each `gap` ns, and a small one before each; over a link that takes `each` ns for a
    /// byte, with a bucket of so many bytes that pass at once.
    fn passage(each: u64, bucket: u64, gap: u64) -> f64 {
        let mut link = Link::new();
        let (mut free, mut tokens, mut last) = (0u64, bucket, 0u64);
        for burst in 0..20u64 {
            for k in 0..11u64 {
                let sent = burst * gap + k * 12_000;
                let wire = if k == 0 { 66 } else { 1514 };
                tokens = bucket.min(tokens + (sent - last) / each);
                last = sent;
                let seen = if tokens >= wire && free <= sent {
                    tokens -= wire;
                    sent
                } else {
                    free = free.max(sent) + wire * each;
                    free
                };
                link.add(sent, seen + 5_000_000, wire as u16);
            }
        }
        own(&link)
    }

    #[test]
    fn a_slow_link_shows_what_small_frames_take_there() {
        // 8 and 2 Mbit/s.
        for each in [1000, 4000] {
            assert!((passage(each, 0, 100_000_000) - 66.0 * each as f64).abs() < 1.0);
        }
    }

    #[test]
    fn a_shaper_with_a_bucket_is_no_slow_link() {
        assert!(passage(4000, 4000, 1_000_000_000) < 1000.0);
    }

    #[test]
    fn packets_that_are_sent_far_apart_tell_nothing() {
        let mut link = Link::new();
        for k in 0..100 {
            link.add(k * 10_000_000, k * 10_000_000 + 7_000_000, 1514);
        }
        assert_eq!(own(&link), 0.0);
    }

    /// A host that is late now and then brings some packets nearer to each other.
    #[test]
    fn a_few_that_come_nearer_change_nothing() {
        let (mut link, mut free) = (Link::new(), 0);
        link.add(0, 5_000_000, 66);
        for k in 0..100u64 {
            let sent = 50_000_000 + k;
            free = sent.max(free) + 1514 * 1000;
            link.add(sent, free + 5_000_000 + if k % 20 == 7 { 1_000_000 } else { 0 }, 1514);
        }
        assert!((own(&link) - 66_000.0).abs() < 3000.0, "{}", own(&link));
    }

    /// Delays by chance are no link: their spacings are not alike.
    #[test]
    fn jitter_is_no_slow_link() {
        let (mut link, mut random, mut last) = (Link::new(), 1u64, 0);
        for k in 0..1000u64 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let sent = k / 10 * 50_000_000 + k % 10 * 1000;
            last = last.max(sent + (random >> 33) % 5_000_000);
            link.add(sent, last, if k % 10 == 0 { 66 } else { 1514 });
        }
        assert_eq!(own(&link), 0.0);
    }

    /// Bursts of full frames go over a link of 4 µs a byte, and small frames of two sizes come back over one of so many ns a byte.
    #[test]
    fn the_sizes_show_that_the_other_direction_is_as_slow() {
        let back = |each: u64, large: u64| {
            let mut links = [Link::new(), Link::new()];
            let mut free = 0;
            for k in 0..100u64 {
                let sent = k / 10 * 200_000_000 + k % 10 * 1000;
                free = sent.max(free) + 1514 * 4000;
                links[0].add(sent, free + 5_000_000, 1514);
                let wire = if k % 10 == 0 { large } else { 66 };
                links[1].add(free, free + 9_000_000 + wire * each, wire as u16);
            }
            passages(&links)[1] / 66.0
        };
        assert_eq!(back(4000, 200), 4000.0);
        assert_eq!(back(1000, 200), 0.0, "a faster one");
        assert_eq!(back(4000, 90), 0.0, "all of one size");
    }
}
