//! `rep html`: one page that shows a recording, or compares two, and needs nothing else.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use clap::Parser;
use rustc_hash::FxHashMap;

use super::page_code::page_code;
use super::picture::{OutputFile, PictureArgs, PictureQuery, PictureSide, write_file};
use super::title;
use crate::analyses::diff::{self, EventVerdict, MarkedChange};
use crate::count::Count;
use crate::count::metrics::share;
use crate::engine::facts::RecordingFacts;
use crate::picture::page::{
    PageBroken, PageChange, PageFacts, PageVerdict, PageView, PageWarning, SideFacts, SideFile,
    write,
};
use crate::picture::{Picture, PictureBuilder};
use crate::profile::recording::quoted;
use crate::profile::user_stacks::BrokenStacks;
use crate::query::{Mode, Query, Source, Warning};
use crate::terminal::when::date;

/// Write a page that shows a recording in any browser: flame graph, functions, callers, timeline
#[derive(Debug, Parser)]
#[command(name = "rep html", version, long_about = None)]
pub(crate) struct HtmlArgs {
    /// Leave out the host's name, and the paths of files and modules but for their last parts
    #[arg(long)]
    no_host: bool,

    #[command(flatten)]
    picture: PictureArgs,
}

/// What a page shows, and where it is written.
#[derive(Clone)]
pub(crate) struct HtmlQuery {
    picture: PictureQuery,
    output: OutputFile,
    title: Option<String>,
    no_host: bool,
}

pub(crate) fn query(args: HtmlArgs) -> Result<HtmlQuery, String> {
    let HtmlArgs { no_host, picture } = args;
    let (output, title) = (picture.output("html")?, picture.title.clone());
    Ok(HtmlQuery { picture: picture.query(true)?, output, title, no_host })
}

/// Writes the page and returns warnings.
pub(crate) fn run(asked: &HtmlQuery, _: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    match asked.picture.shared()? {
        // Its files are below a directory for temporary ones, which may be a user's.
        Some(shared) => {
            page(&HtmlQuery { picture: shared.query.clone(), no_host: true, ..asked.clone() })
        }
        None => page(asked),
    }
}

fn page(asked: &HtmlQuery) -> anyhow::Result<Vec<Warning>> {
    let mut builder = PictureBuilder::with_times();
    let sides = asked.picture.add_to(&mut builder, true)?;
    let step = sides.iter().map(|side| side.step).max().unwrap_or(1);
    let mut picture = builder.finish(step);
    let mut facts = asked.facts(&sides, &picture);
    if let [new, others @ ..] = sides.as_slice() {
        let (code, reasons) = page_code(new, &picture);
        facts.code = code;
        facts.remedies.extend(reasons);
        if !others.is_empty() {
            facts.verdicts = asked.verdicts(new, &picture);
        }
    }
    if asked.no_host {
        for module in &mut picture.modules {
            module.path = last_part(&module.path);
        }
    }
    write_file(&asked.output, sides, |out| write(picture, &facts, out))
}

impl HtmlQuery {
    fn facts(&self, sides: &[PictureSide], picture: &Picture) -> PageFacts {
        let of_sides: Vec<SideFacts> = sides.iter().map(|side| self.side(side)).collect();
        let first = of_sides.first();
        let recorded = sides.first().and_then(|side| side.facts.first());
        let words = recorded.map(|recorded| &recorded.facts.command);
        let title = self.title.clone().or_else(|| title::of_command(words?, picture));
        let title = title.or_else(|| Some(first?.name.clone())).unwrap_or_default();
        let warnings = sides.iter().flat_map(|side| &side.profile.warnings);
        let samples: u64 =
            picture.events.iter().flat_map(|event| event.totals).map(|total| total.samples).sum();
        let warnings = warnings.map(|warning| PageWarning {
            code: warning.code.into(),
            message: warning.message.clone(),
            is_minor: warning
                .affected
                .is_some_and(|affected| affected.saturating_mul(100) < samples),
        });
        PageFacts {
            title,
            warnings: warnings.chain(without_name(picture)).collect(),
            broken: sides.iter().flat_map(broken).collect(),
            remedies: sides.iter().flat_map(|side| side.profile.hints.clone()).collect(),
            views: self.views(),
            verdicts: Vec::new(),
            code: Vec::new(),
            sides: of_sides,
        }
    }

    fn side(&self, side: &PictureSide) -> SideFacts {
        let PictureSide { profile, facts, .. } = side;
        let path = |path: &str| if self.no_host { last_part(path) } else { path.to_owned() };
        let files: Vec<SideFile> = profile
            .inputs
            .iter()
            .map(|input| SideFile {
                path: path(&input.path),
                bytes: input.bytes,
                records: input.records.clone(),
                lost_events: input.lost_events,
                lost_samples: input.lost_samples,
                complete: input.complete,
            })
            .collect();
        let name = match files.as_slice() {
            [one] => one.path.clone(),
            many => format!("{} files", many.len()),
        };
        let recorded = facts.first();
        let of_first = |text: fn(&RecordingFacts) -> Option<String>| text(recorded?);
        let began = recorded.and_then(|recorded| recorded.began);
        let times = recorded.and_then(|recorded| recorded.facts.sample_times);
        let duration = facts.iter().filter_map(|recorded| {
            let [first, last] = recorded.facts.sample_times?;
            last.checked_sub(first)
        });
        SideFacts {
            name,
            command: of_first(command_line).filter(|_| self.title.is_none()),
            host: of_first(|recorded| recorded.facts.host.clone()).filter(|_| !self.no_host),
            os: of_first(|recorded| Some(format!("Linux {}", recorded.facts.kernel.as_ref()?))),
            arch: of_first(|recorded| recorded.facts.arch.clone()),
            cpus: recorded.and_then(|recorded| recorded.facts.cpus).map(|[_, online]| online),
            date: began.and_then(|began| date(UNIX_EPOCH + Duration::from_nanos(began))),
            duration: duration.max(),
            begin: times.map(|[first, _]| {
                format!("{}.{:09}", first / 1_000_000_000, first % 1_000_000_000)
            }),
            files,
        }
    }

    /// Returns what `rep diff` says of both sides, for each of the picture's events.
    fn verdicts(&self, new: &PictureSide, picture: &Picture) -> Vec<PageVerdict> {
        let has_chains = new.profile.calls.samples.iter().any(|sample| sample.callers != 0);
        let mut frames: FxHashMap<(&str, &str), usize> = FxHashMap::default();
        for (number, frame) in picture.frames.iter().enumerate() {
            let module = (frame.module as usize).checked_sub(1);
            let module = module.and_then(|module| picture.modules.get(module));
            frames.insert((module.map_or("", |module| &module.name), &frame.name), number);
        }
        let is_shown = |mode: &Mode| {
            mode.event().is_none_or(|name| picture.events.iter().any(|event| event.name == name))
        };
        let mut all = Vec::new();
        let modes = [Mode::Samples, Mode::OffCpu, Mode::Wall, Mode::CriticalPath];
        for mode in modes.into_iter().filter(is_shown) {
            let PictureQuery { query, base, .. } = &self.picture;
            let query = Query { mode, ..query.clone() };
            let verdicts = diff::verdicts(&query, base, &query.sources, has_chains);
            all.extend(verdicts.into_iter().map(|verdict| of_page(verdict, &frames)));
        }
        all
    }

    /// Returns command lines that show more of the same.
    fn views(&self) -> Vec<PageView> {
        let files = |sources: &[Source]| {
            let path = |source: &Source| match source {
                Source::Stdin => "-".into(),
                Source::Path(path) => {
                    let path = path.to_string_lossy();
                    quoted(&if self.no_host { last_part(&path) } else { path.into_owned() })
                }
            };
            sources.iter().map(path).collect::<Vec<String>>().join(" ")
        };
        let (new, base) = (files(&self.picture.query.sources), files(&self.picture.base));
        let mut views = vec![
            PageView { what: "Hottest functions", line: format!("rep --no-children {new}") },
            PageView { what: "Call trees", line: format!("rep -g caller {new}") },
            PageView { what: "The same for scripts", line: format!("rep --json {new}") },
            PageView {
                what: "Instructions of the hottest functions",
                line: format!("rep annotate {new}"),
            },
            PageView {
                what: "A picture for a README",
                line: format!("rep flame -o flame.svg {new}"),
            },
            PageView {
                what: "For go tool pprof",
                line: format!("rep export -o profile.pb.gz {new}"),
            },
            PageView { what: "Where symbols came from", line: format!("rep modules {new}") },
        ];
        if !base.is_empty() {
            let line = format!("rep diff {base} -- {new}");
            views.push(PageView { what: "What changed, and whether chance explains it", line });
        }
        views
    }
}

/// Returns a verdict with the page's numbers of frames, given those by modules and names.
fn of_page(verdict: EventVerdict, frames: &FxHashMap<(&str, &str), usize>) -> PageVerdict {
    let EventVerdict { event, word, lines, changes } = verdict;
    let changes = changes.into_iter().flat_map(|MarkedChange { names, change, text }| {
        let numbers: BTreeSet<usize> = names
            .iter()
            .filter_map(|(module, name)| frames.get(&(module.as_str(), name.as_str())).copied())
            .collect();
        numbers.into_iter().map(move |frame| PageChange { frame, change, text: text.clone() })
    });
    PageVerdict { event, word, lines, changes: changes.collect() }
}

/// Returns the command line of a recorder.
fn command_line(recorded: &RecordingFacts) -> Option<String> {
    let words: Vec<String> = recorded.facts.command.iter().map(|word| quoted(word)).collect();
    Some(words.join(" ")).filter(|line| !line.is_empty())
}

/// Returns the programs of a side whose stacks are broken.
fn broken(side: &PictureSide) -> Vec<PageBroken> {
    let of_program = |one: BrokenStacks<'_>| PageBroken {
        program: one.program.unwrap_or_default().to_owned(),
        stacks: one.stacks,
        broken: one.broken,
        cut: one.cut,
        remedy: one.remedy,
    };
    side.profile.program_stacks.broken().into_iter().map(of_program).collect()
}

/// Returns a warning if more than a twentieth of the samples are in code without a name.
fn without_name(picture: &Picture) -> Option<PageWarning> {
    let event = picture.events.first()?;
    let weight = |count: &Count| Picture::weight(event, *count);
    let all: u64 = event.totals.iter().map(weight).sum();
    let mut unnamed = Vec::new();
    for (frame, sums) in picture.frames.iter().zip(picture.frame_sums(event)) {
        let own: u64 = sums.own.iter().map(weight).sum();
        if frame.kind.is_without_name() && own > 0 {
            let module = (frame.module as usize).checked_sub(1);
            let module = module.and_then(|module| picture.modules.get(module));
            unnamed.push((own, module.map_or("no module", |module| module.name.as_str())));
        }
    }
    let weight: u64 = unnamed.iter().map(|(own, _)| own).sum();
    let (_, most) = unnamed.iter().max()?;
    let message = format!(
        "{:.1}% of the samples have no function name: mostly {most} (rep modules says why)",
        share(weight, all)
    );
    let code = "unnamed".into();
    (weight.saturating_mul(20) > all).then_some(PageWarning { code, message, is_minor: false })
}

/// Returns the last part of a path.
fn last_part(path: &str) -> String {
    let name = Path::new(path).file_name();
    name.map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
}
