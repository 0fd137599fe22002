//! Records that are not samples, as `perf script --show-*-events` prints them.

use std::io::{self, Write};

use recrep_format::abi::misc;
use recrep_format::build_id::BuildId;
use recrep_format::record::{Body, Mmap2, MmapIdentity, Namespaces, RawRecord, TextPoke};

use super::frames::hex;
use crate::listings::dump;
use crate::terminal::escape::escape;
use crate::tracepoints;

/// Returns process ID and thread ID of the task that a record names, and the record's own time if
/// it has one (else 0). Records that name none are about the task that was running.
pub(super) fn task(body: &Body<'_>) -> Option<([i32; 2], u64)> {
    let (task, time) = match body {
        Body::Comm(comm) => ([comm.pid, comm.tid], 0),
        Body::Fork(task) | Body::Exit(task) => ([task.pid, task.tid], task.time),
        Body::Mmap(map) => ([map.pid, map.tid], 0),
        Body::Mmap2(map) => ([map.pid, map.tid], 0),
        Body::Namespaces(all) => ([all.pid, all.tid], 0),
        _ => return None,
    };
    Some((task.map(u32::cast_signed), time))
}

/// Prints a record. `symbol` resolves a kernel address.
pub(super) fn print(
    raw: &RawRecord<'_>,
    body: &Body<'_>,
    symbol: impl FnOnce(u64) -> Option<String>,
    out: &mut impl Write,
) -> io::Result<()> {
    let bits = raw.header.misc;
    let [pid, tid] = task(body).map_or([-1, -1], |(task, _)| task);
    write!(out, "PERF_RECORD_{}", raw.header.kind)?;
    match body {
        Body::Comm(comm) => {
            let exec = if bits & misc::COMM_EXEC != 0 { " exec" } else { "" };
            writeln!(out, "{exec}: {}:{pid}/{tid}", escape(&comm.comm.to_text()))
        }
        Body::Fork(task) | Body::Exit(task) => {
            let [ppid, ptid] = [task.ppid, task.ptid].map(u32::cast_signed);
            writeln!(out, "({pid}:{tid}):({ppid}:{ptid})")
        }
        Body::Mmap(map) => {
            let letter = if bits & misc::MMAP_DATA != 0 { 'r' } else { 'x' };
            let range = range([pid, tid], map.addr, map.len, map.pgoff);
            writeln!(out, "{range}]: {letter} {}", escape(&map.filename.to_text()))
        }
        Body::Mmap2(map) => writeln!(out, "{}", mmap2(map, [pid, tid])),
        Body::Lost(lost) => writeln!(out, " lost {}", lost.lost),
        Body::Switch => writeln!(out, " {}", switch(bits)),
        Body::SwitchCpuWide(other) => {
            let side = if bits & misc::SWITCH_OUT != 0 { "next" } else { "prev" };
            let (pid, tid) = (other.next_prev_pid.cast_signed(), other.next_prev_tid.cast_signed());
            writeln!(out, " {}  {side} pid/tid: {pid:>5}/{tid:<5}", switch(bits))
        }
        Body::Namespaces(all) => writeln!(out, "{}", namespaces(all, [pid, tid])),
        Body::Cgroup(cgroup) => {
            writeln!(out, " cgroup: {} {}", cgroup.id, escape(&cgroup.path.to_text()))
        }
        Body::KSymbol(s) => {
            let name = s.name.to_text();
            let (addr, len, kind, flags) = (s.addr, s.len, s.ksym_type.0, s.flags.bits());
            writeln!(
                out,
                " addr {addr:x} len {len} type {kind} flags 0x{flags:x} name {}",
                escape(&name)
            )
        }
        Body::BpfEvent(bpf) => {
            writeln!(out, " type {}, flags {}, id {}", bpf.event_type.0, bpf.flags, bpf.id)
        }
        Body::TextPoke(poke) => text_poke(poke, &symbol(poke.addr).unwrap_or_default(), out),
        _ => writeln!(out),
    }
}

fn range([pid, tid]: [i32; 2], addr: u64, len: u64, pgoff: u64) -> String {
    format!(" {pid}/{tid}: [{}({}) @ {}", hex(addr), hex(len), hex(pgoff))
}

fn mmap2(map: &Mmap2<'_>, task: [i32; 2]) -> String {
    let mut text = range(task, map.addr, map.len, map.pgoff);
    match map.identity {
        MmapIdentity::Inode(inode) => {
            let (maj, min, ino, generation) =
                (inode.maj, inode.min, inode.ino, inode.ino_generation);
            text.push_str(&format!(" {maj:02x}:{min:02x} {ino} {generation}"));
        }
        MmapIdentity::BuildId(_) => {
            let id = map.identity.build_id().as_ref().map(BuildId::to_string);
            text.push_str(&format!(" <{}>", id.unwrap_or_default()));
        }
    }
    text + "]: "
        + &dump::access_letters(map.prot, map.flags)
        + " "
        + &escape(&map.filename.to_text())
}

/// Returns the direction of a context switch, as perf prints it.
fn switch(bits: u16) -> &'static str {
    match (bits & misc::SWITCH_OUT != 0, bits & misc::SWITCH_OUT_PREEMPT != 0) {
        (false, _) => "IN         ",
        (true, false) => "OUT        ",
        (true, true) => "OUT preempt",
    }
}

fn namespaces(all: &Namespaces<'_>, [pid, tid]: [i32; 2]) -> String {
    let each: Vec<_> = all.iter().collect();
    let mut text = format!(" {pid}/{tid} - nr_namespaces: {}\n\t\t[", each.len());
    for (place, namespace) in each.iter().enumerate() {
        if place > 0 {
            text.push_str(if place.is_multiple_of(4) { ", \n\t\t " } else { ", " });
        }
        let name = Namespaces::NAMES.get(place).copied().unwrap_or("unknown");
        text.push_str(&format!("{place}/{name}: {}/{}", namespace.dev, hex(namespace.inode)));
    }
    text + "]"
}

fn text_poke(poke: &TextPoke<'_>, symbol: &str, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, " {:x} {symbol} old len {} new len {}", poke.addr, poke.old_len, poke.new_len)?;
    for (which, bytes) in [("Old", poke.old_bytes()), ("New", poke.new_bytes())] {
        for line in bytes.chunks(16) {
            writeln!(out, "            {which} bytes: {}", tracepoints::hex(line, " "))?;
        }
    }
    Ok(())
}
