//! Events that packets tell of beside the flow of control.

/// An event beside the flow of control. Those of one place come in this order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SideEvent {
    /// An interrupt, an exit of a virtual machine and others of Intel's event trace.
    ControlFlow {
        /// What happened: Intel's number of it.
        kind: u8,
        /// Vector of an interrupt.
        vector: u8,
        /// The trace has its address.
        has_ip: bool,
        /// Types and values of its data.
        data: Vec<(u8, u64)>,
    },
    /// Interrupts were enabled or disabled.
    InterruptFlag {
        /// They are enabled.
        is_set: bool,
        /// Target of the branch with which they were.
        branch_to: Option<u64>,
    },
    /// A PSB, at this offset in the part.
    Psb(usize),
    /// The ratio of the core's clock to the bus clock is another.
    Cbr(u8),
    /// Operands of `mwait`.
    MWait(u64),
    /// Entry to a C-state.
    Pwre(u16),
    /// The core's clock stopped.
    ExStop {
        /// The trace has its address.
        has_ip: bool,
    },
    /// Exit from a C-state.
    Pwrx(u64),
    /// Begin, end or abort of a transaction.
    Transaction,
    /// A value that the program wrote.
    PtWrite {
        /// The value.
        value: u64,
        /// The trace has its address.
        has_ip: bool,
    },
}

/// Events that wait for their address.
#[derive(Debug, Default)]
pub(super) struct WaitingEvents {
    pub(super) events: Vec<SideEvent>,
    /// Data of the next event of the flow of control.
    pub(super) data: Vec<(u8, u64)>,
    /// The ratio of the clocks that was told.
    pub(super) ratio: u8,
    /// Interrupts are enabled: as was told, and as packets say of what comes.
    pub(super) are_interrupts_enabled: (bool, bool),
}

impl WaitingEvents {
    /// Forgets all but the ratio of the clocks.
    pub(super) fn clear(&mut self) {
        self.events.clear();
        self.data.clear();
        self.are_interrupts_enabled.0 = self.are_interrupts_enabled.1;
    }

    /// Returns those in front of which the clocks had this ratio: none.
    pub(super) fn of_ratio(ratio: u8) -> Self {
        Self { ratio, ..Self::default() }
    }

    /// Takes what a PSB+ states.
    pub(super) fn set_interrupts(&mut self, are_enabled: bool) {
        self.are_interrupts_enabled = (are_enabled, are_enabled);
    }
}
