//! Causes, and the time that is charged to each.

/// Causes, in the order of [`Charges`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// The sending application had nothing to send.
    Application,
    /// The sender's buffer was full of unacknowledged data.
    SendBuffer,
    /// Nagle's algorithm waited for an ACK.
    Nagle,
    /// The congestion window was growing from its start.
    SlowStart,
    /// The congestion window was below what an earlier loss had cut it from, or growing by and by.
    CongestionWindow,
    /// A lost segment was being recovered.
    Recovery,
    /// The receiver's window was used up.
    ReceiverWindow,
    /// The receiver's window was below one segment.
    SmallWindow,
    /// The receiver's window was 0.
    ZeroWindow,
    /// The link was busy.
    Bandwidth,
    Unknown,
}

impl Cause {
    const COUNT: usize = Self::Unknown as usize + 1;
}

/// ns by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charges([u64; Cause::COUNT]);

impl Charges {
    pub fn add(&mut self, cause: Cause, ns: u64) {
        let sum = &mut self.0[cause as usize];
        *sum = sum.saturating_add(ns);
    }

    /// What was charged to one cause is another's.
    pub fn rename(&mut self, from: Cause, to: Cause) {
        let ns = std::mem::take(&mut self.0[from as usize]);
        self.add(to, ns);
    }

    pub fn join(&mut self, other: &Self) {
        for (sum, ns) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(ns);
        }
    }

    pub const fn of(&self, cause: Cause) -> u64 {
        self.0[cause as usize]
    }

    pub fn sum(&self) -> u64 {
        self.0.iter().fold(0, |sum, ns| sum.saturating_add(*ns))
    }

    /// The receiver's window in all its forms.
    pub const fn receiver(&self) -> u64 {
        self.of(Cause::ReceiverWindow).saturating_add(self.closed())
    }

    /// The receiver's window closed or below one segment.
    pub const fn closed(&self) -> u64 {
        self.of(Cause::SmallWindow).saturating_add(self.of(Cause::ZeroWindow))
    }

    /// The sender's own limits.
    pub const fn sender(&self) -> u64 {
        self.of(Cause::SendBuffer).saturating_add(self.of(Cause::Nagle))
    }

    /// The congestion window in all its forms.
    pub const fn congestion(&self) -> u64 {
        self.of(Cause::SlowStart)
            .saturating_add(self.of(Cause::CongestionWindow))
            .saturating_add(self.of(Cause::Recovery))
    }
}

/// What a transfer was limited by.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Charged {
    pub by: Charges,
    /// Time that packets waited in queues, ns.
    pub queueing: u64,
    /// Of the time of the receiver's window, and of the send buffer: that in which most of each round trip was a queue, ns. They were as
    /// full as the queue let them be, and the link was busy.
    pub queued_window: u64,
    pub queued_buffer: u64,
    /// Of the application's time, that in which an ACK of which no record tells may have been waited for; and of that which is not known, what may
    /// be the application's, ns.
    pub doubtful: u64,
    /// Pauses of the application in which nothing was sent for as long as a user may think, ns.
    pub quiet: u64,
    /// The longest pause of the application, ns.
    pub longest: u64,
}

impl Charged {
    /// Time in which the link was busy, whatever was full besides, ns.
    pub const fn busy(&self) -> u64 {
        self.by
            .of(Cause::Bandwidth)
            .saturating_add(self.queued_window)
            .saturating_add(self.queued_buffer)
    }

    /// Time of a full window beyond the link's, ns.
    pub const fn window(&self) -> u64 {
        self.by.of(Cause::ReceiverWindow).saturating_sub(self.queued_window)
    }

    /// Time in which data was under way, ns.
    pub fn under_way(&self) -> u64 {
        self.by.sum() - self.by.of(Cause::Application)
    }

    /// Another transfer.
    pub fn join(&mut self, other: &Self) {
        self.by.join(&other.by);
        self.queueing = self.queueing.saturating_add(other.queueing);
        self.queued_window = self.queued_window.saturating_add(other.queued_window);
        self.queued_buffer = self.queued_buffer.saturating_add(other.queued_buffer);
        self.doubtful = self.doubtful.saturating_add(other.doubtful);
        self.quiet = self.quiet.saturating_add(other.quiet);
        self.longest = self.longest.max(other.longest);
    }

    /// A transfer that had one limit.
    pub fn one(cause: Cause, ns: u64) -> Self {
        let mut one = Self::default();
        one.by.add(cause, ns);
        one
    }
}

/// Make the charges add up to `total`. They do, unless a record was lost.
pub(super) fn balance(charges: &mut Charges, total: u64) {
    let sum = charges.sum();
    if sum < total {
        charges.add(Cause::Unknown, total - sum);
    }
    let mut over = sum.saturating_sub(total);
    for ns in charges.0.iter_mut().rev() {
        let less = over.min(*ns);
        *ns -= less;
        over -= less;
    }
    debug_assert_eq!(charges.sum(), total);
}
