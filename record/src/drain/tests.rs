use super::*;
use crate::output::Layout;
use crate::testkit::fake_ring::{FakeRing, fake_record};
use recrep_format::abi::{AttrFlags, RecordType, SampleType};
use recrep_format::attr::{Attr, AttrEntry};
use recrep_format::read::File;
use recrep_format::write::FeatureWriter;

fn attr() -> Attr {
    use SampleType as S;
    let sample_type = S::IDENTIFIER | S::IP | S::TID | S::TIME | S::CPU;
    Attr { size: 128, sample_type, flags: AttrFlags::SAMPLE_ID_ALL, ..Attr::default() }
}

fn sample(time: u64) -> Vec<u8> {
    fake_record(9, &[1, 0x1000, 2, time, 0])
}

/// Alternates `fill` and a round. Returns the types of the records in the file, and the tally.
fn recorded(
    pages: u64,
    rounds: usize,
    mut fill: impl FnMut(usize, &mut [FakeRing; 2]),
) -> (Vec<RecordType>, Counts) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.data");
    let to = crate::cli::parse(["rec".into(), "-o".into(), path.clone().into(), "x".into()])
        .unwrap()
        .output;
    let entry = AttrEntry { attr: attr(), ids: vec![1], name: None };
    let layout = Layout { groups: Vec::new(), queue: 1 << 20, unwinding: None };
    let output =
        Output::create(&to, &[entry], &FeatureWriter::new(Endian::NATIVE), &layout).unwrap();
    let mut fakes = [FakeRing::new(pages), FakeRing::new(pages)];
    let mut rings = [fakes[0].map(), fakes[1].map()];
    let mut drain = Drain::new(Tally::new(&attr()));
    for round in 0..rounds {
        fill(round, &mut fakes);
        drain.round(&mut rings, &mut Rounds::next(&output), false).unwrap();
    }
    let counts = output.settle().unwrap().counts;
    output.finish(FeatureWriter::new(Endian::NATIVE)).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let file = File::parse(&bytes).unwrap();
    let kinds = file.records().map(|r| r.unwrap().header.kind).collect();
    (kinds, counts)
}

#[test]
fn a_round_ends_with_its_mark_and_an_empty_one_leaves_nothing() {
    use RecordType as T;
    let (kinds, tally) = recorded(1, 3, |round, [a, b]| {
        if round == 0 {
            assert!(a.write(&sample(1)) && b.write(&sample(2)) && a.write(&sample(3)));
        }
        if round == 2 {
            assert!(b.write(&sample(4)));
        }
    });
    assert_eq!(
        kinds,
        [T::SAMPLE, T::SAMPLE, T::SAMPLE, T::FINISHED_ROUND, T::SAMPLE, T::FINISHED_ROUND]
    );
    assert_eq!((tally.samples, tally.first, tally.last), (4, Some(1), 4));
}

/// The records of a drain's parts, and what it counted, where the ring wraps at `cut`.
fn passed(filter: Option<Filter>, stream: &[u8], cut: usize) -> (Vec<u8>, usize, Counts) {
    let mut drain = Drain::new(Tally::new(&attr())).with(filter);
    let pending = Pending::new(&stream[..cut], &stream[cut..], 0);
    let mut parts = Vec::new();
    let bytes = drain.pass(&pending, &mut parts);
    (parts.iter().flat_map(|part| part.to_vec()).collect(), bytes, drain.tally.counts)
}

#[test]
fn a_size_that_cannot_be_ends_the_counting_and_nothing_is_left_out() {
    let mut zero = sample(1);
    zero[6..8].fill(0);
    let stream = [sample(2), zero, sample(3)].concat();
    for cut in (0..=stream.len()).step_by(8) {
        let (written, bytes, counts) = passed(None, &stream, cut);
        assert_eq!((counts.samples, counts.damaged), (1, 1), "wraps at {cut}");
        assert_eq!((written, bytes), (stream.clone(), stream.len()), "wraps at {cut}");
    }
}

#[test]
fn what_is_counted_is_what_a_filter_keeps_wherever_the_ring_wraps() {
    let of = |pid: u64, time| fake_record(9, &[1, 0x1000, pid, time, 0]);
    let lost = fake_record(2, &[1, 7, 0, 0, 0, 0]);
    let records = [of(7, 30), of(8, 1), of(7, 10), lost, of(9, 99), of(8, 2), of(7, 20), of(9, 3)];
    let kept = [0, 2, 3, 6].map(|n| records[n].clone()).concat();
    let stream = records.concat();
    for cut in (0..=stream.len()).step_by(8) {
        let members =
            members::Members { ids: [7].into_iter().collect(), threads: false, inherit: false };
        let (written, bytes, counts) =
            passed(Some(Filter::members(&attr(), members)), &stream, cut);
        assert_eq!(
            (counts.samples, counts.lost_events, counts.damaged),
            (3, 7, 0),
            "wraps at {cut}"
        );
        assert_eq!((counts.first, counts.last), (Some(10), 30), "wraps at {cut}");
        assert_eq!((written, bytes), (kept.clone(), kept.len()), "wraps at {cut}");
    }
}

#[test]
fn what_is_last_in_a_ring_that_is_overwritten_comes_first() {
    let [new, old] = [sample(2), sample(1)];
    assert_eq!(reversed(&[&new[..], &old, &[1, 2, 3]].concat()), [old, new].concat());
    assert!(reversed(&[]).is_empty());
}

#[test]
fn rings_that_wrap_many_times_lose_nothing() {
    let (kinds, tally) = recorded(1, 200, |round, fakes| {
        for (n, fake) in fakes.iter_mut().enumerate() {
            for i in 0..20 + round % 7 + n {
                assert!(fake.write(&sample(i as u64 + 1)));
            }
        }
    });
    let samples = kinds.iter().filter(|k| **k == RecordType::SAMPLE).count();
    assert_eq!(samples as u64, tally.samples);
    assert_eq!(samples, (0..200).map(|r| 2 * (20 + r % 7) + 1).sum::<usize>());
    assert_eq!(tally.damaged, 0);
}

#[test]
fn what_the_kernel_lost_is_in_the_file_and_in_the_tally() {
    let (kinds, tally) = recorded(1, 2, |round, [a, _]| {
        if round == 0 {
            while a.write(&sample(1)) {}
            assert!(!a.write(&sample(2)));
        } else {
            assert!(a.write(&sample(3)));
        }
    });
    assert!(kinds.contains(&RecordType::LOST));
    assert_eq!((tally.lost_events, tally.damaged), (2, 0));
}
