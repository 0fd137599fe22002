//! Tests of the data ring, with a fake kernel's side on a memfd.

use std::sync::atomic::Ordering;

use rustix::io::Errno;

use super::{Ring, SharedMemory};
use crate::testkit::fake_ring::{FakeRing, fake_record};

mod orders;

fn take(ring: &mut Ring) -> Vec<u8> {
    let pending = ring.pending().unwrap();
    let bytes = [pending.first, pending.second].concat();
    assert_eq!(pending.len(), bytes.len());
    let mark = pending.mark();
    ring.release(mark);
    bytes
}

#[test]
fn an_empty_ring_has_nothing() {
    let fake = FakeRing::new(1);
    assert!(fake.map().pending().unwrap().is_empty());
}

#[test]
fn records_come_out_as_they_went_in_and_the_room_is_given_back() {
    let mut fake = FakeRing::new(1);
    let mut ring = fake.map();
    let record = fake_record(9, &[1, 2, 3]);
    assert!(fake.write(&record));
    assert_eq!(take(&mut ring), record);
    assert_eq!(fake.tail(), record.len() as u64);
    assert!(ring.pending().unwrap().is_empty());
}

#[test]
fn a_record_that_wraps_comes_in_two_halves() {
    let page = rustix::param::page_size() as u64;
    let mut fake = FakeRing::new(2);
    fake.start_at(page * 2 * 5 - 16);
    let mut ring = fake.map();
    let record = fake_record(9, &[1, 2, 3, 4]);
    assert!(fake.write(&record));
    let pending = ring.pending().unwrap();
    assert_eq!((pending.first.len(), pending.second.len()), (16, 24));
    assert_eq!(take(&mut ring), record);
}

#[test]
fn an_overwritten_ring_gives_the_newest_records_first_and_each_once() {
    let mut fake = FakeRing::new(1);
    let mut ring = fake.map_backward();
    let newest = |ring: &mut Ring| {
        let (records, mark) = ring.newest();
        ring.release(mark);
        records
    };
    assert!(newest(&mut ring).is_empty() && ring.pending().unwrap().is_empty());
    let record = |n: u64| fake_record(9, &vec![n; 3 + usize::try_from(n % 5).unwrap()]);
    let mut next = 0;
    for (written, round) in [(3u64, 0), (1000, 1), (0, 2), (2, 3)] {
        (next..next + written).for_each(|n| fake.write_backward(&record(n)));
        next += written;
        let got = newest(&mut ring);
        let mut expected = Vec::new();
        for n in (next - written..next).rev() {
            if expected.len() + record(n).len() > ring.size() {
                break;
            }
            expected.extend(record(n));
        }
        assert!(got == expected, "round {round}: {} bytes, not {}", got.len(), expected.len());
        assert_eq!(got.is_empty(), written == 0);
    }
}

#[test]
fn many_records_pass_through_a_small_ring() {
    let mut fake = FakeRing::new(1);
    let mut ring = fake.map();
    let (mut sent, mut got) = (Vec::new(), Vec::new());
    for n in 0..2000u64 {
        let record = fake_record(9, &vec![n; 1 + usize::try_from(n % 7).unwrap()]);
        assert!(fake.write(&record));
        sent.extend(record);
        if n % 11 == 0 {
            got.extend(take(&mut ring));
        }
    }
    got.extend(take(&mut ring));
    assert!(sent == got);
}

#[test]
fn a_full_ring_is_read_whole_and_loses_with_a_record() {
    let mut fake = FakeRing::new(1);
    let mut ring = fake.map();
    let record = fake_record(9, &[7; 63]);
    let mut fits = 0;
    while fake.write(&record) {
        fits += 1;
    }
    assert!(!fake.write(&record));
    assert_eq!(take(&mut ring).len(), fits * record.len());
    assert!(fake.write(&record));
    let after = take(&mut ring);
    assert_eq!(&after[..56], fake_record(2, &[0, 2, 0, 0, 0, 0]));
}

#[test]
fn a_head_that_cannot_be_is_an_error() {
    let fake = FakeRing::new(1);
    let ring = fake.map();
    fake.set_head(1 << 40);
    assert!(ring.pending().unwrap_err().to_string().contains("data_head"));
}

#[test]
fn only_powers_of_two() {
    for pages in [0, 3] {
        assert_eq!(Ring::map(FakeRing::new(3).memory(), pages).unwrap_err(), Errno::INVAL);
    }
}

#[test]
fn a_copy_begins_at_any_byte_and_goes_around_the_end() {
    let fake = FakeRing::new(1);
    let size = rustix::param::page_size();
    let memory = SharedMemory::new(fake.memory(), size as u64, size, true).unwrap();
    let words: Vec<u64> =
        (0..size as u64 / 8).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    for (n, word) in words.iter().enumerate() {
        memory.word(8 * n).store(*word, Ordering::Relaxed);
    }
    let all: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    for (start, length) in
        [(0, 0), (3, 1), (5, 4), (8, 8), (size - 3, 10), (size - 16, 16), (1, size), (0, 2 * size)]
    {
        let expected: Vec<u8> =
            all.iter().cycle().skip(start).take(length.min(size)).copied().collect();
        assert!(memory.copy(0, size, start, length) == expected, "{length} bytes from {start}");
    }
}
