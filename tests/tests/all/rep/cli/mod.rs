//! The `rep` command as a whole: from files and pipes to output, messages and exit statuses.

mod answers;
mod corpus;
mod first_contact;
mod inputs;
mod names;
mod several;
mod short_way;
mod style;
mod unmatched;

use recrep_format::abi::ReadFormat;
use recrep_format::record::Counter;

use super::*;

/// Returns the file of a stream, and the directory that has it.
fn recorded(stream: &Stream) -> (Place, PathBuf) {
    let place = Place::new();
    let file = place.put("x.data", stream.file());
    (place, file)
}

/// Runs `rep` with these arguments and a file.
fn run(words: &[&str], file: &Path) -> Output {
    rep().args(words).arg(file).output().unwrap()
}

/// Runs `rep`, which must succeed, and returns its output.
#[track_caller]
fn text(words: &[&str], file: &Path) -> String {
    super::run(rep().args(words).arg(file))
}

/// Runs `rep --json`, and returns its output. It must fail exactly where it says that nothing was
/// found.
#[track_caller]
fn json(words: &[&str], file: &Path) -> Value {
    parsed(run_json(rep().arg("--json").args(words).arg(file)))
}

/// Returns a row to compare with.
fn row(columns: &str, samples: u64, period: u64) -> (String, u64, u64) {
    (columns.into(), samples, period)
}

/// Two events, two processes, side-band out of file order, several rounds: 2 + 2 × `samples`
/// samples.
fn two_events(endian: Endian, samples: u64) -> Stream {
    let mut stream = Stream::new(endian)
        .event(Event::new("cycles:u"))
        .event(Event::new("faults"))
        .task(7, 7)
        .at(100)
        .comm("first")
        .map("/no/such/lib.so", 0x1000, 0x1000, 0x5000)
        .sample(SampleSpec::at(0x1010).period(10))
        .round();
    // This ring comes later in the file, but its first sample is earlier.
    stream = stream
        .task(7, 7)
        .at(90)
        .sample(SampleSpec::at(0x1010).period(5))
        .at(5000)
        .comm("second")
        .round();
    for i in 0..samples {
        let spec = SampleSpec::at(0x1000 + i % 16).period(1);
        stream = stream.of(0).on_cpu(1).task(7, 7).at(5001 + i).sample(spec);
        let spec = SampleSpec::at(0xdead_0000).period(3);
        stream = stream.of(1).on_cpu(0).task(8, 9).at(5001 + i).sample(spec);
    }
    stream.round()
}

/// Two events of a group, whose counters three samples read. The second one gains nothing between
/// the last two.
fn group(of: impl Fn(Event) -> Event, sample: &SampleSpec) -> Stream {
    let reading = ReadFormat::GROUP | ReadFormat::ID;
    let member = |name: &str, id| {
        of(Event::new(name).sampling(SampleType::READ).reading(reading).ids(&[id]))
    };
    let stream = Stream::new(Endian::Little).event(member("leader", 1)).event(member("member", 2));
    let read = |value, id| Counter { value, id: Some(id), lost: None };
    let values = [(100, 10), (250, 30), (300, 30)].into_iter();
    values.fold(stream.task(7, 7).at(1).comm("app"), |stream, (leader, follower)| {
        stream.sample(sample.clone().reads(&[read(leader, 1), read(follower, 2)], [0, 0]))
    })
}
