//! Real files: every record decodes, and encodes to the same bytes.
//!
//! The files belong to others and are not part of the project: the variable `RECREP_CORPUS` names the folder that holds them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test says what it did, and fails loudly")]

use std::path::PathBuf;

use recrep_format::bytes::Encoder;
use recrep_format::read::File;

fn corpus() -> Option<Vec<PathBuf>> {
    let Some(folder) = std::env::var_os("RECREP_CORPUS") else {
        println!("did not run: RECREP_CORPUS is not set");
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
