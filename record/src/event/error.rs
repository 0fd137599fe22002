//! Errors in event specs, with their position in the text.

use std::fmt;

use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SpecError {
    pub problem: Box<Problem>,
    pub spec: String,
    pub list: String,
    /// Position in the list, in characters from 0.
    pub at: usize,
}

impl SpecError {
    /// Creates an error at byte `at` of `list`, in its part `spec`.
    pub(super) fn new(list: &str, spec: &str, at: usize, problem: Problem) -> Self {
        let characters = list.char_indices().take_while(|(place, _)| *place < at).count();
        Self {
            problem: Box::new(problem),
            spec: spec.to_owned(),
            list: list.to_owned(),
            at: characters,
        }
    }
}

impl std::error::Error for SpecError {}

/// Formats the problem with its position, unless the whole list is a single wrong name.
impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { problem, spec, list, at } = self;
        match (*at, spec == list) {
            (0, true) => write!(f, "event '{spec}': {problem}"),
            (_, true) => write!(f, "event '{spec}', character {}: {problem}", at + 1),
            (_, false) => write!(f, "event '{spec}', character {} of '{list}': {problem}", at + 1),
        }
    }
}

/// Formats `; did you mean 'x'?`, if there is a similar name.
fn hint(near: Option<&String>) -> String {
    near.map(|near| format!("; did you mean '{near}'?")).unwrap_or_default()
}

fn more(said: Option<&String>) -> String {
    said.map(|said| format!("; {said}")).unwrap_or_default()
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub(crate) enum Problem {
    #[error("unknown event '{name}'{}{}", hint(.near.as_ref()), more(.tables.as_ref()))]
    Unknown {
        name: String,
        near: Option<String>,
        /// Sentence on the tables that have names of events, or could have.
        tables: Option<String>,
    },
    #[error("this machine has no PMU '{name}' (see rec list pmu){}", hint(.near.as_ref()))]
    UnknownPmu { name: String, near: Option<String> },
    #[error("{of} has no term '{term}'; it accepts {known}{}", hint(.near.as_ref()))]
    UnknownTerm { term: String, of: String, near: Option<String>, known: String },
    #[error("the term '{term}' is for {tool}, not for recordings; leave it out")]
    OthersTerm { term: String, tool: &'static str },
    #[error("the term '{term}' needs a value: {term}={wanted}")]
    NoValue { term: String, wanted: &'static str },
    #[error("invalid value '{value}' of the term '{term}', which must be {wanted}")]
    Value { term: String, value: String, wanted: String },
    #[error("the term '{term}': {why}")]
    Refused { term: String, why: String },
    #[error("{value:#x} does not fit the term '{term}', whose largest value is {most:#x}")]
    TooLarge { term: String, value: u64, most: u64 },
    /// Invalid contents of a PMU's file in sysfs.
    #[error("the kernel describes the term in an unknown form: {0}")]
    Sysfs(String),
    /// A tracepoint, but tracefs cannot be read.
    #[error("{0}")]
    Tracefs(String),
    #[error("unknown tracepoint '{name}'{}", hint(.near.as_ref()))]
    UnknownTracepoint { name: String, near: Option<String> },
    #[error("{0}")]
    Probe(String),
    #[error("{0}; write breakpoints as mem:ADDRESS[/LENGTH][:rwx][:MODIFIERS]")]
    Breakpoint(String),
    /// An operation that a cache does not have.
    #[error("there is no event '{name}': {why}")]
    Contradiction { name: String, why: String },
    #[error("unknown modifier '{0}'; the modifiers are u k h G H p P S D I W e")]
    Modifier(char),
    #[error("repeated modifier '{0}'")]
    RepeatedModifier(char),
    #[error("the modifier '{0}' is for perf stat, not for recordings; leave it out")]
    StatModifier(char),
    #[error("modifiers are missing after the colon: u k h G H p P S D I W e")]
    NoModifier,
    #[error("the modifier 'W' applies only to groups: {{a,b}}:W")]
    WeakAlone,
    #[error("more than three p; ppp is the highest precision")]
    TooPrecise,
    #[error("an event name is missing")]
    Empty,
    #[error("the closing '{0}' is missing")]
    Unclosed(char),
    #[error("unexpected '{0}'")]
    Stray(char),
}
