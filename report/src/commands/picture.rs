//! What the commands of pictures share: options, and the profiles that a picture is made of.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, ValueHint};
use recrep_console::units;

use crate::cli::outcome::{replace_file, say};
use crate::cli::{FilterArgs, SourcesArgs, SymbolArgs};
use crate::engine::described::have_switches;
use crate::engine::facts::{RecordingFacts, facts};
use crate::engine::gather::gather;
use crate::input::{Input, retry_if_changed};
use crate::picture::{PictureBuilder, RenamedProgram, columns};
use crate::profile::Profile;
use crate::profile::recording::quoted;
use crate::query::{ChainOptions, FrameKey, Mode, Needs, Query, Source, Steps, TimeSteps, Warning};

/// Options of pictures.
#[derive(Debug, Args)]
pub(super) struct PictureArgs {
    #[command(flatten)]
    sources: SourcesArgs,

    /// File to write, `-` for standard output; an existing one is replaced
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) output: PathBuf,

    /// Compare with the recording BASE (may be given several times): what became more, and what less
    #[arg(long = "diff", value_name = "BASE", value_hint = ValueHint::FilePath)]
    base: Vec<PathBuf>,

    /// Title, in place of the recorded command line
    #[arg(long, value_name = "TEXT")]
    pub(super) title: Option<String>,

    /// Show inlined functions as frames (needs debug information) [default: only in callchains of
    /// recordings made with --call-graph dwarf]
    #[arg(long, overrides_with = "no_inline", help_heading = "Callchains")]
    inline: bool,

    /// Do not show inlined functions
    #[arg(long, overrides_with = "inline", help_heading = "Callchains")]
    no_inline: bool,

    /// Show callchains as recorded, without a mark where callers are missing
    #[arg(long, help_heading = "Callchains")]
    no_check_callchains: bool,

    #[command(flatten)]
    filters: FilterArgs,

    #[command(flatten)]
    symbols: SymbolArgs,
}

/// What a picture is made of.
#[derive(Debug)]
pub(super) struct PictureQuery {
    pub(super) query: Query,
    /// Inputs of the second side; empty for none.
    pub(super) base: Vec<Source>,
}

/// One side of a picture: its recordings.
pub(super) struct PictureSide {
    pub(super) profile: Profile,
    /// Facts of each input.
    pub(super) facts: Vec<RecordingFacts>,
    /// Greatest step of time of an input.
    pub(super) step: u64,
    has_switches: bool,
}

impl PictureArgs {
    /// Returns what is counted, by thread, CPU and time if the picture `has_cells`.
    pub(super) fn query(self, has_cells: bool) -> Result<PictureQuery, String> {
        let inlined = (self.inline || self.no_inline).then_some(self.inline);
        let query = Query {
            sources: self.sources.sources(),
            columns: columns(has_cells),
            steps: TimeSteps::Fitting,
            nanosecs: true,
            needs: Needs { stacks: true, ..Needs::default() },
            filters: self.filters.filters(false),
            chains: ChainOptions {
                counted: true,
                key: FrameKey::Function,
                inlined,
                as_recorded: self.no_check_callchains,
                ..ChainOptions::default()
            },
            symbol_sources: self.symbols.options(true)?,
            ..Query::default()
        };
        let base = self.base.into_iter().map(|path| Source::or_default(Some(path))).collect();
        Ok(PictureQuery { query, base })
    }
}

impl PictureQuery {
    /// Adds the samples of both sides to a picture, and of times off CPUs if they were recorded and
    /// the picture has several events. Returns the sides.
    pub(super) fn add_to(
        &self,
        picture: &mut PictureBuilder,
        has_times: bool,
    ) -> anyhow::Result<Vec<PictureSide>> {
        let mut sides = Vec::new();
        let sources = [&self.query.sources, &self.base];
        for (number, sources) in (0..).zip(sources).filter(|(_, sources)| !sources.is_empty()) {
            let expanded: Vec<Vec<Source>> =
                sources.iter().map(Input::sources).collect::<Result<_, _>>()?;
            let query = Query { sources: expanded.concat(), ..self.query.clone() };
            let (mut side, answered) = side(&query)?;
            let renamed = picture.add(&side.profile, &answered, number, side.step);
            side.profile.warnings.extend(renamed.map(|RenamedProgram { command, shown_as }| {
                let message = format!(
                    "the program {command} of the base is shown as {shown_as}, as each side has \
                     but one of them"
                );
                Warning::new("renamed-program", message)
            }));
            let is_whole = query.filters.events.is_none() && query.mode == Mode::Samples;
            if has_times && is_whole && side.has_switches {
                for mode in [Mode::OffCpu, Mode::Wall] {
                    let (times, answered) = counted(&Query { mode, ..query.clone() })?;
                    picture.add(&times.profile, &answered, number, side.step);
                }
            }
            sides.push(side);
        }
        Ok(sides)
    }
}

/// Returns a side that has samples.
fn side(query: &Query) -> anyhow::Result<(PictureSide, Query)> {
    let (side, answered) = counted(query)?;
    let failure = side.profile.warnings.iter().find(|warning| warning.is_failure());
    if let Some(failure) = failure {
        bail!("{}", failure.message);
    }
    Ok((side, answered))
}

fn counted(query: &Query) -> anyhow::Result<(PictureSide, Query)> {
    let (profile, answered, made) = retry_if_changed(&query.sources, || {
        gather(query, |session| {
            (facts(session), session.steps(query.steps), have_switches(session))
        })
    })?;
    let step = made.iter().map(|(_, Steps { length, .. }, _)| *length).max().unwrap_or(1);
    let has_switches = made.iter().any(|(_, _, has_switches)| *has_switches);
    let facts = made.into_iter().map(|(facts, ..)| facts).collect();
    Ok((PictureSide { profile, facts, step, has_switches }, answered))
}

/// Returns the command that was recorded: of a recorder's command line, what is behind `--`.
pub(super) fn command(facts: &RecordingFacts) -> Option<String> {
    let words = &facts.facts.command;
    let behind = words.iter().position(|word| word == "--").map_or(0, |place| place + 1);
    let words: Vec<String> = words.iter().skip(behind).map(|word| quoted(word)).collect();
    Some(words.join(" ")).filter(|line| !line.is_empty())
}

/// Writes the file, says so, and returns the warnings of all sides.
pub(super) fn write_file(
    path: &Path,
    sides: Vec<PictureSide>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<Vec<Warning>> {
    if path == Path::new("-") {
        write(&mut io::stdout().lock())?;
    } else {
        let size = replace_file(path, |out| write(out))
            .with_context(|| format!("cannot write {}", path.display()))?;
        match size {
            0 => say(&format!("rep: wrote {}", path.display())),
            size => say(&format!("rep: wrote {} ({})", path.display(), units::bytes(size))),
        }
    }
    Ok(sides.into_iter().flat_map(|side| side.profile.warnings).collect())
}
