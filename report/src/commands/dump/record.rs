//! One record: its first line, and the lines below it.

use std::io::{self, Write};

use recrep_format::abi::{CpuMode, RecordType, misc};
use recrep_format::record::{Body, RawRecord, Record, SampleId};

use super::known::FileFacts;
use super::line::Lines;
use super::{body, sample};

/// Prints the first line of a record.
pub(super) fn head(known: &FileFacts<'_>, raw: &RawRecord<'_>, stream: &str, out: &mut Vec<u8>) -> io::Result<()> {
    let header = raw.header;
    write!(out, "{stream}{:#x} [{:#x}] PERF_RECORD_{}", raw.offset, header.size, header.kind)?;
    if header.kind.name().is_none() {
        write!(out, " type {}", header.kind.0)?;
    }
    write!(out, " misc {:#x}", header.misc)?;
    for name in misc_names(header.kind, header.misc) {
        write!(out, " {name}")?;
    }
    if header.kind == RecordType::SAMPLE {
        match known.file.attrs.event_of(raw).and_then(|index| known.events.get(index.0)) {
            Some(name) => write!(out, " event {name}")?,
            None => write!(out, " event not known")?,
        }
    }
    writeln!(out)
}

/// Prints the fields of a record, its trailer, and the number of bytes that are not decoded.
pub(super) fn body(known: &FileFacts<'_>, raw: &RawRecord<'_>, record: &Record<'_>, out: &mut Vec<u8>) {
    let mut lines = Lines::new(out);
    match &record.body {
        Body::Sample(fields) => sample::print(known, fields, &mut lines),
        body => body::print(known, raw, body, &mut lines),
    }
    lines.end();
    if record.trailer != SampleId::default() {
        sample::shared_fields(&record.trailer, lines.begin("sample_id:"));
        lines.end();
    }
    if !record.rest.is_empty() {
        lines.field("rest", format_args!("{} bytes", record.rest.len()));
        lines.end();
    }
}

/// Returns the names of the `misc` bits that are set and have a meaning in a record of this type.
fn misc_names(kind: RecordType, bits: u16) -> impl Iterator<Item = &'static str> {
    let mode = match CpuMode::of(bits) {
        CpuMode::Unknown => None,
        CpuMode::Kernel => Some("KERNEL"),
        CpuMode::User => Some("USER"),
        CpuMode::Hypervisor => Some("HYPERVISOR"),
        CpuMode::GuestKernel => Some("GUEST_KERNEL"),
        CpuMode::GuestUser => Some("GUEST_USER"),
        CpuMode::Reserved => Some("RESERVED"),
    };
    use RecordType as R;
    let named: &[(u16, &'static str)] = match kind {
        R::MMAP => &[(misc::MMAP_DATA, "MMAP_DATA"), (misc::PROC_MAP_PARSE_TIMEOUT, "PROC_MAP_PARSE_TIMEOUT")],
        R::MMAP2 => &[
            (misc::MMAP_DATA, "MMAP_DATA"),
            (misc::MMAP_BUILD_ID, "MMAP_BUILD_ID"),
            (misc::PROC_MAP_PARSE_TIMEOUT, "PROC_MAP_PARSE_TIMEOUT"),
        ],
        R::COMM => &[(misc::COMM_EXEC, "COMM_EXEC")],
        R::FORK => &[(misc::FORK_EXEC, "FORK_EXEC")],
        R::SWITCH | R::SWITCH_CPU_WIDE => {
            &[(misc::SWITCH_OUT, "SWITCH_OUT"), (misc::SWITCH_OUT_PREEMPT, "SWITCH_OUT_PREEMPT")]
        }
        R::SAMPLE => &[(misc::EXACT_IP, "EXACT_IP")],
        R::BUILD_ID => &[(misc::BUILD_ID_SIZE, "BUILD_ID_SIZE")],
        _ => &[],
    };
    let mode = mode.filter(|_| kind.is_kernel() || kind == R::BUILD_ID);
    let set = named.iter().filter(move |(bit, _)| bits & bit != 0).map(|(_, name)| *name);
    mode.into_iter().chain(set)
}
