//! Making, appending to and completing files.

use std::fs;

use super::*;
use crate::output::place::There;
use recrep_format::read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

fn attrs() -> Vec<AttrEntry> {
    let attr = recrep_format::attr::Attr { size: 128, ..Default::default() };
    vec![AttrEntry { attr, ids: vec![1], name: None }]
}

fn to(path: &Path) -> config::Output {
    crate::cli::parse(["rec".into(), "-o".into(), path.into(), "x".into()]).unwrap().output
}

fn create(path: &Path) -> Result<Output> {
    Output::create(&to(path), &attrs(), &FeatureWriter::new(Endian::NATIVE))
}

fn round() -> Vec<u8> {
    crate::kernel::ring::fake::fake_record(68, &[])
}

#[test]
fn parts_arrive_in_order_and_the_file_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.data");
    let mut output = create(&path).unwrap();
    output.write(&round()).unwrap();
    let (a, b) = (round(), round());
    let parts = &[IoSlice::new(&a[..3]), IoSlice::new(&a[3..]), IoSlice::new(&[]), IoSlice::new(&b)];
    assert_eq!(output.write_parts(parts, &round()).unwrap(), 24);
    let length = output.finish(FeatureWriter::new(Endian::NATIVE)).unwrap().length;
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes.len() as u64, length);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let file = read::File::parse(&bytes).unwrap();
    assert_eq!(file.warnings, []);
    assert_eq!(file.records().map(Result::unwrap).count(), 4);
}

#[test]
fn a_file_that_is_there_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (path, old) = (dir.path().join("x"), dir.path().join("x.old"));
    fs::write(&path, "before").unwrap();
    let output = create(&path).unwrap();
    assert_eq!(fs::read_to_string(&old).unwrap(), "before");
    output.undo();
    assert_eq!(fs::read_to_string(&path).unwrap(), "before");
    assert!(!old.exists());
}

#[test]
fn a_link_is_moved_away_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let (path, victim) = (dir.path().join("x"), dir.path().join("victim"));
    fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, &path).unwrap();
    create(&path).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(fs::symlink_metadata(&path).unwrap().is_file());
}

#[test]
fn what_is_no_file_is_left_where_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let link = |to: &str, name: &str| {
        let path = dir.path().join(name);
        std::os::unix::fs::symlink(to, &path).unwrap();
        path
    };
    let refused = |path: &Path| {
        let before = fs::symlink_metadata(path).unwrap().ino();
        let message = create(path).unwrap_err().to_string();
        assert_eq!(fs::symlink_metadata(path).unwrap().ino(), before, "{message}");
        message
    };
    let (_read, write) = io::pipe().unwrap();
    let pipe = link(&format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&write)), "pipe");
    assert!(refused(&pipe).contains("it is a pipe"));
    assert!(refused(dir.path()).contains("it is a directory"));
    assert!(refused(&link("/", "root")).contains("it is a directory"));
    let file = File::create(dir.path().join("file")).unwrap();
    let fd = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    assert!(refused(Path::new(&fd)).contains("it is a link of the system's"));
    assert_eq!(There::at(&link("/dev/null", "null")).unwrap(), There::Device);
    assert_eq!(There::at(&link("nowhere", "dangling")).unwrap(), There::File);
}

/// A device that takes nothing is a disk that is full.
#[test]
fn what_was_there_stays_where_nothing_can_be_written() {
    assert!(create(Path::new("/dev/full")).unwrap_err().to_string().contains("No space left"));
}

#[test]
fn of_a_batch_that_was_cut_the_whole_records_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let mut output = create(&path).unwrap();
    output.write(&round()).unwrap();
    // Two records and a part of a third are in the file when the disk is full.
    let (start, batch) = (output.length(), [round(), round(), round()].concat());
    output.sink.file().write_all_at(&batch[..20], start).unwrap();
    let mut seen = 0;
    output.keep(0, |_| seen += 1);
    assert_eq!((seen, output.length()), (2, start + 16));
    let length = output.salvage(FeatureWriter::new(Endian::NATIVE));
    let bytes = fs::read(&path).unwrap();
    let file = read::File::parse(&bytes).unwrap();
    assert_eq!((bytes.len() as u64, file.warnings.len(), file.records().count()), (length, 0, 3));
}

#[test]
fn what_cannot_be_made_is_a_sentence() {
    let message = create(Path::new("/no/such/dir/x")).unwrap_err().to_string();
    assert_eq!(message, "cannot create '/no/such/dir/x' (-o names another file): No such file or directory");
}
