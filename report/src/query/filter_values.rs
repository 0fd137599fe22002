//! Filters as lists of values: which of them no sample has, and what samples have in their place.

use recrep_console::nearest::near;

use super::filters::Filters;
use super::warning::Warning;

/// What a filter selects samples by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilterBy {
    Event,
    Comm,
    Module,
    Process,
    Thread,
    Cpu,
    Socket,
    Function,
    /// A part of the function's name.
    FunctionPart,
    /// Whether the function is known.
    Resolved,
    Time,
}

/// A filter, its values that no sample has, and the values that samples have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilterValues {
    pub(crate) by: FilterBy,
    /// The values that were asked for, in order.
    pub(crate) asked: Vec<String>,
    /// Those of them that no sample has.
    pub(crate) missing: Vec<String>,
    /// Values of samples, and how many samples have each. Known where a value is missing.
    pub(crate) found: Vec<(String, u64)>,
    /// Missing functions that are callers, and how many samples have each in their callchain.
    pub(crate) callers: Vec<(String, u64)>,
    /// Missing modules by whose name programs were executed.
    pub(crate) programs: Vec<String>,
}

/// Most values that a message lists.
const MOST: usize = 5;

impl FilterBy {
    /// Returns the sort key that shows the values; `None` if there is none.
    pub(crate) fn sort_key(self, asked: &[String]) -> Option<&'static str> {
        Some(match self {
            Self::Event => "event",
            Self::Comm => "comm",
            Self::Module if asked.iter().any(|name| name.contains('/')) => "dso_path",
            Self::Module => "dso",
            Self::Process => "pid",
            Self::Thread => "tid",
            Self::Cpu => "cpu",
            Self::Socket => "socket",
            Self::Function | Self::FunctionPart => "symbol",
            Self::Resolved | Self::Time => return None,
        })
    }

    /// Returns whether a list may have values that are not there without a word: a range names CPUs
    /// that were idle.
    pub(crate) fn is_list_of_names(self) -> bool {
        matches!(self, Self::Comm | Self::Module | Self::Process | Self::Thread | Self::Function)
    }

    /// Returns whether values are numbers, none of which is near to another.
    pub(crate) fn is_number(self) -> bool {
        matches!(self, Self::Process | Self::Thread | Self::Cpu | Self::Socket)
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Comm => "comm",
            Self::Module => "module",
            Self::Process => "pid",
            Self::Thread => "tid",
            Self::Cpu => "CPU",
            Self::Socket => "socket",
            Self::Function | Self::FunctionPart | Self::Resolved => "function",
            Self::Time => "time",
        }
    }
}

impl FilterValues {
    /// A filter of which nothing is known yet.
    fn of(by: FilterBy, asked: Vec<String>) -> Self {
        let (missing, found) = (Vec::new(), Vec::new());
        Self { by, asked, missing, found, callers: Vec::new(), programs: Vec::new() }
    }

    /// Lists the filters of a command line that select samples by values.
    pub(crate) fn all(filters: &Filters) -> Vec<Self> {
        let mut all = Vec::new();
        let mut add = |by, list: Option<Vec<String>>| {
            if let Some(mut asked) = list {
                if by != FilterBy::Event {
                    asked.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
                }
                all.push(Self::of(by, asked));
            }
        };
        let samples = &filters.samples;
        // In the order in which a reader would look for the fault.
        add(FilterBy::Event, filters.events.clone());
        add(FilterBy::Comm, samples.comms.as_ref().map(texts));
        add(FilterBy::Module, samples.dsos.as_ref().map(texts));
        add(FilterBy::Process, samples.pids.as_ref().map(texts));
        add(FilterBy::Thread, samples.tids.as_ref().map(texts));
        add(FilterBy::Cpu, samples.cpus.as_ref().map(texts));
        add(FilterBy::Socket, filters.socket.map(|socket| vec![socket.to_string()]));
        add(FilterBy::Function, filters.symbols.as_ref().map(texts));
        add(FilterBy::FunctionPart, filters.symbol_part.clone().map(|part| vec![part]));
        add(FilterBy::Resolved, filters.resolved.then(|| vec![String::new()]));
        add(FilterBy::Time, samples.times.as_ref().map(|_| vec![String::new()]));
        all
    }

    /// Returns the filter with one value alone, out of all filters.
    pub(crate) fn alone(by: FilterBy, value: &str, of: &Filters) -> Filters {
        let mut one = Filters::default();
        let samples = &mut one.samples;
        match by {
            FilterBy::Event => one.events = Some(vec![value.to_owned()]),
            FilterBy::Comm => samples.comms = Some([value.to_owned()].into()),
            FilterBy::Module => samples.dsos = Some([value.to_owned()].into()),
            FilterBy::Process => samples.pids = Some(value.parse().into_iter().collect()),
            FilterBy::Thread => samples.tids = Some(value.parse().into_iter().collect()),
            FilterBy::Cpu => samples.cpus = Some(value.parse().into_iter().collect()),
            FilterBy::Socket => one.socket = of.socket,
            FilterBy::Function => one.symbols = Some([value.to_owned()].into()),
            FilterBy::FunctionPart => one.symbol_part.clone_from(&of.symbol_part),
            FilterBy::Resolved => one.resolved = true,
            FilterBy::Time => samples.times.clone_from(&of.samples.times),
        }
        one
    }

    /// Returns whether no sample has any of the values.
    fn is_unmatched(&self) -> bool {
        self.missing.len() == self.asked.len()
    }

    /// Adds the same filter in another input: a value is missing if no input has it.
    fn add(&mut self, other: Self) {
        self.missing.retain(|value| other.missing.contains(value));
        for (value, samples) in other.found {
            self.count(&value, samples);
        }
        for (value, samples) in other.callers {
            count(&mut self.callers, &value, samples);
        }
        self.programs.extend(other.programs);
        self.programs.retain(|program| self.missing.contains(program));
        self.programs.sort_unstable();
        self.programs.dedup();
    }

    /// Adds the same filters in another input.
    pub(crate) fn merge(all: &mut Vec<Self>, other: Vec<Self>) {
        if all.is_empty() {
            *all = other;
        } else {
            all.iter_mut().zip(other).for_each(|(filter, same)| filter.add(same));
        }
    }

    /// Adds samples that have a value.
    pub(crate) fn count(&mut self, value: &str, samples: u64) {
        count(&mut self.found, value, samples);
    }

    /// Returns a sentence that says which values no sample has, and near or frequent ones.
    fn message(&self) -> String {
        let quote = if self.by.is_number() { "" } else { "'" };
        let missing: Vec<String> =
            self.missing.iter().take(MOST).map(|value| format!("{quote}{value}{quote}")).collect();
        let more = if self.missing.len() > MOST { " or …" } else { "" };
        let missing = format!("{}{more}", missing.join(" or "));
        let subject = match self.by {
            FilterBy::Event => format!("no event with samples is named {missing}"),
            FilterBy::FunctionPart => {
                format!("no sample has a function whose name contains {missing}")
            }
            FilterBy::Resolved => {
                return "no sample has a known function; `rep modules` says why".into();
            }
            FilterBy::Time => "no sample is in the times of --time".into(),
            by => format!("no sample has {} {missing}", by.noun()),
        };
        format!("{subject}{}", self.elsewhere().unwrap_or_else(|| self.present()))
    }

    /// Returns the end of a message that says where the missing values are; `None` if nowhere.
    fn elsewhere(&self) -> Option<String> {
        if let Some(program) = self.programs.first() {
            return Some(format!(
                ", but programs were executed by that name: --comm {program} selects them"
            ));
        }
        let is_missing = |caller: &&(String, u64)| self.missing.contains(&caller.0);
        let (caller, samples) = self.callers.iter().find(is_missing)?;
        Some(format!(
            "; what '{caller}' calls has {samples}: --parent '{caller}' -x shows those samples"
        ))
    }

    /// Returns the end of a message: values near to those that are missing, else the most frequent
    /// ones.
    fn present(&self) -> String {
        let known = || self.found.iter().map(|(value, _)| value.as_str());
        let mut near_ones: Vec<&str> = Vec::new();
        for missing in self.missing.iter().filter(|_| !self.by.is_number()) {
            let lower = missing.to_lowercase();
            let has = |value: &&str| value.to_lowercase().contains(&lower) && !lower.is_empty();
            near_ones.extend(
                near(missing, known(), MOST).into_iter().chain(known().filter(has).take(MOST)),
            );
        }
        let mut listed: Vec<&str> = Vec::new();
        for value in near_ones {
            if !listed.contains(&value) {
                listed.push(value);
            }
        }
        let (noun, adjective) = (self.by.noun(), if listed.is_empty() { "" } else { "near " });
        if listed.is_empty() {
            let mut by_count: Vec<&(String, u64)> = self.found.iter().collect();
            by_count.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            if matches!(self.by, FilterBy::Cpu | FilterBy::Socket) {
                by_count.sort_by_key(|(value, _)| value.parse().unwrap_or(u64::MAX));
            }
            listed.extend(by_count.iter().map(|(value, _)| value.as_str()));
        }
        if listed.is_empty() {
            let named = if noun == "function" { " with names" } else { "" };
            return format!("; the recording has no {noun}s{named}");
        }
        if self.by == FilterBy::Time {
            return format!("; samples are from {}", listed.join(", "));
        }
        let more = if listed.len() > MOST { ", …" } else { "" };
        listed.truncate(MOST);
        format!("; {adjective}{noun}s are: {}{more}", listed.join(", "))
    }

    /// Returns the reason why nothing passed these filters, `samples` being the number of samples
    /// in all inputs.
    pub(crate) fn failure(all: &[Self], samples: u64) -> Warning {
        if samples == 0 {
            let code = if all.is_empty() { Warning::NO_SAMPLES } else { Warning::NO_MATCH };
            return Warning::new(code, "there are no samples in the recording");
        }
        if let Some(unmatched) = all.iter().find(|filter| filter.is_unmatched()) {
            return Warning::new(Warning::NO_MATCH, unmatched.message());
        }
        let message = match all.len() {
            0 => {
                return Warning::new(
                    Warning::NO_SAMPLES,
                    "no sample of the recording has what is counted here",
                );
            }
            1 => "no sample passes the filter together with the other options",
            _ => "samples pass each filter, but none passes all of them; leave one out",
        };
        Warning::new(Warning::NO_MATCH, message)
    }

    /// Returns warnings about the values that nothing matched, where others of the same list did.
    pub(crate) fn partly(all: &[Self]) -> impl Iterator<Item = Warning> {
        let some =
            all.iter().filter(|filter| filter.by.is_list_of_names() && !filter.missing.is_empty());
        some.map(|filter| Warning::new("unmatched-value", filter.message()))
    }
}

/// Adds samples that have a value.
fn count(values: &mut Vec<(String, u64)>, value: &str, samples: u64) {
    match values.iter_mut().find(|(have, _)| have == value) {
        Some((_, sum)) => *sum = sum.saturating_add(samples),
        None => values.push((value.to_owned(), samples)),
    }
}

fn texts<'v, T: ToString + 'v>(list: impl IntoIterator<Item = &'v T>) -> Vec<String> {
    list.into_iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comms(asked: &[&str], missing: &[&str], found: &[(&str, u64)]) -> FilterValues {
        let all = |list: &[&str]| list.iter().map(|value| (*value).to_owned()).collect();
        let found = found.iter().map(|(value, samples)| ((*value).to_owned(), *samples)).collect();
        let filter = FilterValues::of(FilterBy::Comm, all(asked));
        FilterValues { missing: all(missing), found, ..filter }
    }

    #[test]
    fn a_message_says_where_missing_values_are() {
        let mut function = FilterValues {
            by: FilterBy::Function,
            callers: vec![("leaf".to_owned(), 1), ("main".to_owned(), 7)],
            ..comms(&["main"], &["main"], &[("leaf", 7)])
        };
        assert_eq!(
            function.message(),
            "no sample has function 'main'; what 'main' calls has 7: --parent 'main' -x shows \
             those samples"
        );
        // Another input has samples of its own.
        function.add(comms(&["main"], &[], &[("main", 1)]));
        assert_eq!(function.missing, [""; 0]);
        let module = FilterValues {
            by: FilterBy::Module,
            programs: vec!["sh".to_owned()],
            ..comms(&["sh"], &["sh"], &[("dash", 7)])
        };
        assert_eq!(
            module.message(),
            "no sample has module 'sh', but programs were executed by that name: --comm sh \
             selects them"
        );
    }

    #[test]
    fn a_message_lists_near_values_or_the_most_frequent_ones() {
        let message =
            |missing: &[&str], found: &[(&str, u64)]| comms(missing, missing, found).message();
        let found = [("init", 1), ("worker-1", 2), ("cc1", 9)];
        assert_eq!(
            message(&["wroker-1"], &found),
            "no sample has comm 'wroker-1'; near comms are: worker-1"
        );
        assert_eq!(
            message(&["work"], &found),
            "no sample has comm 'work'; near comms are: worker-1"
        );
        assert_eq!(
            message(&["x", "y"], &found),
            "no sample has comm 'x' or 'y'; comms are: cc1, worker-1, init"
        );
        let many: Vec<(String, u64)> =
            (0..9).map(|number| (format!("thread-{number}"), 1)).collect();
        let many: Vec<(&str, u64)> =
            many.iter().map(|(name, samples)| (name.as_str(), *samples)).collect();
        let listed = "comms are: thread-0, thread-1, thread-2, thread-3, thread-4, …";
        assert_eq!(message(&["x"], &many), format!("no sample has comm 'x'; {listed}"));
        assert_eq!(message(&["x"], &[]), "no sample has comm 'x'; the recording has no comms");
        let cpus = FilterValues {
            by: FilterBy::Cpu,
            ..comms(&["7"], &["7"], &[("10", 5), ("2", 1), ("1", 9)])
        };
        assert_eq!(cpus.message(), "no sample has CPU 7; CPUs are: 1, 2, 10");
    }

    #[test]
    fn a_value_is_missing_if_no_input_has_it() {
        let mut all = comms(&["a", "b", "c"], &["b", "c"], &[("a", 3)]);
        all.add(comms(&["a", "b", "c"], &["a", "c"], &[("b", 5), ("a", 1)]));
        assert_eq!(all, comms(&["a", "b", "c"], &["c"], &[("a", 4), ("b", 5)]));
        let partly: Vec<Warning> = FilterValues::partly(&[all]).collect();
        assert_eq!(partly.len(), 1);
        assert_eq!(partly[0].message, "no sample has comm 'c'; comms are: b, a");
    }

    #[test]
    fn the_reason_is_the_first_filter_that_nothing_passes() {
        let (one, none) = (comms(&["a", "b"], &["b"], &[]), comms(&["x"], &["x"], &[]));
        let code = |all: &[FilterValues], samples| FilterValues::failure(all, samples).code;
        assert_eq!([code(&[], 0), code(std::slice::from_ref(&one), 0)], ["no-samples", "no-match"]);
        assert_eq!(code(&[], 3), "no-samples");
        assert!(
            FilterValues::failure(&[one.clone(), none], 3)
                .message
                .starts_with("no sample has comm 'x';")
        );
        assert!(FilterValues::failure(&[one.clone(), one], 3).message.contains("none passes all"));
    }
}
