//! Copies a perf.data file with the samples of one process or of a range of time, and what perf
//! needs to know about them.
//!
//!     cargo run -p recrep-format --example cut -- perf.data part.data --pid 4711
//!     cargo run -p recrep-format --example cut -- perf.data part.data --time 12.5..13.25
//!     cargo run -p recrep-format --example cut -- perf.data part.data --time 12500000000ns..13250000000ns
//!     perf report -i part.data
//!
//! `--pid` keeps mappings, names, forks and exits of the process and its ancestors, and the
//! kernel's mappings; `--time`, a range with both its ends, keeps all of them.

use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::fs;

use recrep_format::abi::RecordType;
use recrep_format::read::File;
use recrep_format::record::{Body, RawRecord};
use recrep_format::write::copy;

const USAGE: &str =
    "usage: cut INPUT OUTPUT --pid PID | --time FROM..TO (in seconds, or in nanoseconds: 5ns)";
/// The process of the kernel's own mappings.
const KERNEL: u32 = u32::MAX;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, option, value] = args.as_slice() else { return Err(USAGE.into()) };
    let bytes = fs::read(input)?;
    let file = File::parse(&bytes)?;
    let is_packed = |kind| [RecordType::COMPRESSED, RecordType::COMPRESSED2].contains(&kind);
    if file.records().flatten().any(|raw| is_packed(raw.header.kind)) {
        return Err("its records are compressed, and cannot be kept or dropped one by one".into());
    }
    let out = fs::File::create(output)?;
    match option.as_str() {
        "--pid" => {
            let pid = value.parse()?;
            let family = with_ancestors(&file, pid);
            copy(&file, out, |raw| is_of_process(&file, raw, pid, &family))?;
        }
        "--time" => {
            let (from, to) = value.split_once("..").ok_or(USAGE)?;
            let range = nanoseconds(from)?..=nanoseconds(to)?;
            copy(&file, out, |raw| match file.attrs.sample(*raw) {
                Some((_, sample)) => sample.time().is_some_and(|time| range.contains(&time)),
                None => true,
            })?;
        }
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

/// Parses `12.5` (seconds) or `12500000000ns`.
fn nanoseconds(text: &str) -> Result<u64, Box<dyn Error>> {
    if let Some(whole) = text.strip_suffix("ns") {
        return Ok(whole.parse()?);
    }
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 9 {
        return Err(format!("{text}: more than nine digits after the point").into());
    }
    let nanoseconds: u64 = format!("{fraction:0<9}").parse()?;
    let seconds: u64 = seconds.parse()?;
    Ok(seconds
        .checked_mul(1_000_000_000)
        .and_then(|whole| whole.checked_add(nanoseconds))
        .ok_or("time out of range")?)
}

/// Returns the process, its parent, the parent's parent and so on, by the recorded forks, and the
/// kernel.
fn with_ancestors(file: &File<'_>, pid: u32) -> BTreeSet<u32> {
    let mut parents = HashMap::new();
    for raw in file.records().flatten().filter(|raw| raw.header.kind == RecordType::FORK) {
        // Threads are forked by their own process.
        if let Ok(Body::Fork(task)) = file.attrs.decode(&raw).map(|record| record.body)
            && task.pid != task.ppid
        {
            parents.insert(task.pid, task.ppid);
        }
    }
    let mut family = BTreeSet::from([KERNEL]);
    let mut next = Some(pid);
    // A damaged file may have forks in a circle.
    while let Some(pid) = next.filter(|pid| family.insert(*pid)) {
        next = parents.get(&pid).copied();
    }
    family
}

/// Returns whether a record is a sample of the process, tells of it or one of its ancestors, or is
/// not about a process at all.
fn is_of_process(file: &File<'_>, raw: &RawRecord<'_>, pid: u32, family: &BTreeSet<u32>) -> bool {
    if let Some((_, sample)) = file.attrs.sample(*raw) {
        return sample.pid() == Some(pid);
    }
    match file.attrs.decode(raw).map(|record| record.body) {
        Ok(Body::Comm(comm)) => family.contains(&comm.pid),
        Ok(Body::Mmap(mmap)) => family.contains(&mmap.pid),
        Ok(Body::Mmap2(mmap)) => family.contains(&mmap.pid),
        Ok(Body::Fork(task) | Body::Exit(task)) => family.contains(&task.pid),
        Ok(Body::Namespaces(of)) => family.contains(&of.pid),
        _ => raw.header.kind != RecordType::SAMPLE,
    }
}
