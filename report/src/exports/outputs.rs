//! The registry of outputs: the values of `--format` of all commands, with what each prints and needs.
//!
//! ```text
//!   rep              ─► report        an Export
//!   rep export       ─► file          a FileExport        (parquet: a data set of samples)
//!   rep mem, c2c, …  ─► tables        sheets, JSON, text        (rep branches: paths, too)
//!   rep diff         ─► comparison    the same, and what CI reads
//!   rep stat         ─► counts        a format of recrep_counts
//!   rep script       ─► samples       a form of samples
//! ```

use std::fmt;
use std::io::{self, Write};

use recrep_counts::Format as CountFormat;

use super::export::{Export, FileExport};
#[cfg(feature = "firefox")]
use super::firefox;
use super::sheet::{Tables, write_csv};
use super::{csv, folded, json, markdown, otlp, perfetto, pprof, speedscope, text};
use crate::query::Needs;

/// A value of `--format`. It is offered by the commands whose answers it prints.
pub(crate) struct Output {
    pub(crate) name: &'static str,
    pub(crate) report: Option<&'static dyn Export>,
    pub(crate) file: Option<&'static dyn FileExport>,
    /// What a data set needs of samples.
    pub(crate) data_set: Option<Needs>,
    pub(crate) tables: Option<AnswerWriter<TablesWriter>>,
    pub(crate) comparison: Option<AnswerWriter<ComparisonWriter>>,
    pub(crate) counts: Option<fn(CountStyle) -> CountFormat>,
    pub(crate) samples: Option<SampleForm>,
    /// Prints what became of the rules of one side.
    pub(crate) rules: Option<RulesWriter>,
    /// What it needs of the paths that `rep branches` alone has.
    pub(crate) paths: Option<Needs>,
    /// It prints nothing but what became of rules.
    pub(crate) is_of_rules: bool,
    /// It has the warnings, so that it answers without rows, too.
    pub(crate) has_warnings: bool,
}

/// How an output prints an answer, and what it needs of the profile.
#[derive(Clone, Copy)]
pub(crate) struct AnswerWriter<W> {
    pub(crate) needs: Needs,
    pub(crate) write: W,
}

type TablesWriter = fn(&dyn Tables, &mut dyn Write) -> io::Result<()>;
type ComparisonWriter = fn(&dyn ComparedSides, &mut dyn Write) -> io::Result<()>;

/// Prints the answers to rules.
pub(crate) type RulesWriter = fn(&dyn JudgedRules, &mut dyn Write) -> io::Result<()>;

/// The answers to rules, as CI reads them.
pub(crate) trait JudgedRules {
    /// Prints annotations of GitHub.
    fn print_github(&self, out: &mut dyn Write) -> io::Result<()>;

    /// Prints the rules as test cases of JUnit.
    fn print_junit(&self, out: &mut dyn Write) -> io::Result<()>;
}

/// A comparison: its tables, and what else it is printed as.
pub(crate) trait ComparedSides: Tables {
    /// Prints the callchains of both sides, with two sums each.
    fn print_folded(&self, out: &mut dyn Write) -> io::Result<()>;

    /// Prints what changed and the rules for the summary of a CI job.
    fn print_markdown(&self, out: &mut dyn Write) -> io::Result<()>;

    /// Prints annotations of GitHub.
    fn print_github(&self, out: &mut dyn Write) -> io::Result<()>;

    /// Prints the rules as test cases of JUnit.
    fn print_junit(&self, out: &mut dyn Write) -> io::Result<()>;
}

/// Options of `rep stat` that its text follows.
#[derive(Clone, Copy)]
pub(crate) struct CountStyle {
    /// Numbers have separators between thousands.
    pub(crate) big_numbers: bool,
}

/// Form of the samples of `rep script`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SampleForm {
    /// Lines of perf.
    #[default]
    Text,
    /// An object for each sample.
    Json,
    /// A row for each sample.
    Csv,
}

impl SampleForm {
    /// Returns its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "JSON",
            Self::Csv => "CSV",
        }
    }
}

/// Functions have the letter of their CPU mode before the name.
const MARKS: Needs = Needs { marks: true, ..Needs::NONE };
/// Columns tell apart what reads alike otherwise.
pub(crate) const COMPANIONS: Needs = Needs { companions: true, ..Needs::NONE };
const COMPARED: Needs = Needs { unmapped: true, ..COMPANIONS };
const COMPARED_STACKS: Needs = Needs { stacks: true, ..COMPANIONS };

/// The outputs, in the order of the help.
static OUTPUTS: &[Output] = &[
    Output {
        report: Some(&text::TextReport),
        tables: Some(AnswerWriter { needs: MARKS, write: |tables, out| tables.print_text(out) }),
        comparison: Some(AnswerWriter {
            needs: COMPARED,
            write: |sides, out| sides.print_text(out),
        }),
        counts: Some(|style| CountFormat::Text { big_numbers: style.big_numbers }),
        samples: Some(SampleForm::Text),
        ..of_nothing("text")
    },
    Output {
        report: Some(&json::Json),
        tables: Some(AnswerWriter {
            needs: COMPANIONS,
            write: |tables, out| tables.print_json(out),
        }),
        comparison: Some(AnswerWriter {
            needs: COMPARED,
            write: |sides, out| sides.print_json(out),
        }),
        counts: Some(|_| CountFormat::Json),
        samples: Some(SampleForm::Json),
        has_warnings: true,
        ..of_nothing("json")
    },
    Output {
        report: Some(&csv::Csv),
        tables: Some(AnswerWriter {
            needs: COMPANIONS,
            write: |tables, out| write_csv(&tables.sheets(), out),
        }),
        comparison: Some(AnswerWriter {
            needs: COMPARED,
            write: |sides, out| write_csv(&sides.sheets(), out),
        }),
        counts: Some(|_| CountFormat::Csv { separator: ",".to_owned() }),
        samples: Some(SampleForm::Csv),
        ..of_nothing("csv")
    },
    Output {
        report: Some(&folded::Folded),
        comparison: Some(AnswerWriter {
            needs: COMPARED_STACKS,
            write: |sides, out| sides.print_folded(out),
        }),
        ..of_nothing("folded")
    },
    Output {
        report: Some(&markdown::Markdown),
        tables: Some(AnswerWriter {
            needs: MARKS,
            write: |tables, out| markdown::write_sheets(&tables.sheets(), out),
        }),
        comparison: Some(AnswerWriter {
            needs: COMPARED,
            write: |sides, out| sides.print_markdown(out),
        }),
        ..of_nothing("markdown")
    },
    Output { file: Some(&pprof::Pprof), ..of_nothing("pprof") },
    Output { file: Some(&speedscope::Speedscope), ..of_nothing("speedscope") },
    #[cfg(feature = "parquet")]
    Output {
        data_set: Some(Needs { stacks: true, addresses: true, ..Needs::NONE }),
        ..of_nothing("parquet")
    },
    #[cfg(feature = "firefox")]
    Output { file: Some(&firefox::Firefox), ..of_nothing("firefox") },
    Output { file: Some(&perfetto::Perfetto), ..of_nothing("perfetto") },
    Output { file: Some(&otlp::Otlp), ..of_nothing("otlp") },
    Output { paths: Some(COMPANIONS), ..of_nothing("bolt") },
    Output {
        comparison: Some(AnswerWriter {
            needs: COMPARED,
            write: |sides, out| sides.print_github(out),
        }),
        rules: Some(|rules, out| rules.print_github(out)),
        ..of_nothing("github")
    },
    Output {
        comparison: Some(AnswerWriter {
            needs: COMPARED,
            write: |sides, out| sides.print_junit(out),
        }),
        rules: Some(|rules, out| rules.print_junit(out)),
        is_of_rules: true,
        ..of_nothing("junit")
    },
];

/// Returns an output that prints nothing yet.
const fn of_nothing(name: &'static str) -> Output {
    Output {
        name,
        report: None,
        file: None,
        data_set: None,
        tables: None,
        comparison: None,
        counts: None,
        samples: None,
        rules: None,
        paths: None,
        is_of_rules: false,
        has_warnings: false,
    }
}

/// An output that prints nothing.
static NOTHING: Output = of_nothing("");

/// Returns the output with a name, which is in the registry.
pub(crate) fn named(name: &str) -> &'static Output {
    OUTPUTS.iter().find(|output| output.name == name).unwrap_or(&NOTHING)
}

/// Returns the help of `--format` of `rep report`.
pub(crate) fn help() -> String {
    let names: Vec<&str> = names(Output::is_of_reports).collect();
    match names.split_last() {
        Some((last, others)) => format!("Output format: {} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Returns the names of the outputs that a command offers.
pub(crate) fn names(is_offered: fn(&Output) -> bool) -> impl Iterator<Item = &'static str> {
    OUTPUTS.iter().filter(move |output| is_offered(output)).map(|output| output.name)
}

impl Output {
    /// Returns whether it prints a report, or the rules that were applied to one.
    pub(crate) fn is_of_reports(&self) -> bool {
        self.report.is_some() || self.rules.is_some()
    }

    /// Returns whether it writes files of inputs.
    pub(crate) fn is_of_files(&self) -> bool {
        self.file.is_some() || self.data_set.is_some()
    }

    /// Checks that there are rules if it prints nothing but what became of them.
    ///
    /// # Errors
    /// Returns an error if there are none.
    pub(crate) fn check_rules(&self, are_asked: bool) -> Result<(), String> {
        match self.rules.is_some() && !are_asked {
            true => Err(format!(
                "--format {} prints what became of rules: give some (--fail-if, --rules)",
                self.name
            )),
            false => Ok(()),
        }
    }

    pub(crate) fn is_text(&self) -> bool {
        self.name == "text"
    }

    /// Returns what it needs of the profile of an analysis.
    pub(crate) fn table_needs(&self) -> Needs {
        self.tables.map(|printer| printer.needs).or(self.paths).unwrap_or_default()
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
