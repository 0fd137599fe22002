//! What an output needs of the profile: instead of an output format, all that counts reads this.

/// What an output needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The stack of every sample, whether rows show it or not.
    pub stacks: bool,
    /// Children and call trees, unless the user asks otherwise: the output is for people.
    pub callers: bool,
    /// Extra columns that disambiguate the requested ones: CPU modes of functions.
    pub companions: bool,
    /// The letter of the CPU mode in front of the names of functions, in place of such a column.
    pub marks: bool,
    /// Callers at addresses where nothing is mapped one by one; otherwise they are one caller.
    pub unmapped: bool,
    /// Whole stacks, each beginning with the sampled instruction; frames with addresses and source
    /// lines, and what distinguishes modules. It comes with `stacks`.
    pub addresses: bool,
}

impl Needs {
    pub const NONE: Self = Self {
        stacks: false,
        callers: false,
        companions: false,
        marks: false,
        unmapped: false,
        addresses: false,
    };
}
