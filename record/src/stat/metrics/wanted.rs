//! The metrics that the user named, with their formulas.

use recrep_console::nearest::did_you_mean;
use recrep_counts::{Facts as FormulaFacts, Formula};

use super::facts::Facts;
use crate::event;
use crate::machine::event_tables::{Grouping, MetricEntry};
use crate::machine::sources::EventSources;

/// Names in formulas that are no events.
const TIMES: [&str; 3] = ["duration_time", "user_time", "system_time"];

/// A metric that is wanted.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) entry: MetricEntry,
    /// Name that is printed.
    pub(super) name: String,
    /// Modifiers of all its events.
    pub(super) modifiers: String,
    pub(super) formula: Formula,
    /// Condition under which the value is remarkable, if it can be computed.
    pub(super) threshold: Option<String>,
    /// Its events, in the spelling of formulas.
    pub(super) events: Vec<String>,
    /// Reason why the condition in the table cannot be computed.
    pub(super) no_threshold: Option<String>,
    /// `true` if the events should be on the PMU together.
    pub(super) grouped: bool,
    /// `true` if they would be, without the watchdog.
    pub(super) watched: bool,
}

/// Search for metrics.
#[derive(Clone, Copy)]
pub(super) struct Search<'a> {
    pub(super) sources: &'a EventSources,
    pub(super) facts: &'a Facts,
    /// Never group events.
    pub(super) no_group: bool,
    pub(super) no_threshold: bool,
}

/// Metrics of one name.
pub(super) struct FoundMetrics {
    pub(super) metrics: Vec<Wanted>,
    /// Metrics of the group that cannot be computed here, and why.
    pub(super) left_out: Vec<LeftOut>,
}

/// A metric that cannot be computed.
pub(super) struct LeftOut {
    pub(super) name: String,
    pub(super) why: String,
}

impl Search<'_> {
    /// Returns the metrics that `NAME[:MODIFIERS]` means.
    pub(super) fn find(&self, name: &str) -> Result<FoundMetrics, String> {
        let (plain, modifiers) = name.split_once(':').unwrap_or((name, ""));
        let all = self.sources.metrics();
        let meant = all.iter().filter(|metric| metric.is_meant_by(plain));
        let (mut metrics, mut left_out) = (Vec::new(), Vec::new());
        for entry in meant {
            let parts = match entry.expression.contains('?') {
                true => (0..self.facts.parts(entry.parts)).map(Some).collect(),
                false => vec![None],
            };
            for part in parts {
                match self.wanted(entry, plain, modifiers, part) {
                    Ok(wanted) => metrics.push(wanted),
                    // A metric that the user named must be computed.
                    Err(why) if plain.eq_ignore_ascii_case(&entry.name) => return Err(why),
                    Err(why) => left_out.push(LeftOut { name: entry.name.clone(), why }),
                }
            }
        }
        match (metrics.is_empty(), left_out.first()) {
            (false, _) => Ok(FoundMetrics { metrics, left_out }),
            (true, Some(first)) => {
                Err(format!("none of the metrics in '{plain}' can be computed: {}", first.why))
            }
            (true, None) => {
                let names = all.iter().flat_map(|metric| {
                    std::iter::once(&metric.name[..])
                        .chain(metric.groups.iter().map(String::as_str))
                });
                let near = did_you_mean(plain, names);
                Err(format!(
                    "the tables have no metric or group '{plain}' for this CPU{near} (rec list \
                     metric --event-tables DIR shows them)"
                ))
            }
        }
    }

    fn wanted(
        &self,
        entry: &MetricEntry,
        asked: &str,
        modifiers: &str,
        part: Option<u32>,
    ) -> Result<Wanted, String> {
        let facts = MetricFacts { search: *self, pmu: entry.pmu.as_deref(), part };
        let expression = of_part(&entry.expression, part);
        let formula =
            Formula::new(&entry.name, &expression, &facts).map_err(|error| error.to_string())?;
        let condition = entry.threshold.as_ref().filter(|_| !self.no_threshold);
        // Without its threshold, a metric still has its value.
        let with_threshold = condition.map(|condition| {
            formula.clone().with_threshold(&entry.name, &of_part(condition, part), &facts)
        });
        let (formula, threshold, no_threshold) = match with_threshold {
            Some(Ok(formula)) => (formula, condition.cloned(), None),
            Some(Err(why)) => (formula, None, Some(why.to_string())),
            None => (formula, None, None),
        };
        let may_be_grouped = !self.no_group
            && !entry.ungrouped_in.iter().any(|group| group.eq_ignore_ascii_case(asked));
        let mut name = entry.name.clone();
        if let Some(part) = part {
            name.push_str(&format!("_{part}"));
        }
        if !modifiers.is_empty() {
            name.push_str(&format!(":{modifiers}"));
        }
        let is_watched = entry.grouping == Grouping::WithoutWatchdog && self.facts.has_watchdog;
        Ok(Wanted {
            name,
            modifiers: modifiers.to_owned(),
            threshold,
            no_threshold,
            events: events_of(&formula),
            grouped: may_be_grouped
                && match entry.grouping {
                    Grouping::Always => true,
                    Grouping::Never => false,
                    Grouping::WithoutWatchdog => !self.facts.has_watchdog,
                    Grouping::WithoutSmt => !self.facts.is_smt_on(),
                },
            watched: may_be_grouped && is_watched,
            formula,
            entry: entry.clone(),
        })
    }
}

impl Wanted {
    /// Returns it without the condition of its threshold, which cannot be computed.
    pub(super) fn without_threshold(&self, why: &str) -> Self {
        let formula = self.formula.without_threshold();
        let events = events_of(&formula);
        let (threshold, no_threshold) = (None, Some(why.to_owned()));
        Self { formula, events, threshold, no_threshold, ..self.clone() }
    }
}

/// Returns the names of a formula that are events.
fn events_of(formula: &Formula) -> Vec<String> {
    let names = formula.events().into_iter().filter(|name| !TIMES.contains(name));
    names.map(str::to_owned).collect()
}

/// Puts the number of a part of the machine into an expression.
fn of_part(expression: &str, part: Option<u32>) -> String {
    match part {
        None => expression.to_owned(),
        Some(part) => expression.replace('?', &part.to_string()),
    }
}

/// Writes an event of a formula as `-e` takes it: `cpu@a,cmask=1@u` becomes `cpu/a,cmask=1/u`.
pub(super) fn spelt(event: &str, modifiers: &str) -> String {
    if let Some((head, rest)) = event.split_once('@')
        && let Some((terms, tail)) = rest.rsplit_once('@')
    {
        return format!("{head}/{terms}/{tail}{modifiers}");
    }
    match (event.contains(':'), modifiers) {
        (_, "") => event.to_owned(),
        (true, _) => format!("{event}{modifiers}"),
        (false, _) => format!("{event}:{modifiers}"),
    }
}

/// Facts for the formula of a metric.
struct MetricFacts<'a> {
    search: Search<'a>,
    /// Kind of cores that the metric is for.
    pmu: Option<&'a str>,
    part: Option<u32>,
}

impl FormulaFacts for MetricFacts<'_> {
    fn literal(&self, name: &str) -> Option<f64> {
        let mut pmus = self.search.sources.pmus().iter();
        let core = self.pmu.or_else(|| pmus.find(|pmu| pmu.core).map(|pmu| &pmu.name[..]));
        self.search.facts.literal(name, core)
    }

    fn has_event(&self, event: &str) -> bool {
        event::parse(&spelt(event, ""), self.search.sources).is_ok()
    }

    fn is_cpu(&self, id: &str) -> Option<bool> {
        self.search.facts.is_cpu(id)
    }

    fn metric(&self, name: &str) -> Option<String> {
        let metrics = self.search.sources.metrics().iter();
        let mut named = metrics.filter(|metric| metric.name.eq_ignore_ascii_case(name));
        let found = named.find(|metric| metric.pmu.as_deref() == self.pmu)?;
        Some(of_part(&found.expression, self.part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_as_the_flag_takes_them() {
        for (event, modifiers, expected) in [
            ("cycles", "", "cycles"),
            ("cycles", "u", "cycles:u"),
            ("FAR:u", "", "FAR:u"),
            ("FAR:p", "u", "FAR:pu"),
            ("msr@tsc@", "", "msr/tsc/"),
            ("cpu@A.B,cmask=1@", "k", "cpu/A.B,cmask=1/k"),
            ("cbox@X,filter_opc=0x182@u", "", "cbox/X,filter_opc=0x182/u"),
            ("stray@", "", "stray@"),
        ] {
            assert_eq!(spelt(event, modifiers), expected);
        }
    }
}
