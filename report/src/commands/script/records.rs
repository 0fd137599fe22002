//! Records that are not samples, as `perf script --show-*-events` prints them.

use std::fmt::Write as _;
use std::io::{self, Write};

use recrep_format::abi::{map_flags, misc, prot};
use recrep_format::build_id::BuildId;
use recrep_format::record::{Body, Mmap2, MmapIdentity, Namespaces, RawRecord, TextPoke};

use super::frames::hex;
use crate::terminal::escape::escape;

/// Task that a record names, and the record's own time if it has one (else 0).
#[derive(Clone, Copy)]
pub(super) struct NamedTask {
    /// Process ID and thread ID.
    pub(super) tid: [i32; 2],
    pub(super) time: u64,
}

/// Returns the task that a record names. Records that name none are about the task that was running.
pub(super) fn task(body: &Body<'_>) -> Option<NamedTask> {
    let named = |pid: u32, tid: u32, time| Some(NamedTask { tid: [pid.cast_signed(), tid.cast_signed()], time });
    match body {
        Body::Comm(comm) => named(comm.pid, comm.tid, 0),
        Body::Fork(task) | Body::Exit(task) => named(task.pid, task.tid, task.time),
        Body::Mmap(map) => named(map.pid, map.tid, 0),
        Body::Mmap2(map) => named(map.pid, map.tid, 0),
        Body::Namespaces(all) => named(all.pid, all.tid, 0),
        _ => None,
    }
}

/// Prints a record. `symbol` resolves a kernel address.
pub(super) fn print(
    raw: &RawRecord<'_>,
    body: &Body<'_>,
    symbol: impl FnOnce(u64) -> Option<String>,
    out: &mut impl Write,
) -> io::Result<()> {
    let bits = raw.header.misc;
    write!(out, "PERF_RECORD_{}", raw.header.kind)?;
    match body {
        Body::Comm(comm) => {
            let exec = if bits & misc::COMM_EXEC != 0 { " exec" } else { "" };
            let (pid, tid) = (comm.pid.cast_signed(), comm.tid.cast_signed());
            writeln!(out, "{exec}: {}:{pid}/{tid}", escape(&comm.comm.to_text()))
        }
        Body::Fork(task) | Body::Exit(task) => {
            let [pid, tid, ppid, ptid] = [task.pid, task.tid, task.ppid, task.ptid].map(u32::cast_signed);
            writeln!(out, "({pid}:{tid}):({ppid}:{ptid})")
        }
        Body::Mmap(map) => {
            let letter = if bits & misc::MMAP_DATA != 0 { 'r' } else { 'x' };
            let range = range([map.pid, map.tid], map.addr, map.len, map.pgoff);
            writeln!(out, "{range}]: {letter} {}", escape(&map.filename.to_text()))
        }
        Body::Mmap2(map) => writeln!(out, "{}", mmap2(map)),
        Body::Lost(lost) => writeln!(out, " lost {}", lost.lost),
        Body::Switch => writeln!(out, " {}", switch(bits)),
        Body::SwitchCpuWide(other) => {
            let side = if bits & misc::SWITCH_OUT != 0 { "next" } else { "prev" };
            let (pid, tid) = (other.next_prev_pid.cast_signed(), other.next_prev_tid.cast_signed());
            writeln!(out, " {}  {side} pid/tid: {pid:>5}/{tid:<5}", switch(bits))
        }
        Body::Namespaces(all) => writeln!(out, "{}", namespaces(all)),
        Body::Cgroup(cgroup) => writeln!(out, " cgroup: {} {}", cgroup.id, escape(&cgroup.path.to_text())),
        Body::KSymbol(s) => {
            let name = s.name.to_text();
            let (addr, len, kind, flags) = (s.addr, s.len, s.ksym_type.0, s.flags.bits());
            writeln!(out, " addr {addr:x} len {len} type {kind} flags 0x{flags:x} name {}", escape(&name))
        }
        Body::BpfEvent(bpf) => writeln!(out, " type {}, flags {}, id {}", bpf.event_type.0, bpf.flags, bpf.id),
        Body::TextPoke(poke) => text_poke(poke, &symbol(poke.addr).unwrap_or_default(), out),
        _ => writeln!(out),
    }
}

fn range([pid, tid]: [u32; 2], addr: u64, len: u64, pgoff: u64) -> String {
    let (pid, tid) = (pid.cast_signed(), tid.cast_signed());
    format!(" {pid}/{tid}: [{}({}) @ {}", hex(addr), hex(len), hex(pgoff))
}

fn mmap2(map: &Mmap2<'_>) -> String {
    let mut text = range([map.pid, map.tid], map.addr, map.len, map.pgoff);
    match map.identity {
        MmapIdentity::Inode(inode) => {
            let (maj, min, ino, generation) = (inode.maj, inode.min, inode.ino, inode.ino_generation);
            text.push_str(&format!(" {maj:02x}:{min:02x} {ino} {generation}"));
        }
        MmapIdentity::BuildId(_) => {
            let id = map.identity.build_id().as_ref().map(BuildId::to_string);
            text.push_str(&format!(" <{}>", id.unwrap_or_default()));
        }
    }
    let letter = |bit, letter| if map.prot & bit != 0 { letter } else { '-' };
    text.push_str("]: ");
    text.extend([
        letter(prot::READ, 'r'),
        letter(prot::WRITE, 'w'),
        letter(prot::EXEC, 'x'),
        if map.flags & map_flags::SHARED != 0 { 's' } else { 'p' },
    ]);
    text + " " + &escape(&map.filename.to_text())
}

/// Returns the direction of a context switch, as perf prints it.
fn switch(bits: u16) -> &'static str {
    match (bits & misc::SWITCH_OUT != 0, bits & misc::SWITCH_OUT_PREEMPT != 0) {
        (false, _) => "IN         ",
        (true, false) => "OUT        ",
        (true, true) => "OUT preempt",
    }
}

fn namespaces(all: &Namespaces<'_>) -> String {
    let (pid, tid) = (all.pid.cast_signed(), all.tid.cast_signed());
    let each: Vec<_> = all.iter().collect();
    let mut text = format!(" {pid}/{tid} - nr_namespaces: {}\n\t\t[", each.len());
    for (place, namespace) in each.iter().enumerate() {
        if place > 0 {
            text.push_str(if place.is_multiple_of(4) { ", \n\t\t " } else { ", " });
        }
        let name = Namespaces::NAMES.get(place).copied().unwrap_or("unknown");
        let _infallible = write!(text, "{place}/{name}: {}/{}", namespace.dev, hex(namespace.inode));
    }
    text + "]"
}

fn text_poke(poke: &TextPoke<'_>, symbol: &str, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, " {:x} {symbol} old len {} new len {}", poke.addr, poke.old_len, poke.new_len)?;
    for (which, bytes) in [("Old", poke.old_bytes()), ("New", poke.new_bytes())] {
        for line in bytes.chunks(16) {
            let bytes: Vec<_> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(out, "            {which} bytes: {}", bytes.join(" "))?;
        }
    }
    Ok(())
}
