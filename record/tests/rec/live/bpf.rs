//! BPF programs that were loaded before the recording.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use recrep_format::record::Body;

use crate::common::{Recording, can_record_system, place, rec, said, skipped};

/// Loads a program of two functions (r0 = 0 in the second), prints its id, and keeps it until
/// standard input ends.
const LOADER: &str = "\
import ctypes, platform, struct, sys
code = bytes.fromhex('8510000001000000' '9500000000000000' 'b700000000000000' '9500000000000000')
insns, license = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b'GPL')
attr = struct.pack('=IIQQIIQII16s', 1, 4, ctypes.addressof(insns), ctypes.addressof(license), 0, 0, 0, 0, 0, b'recrep_test')
bpf = lambda command, attr: ctypes.CDLL(None, use_errno=True).syscall(321 if platform.machine() == 'x86_64' else 280, command, attr, len(attr))
fd = bpf(5, ctypes.create_string_buffer(attr, len(attr)))
if fd < 0: sys.exit('errno %d' % ctypes.get_errno())
print('loaded', flush=True)
sys.stdin.read()
";

/// A process that keeps the program; none where it cannot be loaded.
fn loaded() -> Option<Child> {
    let mut python = Command::new("python3");
    let python = python.args(["-c", LOADER]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = python.spawn().ok()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take()?).read_line(&mut line).unwrap();
    if line.trim() == "loaded" { Some(child) } else { None }
}

/// Lengths and names of the functions of the newest program with two of them, and its tag, sorted;
/// with each address.
fn functions(recording: &Recording) -> (Vec<(u32, String)>, Vec<[u8; 8]>) {
    let (mut functions, mut tags) = (Vec::new(), Vec::new());
    for record in recording.records() {
        match record.body {
            Body::KSymbol(symbol) if symbol.addr != 0 && symbol.flags.is_empty() => {
                functions.push((symbol.len, symbol.name.to_text().into_owned()));
            }
            Body::BpfEvent(event) if event.event_type.0 == 1 => tags.push(event.tag),
            _ => {}
        }
    }
    (functions, tags)
}

#[test]
fn programs_from_before_are_recorded_as_the_kernel_records_new_ones() {
    if !can_record_system() {
        return;
    }
    let Some(mut child) = loaded() else { return skipped("needs python3, and a kernel with BPF") };
    let (_dir, before) = place();
    let output = rec()
        .arg("-o")
        .arg(&before)
        .args(["-a", "-e", "cpu-clock", "--", "true"])
        .output()
        .unwrap();
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let (_dir, meanwhile) = place();
    let command = ["-a", "-e", "cpu-clock", "--", "python3", "-c", LOADER];
    let output =
        rec().arg("-o").arg(&meanwhile).args(command).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let (was_there, tags_before) = functions(&Recording::read(&before));
    let (came, tags_meanwhile) = functions(&Recording::read(&meanwhile));
    // The newest is the last, in both.
    let [newest, expected] =
        [&was_there, &came].map(|all| all[all.len().saturating_sub(2)..].to_vec());
    assert_eq!(newest.len(), 2, "{was_there:?}");
    assert_eq!(newest, expected);
    assert!(
        newest[0].1.starts_with("bpf_prog_") && newest[0].1.ends_with("_recrep_test"),
        "{newest:?}"
    );
    assert_eq!(tags_before.last(), tags_meanwhile.last());
}
