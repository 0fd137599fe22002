//! How often samples are taken and how their callchains are found: words that both flags and events use.

/// How often to sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rate {
    /// Nothing was said: 4000 Hz, or what the kernel allows.
    #[default]
    Default,
    /// So many samples a second.
    Hz(u64),
    /// As many as the kernel allows.
    Max,
    /// One sample every so many events.
    Period(u64),
}

/// How callchains are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callchain {
    /// By frame pointers, in the kernel.
    Fp,
    /// From user registers and a copy of so many bytes of the stack, afterwards.
    Dwarf {
        /// The size of the copy.
        stack_size: u32,
    },
    /// From the last branch records in call-stack mode.
    Lbr,
}
