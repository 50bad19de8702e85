//! Frames that a pcapng file says its interfaces lost.

/// Interfaces that are kept, of one section or by their numbers: a bound on memory, far above what captures have.
pub(crate) const MAX_INTERFACES: usize = 65_536;

/// One interface number; a new section may give it to another interface.
#[derive(Clone, Copy, Debug)]
struct Interface {
    number: u32,
    /// In the sections before.
    before: u64,
    /// By the statistics of this section, which count from the start of the capture on.
    statistics: u64,
    /// By the packets of this section, each since the one before it.
    packets: u64,
}

impl Interface {
    /// Statistics and packets of a section tell of the same frames.
    fn total(&self) -> u64 {
        self.before.saturating_add(self.statistics.max(self.packets))
    }
}

/// Losses by interface.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    interfaces: Vec<Interface>,
}

impl Lost {
    /// A statistics block says that so many were lost until then.
    pub fn statistics(&mut self, number: u32, frames: u64) {
        if let Some(interface) = self.interface(number) {
            interface.statistics = interface.statistics.max(frames);
        }
    }

    /// A packet says that so many were lost between it and the one before it.
    pub fn before_packet(&mut self, number: u32, frames: u64) {
        if let Some(interface) = self.interface(number) {
            interface.packets = interface.packets.saturating_add(frames);
        }
    }

    /// Another section begins: its counters begin anew.
    pub fn next_section(&mut self) {
        for interface in &mut self.interfaces {
            interface.before = interface.total();
            (interface.statistics, interface.packets) = (0, 0);
        }
    }

    /// (interface, frames) of all that told of any number, 0 too.
    pub fn totals(&self) -> impl Iterator<Item = (u32, u64)> {
        self.interfaces.iter().map(|i| (i.number, i.total()))
    }

    fn interface(&mut self, number: u32) -> Option<&mut Interface> {
        let place = match self.interfaces.iter().position(|i| i.number == number) {
            Some(place) => place,
            None if self.interfaces.len() == MAX_INTERFACES => return None,
            None => {
                self.interfaces.push(Interface {
                    number,
                    before: 0,
                    statistics: 0,
                    packets: 0,
                });
                self.interfaces.len() - 1
            }
        };
        self.interfaces.get_mut(place)
    }
}
