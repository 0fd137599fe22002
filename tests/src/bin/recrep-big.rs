//! Makes a large perf.data file by the fixture builders, for measurements of what this machine
//! cannot record.
//!
//!     cargo run --release -p recrep-tests --bin recrep-big -- branches branches.data
//!     cargo run --release -p recrep-tests --bin recrep-big -- accesses accesses.data
//!     cargo run --release -p recrep-tests --bin recrep-big -- threads threads.data
//!     cargo run --release -p recrep-tests --bin recrep-big -- waits waits.data
//!
//! All addresses are in this program's own code, so that both `rep` and `perf report` find
//! functions for them. A few places are met often and many seldom, as in programs. The same command
//! makes the same places every time.
#![allow(clippy::print_stderr, reason = "a program that prints")]

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_format::abi::{BranchEntry, BranchFlags, BranchSampleType, SampleType, context};
use recrep_format::endian::Endian;
use recrep_tests::waiting;

/// Makes a large perf.data file
#[derive(Debug, Parser)]
#[command(name = "recrep-big")]
struct Args {
    /// Contents of its samples
    #[arg(value_enum)]
    what: What,

    /// The file to write
    file: PathBuf,

    /// Number of samples [default: 462500 of 32 branches each, or 4600000 accesses: about 370 MB;
    /// or 100000 of as many threads; or 2000000 wakes]
    #[arg(long)]
    samples: Option<u64>,

    /// Number of distinct branches or of places of accesses
    #[arg(long, default_value_t = 20_000)]
    places: u64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    /// Branch stacks of 32 branches
    Branches,
    /// Memory accesses with data sources and weights
    Accesses,
    /// A sample of each of very many threads, some with very deep stacks
    Threads,
    /// Wakes and switches of 64 threads on 8 CPUs
    Waits,
}

/// Number of branches in a stack.
const BRANCHES: usize = 32;

/// Depth of the stacks of most threads.
const DEPTH: usize = 20;
/// Depth of the stack of every thousandth.
const GREATEST_DEPTH: usize = 5000;

fn main() -> ExitCode {
    let args = Args::parse();
    let written =
        made(&args).and_then(|bytes| fs::write(&args.file, bytes).map_err(|e| e.to_string()));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("recrep-big: cannot make {}: {error}", args.file.display());
            ExitCode::FAILURE
        }
    }
}

/// Numbers that look random, the same in every run.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// Below `count`; the small ones far more often.
    fn seldom_large(&mut self, count: u64) -> u64 {
        let part = self.next() % (1 << 20);
        ((part * part) >> 20).wrapping_mul(part) / (1 << 20) * count / (1 << 20)
    }
}

/// This program's code as it is mapped: path, start, length, offset in the file.
fn own_code() -> Result<(String, u64, u64, u64), String> {
    let exe = std::env::current_exe().map_err(|e| e.to_string())?.display().to_string();
    let maps = fs::read_to_string("/proc/self/maps").map_err(|e| e.to_string())?;
    let line = maps.lines().find(|line| line.contains(" r-xp ") && line.ends_with(&exe));
    let hex = |text: Option<&str>| text.and_then(|text| u64::from_str_radix(text, 16).ok());
    let mut words = line.ok_or("its own code is not mapped")?.split_whitespace();
    let (start, end) = words.next().and_then(|range| range.split_once('-')).unwrap_or_default();
    let (start, end, offset) = (hex(Some(start)), hex(Some(end)), hex(words.nth(1)));
    match (start, end, offset) {
        (Some(start), Some(end), Some(offset)) => Ok((exe, start, end - start, offset)),
        _ => Err("its own mappings cannot be read".into()),
    }
}

fn made(args: &Args) -> Result<Vec<u8>, String> {
    let (places, (exe, start, len, offset)) = (args.places, own_code()?);
    let mut draws = Draws(1);
    // Not at the edges, where there are stubs without a name.
    let (margin, inner) = (len / 8, start + len / 8);
    // A branch leads from its place to one target, as most do.
    let edges: Vec<[u64; 2]> =
        (0..places).map(|_| [(); 2].map(|()| inner + draws.next() % (len - 2 * margin))).collect();
    let mut edge = {
        let mut draws = Draws(2);
        move || {
            edges
                .get(usize::try_from(draws.seldom_large(places)).unwrap_or(0))
                .copied()
                .unwrap_or([start; 2])
        }
    };
    let one = |event| Stream::new(Endian::NATIVE).event(event);
    let events = match args.what {
        What::Branches => {
            let user = BranchSampleType::USER | BranchSampleType::ANY;
            one(Event::new("branches:u").branches(user))
        }
        What::Accesses => {
            let fields = SampleType::ADDR | SampleType::WEIGHT | SampleType::DATA_SRC;
            one(Event::new("cpu/mem-loads/u").sampling(fields))
        }
        What::Threads => one(Event::new("cycles:u").sampling(SampleType::CALLCHAIN)),
        What::Waits => waiting::events(),
    };
    let pid = if matches!(args.what, What::Waits) { waiting::FIRST } else { 10 };
    let mut stream = events.task(pid, pid).at(1).comm("big").map(&exe, start, len, offset);
    let samples = args.samples.unwrap_or(match args.what {
        What::Branches => 462_500,
        What::Accesses => 4_600_000,
        What::Threads => 100_000,
        What::Waits => 2_000_000,
    });
    if matches!(args.what, What::Waits) {
        return Ok(waiting::add_wakes(stream, samples, &mut || edge()[0]).file());
    }
    for number in 0..samples {
        let spec = match args.what {
            What::Branches => {
                // Without cycles: perf would disassemble every function, and crashes in some.
                let branch = |_| {
                    let predicted = if draws.next().is_multiple_of(20) { 1 } else { 2 };
                    let [from, to] = edge();
                    BranchEntry { from, to, flags: BranchFlags(predicted) }
                };
                let stack: Vec<BranchEntry> = (0..BRANCHES).map(branch).collect();
                SampleSpec::at(edge()[0]).branches(&stack)
            }
            What::Accesses => {
                // A load or a store, at one of the levels, with what snoop and TLB did.
                let level = [0x08 | 0x02, 0x10 | 0x02, 0x20 | 0x02, 0x40 | 0x02, 0x80 | 0x02];
                let level = level
                    .get(usize::try_from(draws.seldom_large(5)).unwrap_or(0))
                    .copied()
                    .unwrap_or(0);
                let op = if draws.next().is_multiple_of(4) { 4 } else { 2 };
                let source = op | level << 5 | 2 << 19 | 1 << 24 | (2 | 8) << 26;
                let weight = 4 + draws.seldom_large(400);
                SampleSpec::at(edge()[0])
                    .addr(0x7f00_0000_0000 + draws.seldom_large(1 << 20) * 8)
                    .data_src(source)
                    .weight(weight)
            }
            What::Threads => {
                let tid = u32::try_from(1000 + number).unwrap_or(u32::MAX);
                stream = stream.at(number * 100).fork(10, tid).task(10, tid);
                stream = stream.comm(&format!("w\"{number}\n</script>"));
                let depth = if number % 1000 == 999 { GREATEST_DEPTH } else { DEPTH };
                let mut chain = vec![context::USER];
                chain.extend((0..depth).map(|_| edge()[0]));
                SampleSpec::at(chain.get(1).copied().unwrap_or(start)).callchain(&chain)
            }
            What::Waits => break,
        };
        stream = stream.at(1000 + number * 100).sample(spec);
        if number % 10_000 == 9_999 {
            stream = stream.round();
        }
    }
    Ok(stream.file())
}
