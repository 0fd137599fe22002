//! The names of functions: as files have them, by address, and as they are shown.

pub(crate) mod aliases;
pub(crate) mod coarse;
pub(crate) mod packed;
pub(crate) mod table;
