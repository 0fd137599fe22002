//! `rep annotate`: instructions of functions with their samples, source lines and jumps.
//!
//! ```text
//!   samples by (dso, symbol, instruction) ─► functions, hottest first ─► code::listing ─► text, JSON, CSV
//!   branch stacks by source address ─────────► mispredictions, cycles ─────┘
//! ```

mod branches;
mod functions;
mod out;
mod source;
mod text;

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use clap::{Parser, ValueEnum};

use crate::analyses::derived::{self, ViewArgs};
use crate::cli::{self, Asked, Line, Refusal};
use crate::code::ListingExtent;
use crate::exports::outputs::Output;
use crate::query::{Mode, Query, Warning};
use crate::terminal::style::{Colour, Screen};

use functions::annotated;
pub(crate) use functions::{AnnotatedFunction, Limits, annotated_answer, by_instruction};
use out::AnnotateAnalysis;
use text::TextOptions;

/// Show instructions of functions with their samples, source lines and jumps
#[derive(Debug, Parser)]
#[command(name = "rep annotate", version, long_about = None, args_override_self = true)]
#[command(override_usage = "rep annotate [OPTIONS] [SYMBOL] [FILE…]")]
#[command(mut_arg("limit", |arg| arg.help(LIMIT)))]
// As in perf annotate.
#[command(mut_arg("symbols", |arg| arg.visible_short_alias('s')))]
#[command(mut_arg("source_paths", |arg| arg.short('P').visible_alias("full-paths")))]
pub struct AnnotateArgs {
    /// Function [default: the hottest ones]
    ///
    /// A name is short (`f`), whole (`f(int)`) or mangled (`_Z1fi`); `*` stands for any characters,
    /// `?` for one. All functions with the name are shown. Where a recording stands in its place, or
    /// --symbol names functions, it is a file to read
    symbol: Option<String>,

    #[command(flatten)]
    view: ViewArgs,

    /// Leave out functions below this share of their event
    #[arg(long, value_name = "PERCENT")]
    percent_limit: Option<f64>,

    /// Print instructions far from samples, too (JSON and CSV have all)
    #[arg(long)]
    full: bool,

    /// Colour hot instructions: always, never, or auto (on a terminal, unless NO_COLOR is set)
    #[arg(
        long = "stdio-color",
        value_enum,
        value_name = "auto|always|never",
        default_value = "auto",
        hide_possible_values = true
    )]
    colour: AnnotateColour,
}

const LIMIT: &str =
    "Annotate at most the N hottest functions of each event [default: 5 if none are named]";

/// Number of functions that are annotated if none is named.
const HOTTEST: usize = 5;

/// When text is coloured.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum AnnotateColour {
    Auto,
    Always,
    Never,
}

/// What is annotated, and how it is printed.
#[derive(Clone, Debug)]
pub struct AnnotateQuery {
    query: Query,
    output: &'static Output,
    /// Names of the functions, unless the query's filters say them: with `*` and `?`.
    pattern: Option<String>,
    limits: Limits,
    full: bool,
    colour: Colour,
    /// `true` if a file stands in the place of the function.
    is_file_first: bool,
}

/// Parses a command line. The word in the place of the function may name an input.
pub(crate) fn asked(line: &Line) -> Result<Asked<AnnotateQuery>, Refusal> {
    let mut asked = line.parse(query)?;
    asked.is_default_input &= !asked.query.is_file_first;
    Ok(asked)
}

/// Makes a query of the options.
///
/// # Errors
/// Returns a message if options contradict one another.
pub fn query(args: AnnotateArgs) -> Result<AnnotateQuery, String> {
    let AnnotateArgs { mut symbol, mut view, percent_limit, full, colour } = args;
    let (output, limit, are_named) = (view.output(), view.limit, view.names_functions());
    let is_file = |symbol: &mut String| are_named || is_recording(Path::new(symbol));
    cli::check(percent_limit, None)?;
    let first = symbol.take_if(is_file);
    let is_file_first = first.is_some();
    if let Some(path) = first {
        view.read_first(PathBuf::from(path));
    }
    let mut query = view.query(Mode::Samples)?;
    cli::refuse([(
        full && !output.is_text(),
        "--full is for text: JSON and CSV have all instructions",
    )])?;
    let is_named = symbol.is_some() || query.filters.by_symbol();
    let most = limit.unwrap_or(if is_named { usize::MAX } else { HOTTEST });
    let (least, extent) = (percent_limit.unwrap_or(0.0), ListingExtent::All);
    let limits = Limits { most, least, extent };
    let (mut pattern, names) = (None, &mut query.filters.symbols);
    match symbol {
        Some(symbol) if symbol.contains(['*', '?']) => pattern = Some(symbol),
        Some(symbol) => *names = Some(HashSet::from([symbol])),
        None => {}
    }
    let colour = match colour {
        AnnotateColour::Auto => Colour::Auto,
        AnnotateColour::Always => Colour::Always,
        AnnotateColour::Never => Colour::Never,
    };
    Ok(AnnotateQuery { query, output, pattern, limits, full, colour, is_file_first })
}

/// Returns whether the file at a path begins as a recording does; `-` is standard input.
fn is_recording(path: &Path) -> bool {
    let mut first = [0; 8];
    path == Path::new("-")
        || path.is_file()
            && File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok()
            && (first == *b"PERFILE2" || first == *b"2ELIFREP")
}

/// Annotates functions, and returns warnings.
pub(crate) fn run(asked: &AnnotateQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let AnnotateQuery { query, output, pattern, limits, .. } = asked;
    let (profile, events) = annotated(query, pattern.as_deref(), *limits)?;
    let screen = Screen::of(&io::stdout(), asked.colour);
    let full_paths = query.symbol_sources.source_paths;
    let text = TextOptions { screen, full: asked.full, full_paths };
    let analysis = AnnotateAnalysis { events, text };
    let mut warnings = profile.warnings;
    if analysis.is_empty() && !warnings.iter().any(Warning::is_failure) {
        let message = match pattern {
            Some(pattern) => format!("no function with samples is named `{pattern}`"),
            None if limits.least > 0.0 => {
                let least = limits.least;
                format!("no function has {least} % of its event (--percent-limit)")
            }
            None => "no sample is in a function with a name: `rep modules` says why".into(),
        };
        warnings.push(Warning::new(Warning::NO_MATCH, message));
    }
    derived::print(output, &profile.inputs, &analysis, &warnings, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_no_function() {
        let dir = tempfile::tempdir().unwrap();
        let (recording, program) = (dir.path().join("x.data"), dir.path().join("main"));
        std::fs::write(&recording, b"PERFILE2 and more").unwrap();
        std::fs::write(&program, b"\x7fELF and more").unwrap();
        assert!(is_recording(&recording) && is_recording(Path::new("-")));
        assert!(!is_recording(&program) && !is_recording(&dir.path().join("none")));
    }
}
