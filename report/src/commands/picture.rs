//! What the commands of pictures share: options, and the profiles that a picture is made of.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, ValueHint};
use recrep_console::units;

use crate::analyses::annotate::by_instruction;
use crate::analyses::waits::listed::listed;
use crate::cli::outcome::{replace_file, say};
use crate::cli::{FilterArgs, SourcesArgs, SymbolArgs};
use crate::engine::described::have_switches;
use crate::engine::facts::{RecordingFacts, facts};
use crate::engine::gather::{Gathered, gather_two};
use crate::input::{Input, OpenError, retry_if_changed};
use crate::listings::bundle::SharedInputs;
use crate::picture::{PictureBuilder, RenamedProgram, columns, columns_of_times};
use crate::profile::Profile;
use crate::query::{
    ChainOptions, FrameKey, Mode, Needs, Query, SortKey, Source, Steps, TimeSteps, Warning,
};
use crate::timeline::RanThread;

/// Options of pictures.
#[derive(Debug, Args)]
pub(super) struct PictureArgs {
    #[command(flatten)]
    sources: SourcesArgs,

    /// File to write, `-` for standard output; an existing one is replaced [default: beside the
    /// recording, with its name and .html or .svg; an existing one becomes FILE.old]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// Compare with the recording BASE (may be given several times): what became more, and what less
    #[arg(long = "diff", value_name = "BASE", value_hint = ValueHint::FilePath)]
    base: Vec<PathBuf>,

    /// Title, in place of the recorded command line
    #[arg(long, value_name = "TEXT")]
    pub(super) title: Option<String>,

    /// Leave out what is private, as rep bundle --share does
    #[arg(long)]
    share: bool,

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
#[derive(Clone, Debug)]
pub(super) struct PictureQuery {
    pub(super) query: Query,
    /// Inputs of the second side; empty for none.
    pub(super) base: Vec<Source>,
    /// `true` if it has nothing private.
    share: bool,
}

/// A picture that is made of recordings without what is private.
pub(super) struct SharedPicture {
    pub(super) query: PictureQuery,
    _inputs: [SharedInputs; 2],
}

/// One side of a picture: its recordings.
pub(super) struct PictureSide {
    pub(super) profile: Profile,
    /// Facts of each input.
    pub(super) facts: Vec<RecordingFacts>,
    /// Greatest step of time of an input.
    pub(super) step: u64,
    /// Samples by instruction, with the query that counts them, if they are shown.
    pub(super) by_instruction: Option<(Profile, Query)>,
    has_switches: bool,
    /// Steps of time, if there is one input.
    steps: Option<Steps>,
    /// When threads ran, if what they did is counted, in steps that are equal in all inputs.
    ran: Option<Vec<RanThread>>,
    has_wakes: bool,
}

/// Where a picture is written.
#[derive(Clone, Debug)]
pub(super) struct OutputFile {
    path: PathBuf,
    /// `true` if the user did not name it: what is there is kept.
    is_default: bool,
}

impl PictureArgs {
    /// Returns where the picture is written: by default beside its recording, with this extension.
    pub(super) fn output(&self, extension: &str) -> Result<OutputFile, String> {
        if let Some(path) = self.output.clone() {
            return Ok(OutputFile { path, is_default: false });
        }
        match self.sources.sources().as_slice() {
            [Source::Path(path)] => {
                let mut name = path.clone().into_os_string();
                name.push(format!(".{extension}"));
                Ok(OutputFile { path: name.into(), is_default: true })
            }
            [_] => Err("-o FILE is needed for standard input".into()),
            _ => Err("-o FILE is needed for several recordings".into()),
        }
    }

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
        Ok(PictureQuery { query, base, share: self.share })
    }
}

impl PictureQuery {
    /// Takes out of the recordings what is private, if that is asked for.
    pub(super) fn shared(&self) -> anyhow::Result<Option<SharedPicture>> {
        if !self.share {
            return Ok(None);
        }
        let shared = |sources: &[Source]| {
            SharedInputs::of(&Input::all_sources(sources)?, &self.query.symbol_sources)
        };
        let inputs = [shared(&self.query.sources)?, shared(&self.base)?];
        let [sources, base] = [&inputs[0], &inputs[1]].map(|inputs| inputs.sources.clone());
        let query = Query { sources, ..self.query.clone() };
        Ok(Some(SharedPicture { query: Self { query, base, share: false }, _inputs: inputs }))
    }

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
            let query = Query { sources: Input::all_sources(sources)?, ..self.query.clone() };
            // A page shows instructions of the new side.
            let has_code = has_times && number == 0;
            let (mut side, answered) = side(&query, has_code)?;
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
                let modes = [Mode::OffCpu, Mode::Wall, Mode::CriticalPath];
                let has_wakes = side.has_wakes;
                let recorded = modes.into_iter().filter(|mode| mode.is_recorded(has_wakes));
                for mode in recorded {
                    let times = Query { mode, columns: columns_of_times(), ..query.clone() };
                    let (times, answered) = counted(&times, None)?;
                    picture.add(&times.profile, &answered, number, side.step);
                    if mode == Mode::Wall && !query.filters.leave_out_parts() {
                        picture.add_ran("wall", number, times.ran.as_deref().unwrap_or_default());
                    }
                    // Times of several inputs are none of one line.
                    if let (Some(steps), [path]) = (times.steps, times.profile.paths.as_slice()) {
                        picture.add_path("critical-path", number, steps, &path.pieces);
                    }
                    if let (Mode::Wall, Some(steps)) = (mode, times.steps) {
                        let waits = listed(&query, steps.length)?;
                        picture.add_waits("wall", number, steps, waits);
                    }
                }
            }
            sides.push(side);
        }
        Ok(sides)
    }
}

/// Returns a side that has samples.
fn side(query: &Query, has_code: bool) -> anyhow::Result<(PictureSide, Query)> {
    let code = match has_code {
        true => Some(by_instruction(&Query { chains: ChainOptions::default(), ..query.clone() })?),
        false => None,
    };
    let (side, answered) = match counted(query, code.as_ref()) {
        // A profile has no times: the picture has none either.
        Err(error) if is_summed(&error) && query.has(SortKey::Time) => {
            counted(&Query { columns: columns(false), ..query.clone() }, code.as_ref())?
        }
        other => other?,
    };
    let failure = side.profile.warnings.iter().find(|warning| warning.is_failure());
    if let Some(failure) = failure {
        bail!("{}", failure.message);
    }
    Ok((side, answered))
}

/// Returns whether an error says that an input has sums of samples only.
fn is_summed(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(OpenError::Summed(..)))
}

/// Answers the query of a side, and that of its instructions.
fn counted(query: &Query, code: Option<&Query>) -> anyhow::Result<(PictureSide, Query)> {
    let Gathered { profile, query: answered, second, made } =
        retry_if_changed(&query.sources, || {
            gather_two(query, code, |session| {
                let steps = session.steps(query.steps);
                let ran = session.off_cpu.as_ref().map(|times| times.ran(steps));
                let has_switches = have_switches(session);
                let has = [has_switches, has_switches && session.has_wakes()];
                (facts(session), steps, has, ran)
            })
        })?;
    let lengths = made.iter().map(|(_, Steps { length, .. }, ..)| *length);
    let step = lengths.clone().max().unwrap_or(1);
    let are_equal = lengths.min() == Some(step);
    let has_switches = made.iter().any(|(_, _, [has_switches, _], _)| *has_switches);
    let has_wakes = made.iter().any(|(_, _, [_, has_wakes], _)| *has_wakes);
    let steps = if let [(_, steps, ..)] = made.as_slice() { Some(*steps) } else { None };
    let (facts, ran): (_, Vec<Option<Vec<RanThread>>>) =
        made.into_iter().map(|(facts, _, _, ran)| (facts, ran)).unzip();
    let ran = are_equal.then(|| ran.into_iter().flatten().flatten().collect());
    let by_instruction = second.zip(code.cloned());
    let side =
        PictureSide { profile, facts, step, by_instruction, has_switches, has_wakes, steps, ran };
    Ok((side, answered))
}

/// Writes the file, says so, and returns the warnings of all sides.
pub(super) fn write_file(
    OutputFile { path, is_default }: &OutputFile,
    sides: Vec<PictureSide>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<Vec<Warning>> {
    if path == Path::new("-") {
        write(&mut io::stdout().lock())?;
    } else {
        let kept = if *is_default { keep_earlier(path)? } else { String::new() };
        let size = replace_file(path, |out| write(out))
            .with_context(|| format!("cannot write {}", path.display()))?;
        let size = if size > 0 { format!(" ({})", units::bytes(size)) } else { String::new() };
        say(&format!("rep: wrote {}{size}{kept}", path.display()));
    }
    Ok(sides.into_iter().flat_map(|side| side.profile.warnings).collect())
}

/// Renames what is at a path, as `rec` does, and returns the end of a sentence that says so.
fn keep_earlier(path: &Path) -> anyhow::Result<String> {
    if path.symlink_metadata().is_err() {
        return Ok(String::new());
    }
    let mut old = path.to_owned().into_os_string();
    old.push(".old");
    let old = PathBuf::from(old);
    std::fs::rename(path, &old)
        .with_context(|| format!("cannot rename {} to {}", path.display(), old.display()))?;
    Ok(format!("; the earlier file is {}", old.display()))
}
