//! Why an event spec cannot be used, and where in the text.

use std::fmt;

use thiserror::Error;

/// Why a list of event specs cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// What is wrong.
    pub problem: Box<Problem>,
    /// The spec that it is about.
    pub spec: String,
    /// The whole list.
    pub list: String,
    /// Where in the list, in characters from 0.
    pub at: usize,
}

impl SpecError {
    /// An error at a byte of `list`, about the part `spec` of it.
    pub(super) fn new(list: &str, spec: &str, at: usize, problem: Problem) -> Self {
        let characters = list.char_indices().take_while(|(place, _)| *place < at).count();
        Self { problem: Box::new(problem), spec: spec.to_owned(), list: list.to_owned(), at: characters }
    }
}

impl std::error::Error for SpecError {}

/// What is wrong; and where, unless the whole text is one name that is wrong as a whole.
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

/// `; did you mean 'x'?`, where something is near.
fn hint(near: Option<&String>) -> String {
    near.map(|near| format!("; did you mean '{near}'?")).unwrap_or_default()
}

fn more(said: Option<&String>) -> String {
    said.map(|said| format!("; {said}")).unwrap_or_default()
}

/// What is wrong with a spec.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// Nobody has such an event.
    #[error("there is no event '{name}'{}{}", hint(.near.as_ref()), more(.tables.as_ref()))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest name there is.
        near: Option<String>,
        /// Which tables have names of events, or could have.
        tables: Option<String>,
    },
    /// This machine has no such PMU.
    #[error("this machine has no PMU '{name}' (rec list pmu shows those it has){}", hint(.near.as_ref()))]
    UnknownPmu {
        /// What was asked for.
        name: String,
        /// The nearest name there is.
        near: Option<String>,
    },
    /// A term that the event cannot have.
    #[error("'{term}' is no term of {of}, whose terms are {known}{}", hint(.near.as_ref()))]
    UnknownTerm {
        /// What was asked for.
        term: String,
        /// What kind of event.
        of: String,
        /// The nearest term there is.
        near: Option<String>,
        /// All there are.
        known: String,
    },
    /// A term that perf knows and a recording has no use for.
    #[error("the term '{term}' is for {tool} and means nothing to a recording")]
    OthersTerm {
        /// The term.
        term: String,
        /// Who has a use for it.
        tool: &'static str,
    },
    /// A term that needs a value.
    #[error("the term '{term}' needs a value: {term}={wanted}")]
    NoValue {
        /// The term.
        term: String,
        /// What kind of value.
        wanted: &'static str,
    },
    /// A value that the term cannot have.
    #[error("'{value}' is no value of the term '{term}', which is {wanted}")]
    Value {
        /// The term.
        term: String,
        /// What was given.
        value: String,
        /// What kind of value there must be.
        wanted: String,
    },
    /// A value that makes no sense for the term.
    #[error("the term '{term}': {why}")]
    Refused {
        /// The term.
        term: String,
        /// What of it makes no sense.
        why: String,
    },
    /// A value with more bits than the PMU has for it.
    #[error("{value:#x} does not fit the term '{term}', whose largest value is {most:#x}")]
    TooLarge {
        /// The term.
        term: String,
        /// What was given.
        value: u64,
        /// What fits.
        most: u64,
    },
    /// What the kernel says of a PMU cannot be read.
    #[error("the kernel's word on it makes no sense: {0}")]
    Sysfs(String),
    /// A tracepoint, where tracefs cannot be read.
    #[error("{0}")]
    Tracefs(String),
    /// No such tracepoint.
    #[error("there is no tracepoint '{name}'{}", hint(.near.as_ref()))]
    UnknownTracepoint {
        /// What was asked for.
        name: String,
        /// The nearest name there is.
        near: Option<String>,
    },
    /// Not a place for a probe.
    #[error("{0}")]
    Probe(String),
    /// A breakpoint that cannot be.
    #[error("{0}; a breakpoint is written mem:ADDRESS[/LENGTH][:rwx][:MODIFIERS]")]
    Breakpoint(String),
    /// An event that perf stat makes up.
    #[error("'{0}' is counted by perf stat itself; the kernel takes no samples of it")]
    Tool(String),
    /// A letter after the colon that is no modifier.
    #[error("'{0}' is no modifier; they are u k h G H p P S D I W e")]
    Modifier(char),
    /// A letter twice.
    #[error("the modifier '{0}' is there twice")]
    RepeatedModifier(char),
    /// A modifier for perf stat.
    #[error("the modifier '{0}' is for perf stat and means nothing to a recording")]
    StatModifier(char),
    /// A colon and nothing.
    #[error("modifiers are missing after the colon; they are u k h G H p P S D I W e")]
    NoModifier,
    /// `W` without a group.
    #[error("the modifier 'W' is for groups: {{a,b}}:W")]
    WeakAlone,
    /// More `p` than the ABI has levels.
    #[error("more than three p; ppp is the most exact there is")]
    TooPrecise,
    /// Nothing between two commas.
    #[error("an event name is missing")]
    Empty,
    /// What was opened is not closed.
    #[error("the closing '{0}' is missing")]
    Unclosed(char),
    /// Something after the end of an event.
    #[error("'{0}' has no place here")]
    Stray(char),
}
