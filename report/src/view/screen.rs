//! Properties of the output device.

/// Output device of a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// Number of columns, if it is a terminal.
    pub width: Option<usize>,
    /// Whether to print colours.
    pub colour: bool,
}
