//! `rep flame`: a flame graph as SVG.

use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Context as _;
use clap::Parser;
use recrep_console::units;

use super::picture::{OutputFile, PictureArgs, PictureQuery, PictureSide, write_file};
use super::title;
use crate::cli::TimesArgs;
use crate::picture::PictureBuilder;
use crate::picture::svg::FlameGraph;
use crate::query::Warning;
use crate::terminal::when::date;

/// Write a flame graph as SVG: for READMEs, tickets, papers
#[derive(Debug, Parser)]
#[command(name = "rep flame", version, long_about = None)]
pub(crate) struct FlameArgs {
    /// Begin with the sampled functions, and show their callers below them
    #[arg(long)]
    inverted: bool,

    /// Add a script that zooms (click) and searches (/); sites show pictures without their scripts
    #[arg(long)]
    interactive: bool,

    /// Width of the picture in pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 1200, value_parser = clap::value_parser!(u32).range(200..=20_000))]
    width: u32,

    /// Leave out boxes narrower than this
    #[arg(long, value_name = "PIXELS", default_value_t = 0.5, value_parser = min_width)]
    min_width: f64,

    #[command(flatten)]
    times: TimesArgs,

    #[command(flatten)]
    picture: PictureArgs,
}

/// Parses the least width of a box.
fn min_width(text: &str) -> Result<f64, String> {
    let width = text.parse::<f64>().ok().filter(|width| (0.05..=100.0).contains(width));
    width.ok_or_else(|| "it takes pixels, from 0.05 to 100".into())
}

/// What a flame graph shows, and where it is written.
pub(crate) struct FlameQuery {
    picture: PictureQuery,
    output: OutputFile,
    title: Option<String>,
    inverted: bool,
    interactive: bool,
    width: u32,
    min_width: f64,
}

pub(crate) fn query(args: FlameArgs) -> Result<FlameQuery, String> {
    let FlameArgs { inverted, interactive, width, min_width, .. } = args;
    let FlameArgs { times, picture, .. } = args;
    let (output, title) = (picture.output("svg")?, picture.title.clone());
    let mut picture = picture.query(false)?;
    picture.query.mode = times.mode();
    Ok(FlameQuery { picture, output, title, inverted, interactive, width, min_width })
}

/// Writes the picture and returns warnings.
pub(crate) fn run(asked: &FlameQuery, _: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let mut builder = PictureBuilder::default();
    let shared = asked.picture.shared()?;
    let query = shared.as_ref().map_or(&asked.picture, |shared| &shared.query);
    let sides = query.add_to(&mut builder, false)?;
    let picture = builder.finish(1);
    let event = picture.events.first().context("no sample has a callchain or a function")?;
    let others: Vec<&str> =
        picture.events.iter().skip(1).map(|event| event.name.as_str()).collect();
    let about =
        sides.first().map(|side| about(side, &event.name, event.totals)).unwrap_or_default();
    let recorded = sides.first().and_then(|side| side.facts.first());
    let title =
        asked.title.clone().or_else(|| title::of_command(&recorded?.facts.command, &picture));
    let graph = FlameGraph {
        picture: &picture,
        event,
        title: title.unwrap_or_else(|| "Flame graph".into()),
        about,
        inverted: asked.inverted,
        interactive: asked.interactive,
        width: asked.width,
        min_width: asked.min_width,
    };
    let mut warnings = Vec::new();
    if !others.is_empty() {
        let message = format!(
            "the picture shows {}; other events: {} (--event NAME)",
            event.name,
            others.join(", ")
        );
        warnings.push(Warning::new("other-events", message));
    }
    warnings.extend(write_file(&asked.output, sides, |out| graph.write(out))?);
    Ok(warnings)
}

/// Returns what a picture shows: samples, event, machine, date.
fn about(side: &PictureSide, event: &str, totals: [crate::count::Count; 2]) -> String {
    let [total, base] = totals;
    let mut parts = vec![format!("{} samples of {event}", total.samples)];
    if base.samples > 0 {
        parts.push(format!("compared with {} samples", base.samples));
    }
    if let Some(recorded) = side.facts.first() {
        if let Some([first, last]) = recorded.facts.sample_times {
            parts.push(units::time(last.saturating_sub(first)));
        }
        parts.extend(recorded.facts.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
        let began = recorded.began.and_then(|began| date(UNIX_EPOCH + Duration::from_nanos(began)));
        parts.extend(began);
    }
    parts.join(" · ")
}
