//! Real files read front to back: the same records and features as in memory, and the order of a
//! sorting twin.
//!
//! The files belong to others and are not part of the project: the variable `RECREP_CORPUS` names
//! the folder that holds them. Made files are read so by the fuzz targets `recording` and
//! `ordering`, in `main.rs`.

use std::path::Path;

use recrep_format::read::{File, Recording};

use crate::corpus::corpus;
use crate::targets::streams::{self, Steps, records};

#[test]
fn real_files_are_the_same_front_to_back() {
    let Some(files) = corpus() else { return };
    let mut read = 0;
    for file in files {
        let bytes = std::fs::read(file).unwrap_or_default();
        if File::parse(&bytes).is_ok() {
            Recording::new(&bytes[..]).unwrap();
            streams::recording(&bytes);
            streams::ordering(&bytes);
            read += 1;
        }
    }
    println!("{read} files");
    assert!(read > 0, "no perf.data file");
}

/// A file of which the records lie in files beside it, as in a directory, gives the same records.
#[test]
fn a_directory_is_read_as_the_file_that_it_was() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/file");
    let mut read = 0;
    for entry in std::fs::read_dir(seeds).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let Ok(file) = File::parse(&bytes) else { continue };
        let mut whole = Recording::new(&bytes[..]).unwrap();
        let all = records(&mut whole);
        if whole.mode() != recrep_format::read::Mode::File || all.iter().any(Result::is_err) {
            continue;
        }
        let data = file.data_bytes();
        // Every record beside the header's file, then the same ones once more.
        let beside = [data, &[], data].map(|bytes| Steps(bytes, 1000));
        let mut directory = Recording::with_streams(Steps(&bytes, 1000), beside).unwrap();
        let found = records(&mut directory);
        assert_eq!(found.len(), 3 * all.len());
        let mut in_memory = Recording::of_bytes_with_streams(&bytes, [data, &[], data]).unwrap();
        assert!(records(&mut in_memory) == found);
        for (n, record) in found.into_iter().enumerate() {
            let (stream, offset, time, bytes) = record.unwrap();
            let (_, own_offset, own_time, own_bytes) = all[n % all.len()].as_ref().unwrap();
            assert_eq!(stream, [0, 1, 3][n / all.len()]);
            assert_eq!(offset, own_offset - if stream == 0 { 0 } else { file.data.offset });
            assert!((time, &bytes) == (*own_time, own_bytes));
        }
        assert!(directory.features().eq(whole.features()));
        let mut ordered =
            Recording::with_streams(Steps(&bytes, 9), [Steps(data, 9)]).unwrap().ordered();
        let mut count = 0;
        while let Some(record) = ordered.next_record() {
            record.unwrap();
            count += 1;
        }
        assert_eq!(count, 2 * all.len());
        read += 1;
    }
    assert!(read > 20, "{read} files");
}
