use super::*;
use proptest::prelude::*;
use recrep_format::bytes::Encoder;

use super::super::unpack::Section;

fn stream(kinds: impl IntoIterator<Item = RecordType>, size: u16) -> Vec<u8> {
    let mut e = Encoder::new(Endian::Little);
    for kind in kinds {
        RecordHeader { kind, misc: 0, size }.encode(&mut e);
        e.bytes(&vec![0; usize::from(size) - 8]);
    }
    e.into_bytes()
}

fn kept(bytes: &[u8]) -> UnpackedPart<'_, Skimmed> {
    UnpackedPart::Kept(bytes.into())
}

fn walked<'a>(parts: &'a [UnpackedPart<'a, Skimmed>], offset: u64) -> Split<'a> {
    let mut split = Split::default();
    split.walk(parts, offset, Endian::Little);
    split
}

#[test]
fn pieces_cover_the_data_without_gap_or_overlap() {
    let kinds = std::iter::repeat_n(RecordType::SAMPLE, 100)
        .chain([RecordType::COMM, RecordType::FINISHED_ROUND]);
    let data = stream(kinds, 50_000);
    let parts = [kept(&data)];
    let split = walked(&parts, 104);
    assert_eq!(split.counts[&RecordType::SAMPLE], 100);
    assert_eq!(split.side_band.len(), 1);
    assert_eq!(split.first_round, Some(104 + 101 * 50_000));
    assert!(split.pieces.len() > 3);
    let mut offset = 104;
    for piece in &split.pieces {
        assert_eq!(piece.offset, offset);
        offset += piece.size as u64;
    }
    assert_eq!(offset, 104 + data.len() as u64);
}

#[test]
fn context_switches_are_counted_but_not_kept() {
    let data = stream([RecordType::SWITCH, RecordType::COMM, RecordType::SWITCH_CPU_WIDE], 16);
    let parts = [kept(&data)];
    let split = walked(&parts, 0);
    assert_eq!((split.counts.values().sum::<u64>(), split.side_band.len()), (3, 1));
}

#[test]
fn records_before_damage_are_kept() {
    let mut data = stream([RecordType::SAMPLE, RecordType::COMM], 64);
    data.extend_from_slice(&[9, 0, 0, 0, 0, 0, 0, 0]);
    let parts = [kept(&data)];
    let split = walked(&parts, 0);
    assert_eq!(split.damage[0].offset, 128);
    assert_eq!(split.pieces[0].size, 128);
    for cut in 0..128 {
        let parts = [kept(&data[..cut])];
        let split = walked(&parts, 0);
        assert_eq!(!split.damage.is_empty(), cut % 64 != 0);
        assert_eq!(split.pieces.iter().map(|piece| piece.size).sum::<usize>(), cut / 64 * 64);
    }
}

/// A stream whose trace data and copied bytes look like records, with the byte at `damage`
/// (modulo its length) flipped.
fn misleading(records: &[(u8, u16)], damage: Option<usize>) -> Vec<u8> {
    let mut e = Encoder::new(Endian::Little);
    let record = |e: &mut Encoder, kind, size| RecordHeader { kind, misc: 0, size }.encode(e);
    for &(choice, words) in records {
        let size = 8 + 8 * words;
        match choice {
            0 => record(&mut e, RecordType::FINISHED_ROUND, 8),
            1 => {
                // About `words` words of data, not always a multiple of 8 bytes.
                record(&mut e, RecordType::AUXTRACE, 48);
                let len = 8 * usize::from(words) + usize::from(words % 3);
                e.u64(len as u64);
                e.bytes(&[0; 32]);
                let mut data = Encoder::new(Endian::Little);
                for _ in 0..=words {
                    record(&mut data, RecordType::SAMPLE, 8);
                }
                e.bytes(&data.as_bytes()[..len]);
            }
            _ => {
                let kind = if choice == 2 { RecordType::MMAP2 } else { RecordType::SAMPLE };
                record(&mut e, kind, size);
                for n in 0..words {
                    record(&mut e, RecordType::COMM, 8 + 8 * (n % 2));
                }
            }
        }
    }
    let mut bytes = e.into_bytes();
    if let Some(at) = damage.filter(|_| !bytes.is_empty()) {
        let at = at % bytes.len();
        bytes[at] ^= 0xff;
    }
    bytes
}

proptest! {
    #[test]
    fn chunks_give_the_same_as_one_walk(
        records in prop::collection::vec((0u8..6, 0u16..60), 0..60),
        damage in prop::option::of(any::<usize>()),
        chunk in 1usize..40,
        cut in 0usize..60,
    ) {
        let bytes = misleading(&records, damage);
        // Cut into two parts, where a record begins.
        let whole: Vec<_> = Frames::new(&bytes, 0, Endian::Little).flatten().collect();
        let cut = whole.get(cut).map_or(0, |raw| usize::try_from(raw.offset).unwrap());
        let [first, second] = [kept(&bytes[..cut]), kept(&bytes[cut..])];
        let pieces = [(&first, 0), (&second, cut)];
        let pieces = pieces.map(|(part, at)| Piece::new(part, 104 + at as u64, Endian::Little));
        let mut split = Split::default();
        split.walk_chunks(&pieces, 8 * chunk);
        // The same by one walk.
        let mut frames = Frames::new(&bytes, 104, Endian::Little);
        let mut counts = BTreeMap::<RecordType, u64>::new();
        let (mut kept, mut rounds, mut damage) = (Vec::new(), Vec::new(), Vec::new());
        for raw in &mut frames {
            let RawRecord { header, offset, .. } = match raw {
                Ok(raw) => raw,
                Err(error) => {
                    damage.push(error.to_string());
                    continue;
                }
            };
            *counts.entry(header.kind).or_default() += 1;
            if header.kind == RecordType::FINISHED_ROUND {
                rounds.push(offset);
            } else if header.kind != RecordType::SAMPLE && is_side_band(header.kind) {
                kept.push(offset);
            }
        }
        let whole = bytes.len() - frames.left().len();
        let places: Vec<u64> = split.side_band.iter().map(|raw| raw.offset).collect();
        prop_assert_eq!(split.counts, counts);
        prop_assert_eq!(places, kept);
        prop_assert_eq!(split.first_round, rounds.first().copied());
        let found: Vec<_> = split.damage.iter().map(ToString::to_string).collect();
        prop_assert_eq!(found, damage);
        let mut at = 0;
        for piece in &split.pieces {
            prop_assert_eq!(piece.offset, 104 + at as u64);
            prop_assert_eq!(piece.kept(), bytes.get(at..at + piece.size));
            at += piece.size;
        }
        prop_assert_eq!(at, whole);
    }

    #[test]
    fn a_walk_finds_the_same_in_records_that_are_not_kept(
        records in prop::collection::vec((0u8..6, 0u16..60), 0..60),
        cut in 0usize..60,
    ) {
        let bytes = misleading(&records, None);
        let whole: Vec<_> = Frames::new(&bytes, 0, Endian::Little).flatten().collect();
        let cut = whole.get(cut).map_or(0, |raw| usize::try_from(raw.offset).unwrap());
        let (first, second) = bytes.split_at(cut);
        let skimmed = UnpackedPart::Packed(Section::default(), Skimmed::of(second, Endian::Little));
        let all = [kept(second), skimmed].map(|second| [kept(first), second, kept(first)]);
        let [kept, packed] = all.each_ref().map(|parts| walked(parts, 104));
        prop_assert_eq!((packed.counts, packed.side_band), (kept.counts, kept.side_band));
        prop_assert_eq!(packed.first_round, kept.first_round);
        prop_assert_eq!(packed.damage.len(), kept.damage.len());
        let sum = |pieces: &[Piece<'_>]| pieces.iter().map(|piece| piece.size).sum::<usize>();
        prop_assert_eq!(sum(&packed.pieces), sum(&kept.pieces));
    }
}
