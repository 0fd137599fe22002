// Reading front to back against reading of the whole file in memory, and order of time against a
// sorting twin.

use std::io::Read;

use recrep_format::abi::RecordType;
use recrep_format::read::{File, Input, Mode, Ordered, RecordRef, Recording};
use recrep_format::record::RawRecord;

/// A record: the stream, its offset, time and bytes, with its payload; or where an error is.
pub(crate) type Listed = Result<(usize, u64, Option<u64>, Vec<u8>), u64>;

/// An input that gives at most `.1` bytes at a time.
pub(crate) struct Steps<'a>(pub(crate) &'a [u8], pub(crate) usize);

impl Read for Steps<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let len = self.1.min(to.len());
        self.0.read(&mut to[..len])
    }
}

fn listed(record: RecordRef<'_>) -> Listed {
    Ok((
        record.stream,
        record.raw.offset,
        record.time(),
        [record.raw.bytes, record.raw.payload].concat(),
    ))
}

/// All records, in the order of the file.
pub(crate) fn records<I: Input>(recording: &mut Recording<I>) -> Vec<Listed> {
    let mut all = Vec::new();
    while let Some(record) = recording.next_record() {
        all.push(record.map_or_else(|error| Err(error.offset), listed));
    }
    all
}

/// The same records and features, however the input comes, and as `File` finds them.
pub(crate) fn recording(bytes: &[u8]) {
    let file = File::parse(bytes);
    let in_memory = Recording::of_bytes(bytes);
    assert_eq!(in_memory.is_ok(), file.is_ok(), "in memory both read the same");
    let mut recording = match Recording::new(bytes) {
        Ok(recording) => recording,
        Err(error) => {
            // In memory, attrs that lie behind the records are found too.
            let of_attrs = error.to_string().contains("attr");
            assert!(file.is_err() || of_attrs, "only in memory it is read: {error}");
            if let (Ok(file), Ok(mut recording)) = (file, in_memory) {
                framed(&file, &records(&mut recording));
            }
            return;
        }
    };
    let (file, mut in_memory) =
        (file.expect("what is read front to back is read in memory"), in_memory.expect("as above"));
    let all = records(&mut recording);
    assert!(records(&mut in_memory) == all, "in memory");
    for step in [1, 7, 4096, 1 << 20] {
        let mut again = Recording::new(Steps(bytes, step)).expect("the same bytes");
        assert!(records(&mut again) == all, "steps of {step} bytes");
        assert!(again.features().eq(recording.features()));
        assert_eq!(again.attrs().entries(), recording.attrs().entries());
        assert_eq!(again.warnings(), recording.warnings());
    }
    framed(&file, &all);
    // Features are where writers put them: behind the data, apart.
    if file.warnings.is_empty() && recording.warnings().is_empty() && file.mode == Mode::File {
        let own: Vec<_> = file
            .features
            .iter()
            .map(|(id, section)| (*id, section.of(bytes).expect("it is there")))
            .collect();
        assert!(recording.features().eq(own));
        assert!(recording.features().eq(in_memory.features()));
        assert_eq!(recording.attrs().entries(), file.attrs.entries());
        assert_eq!(in_memory.attrs().entries(), file.attrs.entries());
    }
    let mut frames = file.records();
    if file.mode == Mode::Pipe && frames.by_ref().all(|raw| raw.is_ok()) && frames.left().is_empty()
    {
        let own = file
            .features
            .iter()
            .map(|(id, section)| (*id, section.of(bytes).expect("it is there")));
        assert!(own.zip(recording.features()).all(|(own, streamed)| own == streamed));
    }
}

/// The frames of a file are these records, unless some are compressed.
fn framed(file: &File<'_>, all: &[Listed]) {
    let is_packed = |kind| matches!(kind, RecordType::COMPRESSED | RecordType::COMPRESSED2);
    let frames = file.records();
    if frames.clone().flatten().any(|raw| is_packed(raw.header.kind)) {
        return;
    }
    let listed = |raw: RawRecord<'_>| (raw.offset, [raw.bytes, raw.payload].concat());
    let own: Vec<_> = frames.map(|raw| raw.map(listed).map_err(|error| error.offset)).collect();
    let found = all.iter().map(|item| item.clone().map(|(_, offset, _, bytes)| (offset, bytes)));
    assert!(
        found.eq(own.iter().cloned()),
        "`File` has {} records, `Recording` {}",
        own.len(),
        all.len()
    );
}

/// Order of time against a twin that keeps all records, and sorts all of them again at each end of
/// a round.
pub(crate) fn ordering(bytes: &[u8]) {
    let Ok(mut recording) = Recording::new(bytes) else { return };
    let all = records(&mut recording);
    let recording = || Recording::new(bytes).expect("as before");
    let ordered = |limit: usize| sorted(recording().ordered().with_limit(limit));
    // An attr that comes between a record and its turn may change its time.
    let untimed = |list: &[Listed]| -> Vec<_> {
        list.iter()
            .map(|item| item.clone().map(|(stream, offset, _, bytes)| (stream, offset, bytes)))
            .collect()
    };
    let (list, late) = ordered(usize::MAX);
    let in_memory =
        Recording::of_bytes(bytes).expect("as it streams").ordered().with_limit(usize::MAX);
    assert!((list.clone(), late) == sorted(in_memory), "in memory");
    let twin = twin(&all);
    assert!(
        untimed(&list) == untimed(&twin),
        "{} records, the twin has {}",
        list.len(),
        twin.len()
    );
    let times = twin.iter().flatten().filter_map(|(_, _, time, _)| *time);
    assert!(late > 0 || times.is_sorted(), "out of order, and none is late");
    // Whatever the limit: nothing is lost, nothing comes twice.
    let (mut few, mut all) = (untimed(&ordered(1000).0), untimed(&all));
    few.sort();
    all.sort();
    assert!(few == all, "the limit changes the records");
}

fn sorted<I: Input>(mut records: Ordered<I>) -> (Vec<Listed>, u64) {
    let mut list = Vec::new();
    while let Some(record) = records.next_record() {
        list.push(record.map_or_else(|error| Err(error.offset), listed));
    }
    (list, records.late())
}

fn twin(all: &[Listed]) -> Vec<Listed> {
    let (mut list, mut waiting) = (Vec::new(), Vec::<&Listed>::new());
    let (mut round, mut newest) = (0, 0);
    let time_of = |item: &Listed| item.as_ref().ok().and_then(|(_, _, time, _)| *time);
    for item in all {
        if let Some(time) = time_of(item) {
            newest = newest.max(time);
            waiting.push(item);
            continue;
        }
        list.push(item.clone());
        let kind =
            item.as_ref().ok().and_then(|(_, _, _, bytes)| bytes.first_chunk::<4>().copied());
        let number = RecordType::FINISHED_ROUND.0;
        if kind.is_some_and(|kind| kind == number.to_le_bytes() || kind == number.to_be_bytes()) {
            waiting.sort_by_key(|item| time_of(item));
            let ready = waiting.partition_point(|item| time_of(item) <= Some(round));
            list.extend(waiting.drain(..ready).cloned());
            round = newest;
        }
    }
    waiting.sort_by_key(|item| time_of(item));
    list.extend(waiting.into_iter().cloned());
    list
}
