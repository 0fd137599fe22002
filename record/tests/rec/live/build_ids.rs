//! Build IDs of files that a look at their paths would not find: deleted, replaced, in another
//! mount namespace.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use object::Object as _;
use recrep_format::feature::BuildIds;
use recrep_format::record::Body;

use crate::common::{Recording, can_record, place, run, said, skipped};

/// Mounts a file system of its own at `$1`, where the same path has another file outside, and runs
/// a program there.
const ELSEWHERE: &str =
    "mount -t tmpfs tmpfs \"$1\" && cp \"$2\" \"$1/program\" && shift 2 && exec \"$@\"";

fn build_id(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap();
    let id = object::File::parse(bytes.as_slice()).unwrap().build_id().unwrap().unwrap();
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The build IDs of files with this name: in the records of mappings, and in the table.
fn recorded(path: &Path, name: &str) -> [BTreeSet<String>; 2] {
    let recording = Recording::read(path);
    let is_it = |path: &[u8]| String::from_utf8_lossy(path).trim_end_matches(" (deleted)") == name;
    let file = recording.file();
    let table = file.feature::<BuildIds<'_>>().unwrap().unwrap();
    let table = table
        .entries
        .iter()
        .filter(|entry| is_it(entry.name()))
        .map(|entry| entry.build_id().unwrap());
    let records = recording.records();
    let mapped = records.iter().filter_map(|record| match &record.body {
        Body::Mmap2(mmap) if is_it(mmap.filename.as_bytes()) => mmap.identity.build_id(),
        _ => None,
    });
    [mapped.map(|id| id.to_string()).collect(), table.map(|id| id.to_string()).collect()]
}

fn copied(dir: &Path, from: &str) -> PathBuf {
    let to = dir.join("program");
    std::fs::copy(from, &to).unwrap();
    to
}

/// Returns whether the kernel tells build IDs of mappings: Linux 5.12.
fn kernel_tells() -> bool {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(5), Some(12))
}

#[test]
fn a_program_that_is_gone_at_once_is_identified() {
    if !can_record() {
        return;
    }
    if !kernel_tells() {
        return skipped("needs Linux 5.12");
    }
    let (dir, path) = place();
    let program = copied(dir.path(), "/bin/true");
    let id = build_id(&program);
    let name = program.to_str().unwrap();
    let script = "\"$1\"; cp /bin/false \"$1.new\"; mv \"$1.new\" \"$1\"";
    let output = run(&path, &["-e", "cpu-clock", "--", "sh", "-c", script, "-", name]);
    assert!(output.status.success(), "{}", said(&output));
    let expected = BTreeSet::from([id]);
    assert_eq!(recorded(&path, name), [expected.clone(), expected]);
}

/// A process, until this is dropped.
struct Running(Child);

impl Running {
    /// Starts it, and waits until it runs the program of this name.
    fn start(command: &mut Command, name: &str) -> Self {
        let child = Self(command.stdin(Stdio::null()).spawn().unwrap());
        let maps = format!("/proc/{}/maps", child.0.id());
        for _ in 0..2000 {
            if std::fs::read_to_string(&maps).unwrap().contains(name) {
                return child;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("{name} does not run");
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_process_whose_program_was_deleted_is_identified() {
    if !can_record() {
        return;
    }
    for flag in ["--buildid-mmap", "--no-buildid-mmap"] {
        let (dir, path) = place();
        let program = copied(dir.path(), "/bin/sleep");
        let name = program.to_str().unwrap();
        let id = BTreeSet::from([build_id(&program)]);
        let child = Running::start(Command::new(&program).arg("100"), name);
        std::fs::remove_file(&program).unwrap();
        let output = run(&path, &["-e", "cpu-clock", flag, "-p", &child.pid(), "--", "true"]);
        assert!(output.status.success(), "{}", said(&output));
        let [mapped, table] = recorded(&path, name);
        assert_eq!(table, id, "{flag}");
        assert_eq!(
            mapped,
            if flag == "--buildid-mmap" && kernel_tells() { id } else { BTreeSet::new() },
            "{flag}"
        );
    }
}

#[test]
fn a_file_in_another_mount_namespace_is_not_taken_for_its_namesake() {
    let can_mount = || {
        Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|status| status.success())
    };
    if !can_record() || !can_mount() {
        return skipped("needs root, and unshare");
    }
    for flag in ["--buildid-mmap", "--no-buildid-mmap"] {
        let (dir, path) = place();
        let program = copied(dir.path(), "/bin/false");
        let (place, name) = (dir.path().to_str().unwrap(), program.to_str().unwrap());
        let id = BTreeSet::from([build_id(Path::new("/bin/sleep"))]);
        let mut unshare = Command::new("unshare");
        unshare.args(["-m", "sh", "-c", ELSEWHERE, "-", place, "/bin/sleep", name, "100"]);
        let child = Running::start(&mut unshare, name);
        let output = run(&path, &["-e", "cpu-clock", flag, "-p", &child.pid(), "--", "true"]);
        assert!(output.status.success(), "{}", said(&output));
        let [mapped, table] = recorded(&path, name);
        assert_eq!(table, id, "{flag}");
        assert_eq!(
            mapped,
            if flag == "--buildid-mmap" && kernel_tells() { id } else { BTreeSet::new() },
            "{flag}"
        );
    }
}
