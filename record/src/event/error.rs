//! Why an event spec cannot be used.

use thiserror::Error;

/// Why an event spec cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SpecError {
    /// Nobody has such an event.
    #[error("there is no event '{name}'{}", hint.as_ref().map(|h| format!("; did you mean '{h}'?")).unwrap_or_default())]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest name there is.
        hint: Option<String>,
    },
    /// A letter after the colon that is no modifier.
    #[error("'{modifier}' in '{spec}' is no modifier; they are u k h G H p P D I e")]
    Modifier {
        /// The whole spec.
        spec: String,
        /// The letter.
        modifier: char,
    },
    /// A modifier that needs what rec does not do.
    #[error("modifier '{modifier}' in '{spec}' is for groups of events, which rec does not record")]
    GroupModifier {
        /// The whole spec.
        spec: String,
        /// The letter.
        modifier: char,
    },
    /// More `p` than the ABI has levels.
    #[error("'{spec}' has more than three p; ppp is the most exact there is")]
    TooPrecise {
        /// The whole spec.
        spec: String,
    },
    /// A kind of event that perf record knows and rec does not.
    #[error("'{spec}' is {what}, which perf record knows and rec does not record")]
    NotBuilt {
        /// The whole spec.
        spec: String,
        /// What kind of event it is.
        what: &'static str,
    },
    /// Nothing between two commas.
    #[error("an event name is missing in '{list}'")]
    Empty {
        /// The whole list.
        list: String,
    },
}
