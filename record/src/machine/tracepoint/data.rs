//! Contents of the feature TRACING_DATA: descriptions of the fields in tracepoints' raw data, in
//! the format of trace-cmd (`trace-cmd.dat(5)`, version 0.6), which all readers of perf.data
//! expect.
//!
//! ```text
//!  17 08 44 "tracing" "0.6\0" order:u8 long:u8 page:u32
//!  "header_page\0" size:u64 …   "header_event\0" size:u64 …
//!  count:u32 { size:u64 format }                               formats of ftrace's own events, which cannot be
//! recorded
//!  count:u32 { system "\0" count:u32 { size:u64 format } }
//!  kallsyms size:u32 = 0   printk_formats size:u32 …   saved_cmdlines size:u64 …
//! ```
//!
//! kallsyms is left empty, as it would be large, and readers of perf.data take symbols from
//! elsewhere.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use recrep_format::bytes::Encoder;
use recrep_format::endian::Endian;

use super::tracefs::Tracefs;

const MAGIC: &[u8] = b"\x17\x08\x44tracing0.6\0";

/// Returns the contents for the named tracepoints (such as `sched:sched_switch`), from this
/// tracefs.
pub(super) fn tracing_data<'a>(
    tracefs: &Tracefs,
    names: impl IntoIterator<Item = &'a str>,
    page_size: usize,
) -> Result<Vec<u8>, String> {
    let mut systems: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (system, name) in names.into_iter().filter_map(|name| name.split_once(':')) {
        let of_system = systems.entry(system).or_default();
        if !of_system.contains(&name) {
            of_system.push(name);
        }
    }
    let events = tracefs.root().join("events");
    let mut e = Encoder::new(Endian::NATIVE);
    e.bytes(MAGIC);
    e.u8(u8::from(Endian::NATIVE == Endian::Big));
    e.u8(u8::try_from(size_of::<libc::c_long>()).unwrap_or(8));
    e.u32(u32::try_from(page_size).unwrap_or(4096));
    for header in ["header_page", "header_event"] {
        e.bytes(header.as_bytes());
        e.u8(0);
        put_file(&mut e, &events.join(header))?;
    }
    e.u32(0);
    e.u32(count(systems.len()));
    for (system, names) in systems {
        e.bytes(system.as_bytes());
        e.u8(0);
        e.u32(count(names.len()));
        for name in names {
            put_file(&mut e, &events.join(system).join(name).join("format"))?;
        }
    }
    e.u32(0);
    let printk = optional(&tracefs.root().join("printk_formats"))?;
    e.u32(count(printk.len()));
    e.bytes(&printk);
    let cmdlines = optional(&tracefs.root().join("saved_cmdlines"))?;
    e.u64(cmdlines.len() as u64);
    e.bytes(&cmdlines);
    Ok(e.into_bytes())
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn put_file(e: &mut Encoder, path: &Path) -> Result<(), String> {
    let bytes = read(path).map_err(|error| unreadable(path, &error))?;
    e.u64(bytes.len() as u64);
    e.bytes(&bytes);
    Ok(())
}

/// Reads a file with a large buffer: `header_page` and `header_event` are returned only by the
/// first read, even if the buffer is too small (`show_header_file` in
/// `kernel/trace/trace_events.c`).
fn read(path: &Path) -> io::Result<Vec<u8>> {
    const PIECE: usize = 64 << 10;
    let mut file = fs::File::open(path)?;
    let (mut bytes, mut length) = (Vec::new(), 0);
    loop {
        bytes.resize(length + PIECE, 0);
        match file.read(bytes.get_mut(length..).unwrap_or_default()) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// Reads a file that is missing in some kernels.
fn optional(path: &Path) -> Result<Vec<u8>, String> {
    match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(|error| unreadable(path, &error)),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    format!(
        "cannot read {}: {}; it describes the fields of tracepoints; be root, or record no \
         tracepoints",
        path.display(),
        crate::messages::error::why_words(error)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_in_their_order() {
        let dir = tempfile::tempdir().unwrap();
        let events = dir.path().join("events");
        for name in ["a/x", "a/y", "b/z"] {
            fs::create_dir_all(events.join(name)).unwrap();
            fs::write(events.join(name).join("format"), format!("name: {name}\n")).unwrap();
        }
        fs::write(events.join("header_page"), "page").unwrap();
        fs::write(events.join("header_event"), "event").unwrap();
        fs::write(dir.path().join("printk_formats"), "fmt").unwrap();
        let tracefs = Tracefs::at(dir.path().to_owned());
        let data = tracing_data(&tracefs, ["b:z", "a:y", "a:x", "a:y"], 4096).unwrap();

        let mut e = Encoder::new(Endian::NATIVE);
        e.bytes(MAGIC);
        e.bytes(&[u8::from(Endian::NATIVE == Endian::Big), 8]);
        e.u32(4096);
        let sized = |e: &mut Encoder, text: &str| {
            e.u64(text.len() as u64);
            e.bytes(text.as_bytes());
        };
        e.bytes(b"header_page\0");
        sized(&mut e, "page");
        e.bytes(b"header_event\0");
        sized(&mut e, "event");
        e.u32(0);
        e.u32(2);
        e.bytes(b"a\0");
        e.u32(2);
        sized(&mut e, "name: a/y\n");
        sized(&mut e, "name: a/x\n");
        e.bytes(b"b\0");
        e.u32(1);
        sized(&mut e, "name: b/z\n");
        e.u32(0);
        e.u32(3);
        e.bytes(b"fmt");
        e.u64(0);
        assert_eq!(data, e.into_bytes());
        let missing = tracing_data(&tracefs, ["a:nope"], 4096).unwrap_err();
        assert!(missing.contains("a/nope/format"), "{missing}");
    }
}
