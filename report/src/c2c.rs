//! `rep c2c`: cache lines that cores take from each other.
//!
//! A load that finds its line changed in another core's cache is a HITM (hit modified); lines with many of them are
//! shared where they should not be, often by chance (false sharing). For each line there are the offsets that were
//! touched, by which functions, and which threads read and wrote. All events count together, since machines sample loads
//! and stores by different ones.
//!
//! A HITM is remote where the data came from another node (`remote`, or a level of another node's caches), else local.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write;

use anyhow::Context as _;
use indexmap::IndexMap;
use recrep_format::abi::DataSrc;
use serde::Serialize;

use crate::derived;
use crate::profile::{InputSummary, Row};
use crate::query::{Format, Query};
use crate::sort_key::{Mode, SortKey};
use crate::view::{CANNOT_WRITE, escape};
use crate::warning::Warning;

/// `PERF_MEM_OP_*`.
const LOAD: u32 = 2;
const STORE: u32 = 4;
/// `PERF_MEM_SNOOP_HITM`.
const HITM: u32 = 0x10;
/// `PERF_MEM_LVL_REM_*`: memory and caches of other nodes.
const REMOTE: u32 = 0xf00;

/// Reads a command line (with `rep c2c` first, as one word).
///
/// # Errors
/// What the user must be told.
pub fn parse(words: Vec<OsString>) -> Result<Query, clap::Error> {
    let query = derived::parse(words, Mode::Memory)?;
    if derived::has_default_keys(&query) && query.percent_limit.is_none() {
        return Ok(query);
    }
    let message = "--sort and --percent-limit: rep c2c is by cache line; --limit cuts it\n";
    Err(clap::Error::raw(clap::error::ErrorKind::ArgumentConflict, message))
}

/// What was sampled at a line or an offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Counts {
    samples: u64,
    loads: u64,
    stores: u64,
    local_hitm: u64,
    remote_hitm: u64,
}

impl Counts {
    fn of(src: DataSrc, samples: u64) -> Self {
        let has = |is: bool| if is { samples } else { 0 };
        let hitm = src.op() & LOAD != 0 && src.snoop() & HITM != 0;
        let is_remote = src.remote() == 1 || src.lvl() & REMOTE != 0;
        Self {
            samples,
            loads: has(src.op() & LOAD != 0),
            stores: has(src.op() & STORE != 0),
            local_hitm: has(hitm && !is_remote),
            remote_hitm: has(hitm && is_remote),
        }
    }

    fn add(&mut self, other: Self) {
        self.samples += other.samples;
        self.loads += other.loads;
        self.stores += other.stores;
        self.local_hitm += other.local_hitm;
        self.remote_hitm += other.remote_hitm;
    }

    fn hitm(self) -> u64 {
        self.local_hitm + self.remote_hitm
    }
}

/// A cache line.
#[derive(Clone, Debug, Default, Serialize)]
struct Line {
    line: String,
    dso: String,
    #[serde(flatten)]
    counts: Counts,
    /// Threads, as `tid:name`.
    readers: BTreeSet<String>,
    writers: BTreeSet<String>,
    offsets: Vec<Offset>,
}

/// An offset in it, as one function touches it.
#[derive(Clone, Debug, Default, Serialize)]
struct Offset {
    offset: String,
    symbol: String,
    #[serde(flatten)]
    counts: Counts,
}

#[derive(Serialize)]
struct Answer<'p> {
    schema: &'static str,
    inputs: &'p [InputSummary],
    total: Counts,
    lines: Vec<Line>,
    warnings: &'p [Warning],
}

/// Answers.
///
/// # Errors
/// An input cannot be read, or the output cannot be written.
pub fn run(asked: &Query, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let columns = derived::columns(&[
        ("dcacheline", SortKey::DataCacheLine),
        ("dso_daddr", SortKey::DataDso),
        ("line_offset", SortKey::LineOffset),
        ("symbol", SortKey::Symbol),
        ("tid", SortKey::Tid),
        ("data_src", SortKey::DataSrc),
    ]);
    let (profile, query) = derived::profile(asked, columns)?;
    let tables = profile.tables(&query);
    let rows: Vec<&Row<'_>> = tables.iter().flat_map(|table| &table.rows).collect();
    let mut lines = lines(&rows);
    lines.truncate(asked.limit.unwrap_or(usize::MAX));
    let mut total = Counts::default();
    rows.iter().filter_map(|row| told(row)).for_each(|(counts, _)| total.add(counts));
    if asked.format == Format::Json {
        let (inputs, warnings) = (&profile.inputs[..], &profile.warnings[..]);
        let answer = Answer { schema: "recrep-c2c/1", inputs, total, lines, warnings };
        derived::json(&answer, out).context(CANNOT_WRITE)?;
    } else {
        print(&lines, total, out).context(CANNOT_WRITE)?;
    }
    Ok(profile.warnings)
}

/// The counts of a row and the texts of its first five columns.
fn told<'r>(row: &'r Row<'_>) -> Option<(Counts, [&'r str; 5])> {
    let [line, dso, offset, symbol, thread, src] = &row.columns[..] else { return None };
    let word = src.split_whitespace().next().and_then(|word| u64::from_str_radix(word, 16).ok())?;
    Some((Counts::of(DataSrc(word), row.count.samples), [line, dso, offset, symbol, thread]))
}

fn lines(rows: &[&Row<'_>]) -> Vec<Line> {
    let mut lines = IndexMap::<(&str, &str), (Line, IndexMap<(&str, &str), Offset>)>::new();
    for row in rows {
        let Some((counts, [line, dso, offset, symbol, thread])) = told(row) else { continue };
        let (found, offsets) = lines.entry((line, dso)).or_default();
        (found.line, found.dso) = (line.into(), dso.into());
        found.counts.add(counts);
        if counts.loads > 0 {
            found.readers.insert(thread.into());
        }
        if counts.stores > 0 {
            found.writers.insert(thread.into());
        }
        let at = offsets.entry((offset, symbol)).or_default();
        (at.offset, at.symbol) = (offset.into(), symbol.into());
        at.counts.add(counts);
    }
    let order = |counts: Counts| (counts.hitm(), counts.samples);
    let whole = |(mut line, offsets): (Line, IndexMap<(&str, &str), Offset>)| {
        line.offsets = offsets.into_values().collect();
        line.offsets.sort_by(|a, b| {
            let by_text = || (&a.offset, &a.symbol).cmp(&(&b.offset, &b.symbol));
            order(b.counts).cmp(&order(a.counts)).then_with(by_text)
        });
        line
    };
    let mut lines: Vec<Line> = lines.into_values().map(whole).collect();
    lines.sort_by(|a, b| order(b.counts).cmp(&order(a.counts)).then_with(|| (&a.line, &a.dso).cmp(&(&b.line, &b.dso))));
    lines
}

fn print(lines: &[Line], total: Counts, out: &mut impl Write) -> std::io::Result<()> {
    let number = |counts: Counts| {
        let Counts { samples, loads, stores, local_hitm, remote_hitm } = counts;
        format!("{:>8} {local_hitm:>8} {remote_hitm:>8} {loads:>8} {stores:>8} {samples:>8}", counts.hitm())
    };
    writeln!(out, "# {} accesses, {} of them HITM\n#", total.samples, total.hitm())?;
    writeln!(out, "#   HITM    local   remote    loads   stores  samples  cache line")?;
    for line in lines {
        writeln!(out, "{}  {} ({})", number(line.counts), escape(&line.line), escape(&line.dso))?;
        for (what, threads) in [("read by", &line.readers), ("written by", &line.writers)] {
            if !threads.is_empty() {
                let threads: Vec<_> = threads.iter().map(|thread| escape(thread)).collect();
                writeln!(out, "{:>55}{what} {}", "", threads.join(", "))?;
            }
        }
        for at in &line.offsets {
            writeln!(out, "{}    {:>5} {}", number(at.counts), at.offset, escape(&at.symbol))?;
        }
    }
    Ok(())
}
