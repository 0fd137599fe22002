//! The costs, measured on this machine with rec's own drain over rings that are memfds.

use std::fs::File;
use std::io::{IoSlice, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use recrep_format::abi::{AttrFlags, SampleType};
use recrep_format::attr::{Attr, AttrEntry};
use recrep_format::bytes::Encoder;
use recrep_format::endian::Endian;
use recrep_format::read::Frames;
use recrep_format::write::FeatureWriter;
use recrep_record::parts::{Drain, Layout, Output, Ring, Rounds, Tally};
use recrep_record_testkit::kernel_side::{KernelSide, RingPart};

use crate::model::Costs;

pub(crate) type Failure = Box<dyn std::error::Error>;

/// Pages of the rings that are measured: 64 KiB, so that many of them are not in the CPU's caches.
const PAGES: usize = 16;

/// A ring with its kernel's side.
struct Fake {
    memory: File,
    side: KernelSide,
    ring: Ring,
    head: u64,
}

impl Fake {
    fn new() -> Result<Self, Failure> {
        let page = rustix::param::page_size();
        let memory = File::from(rustix::fs::memfd_create("ring", rustix::fs::MemfdFlags::CLOEXEC)?);
        memory.set_len(((PAGES + 1) * page) as u64)?;
        let ring = Ring::map(memory.as_fd(), PAGES)?;
        let side = KernelSide::map(memory.as_fd(), PAGES * page, 0)?;
        Ok(Self { memory, side, ring, head: 0 })
    }

    /// Fills the ring with records.
    fn fill(&mut self, record: usize) -> Result<u64, Failure> {
        let page = rustix::param::page_size() as u64;
        let size = PAGES as u64 * page;
        let count = size / record as u64;
        let bytes = samples(record, count);
        let at = self.head % size;
        let (first, second) = bytes.split_at(usize::try_from(size - at)?.min(bytes.len()));
        self.memory.write_all_at(first, page + at)?;
        self.memory.write_all_at(second, page)?;
        self.head += bytes.len() as u64;
        self.side.head(RingPart::Data).store(self.head, std::sync::atomic::Ordering::Release);
        Ok(count)
    }
}

fn attr() -> Attr {
    use SampleType as S;
    let sample_type = S::IDENTIFIER | S::IP | S::TID | S::TIME | S::CPU | S::PERIOD;
    Attr { size: 128, sample_type, flags: AttrFlags::SAMPLE_ID_ALL, ..Attr::default() }
}

/// So many samples of so many bytes, which compress about as well as real ones: places repeat,
/// times and threads hardly differ.
fn samples(bytes: usize, count: u64) -> Vec<u8> {
    let mut e = Encoder::new(Endian::NATIVE);
    let mut random = 88_172_645_463_325_252u64;
    for n in 0..count {
        e.u32(9);
        e.u16(2);
        e.u16(u16::try_from(bytes).unwrap_or(u16::MAX));
        for word in 1..bytes as u64 / 8 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            e.u64(match word {
                1 => 17,
                3 => 4242 << 32 | 4242,
                4 => 1_000_000_000 + n * 10_000 + random % 1000,
                5 => 3,
                6 => 250_000,
                _ => 0x7f00_0000_0000 + random % 1000 * 64,
            });
        }
    }
    e.into_bytes()
}

/// The shortest of several runs, in seconds: what disturbs only adds.
fn shortest(
    runs: usize,
    mut run: impl FnMut() -> Result<Duration, Failure>,
) -> Result<f64, Failure> {
    let times: Result<Vec<_>, _> = (0..runs).map(|_| run()).collect();
    Ok(times?.into_iter().min().unwrap_or_default().as_secs_f64())
}

fn timed<T>(act: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let done = act();
    (done, start.elapsed())
}

fn output(path: &Path, compressed: bool) -> Result<Output, Failure> {
    let mut words = vec!["rec".into(), "-o".into(), path.as_os_str().to_owned(), "true".into()];
    if compressed {
        words.insert(1, "-z".into());
    }
    let config = recrep_record::cli::parse(words).map_err(|refusal| refusal.to_string())?;
    let entry = AttrEntry { attr: attr(), ids: vec![1], name: None };
    let layout = Layout { groups: Vec::new(), queue: 64 << 20, unwinding: None };
    Ok(Output::create(&config.output, &[entry], &FeatureWriter::new(Endian::NATIVE), &layout)?)
}

/// A round.
struct Round {
    seconds: f64,
    records: u64,
    /// Bytes of the file for each byte of the records.
    ratio: f64,
}

/// A round over so many rings, idle or full of records of so many bytes; the one before it has
/// touched their memory.
fn round(
    rings: usize,
    record: Option<usize>,
    compressed: bool,
    dir: &Path,
) -> Result<Round, Failure> {
    let (mut records, mut ratio) = (0, 1.0);
    let seconds = shortest(5, || {
        let mut fakes: Vec<_> = (0..rings).map(|_| Fake::new()).collect::<Result<_, _>>()?;
        let output = output(&dir.join("out.data"), compressed)?;
        let mut drain = Drain::new(Tally::new(&attr()));
        let mut took = Duration::ZERO;
        for _ in 0..2 {
            records = 0;
            for fake in &mut fakes {
                records += record.map_or(Ok(0), |record| fake.fill(record))?;
            }
            let before = output.length();
            let (sides, mut mapped): (Vec<_>, Vec<_>) = fakes
                .into_iter()
                .map(|Fake { memory, side, ring, head }| ((memory, side, head), ring))
                .unzip();
            let (done, last) = timed(|| {
                drain
                    .round(&mut mapped, &mut Rounds::next(&output), false)
                    .and_then(|bytes| output.settle().map(|_| bytes))
            });
            let again = sides.into_iter().zip(mapped);
            fakes = again
                .map(|((memory, side, head), ring)| Fake { memory, side, ring, head })
                .collect();
            let bytes = done?;
            took = last;
            ratio = (output.length() - before) as f64
                / (records * record.unwrap_or(1) as u64).max(bytes).max(1) as f64;
        }
        output.undo();
        Ok(took)
    })?;
    Ok(Round { seconds, records, ratio })
}

/// Walking over a record of so many bytes that is in none of the caches.
fn walk(record: usize) -> Result<f64, Failure> {
    let count = (64 << 20) / record as u64;
    let bytes = samples(record, count);
    let seconds = shortest(5, || {
        let mut tally = Tally::new(&attr());
        Ok(timed(|| {
            Frames::new(&bytes, 0, Endian::NATIVE)
                .flatten()
                .for_each(|record| tally.count(&record));
        })
        .1)
    })?;
    Ok(seconds / count as f64)
}

/// A system call, and a byte: by writing little and much.
fn write(dir: &Path) -> Result<(f64, f64), Failure> {
    let bytes = vec![1; 1 << 20];
    let per_call = |size: usize, calls: u32| {
        let seconds = shortest(7, || {
            let mut file = File::create(dir.join("written"))?;
            let (done, took) = timed(|| {
                (0..calls).try_for_each(|_| {
                    file.write_vectored(&[IoSlice::new(bytes.get(..size).unwrap_or(&bytes))])
                        .map(drop)
                })
            });
            done?;
            Ok(took)
        })?;
        Ok::<_, Failure>(seconds / f64::from(calls))
    };
    let (little, much) = (per_call(64, 2000)?, per_call(1 << 20, 64)?);
    let byte = (much - little).max(0.0) / ((1 << 20) - 64) as f64;
    Ok((little, byte))
}

/// From a write to an eventfd until a thread that polls it runs; the median.
fn wakeup() -> Result<f64, Failure> {
    use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
    let bell = eventfd(0, EventfdFlags::CLOEXEC)?;
    let waiter = bell.try_clone()?;
    let (tell, told) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        for _ in 0..200 {
            let _ = poll(&mut [PollFd::new(&waiter, PollFlags::IN)], None);
            let now = Instant::now();
            let _ = rustix::io::read(&waiter, &mut [0; 8]);
            let _ = tell.send(now);
        }
    });
    let mut times = Vec::new();
    for _ in 0..200 {
        std::thread::sleep(Duration::from_millis(1));
        let start = Instant::now();
        rustix::io::write(&bell, &1u64.to_ne_bytes())?;
        times.push(told.recv()?.saturating_duration_since(start));
    }
    let _ = thread.join();
    times.sort_unstable();
    Ok(times.get(100).copied().unwrap_or_default().as_secs_f64())
}

/// All costs, and how well they add up to a whole round.
#[derive(Debug)]
pub(crate) struct Measured {
    /// Without compression; `record` for each of the sizes.
    pub costs: Costs,
    /// Bytes of a record, and the cost of walking over it.
    pub records: Vec<(usize, f64)>,
    /// Compressing a byte.
    pub compress: f64,
    /// Bytes that are left of a byte then.
    pub ratio: f64,
    /// Whole rounds over full rings: rings, bytes of a record, seconds measured, seconds by adding
    /// up.
    pub rounds: Vec<(usize, usize, f64, f64)>,
}

/// Measures.
///
/// # Errors
/// The system's refusals.
pub(crate) fn measure(sizes: &[usize]) -> Result<Measured, Failure> {
    let dir = tempfile::tempdir()?;
    let (write, byte) = write(dir.path())?;
    let idle = round(512, None, false, dir.path())?.seconds;
    let records: Vec<_> =
        sizes.iter().map(|size| Ok((*size, walk(*size)?))).collect::<Result<_, Failure>>()?;
    let costs =
        Costs { look: idle / 512.0, record: 0.0, write, byte, compress: 0.0, wakeup: wakeup()? };
    let mut rounds = Vec::new();
    let (mut compress, mut ratio) = (0.0, 0.0);
    for (size, cost) in &records {
        let looked = |rings: usize, count: f64| rings as f64 * costs.look + count * cost;
        for rings in [8, 64, 512] {
            let round = round(rings, Some(*size), false, dir.path())?;
            let bytes = round.records as f64 * *size as f64;
            let calls = (bytes / f64::from(1 << 20)).ceil();
            let sum = looked(rings, round.records as f64) + bytes * byte + calls * write;
            rounds.push((rings, *size, round.seconds, sum));
        }
        let packed = round(64, Some(*size), true, dir.path())?;
        let bytes = packed.records as f64 * *size as f64;
        let own = packed.seconds - looked(64, packed.records as f64) - bytes * packed.ratio * byte;
        compress = f64::max(compress, own.max(0.0) / bytes);
        ratio = f64::max(ratio, packed.ratio);
    }
    Ok(Measured { costs, records, compress, ratio, rounds })
}
