//! What goes: hours that are too old, the oldest hours of a store that is too large or of a disk that is full.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use crate::manifest::{Commit, StoredFile};
use crate::{Store, StoreError, hour};

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Rows, by table.
    pub rows: BTreeMap<String, u64>,
    /// Their files' bytes.
    pub bytes: u64,
    /// Up to this hour (`YYYY-MM-DDTHH`).
    pub to: String,
}

impl Expired {
    /// As if both had been removed at once.
    pub fn add(&mut self, more: Self) {
        for (table, rows) in more.rows {
            *self.rows.entry(table).or_default() += rows;
        }
        self.bytes += more.bytes;
        self.to = std::mem::take(&mut self.to).max(more.to);
    }
}

/// UTC ns since 1970.
fn nanos(time: SystemTime) -> i64 {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as i64)
}

/// So long before a time (UTC ns).
fn since(now: i64, keep: Duration) -> i64 {
    now.saturating_sub(i64::try_from(keep.as_nanos()).unwrap_or(i64::MAX))
}

/// The first hour that is not older than `keep` at `now` (UTC ns). A stretch longer than that without any row does not count:
/// the clock has jumped ahead, or nobody measured; what is before it goes as time passes behind it. What is
/// later than `now` tells nothing: the clock was wrong before.
fn first_kept<'a>(files: impl Iterator<Item = &'a StoredFile>, now: i64, keep: Duration) -> i64 {
    let mut hours: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    for file in files.filter(|file| file.from <= now) {
        let (from, to) = hours.entry(file.hour()).or_insert((file.from, file.to));
        (*from, *to) = ((*from).min(file.from), (*to).max(file.to));
    }
    let (mut oldest, mut later) = (since(now, keep), now);
    for (hour, (from, to)) in hours.into_iter().rev() {
        let silence = later.saturating_sub(to);
        if since(later, keep) > to {
            oldest = oldest.saturating_sub(silence);
        }
        if hour < hour::of(oldest) {
            break;
        }
        later = from;
    }
    hour::of(oldest)
}

impl Store {
    /// Remove what is over the limits at `now`, because somebody asks for it. The time of rows is that of their traffic.
    pub fn expire(&mut self, now: SystemTime) -> Result<Option<Expired>, StoreError> {
        let oldest = self.options.keep.map(|keep| hour::of(since(nanos(now), keep)));
        self.expire_before(oldest)
    }

    /// [`Self::expire`] of a daemon, which goes on by itself when the clock is wrong: a stretch longer than what is kept, without
    /// any row, makes nothing old.
    pub fn expire_live(&mut self, now: SystemTime) -> Result<Option<Expired>, StoreError> {
        let oldest = self
            .options
            .keep
            .map(|keep| first_kept(self.manifest.files(), nanos(now), keep));
        self.expire_before(oldest)
    }

    /// Remove hours before this one, and the oldest while there is too much.
    fn expire_before(&mut self, oldest: Option<i64>) -> Result<Option<Expired>, StoreError> {
        let most = self.options.keep_bytes.unwrap_or(u64::MAX);
        let mut bytes = self.manifest.bytes();
        let mut going = Vec::new();
        for group in self.oldest_first() {
            let too_old = oldest.is_some_and(|oldest| group[0].hour() < oldest);
            if !too_old && bytes <= most {
                break;
            }
            bytes -= group.iter().map(|file| file.bytes).sum::<u64>();
            going.extend(group);
        }
        self.remove(going)
    }

    /// Room on a full disk: first what is only kept for readers, then the oldest rows, but none of the last commit that
    /// had any: it was acknowledged a moment ago. False if there is nothing left that could go.
    pub(crate) fn make_room(&mut self) -> Result<bool, StoreError> {
        if self.purge()? {
            return Ok(true);
        }
        let mut groups = self.oldest_first();
        for group in &mut groups {
            group.retain(|file| !self.manifest.is_newest(file));
        }
        let Some(oldest) = groups.into_iter().find(|group| !group.is_empty()) else {
            return Ok(false);
        };
        self.use_reserve()?;
        if let Some(expired) = self.remove(oldest)? {
            self.made_room.get_or_insert_default().add(expired);
        }
        self.purge()?;
        self.keep_reserve();
        Ok(true)
    }

    /// What was removed to make room on a full disk since this was last asked.
    pub const fn made_room(&mut self) -> Option<Expired> {
        self.made_room.take()
    }

    /// All files in groups that go together, the oldest first: whole hours, or, if there is only one, its files one by
    /// one.
    fn oldest_first(&self) -> Vec<Vec<StoredFile>> {
        let mut hours: BTreeMap<i64, Vec<StoredFile>> = BTreeMap::new();
        for file in self.manifest.files() {
            hours.entry(file.hour()).or_default().push(file.clone());
        }
        let Some((_, mut last)) = hours.pop_last() else {
            return Vec::new();
        };
        last.sort_by_key(|file| file.to);
        let groups = hours.into_values();
        groups.chain(last.into_iter().map(|file| vec![file])).collect()
    }

    fn remove(&mut self, going: Vec<StoredFile>) -> Result<Option<Expired>, StoreError> {
        let Some(last) = going.last() else {
            return Ok(None);
        };
        let to = last
            .partition()
            .map_or_else(String::new, |(_, _, hour)| hour.to_owned());
        let mut expired = Expired {
            to,
            ..Expired::default()
        };
        for file in &going {
            expired.bytes += file.bytes;
            if let Some((table, _, _)) = file.partition() {
                *expired.rows.entry(table.name().to_owned()).or_default() += file.rows;
            }
        }
        let commit = Commit {
            number: self.manifest.next,
            remove: going.into_iter().map(|file| file.path).collect(),
            expired: expired.rows.clone(),
            ..Commit::default()
        };
        self.decide(&commit)?;
        self.carry_out(&commit.remove, &[])?;
        Ok(Some(expired))
    }
}
