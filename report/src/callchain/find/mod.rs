//! Turns the addresses of one worker's samples into frames, and chains of addresses into chains of
//! frames.

pub(crate) mod checked;
pub(crate) mod checks;
pub(crate) mod finder;
pub(crate) mod images;
