//! What is known of where the text goes.

/// Where a view writes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// How many columns it has, where it is a terminal.
    pub width: Option<usize>,
    /// Whether it shows colours.
    pub colour: bool,
}
