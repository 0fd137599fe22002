//! `rep diff` and gates, on recordings that the tests make: of given counts, and of a program.

mod counted;
mod gates;
mod golden;
mod live;
mod modes;

use std::path::{Path, PathBuf};

use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_format::abi::{EventType, SampleType, SwEvent};
use recrep_format::endian::Endian;
use recrep_format::feature::{ClockData, Hostname, OsRelease};
use recrep_tests::programs::rep;
use recrep_tests::run::{Outcome, run};
use serde_json::Value;

/// Where the program of all runs is mapped.
const TEXT: u64 = 0x40_0000;

/// Addresses of one function.
const FUNCTION: u64 = 0x100;

/// Beginning of the user part of a callchain.
const USER: u64 = 0xffff_ffff_ffff_fe00;

/// Samples of a function: its number, how many, their period, the numbers of its callers.
#[derive(Clone, Debug, Default)]
struct Samples {
    function: u64,
    count: u64,
    period: u64,
    callers: Vec<u64>,
}

impl Samples {
    fn of(function: u64, count: u64) -> Self {
        Self { function, count, period: 250_000, callers: Vec::new() }
    }
}

/// A run of a program without symbols, whose functions are addresses.
#[derive(Clone, Debug)]
struct Recording {
    stream: Stream,
    has_chains: bool,
}

impl Recording {
    /// A run that began at a second of 2026.
    fn at(start: f64) -> Self {
        Self::of("cpu-clock", 4000, start)
    }

    fn of(event: &str, frequency: u64, start: f64) -> Self {
        Self::with_event(Self::event(event, frequency), start)
    }

    fn event(name: &str, frequency: u64) -> Event {
        let event = Event::new(name).counting(EventType::SOFTWARE, SwEvent::CPU_CLOCK.0);
        event.with(|attr| attr.sample_period = frequency)
    }

    fn with_event(event: Event, start: f64) -> Self {
        let wall_clock = 1_767_225_600_000_000_000 + whole(start * 1e9);
        // The clock of the records runs since the boot.
        let clock = ClockData { version: 1, clockid: 1, wall_clock, clock: 5_000_000_000 };
        let stream = Stream::new(Endian::Little).event(event).feature(&clock);
        Self { stream, has_chains: false }.on("here", "6.1.0").begun()
    }

    fn begun(mut self) -> Self {
        self.stream = self.stream.at(5_000_000_000).task(10, 10).comm("app");
        self.stream = self.stream.map("/nowhere/app", TEXT, 0x10_0000, 0);
        self
    }

    /// Sets host and kernel.
    fn on(mut self, host: &str, release: &str) -> Self {
        self.stream = self.stream.feature(&Hostname::new(host)).feature(&OsRelease::new(release));
        self
    }

    /// Adds samples of functions.
    fn samples(mut self, all: &[Samples]) -> Self {
        for Samples { function, count, period, callers } in all {
            let address = |function: &u64| TEXT + function * FUNCTION + 0x10;
            let ip = address(function);
            for _ in 0..*count {
                let mut spec = SampleSpec::at(ip).period(*period);
                if self.has_chains {
                    let chain = [USER, ip].into_iter().chain(callers.iter().map(address));
                    spec = spec.callchain(&chain.collect::<Vec<u64>>());
                }
                self.stream = self.stream.sample(spec);
            }
        }
        self
    }

    fn write(&self, path: &Path) -> PathBuf {
        std::fs::write(path, self.stream.file()).unwrap();
        path.to_owned()
    }
}

/// Runs of both sides in a folder, in turn if `apart` is less than a run.
struct Sides {
    dir: tempfile::TempDir,
    base: Vec<PathBuf>,
    new: Vec<PathBuf>,
}

impl Sides {
    /// Writes runs of both sides; `run` makes one, given its side (0 or 1), number and start.
    fn write(base: usize, new: usize, run: impl Fn(usize, usize) -> Recording) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let side = |side: usize, runs: usize| -> Vec<PathBuf> {
            let name = ["base", "new"][side];
            let path = |number: usize| dir.path().join(format!("{name}.{number}.data"));
            (0..runs).map(|number| run(side, number).write(&path(number))).collect()
        };
        let (base, new) = (side(0, base), side(1, new));
        Self { dir, base, new }
    }

    /// Functions of such numbers of samples a run in base, that many times as many in new; runs
    /// scatter a little, and take turns.
    fn of(runs: usize, functions: &[(u64, f64)]) -> Self {
        Self::write(runs, runs, |side, number| {
            Recording::at(start(side, number)).samples(&scattered(functions, side, number))
        })
    }

    fn diff(&self, options: &[&str]) -> Outcome {
        run(rep().arg("diff").args(options).args(&self.base).arg("--").args(&self.new))
    }

    fn json(&self, options: &[&str]) -> Value {
        let options = [&["--json"], options].concat();
        serde_json::from_slice(&self.diff(&options).expect(0).stdout).unwrap()
    }

    fn text(&self, options: &[&str]) -> String {
        self.diff(options).expect(0).text().to_owned()
    }

    /// Runs `rep` on the files of the new side.
    fn report(&self, options: &[&str]) -> Outcome {
        run(rep().args(options).args(&self.new))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "numbers here are small")]
#[expect(clippy::cast_sign_loss, reason = "and positive")]
fn whole(number: f64) -> u64 {
    number as u64
}

/// Start of a run in seconds, sides in turn.
fn start(side: usize, number: usize) -> f64 {
    (number * 4 + side * 2) as f64
}

/// Samples of a run whose functions scatter by up to two percent.
fn scattered(functions: &[(u64, f64)], side: usize, number: usize) -> Vec<Samples> {
    let of = |(function, (size, factor)): (usize, &(u64, f64))| {
        let mean = *size as f64 * if side == 1 { *factor } else { 1.0 };
        let sign = [0.01, -0.02, 0.0, 0.02, -0.01][(number * 3 + function + side) % 5];
        Samples::of(function as u64, whole((mean * (1.0 + sign)).round()))
    };
    functions.iter().enumerate().map(of).collect()
}

/// Eight functions of which none changed.
const UNCHANGED: [(u64, f64); 8] = [
    (1000, 1.0),
    (400, 1.0),
    (300, 1.0),
    (250, 1.0),
    (200, 1.0),
    (180, 1.0),
    (160, 1.0),
    (150, 1.0),
];

/// The same, the second one half again as slow.
const SLOWER: [(u64, f64); 8] = [
    (1000, 1.0),
    (400, 1.5),
    (300, 1.0),
    (250, 1.0),
    (200, 1.0),
    (180, 1.0),
    (160, 1.0),
    (150, 1.0),
];

/// The name of a function as rows have it.
fn name(function: u64) -> String {
    format!("app+{:#x}", function * FUNCTION + 0x10)
}

fn with_chains(event: Event) -> Event {
    event.sampling(SampleType::CALLCHAIN)
}
