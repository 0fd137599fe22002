//! Real files: every record decodes, and encodes to the same bytes.
//!
//! The files belong to others and are not part of the project: the variable `RECREP_CORPUS` names the folder that holds them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test says what it did, and fails loudly"
)]

use std::io::Write;
use std::path::PathBuf;

use recrep_format::bytes::Encoder;
use recrep_format::feature::{
    Arch, AuxtraceIndex, BpfBtf, BpfProgInfo, BranchStackMark, BuildIds, Caches, ClockData, ClockId, Cmdline,
    Compression, CpuDesc, CpuId, CpuPmuCaps, CpuTopology, DirFormat, EventDesc, Feature, GroupDesc, Hostname,
    HybridTopology, MemTopology, NrCpus, NumaTopology, OsRelease, PmuCaps, PmuMappings, SampleTime, StatMark, TotalMem,
    TracingData, Version,
};
use recrep_format::read::File;

fn corpus() -> Option<Vec<PathBuf>> {
    let Some(folder) = std::env::var_os("RECREP_CORPUS") else {
        // Past the harness, which keeps what is printed by tests that pass.
        let _ = writeln!(std::io::stderr(), "skipped: RECREP_CORPUS names no folder of recordings");
        return None;
    };
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("RECREP_CORPUS={}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file() && path.extension().is_none_or(|e| e != "json" && e != "py"))
        .collect();
    files.sort();
    Some(files)
}

#[test]
fn every_record_of_every_file_comes_back_byte_by_byte() {
    let Some(files) = corpus() else { return };
    let (mut compared, mut parsed) = (0, 0);
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        let Ok(file) = File::parse(&bytes) else { continue };
        parsed += 1;
        for raw in file.records().map_while(Result::ok) {
            let record = match file.attrs.decode(&raw) {
                Ok(record) => record,
                Err(e) => panic!("{}: {} {e}", path.display(), raw.header.kind),
            };
            let mut e = Encoder::new(file.endian);
            record.encode(&mut e).unwrap();
            assert_eq!(e.as_bytes(), raw.bytes, "{}: {} at byte {}", path.display(), raw.header.kind, raw.offset);
            compared += 1;
        }
    }
    println!("{compared} records of {parsed} files compared");
    assert!(compared > 10_000, "{compared} records are too few to mean anything");
}

/// Decodes and encodes one feature; `None` where the file does not have it.
fn again<'a, F: Feature<'a>>(file: &File<'a>) -> Option<(Vec<u8>, &'a [u8])> {
    let whole = file.feature_cursor(F::ID)?.rest();
    let feature = file.feature::<F>()?.unwrap_or_else(|e| panic!("{}: {e}", F::ID));
    let mut e = Encoder::new(file.endian);
    feature.encode(&mut e).unwrap();
    Some((e.into_bytes(), whole))
}

#[test]
fn every_feature_of_every_file_comes_back_byte_by_byte() {
    let Some(files) = corpus() else { return };
    let mut compared = std::collections::BTreeMap::new();
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        let Ok(file) = File::parse(&bytes) else { continue };
        macro_rules! all {
            ($($feature:ident)*) => {[$( (stringify!($feature), again::<$feature<'_>>(&file)) ),*]};
        }
        let texts = all!(Hostname OsRelease Version Arch CpuDesc CpuId Cmdline EventDesc BuildIds PmuMappings GroupDesc
            CpuPmuCaps PmuCaps CpuTopology NumaTopology HybridTopology MemTopology Caches TracingData AuxtraceIndex
            BpfProgInfo BpfBtf BranchStackMark StatMark);
        let numbers = [
            ("NrCpus", again::<NrCpus>(&file)),
            ("TotalMem", again::<TotalMem>(&file)),
            ("SampleTime", again::<SampleTime>(&file)),
            ("ClockId", again::<ClockId>(&file)),
            ("ClockData", again::<ClockData>(&file)),
            ("DirFormat", again::<DirFormat>(&file)),
            ("Compression", again::<Compression>(&file)),
        ];
        let mut known = 0;
        for (name, outcome) in texts.into_iter().chain(numbers) {
            let Some((encoded, whole)) = outcome else { continue };
            assert_eq!(encoded, whole, "{}: {name}", path.display());
            *compared.entry(name).or_insert(0) += 1;
            known += 1;
        }
        let sections: std::collections::BTreeSet<_> = file.features.iter().map(|(id, _)| *id).collect();
        assert_eq!(known, sections.len(), "{}: a feature that nobody decodes", path.display());
    }
    println!("compared {compared:?}");
    assert!(compared.len() > 10, "{compared:?}");
}
