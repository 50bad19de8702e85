//! What goes: hours that are too old, the oldest hours of a store that is too large or of a disk that is full.

use std::collections::BTreeMap;
use std::time::SystemTime;

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

impl Store {
    /// Remove what is over the limits at `now`. The time of rows is that of their traffic.
    pub fn expire(&mut self, now: SystemTime) -> Result<Option<Expired>, StoreError> {
        let now = now
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as i64);
        let oldest = self.options.keep.map(|keep| {
            let keep = i64::try_from(keep.as_nanos()).unwrap_or(i64::MAX);
            hour::of(now.saturating_sub(keep))
        });
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
