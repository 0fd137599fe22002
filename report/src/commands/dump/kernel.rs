//! Fields of the kernel's records other than samples.

use std::io::{self, Write};

use recrep_format::build_id::BuildId;
use recrep_format::record::{Body, KSymbol, Mmap2, MmapIdentity, Namespaces, TextPoke};

use super::hex::Bytes;
use super::line::{Escaped, Hex, Lines};
use super::sample;

/// Names of the namespaces of a NAMESPACES record, in the kernel's order.
const NAMESPACES: [&str; 7] = ["net", "uts", "ipc", "pid", "user", "mnt", "cgroup"];

/// Prints the fields of a record.
pub(super) fn print<W: Write>(body: &Body<'_>, lines: &mut Lines<'_, W>) -> io::Result<()> {
    match body {
        Body::Mmap(map) => {
            pid_tid(map.pid, map.tid, lines)?.field("addr", Hex(map.addr))?.field("len", Hex(map.len))?;
            lines.field("pgoff", Hex(map.pgoff))?.field("filename", Escaped(map.filename.as_bytes()))?;
        }
        Body::Mmap2(map) => mmap2(map, lines)?,
        Body::Lost(lost) => {
            lines.field("id", lost.id)?.field("lost", lost.lost)?;
        }
        Body::LostSamples(lost) => {
            lines.field("lost", lost.lost)?;
        }
        Body::Comm(comm) => {
            pid_tid(comm.pid, comm.tid, lines)?.field("comm", Escaped(comm.comm.as_bytes()))?;
        }
        Body::Exit(task) | Body::Fork(task) => {
            lines.field("pid", task.pid.cast_signed())?.field("ppid", task.ppid.cast_signed())?;
            lines
                .field("tid", task.tid.cast_signed())?
                .field("ptid", task.ptid.cast_signed())?
                .field("time", task.time)?;
        }
        Body::Throttle(throttle) | Body::Unthrottle(throttle) => {
            lines.field("time", throttle.time)?.field("id", throttle.id)?.field("stream_id", throttle.stream_id)?;
        }
        Body::Read(read) => {
            pid_tid(read.pid, read.tid, lines)?;
            sample::values(&read.values, lines)?;
        }
        Body::Aux(aux) => {
            lines.field("aux_offset", Hex(aux.aux_offset))?.field("aux_size", Hex(aux.aux_size))?;
            lines.field("flags", format_args!("{:#x}{}", aux.flags, aux_flags(aux.flags)))?;
        }
        Body::ItraceStart(start) => {
            pid_tid(start.pid, start.tid, lines)?;
        }
        Body::SwitchCpuWide(switch) => {
            lines.field("next_prev_pid", switch.next_prev_pid.cast_signed())?;
            lines.field("next_prev_tid", switch.next_prev_tid.cast_signed())?;
        }
        Body::Namespaces(namespaces) => self::namespaces(namespaces, lines)?,
        Body::KSymbol(symbol) => ksymbol(symbol, lines)?,
        Body::BpfEvent(bpf) => {
            let kind = named(bpf.event_type, &["UNKNOWN", "PROG_LOAD", "PROG_UNLOAD"]);
            lines.field("type", kind)?.field("flags", Hex(bpf.flags))?.field("id", bpf.id)?;
            lines.field("tag", Bytes(&bpf.tag))?;
        }
        Body::Cgroup(cgroup) => {
            lines.field("id", cgroup.id)?.field("path", Escaped(cgroup.path.as_bytes()))?;
        }
        Body::TextPoke(poke) => text_poke(poke, lines)?,
        Body::AuxOutputHwId(id) => {
            lines.field("hw_id", Hex(id.hw_id))?;
        }
        Body::CallchainDeferred(chain) => {
            lines.begin("callchain:")?.field("cookie", Hex(chain.cookie))?.field("nr", chain.nr)?;
            sample::chain(chain.ips, lines)?;
        }
        // It has no fields: `misc` and the trailer hold everything.
        Body::Switch => {}
        other => {
            lines.field("not_decoded", other.kind())?;
        }
    }
    lines.end()
}

fn pid_tid<'l, 'w, W: Write>(pid: u32, tid: u32, lines: &'l mut Lines<'w, W>) -> io::Result<&'l mut Lines<'w, W>> {
    lines.field("pid", pid.cast_signed())?.field("tid", tid.cast_signed())
}

fn mmap2<W: Write>(map: &Mmap2<'_>, lines: &mut Lines<'_, W>) -> io::Result<()> {
    pid_tid(map.pid, map.tid, lines)?.field("addr", Hex(map.addr))?.field("len", Hex(map.len))?;
    lines.field("pgoff", Hex(map.pgoff))?;
    match map.identity {
        MmapIdentity::Inode(inode) => {
            lines.field("maj", format_args!("{:02x}", inode.maj))?.field("min", format_args!("{:02x}", inode.min))?;
            lines.field("ino", inode.ino)?.field("ino_generation", inode.ino_generation)?;
        }
        MmapIdentity::BuildId(id) => {
            let text = map.identity.build_id().as_ref().map(BuildId::to_string);
            lines.field("build_id_size", id.size)?.field("build_id", text.unwrap_or_default())?;
        }
    }
    let letter = |bit, letter| if map.prot & bit != 0 { letter } else { '-' };
    let shared = if map.flags & 1 != 0 { 's' } else { 'p' };
    let prot: String = [letter(1, 'r'), letter(2, 'w'), letter(4, 'x'), shared].iter().collect();
    lines.field("prot", format_args!("{:#x} {prot}", map.prot))?.field("flags", Hex(map.flags))?;
    lines.field("filename", Escaped(map.filename.as_bytes()))?;
    Ok(())
}

/// Returns the letters of the `PERF_AUX_FLAG_*` bits: truncated, overwrite, partial, collision.
fn aux_flags(flags: u64) -> String {
    let letters = [(1, 'T'), (2, 'O'), (4, 'P'), (8, 'C')];
    let set: String = letters.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, letter)| letter).collect();
    if set.is_empty() { set } else { format!(" {set}") }
}

/// Formats a number with its name, if it has one.
fn named(number: u16, names: &[&str]) -> String {
    match names.get(usize::from(number)) {
        Some(name) => format!("{number} {name}"),
        None => number.to_string(),
    }
}

fn namespaces<W: Write>(all: &Namespaces<'_>, lines: &mut Lines<'_, W>) -> io::Result<()> {
    pid_tid(all.pid, all.tid, lines)?.field("nr_namespaces", all.nr_namespaces)?;
    for (place, namespace) in all.iter().enumerate() {
        let name = NAMESPACES.get(place).copied().unwrap_or("unknown");
        lines.item(format_args!("{place}/{name}: dev: {}, ino: {:#x}", namespace.dev, namespace.inode))?;
    }
    lines.end()
}

fn ksymbol<W: Write>(symbol: &KSymbol<'_>, lines: &mut Lines<'_, W>) -> io::Result<()> {
    lines.field("addr", Hex(symbol.addr))?.field("len", symbol.len)?;
    let gone = if symbol.flags & 1 != 0 { " UNREGISTER" } else { "" };
    lines.field("ksym_type", named(symbol.ksym_type, &["UNKNOWN", "BPF", "OOL"]))?;
    lines.field("flags", format_args!("{:#x}{gone}", symbol.flags))?;
    lines.field("name", Escaped(symbol.name.as_bytes()))?;
    Ok(())
}

fn text_poke<W: Write>(poke: &TextPoke<'_>, lines: &mut Lines<'_, W>) -> io::Result<()> {
    lines.field("addr", Hex(poke.addr))?.field("old_len", poke.old_len)?.field("new_len", poke.new_len)?;
    let (old, rest) = poke.bytes.split_at_checked(poke.old_len.into()).unwrap_or((poke.bytes, &[]));
    let new = rest.get(..poke.new_len.into()).unwrap_or(rest);
    lines.item(format_args!("old: {}", Bytes(old)))?;
    lines.item(format_args!("new: {}", Bytes(new)))
}
