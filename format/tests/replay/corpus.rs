//! Real files: every record decodes, and encodes to the same bytes.
//!
//! The files belong to others and are not part of the project: the variable `RECREP_CORPUS` names
//! the folder that holds them.

use std::io::Write;
use std::path::PathBuf;

use recrep_format::bytes::Encoder;
use recrep_format::feature::FeatureBody;
use recrep_format::read::File;

pub(crate) fn corpus() -> Option<Vec<PathBuf>> {
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
            assert_eq!(
                e.as_bytes(),
                raw.bytes,
                "{}: {} at byte {}",
                path.display(),
                raw.header.kind,
                raw.offset
            );
            compared += 1;
        }
    }
    println!("{compared} records of {parsed} files compared");
    assert!(compared > 10_000, "{compared} records are too few to mean anything");
}

#[test]
fn every_feature_of_every_file_comes_back_byte_by_byte() {
    let Some(files) = corpus() else { return };
    let mut compared = std::collections::BTreeMap::new();
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        let Ok(file) = File::parse(&bytes) else { continue };
        for (id, _) in &file.features {
            let mut c = file.feature_cursor(*id).unwrap();
            let whole = c.clone().rest();
            let feature = FeatureBody::decode(*id, &mut c)
                .unwrap_or_else(|e| panic!("{}: {id}: {e}", path.display()));
            let mut e = Encoder::new(file.endian);
            feature.encode(&mut e).unwrap();
            assert_eq!(e.as_bytes(), whole, "{}: {id}", path.display());
            assert!(id.name().is_some(), "{}: {id} has no decoder", path.display());
            *compared.entry(id.to_string()).or_insert(0) += 1;
        }
    }
    println!("compared {compared:?}");
    assert!(compared.len() > 10, "{compared:?}");
}
