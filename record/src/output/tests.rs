//! Tests: creating, appending to and completing files.

use std::fs::{self, OpenOptions};

use super::*;
use crate::output::place::There;
use recrep_format::endian::Endian;
use recrep_format::read;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};

fn attrs() -> Vec<AttrEntry> {
    let attr = recrep_format::attr::Attr { size: 128, ..Default::default() };
    vec![AttrEntry { attr, ids: vec![1], name: None }]
}

fn to(path: &Path) -> config::OutputOptions {
    crate::cli::parse(["rec".into(), "-o".into(), path.into(), "x".into()]).unwrap().output
}

fn create(path: &Path) -> Result<Output> {
    create_with(&to(path), &[])
}

fn create_with(to: &config::OutputOptions, groups: &[Vec<usize>]) -> Result<Output> {
    let layout = Layout { groups: groups.to_vec(), queue: 1 << 20, unwinding: None };
    Output::create(to, &attrs(), &FeatureWriter::new(Endian::NATIVE), &layout)
}

fn round() -> Vec<u8> {
    crate::testkit::fake_ring::fake_record(68, &[])
}

#[test]
fn parts_arrive_in_order_and_the_file_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.data");
    let output = create(&path).unwrap();
    output.write(&round()).unwrap();
    let (a, b) = (round(), round());
    let parts =
        &[IoSlice::new(&a[..3]), IoSlice::new(&a[3..]), IoSlice::new(&[]), IoSlice::new(&b)];
    let before = output.length();
    output.write_rings(0, parts, &round(), Counts { samples: 2, ..Counts::default() }).unwrap();
    assert_eq!(output.length(), before + 24);
    assert_eq!(output.settle().unwrap().counts.samples, 2);
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
fn a_name_that_is_taken_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["a", "b", "c"].map(|name| dir.path().join(name));
    fs::write(&names[0], "somebody's").unwrap();
    std::os::unix::fs::symlink("nowhere", &names[1]).unwrap();
    let mut output = create(&dir.path().join("x")).unwrap();
    assert_eq!(output.rename(names.clone().into_iter()).unwrap(), Some(names[2].clone()));
    assert_eq!(fs::read_to_string(&names[0]).unwrap(), "somebody's");
    let finished = output.finish(FeatureWriter::new(Endian::NATIVE)).unwrap();
    assert_eq!(finished.path, Some(names[2].clone()));
    let mut output = create(Path::new("/dev/null")).unwrap();
    assert_eq!(output.rename(names.into_iter()).unwrap(), None);
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
    assert!(refused(dir.path()).contains("it is a directory without a recording"));
    assert!(refused(&link("/", "root")).contains("it is a directory"));
    let file = File::create(dir.path().join("file")).unwrap();
    let fd = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    assert!(refused(Path::new(&fd)).contains("it is a system link"));
    assert_eq!(There::at(&link("/dev/null", "null")).unwrap(), There::Device);
    assert_eq!(There::at(&link("nowhere", "dangling")).unwrap(), There::File);
}

/// /dev/full stands for a full disk.
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
    output.settle().unwrap();
    // When the disk is full, the file has two records and a part of a third.
    let (start, batch) = (output.length(), [round(), round(), round()].concat());
    OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&batch[..20], start).unwrap();
    let mut seen = 0;
    output.keep(0, |_| seen += 1);
    assert_eq!(seen, 2);
    let length = output.salvage(FeatureWriter::new(Endian::NATIVE));
    let bytes = fs::read(&path).unwrap();
    let file = read::File::parse(&bytes).unwrap();
    assert_eq!((bytes.len() as u64, file.warnings.len(), file.records().count()), (length, 0, 3));
}

#[test]
fn in_a_directory_each_ring_has_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let output = create_with(&to(&path), &[vec![0, 2], vec![1]]).unwrap();
    output.write(&round()).unwrap();
    for ring in [0, 1, 2, 1] {
        let records = vec![round(); ring + 1].concat();
        let counts = Counts { samples: 1, ..Counts::default() };
        output.write_rings(ring, &[IoSlice::new(&records)], &round(), counts).unwrap();
    }
    assert_eq!(output.settle().unwrap().counts.samples, 4);
    let length = output.finish(FeatureWriter::new(Endian::NATIVE)).unwrap().length;
    let read = |name: &str| fs::read(path.join(name)).unwrap();
    assert_eq!([0, 1, 2].map(|ring| read(&format!("data.{ring}")).len()), [8, 32, 24]);
    let data = read("data");
    assert_eq!(length, data.len() as u64 + 64);
    let file = read::File::parse(&data).unwrap();
    assert_eq!((file.warnings.len(), file.records().count()), (0, 1));
    assert_eq!(file.feature::<DirFormat>().unwrap().unwrap().version, 1);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(path.join("data.1")).unwrap().permissions().mode() & 0o777, 0o600);
    // It is kept as a file is, and so is a file after it; nothing that is not a recording's is
    // removed.
    let names = |path: &str| fs::read_dir(dir.path().join(path)).unwrap().count();
    create_with(&to(&path), &[vec![0]])
        .unwrap()
        .finish(FeatureWriter::new(Endian::NATIVE))
        .unwrap();
    assert_eq!((names("x"), names("x.old")), (2, 4));
    create(&path).unwrap().finish(FeatureWriter::new(Endian::NATIVE)).unwrap();
    assert_eq!((path.is_file(), names("x.old")), (true, 2));
    fs::write(dir.path().join("x.old/notes"), "").unwrap();
    let refused = create_with(&to(&path), &[vec![0]]).unwrap_err().to_string();
    assert!(path.is_file() && dir.path().join("x.old/notes").is_file(), "{refused}");
    fs::remove_file(dir.path().join("x.old/notes")).unwrap();
    let output = create_with(&to(&path), &[vec![0]]).unwrap();
    assert!(path.is_dir() && dir.path().join("x.old").is_file());
    output.undo();
    assert!(path.is_file());
    assert!(
        create_with(&to(Path::new("/dev/null")), &[vec![0]])
            .unwrap_err()
            .to_string()
            .contains("a device")
    );
}

/// A pipe, and an output that writes into it through the queue.
fn piped(queue: usize) -> (io::PipeReader, Writer) {
    let (reader, writer) = io::pipe().unwrap();
    let file = DataFile::records(
        File::from(std::os::fd::OwnedFd::from(writer)),
        PathBuf::from("pipe"),
        None,
    );
    (reader, Writer::start(vec![file], queue, &Arc::default(), None).unwrap())
}

/// Nobody reads: a pipe holds 64 KiB, the queue the rest.
#[test]
fn what_the_queue_can_hold_waits_for_nobody() {
    let batch = || Batch { bytes: vec![7; 64 << 10], ..Batch::default() };
    let two = [piped(8 << 20), piped(8 << 20)];
    for (_, writer) in &two {
        (0..100).for_each(|_| writer.push(batch()).unwrap());
        assert_eq!(writer.queue.written().stalls, 0);
    }
    for (mut reader, writer) in two {
        let read = std::thread::spawn(move || {
            let mut bytes = 0;
            let mut part = vec![0; 10_000];
            loop {
                match io::Read::read(&mut reader, &mut part).unwrap() {
                    0 => return bytes,
                    more => bytes += more,
                }
            }
        });
        writer.end().unwrap();
        assert_eq!(read.join().unwrap(), 100 * (64 << 10));
    }
}

#[test]
fn what_cannot_be_made_is_a_sentence() {
    let message = create(Path::new("/no/such/dir/x")).unwrap_err().to_string();
    assert_eq!(
        message,
        "cannot create '/no/such/dir/x' (choose another place with -o FILE): No such file or \
         directory"
    );
}
