//! Real files without their compressed records: what is unpacked decodes, and encodes to the same
//! bytes.
//!
//! The files belong to others and are not part of the project: the variable `RECREP_CORPUS` names
//! the folder that holds them. Files of the fixtures are unpacked by the fuzz target `unpacked`, in
//! `main.rs`.

use std::path::Path;

use recrep_format::bytes::Encoder;
use recrep_format::read::{File, Frames, Mode, Unpacked, is_compressed};

use crate::corpus::corpus;
use crate::targets::streams;

#[test]
fn real_files_are_unpacked_to_their_records() {
    let Some(files) = corpus() else { return };
    let (mut read, mut compressed) = (0, 0);
    for path in files {
        let bytes = std::fs::read(&path).unwrap_or_default();
        let Ok(file) = File::parse(&bytes) else { continue };
        streams::unpacked(&bytes);
        read += 1;
        compressed += usize::from(is_compressed(file.records()));
        for raw in file.unpacked().records().map_while(Result::ok) {
            let mut e = Encoder::new(file.endian);
            file.attrs.decode(&raw).unwrap().encode(&mut e).unwrap();
            assert_eq!(e.as_bytes(), raw.bytes, "{}: byte {}", path.display(), raw.offset);
        }
    }
    println!("{read} files, {compressed} of them compressed");
    assert!(read > 0, "no perf.data file");
}

/// Records that lie in a file beside the header's, as in a directory, are the same records.
#[test]
fn a_file_of_a_directory_has_the_records_of_the_data_that_it_was() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/file");
    let mut read = 0;
    for entry in std::fs::read_dir(seeds).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let Ok(file) = File::parse(&bytes) else { continue };
        let all = file.unpacked();
        if file.mode != Mode::File || all.records().any(|raw| raw.is_err()) {
            continue;
        }
        // In what is unpacked, and in a file of records only, offsets begin at 0.
        let moved = if is_compressed(file.records()) { 0 } else { file.data.offset };
        let beside = Unpacked::of_frames(Frames::new(file.data_bytes(), 0, file.endian));
        let mut own = beside.records();
        for raw in all.records() {
            let (raw, found) = (raw.unwrap(), own.next().unwrap().unwrap());
            assert_eq!(found.offset, raw.offset - moved);
            assert_eq!((found.bytes, found.payload), (raw.bytes, raw.payload));
            let [own, other] = [found, raw].map(|raw| file.attrs.time_of(&raw));
            assert_eq!(own, other);
        }
        assert!(own.next().is_none());
        read += 1;
    }
    assert!(read > 20, "{read} files");
}
