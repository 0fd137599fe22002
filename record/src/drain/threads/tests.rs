//! Tests of drain threads, with rings that a fake kernel fills.

use std::collections::BTreeMap;
use std::fs::File as StdFile;
use std::io::Write as _;
use std::sync::Mutex;
use std::time::Duration;

use recrep_format::abi::{AttrFlags, RecordType, SampleType};
use recrep_format::attr::{Attr, AttrEntry};
use recrep_format::endian::Endian;
use recrep_format::read::File;
use recrep_format::write::FeatureWriter;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::{DrainOutput, Drainers};
use crate::drain::{Drain, Rounds};
use crate::kernel::Place;
use crate::kernel::counters::{Counter, Counters};
use crate::machine::Machine;
use crate::messages::error::{Error, Result};
use crate::output::tally::{Counts, Tally};
use crate::output::{Layout, Output};
use crate::plan::config::Split;
use crate::testkit::fake_ring::{FakeRing, fake_record};

/// Three CPUs, each with a ring of one page and a descriptor to poll.
struct Bench {
    fakes: Vec<FakeRing>,
    bells: Vec<StdFile>,
    counters: Counters,
    drainers: Drainers,
    /// `true` if rounds are marked.
    rounds: bool,
    _dir: tempfile::TempDir,
    path: std::path::PathBuf,
}

fn attr() -> Attr {
    use SampleType as S;
    let sample_type = S::IDENTIFIER | S::IP | S::TID | S::TIME | S::CPU;
    Attr { size: 128, sample_type, flags: AttrFlags::SAMPLE_ID_ALL, ..Attr::default() }
}

fn sample(time: u64, cpu: u64) -> Vec<u8> {
    fake_record(9, &[1, 0x1000, 2, time, cpu])
}

impl Bench {
    fn new() -> Self {
        let mut counters = Counters { owners: vec![0, 1, 2], ..Counters::default() };
        let mut bells = Vec::new();
        for cpu in 0..3 {
            let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
            bells.push(StdFile::from(rustix::io::fcntl_dupfd_cloexec(&fd, 0).unwrap()));
            let place = Place { thread: None, cpu: Some(cpu), cgroup: None };
            counters.all.push(Counter::new(fd, 1, 0, place));
        }
        let machine =
            Machine { sysfs: "/nowhere".into(), online: vec![0, 1, 2], ..Machine::default() };
        let drainers = Drainers::new(&Split::Cpu, &counters, &machine).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.data");
        Self {
            fakes: (0..3).map(|_| FakeRing::new(1)).collect(),
            bells,
            counters,
            drainers,
            rounds: true,
            _dir: dir,
            path,
        }
    }

    /// Runs drain threads while `fill` writes, and completes the file. Returns the counts.
    fn record(
        &mut self,
        limit: Option<u64>,
        fill: impl FnOnce(&mut [FakeRing], &[StdFile], &Drainers) -> Result<()>,
    ) -> Result<Counts> {
        let words = ["rec".into(), "-o".into(), self.path.clone().into(), "x".into()];
        let to = crate::cli::parse(words).unwrap().output;
        let entry = AttrEntry { attr: attr(), ids: vec![1], name: None };
        let layout = Layout { groups: Vec::new(), queue: 1 << 20, unwinding: None };
        let output =
            Output::create(&to, &[entry], &FeatureWriter::new(Endian::NATIVE), &layout).unwrap();
        let mut rings: Vec<_> = self.fakes.iter().map(FakeRing::map).collect();
        let mut drain = Drain::new(Tally::new(&attr()));
        let Self { fakes, bells, counters, drainers, rounds, .. } = self;
        let meanwhile = || fill(fakes, bells, drainers);
        let to = DrainOutput { output: &output, limit, rounds: *rounds, before: None };
        drainers.run(counters, &mut drain, &mut rings, to, meanwhile)?;
        drain.round(&mut rings, &mut Rounds::next(&output), true)?;
        let counts = output.settle()?.counts;
        output.finish(FeatureWriter::new(Endian::NATIVE))?;
        Ok(counts)
    }

    /// Returns the times of each round's samples.
    fn rounds(&self) -> Vec<Vec<(u64, u32)>> {
        let bytes = std::fs::read(&self.path).unwrap();
        let file = File::parse(&bytes).unwrap();
        let mut rounds = vec![Vec::new()];
        for raw in file.records().map(std::result::Result::unwrap) {
            match raw.header.kind {
                RecordType::FINISHED_ROUND => rounds.push(Vec::new()),
                _ => {
                    let (_, sample) = file.attrs.sample(raw).unwrap();
                    rounds
                        .last_mut()
                        .unwrap()
                        .push((sample.time().unwrap(), sample.cpu().unwrap()));
                }
            }
        }
        rounds
    }
}

/// Waits until a thread wakes the main thread.
fn rung(drainers: &Drainers) -> bool {
    let soon = Timespec { tv_sec: 20, tv_nsec: 0 };
    poll(&mut [PollFd::new(&drainers.fd(), PollFlags::IN)], Some(&soon)).unwrap() == 1
}

#[test]
fn no_record_after_the_second_mark_is_older_than_one_before_the_first() {
    const EACH: usize = 6000;
    let mut bench = Bench::new();
    let counts = bench
        .record(None, |fakes, bells, _| {
            // The lock makes time advance by records: each timestamp is in the ring before the next
            // one is taken.
            let clock = Mutex::new(0u64);
            std::thread::scope(|scope| {
                for (cpu, (fake, mut bell)) in (0u64..).zip(fakes.iter_mut().zip(bells)) {
                    let clock = &clock;
                    scope.spawn(move || {
                        // CPU 0 is busy and wakes its thread; CPU 1 is less busy; CPU 2 never wakes
                        // its thread itself.
                        let count = [EACH, EACH / 5, 70][usize::try_from(cpu).unwrap()];
                        for n in 0..count {
                            loop {
                                let mut now = clock.lock().unwrap();
                                if fake.has_room(48) {
                                    *now += 1;
                                    assert!(fake.write(&sample(*now, cpu)));
                                    break;
                                }
                                drop(now);
                                std::thread::yield_now();
                            }
                            if cpu < 2 && n % 40 == 39 {
                                bell.write_all(&1u64.to_ne_bytes()).unwrap();
                            }
                            if cpu == 2 {
                                std::thread::sleep(Duration::from_micros(300));
                            }
                        }
                    });
                }
            });
            Ok(())
        })
        .unwrap();
    let rounds = bench.rounds();
    let all: Vec<_> = rounds.concat();
    assert_eq!((all.len(), counts.samples), (EACH + EACH / 5 + 70, all.len() as u64));
    assert!(rounds.len() > 10, "{} rounds", rounds.len());
    let mut by_cpu: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    all.iter().for_each(|(time, cpu)| by_cpu.entry(*cpu).or_default().push(*time));
    assert!(by_cpu.values().all(|times| times.is_sorted()));
    let mut before = 0;
    for pair in rounds.windows(2) {
        let youngest = pair[0].iter().map(|(time, _)| *time).max().unwrap_or(0);
        let oldest = pair[1].iter().map(|(time, _)| *time).min().unwrap_or(u64::MAX);
        assert!(oldest >= before, "a record of {oldest} two rounds after one of {before}");
        before = before.max(youngest);
    }
}

#[test]
fn what_one_thread_drains_meanwhile_is_in_no_round() {
    let mut bench = Bench::new();
    (bench.drainers, bench.rounds) = (Drainers::one(&bench.counters).unwrap(), false);
    let counts = bench.record(None, |fakes, bells, _| {
        for n in 0..2000 {
            // Rings of a page are full again and again.
            while !fakes[n % 3].has_room(48) {
                (&bells[n % 3]).write_all(&1u64.to_ne_bytes()).unwrap();
                std::thread::yield_now();
            }
            assert!(fakes[n % 3].write(&sample(n as u64 + 1, n as u64 % 3)));
        }
        Ok(())
    });
    assert_eq!(counts.unwrap().samples, 2000);
    // What was left is a round, the last one.
    let rounds = bench.rounds();
    assert_eq!(rounds.iter().map(Vec::len).sum::<usize>(), 2000);
    assert!(rounds.len() <= 2, "{} rounds", rounds.len());
}

#[test]
fn the_main_thread_is_woken_when_the_file_is_long_enough() {
    let mut bench = Bench::new();
    let mut written = 0;
    let counts = bench.record(Some(3000), |fakes, bells, drainers| {
        while fakes[1].write(&sample(1, 1)) {
            written += 1;
        }
        (&bells[1]).write_all(&1u64.to_ne_bytes()).unwrap();
        assert!(rung(drainers));
        Ok(())
    });
    assert_eq!(counts.unwrap().samples, written);
}

#[test]
fn what_goes_wrong_ends_the_threads() {
    let mut bench = Bench::new();
    let failed = bench.record(None, |fakes, bells, drainers| {
        fakes[0].set_head(1 << 40);
        (&bells[0]).write_all(&1u64.to_ne_bytes()).unwrap();
        assert!(rung(drainers));
        Ok(())
    });
    assert!(failed.unwrap_err().to_string().contains("cannot read a ring any further"));
    let mut bench = Bench::new();
    let failed =
        bench.record(None, |_, _, _| Err(Error::Failed("of the main thread's own".to_owned())));
    assert_eq!(failed.unwrap_err().to_string(), "of the main thread's own");
}
