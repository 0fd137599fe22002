//! Fields of the kernel's records other than samples.

use recrep_format::abi::{AuxFlags, KSymbolFlags, map_flags, prot};
use recrep_format::build_id::BuildId;
use recrep_format::record::{Body, Mmap2, MmapIdentity, Namespaces};

use super::line::{Escaped, Hex, Lines, named};
use super::sample;
use crate::commands::info::Value;

pub(super) fn print(body: &Body<'_>, lines: &mut Lines<'_>) {
    match body {
        Body::Mmap(map) => {
            pid_tid(map.pid, map.tid, lines).field("addr", Hex(map.addr)).field("len", Hex(map.len));
            lines.field("pgoff", Hex(map.pgoff)).field("filename", Escaped(map.filename.as_bytes()))
        }
        Body::Mmap2(map) => mmap2(map, lines),
        Body::Lost(lost) => lines.field("id", lost.id).field("lost", lost.lost),
        Body::LostSamples(lost) => lines.field("lost", lost.lost),
        Body::Comm(comm) => pid_tid(comm.pid, comm.tid, lines).field("comm", Escaped(comm.comm.as_bytes())),
        Body::Exit(task) | Body::Fork(task) => {
            lines.field("pid", task.pid.cast_signed()).field("ppid", task.ppid.cast_signed());
            lines.field("tid", task.tid.cast_signed()).field("ptid", task.ptid.cast_signed()).field("time", task.time)
        }
        Body::Throttle(throttle) | Body::Unthrottle(throttle) => {
            lines.field("time", throttle.time).field("id", throttle.id).field("stream_id", throttle.stream_id)
        }
        Body::Read(read) => sample::values(&read.values, pid_tid(read.pid, read.tid, lines)),
        Body::Aux(aux) => {
            lines.field("aux_offset", Hex(aux.aux_offset)).field("aux_size", Hex(aux.aux_size));
            lines.field("flags", format_args!("{:#x}{}", aux.flags.bits(), aux_flags(aux.flags)))
        }
        Body::ItraceStart(start) => pid_tid(start.pid, start.tid, lines),
        Body::SwitchCpuWide(switch) => {
            lines.field("next_prev_pid", switch.next_prev_pid.cast_signed());
            lines.field("next_prev_tid", switch.next_prev_tid.cast_signed())
        }
        Body::Namespaces(all) => {
            pid_tid(all.pid, all.tid, lines).field("nr_namespaces", all.nr_namespaces);
            for (place, namespace) in all.iter().enumerate() {
                let name = Namespaces::NAMES.get(place).copied().unwrap_or("unknown");
                lines.item(format_args!("{place}/{name}: dev: {}, ino: {:#x}", namespace.dev, namespace.inode));
            }
            lines
        }
        Body::KSymbol(symbol) => {
            lines.field("addr", Hex(symbol.addr)).field("len", symbol.len);
            let gone = if symbol.flags.contains(KSymbolFlags::UNREGISTER) { " UNREGISTER" } else { "" };
            lines.field("ksym_type", named(symbol.ksym_type.0, symbol.ksym_type.name()));
            lines.field("flags", format_args!("{:#x}{gone}", symbol.flags.bits()));
            lines.field("name", Escaped(symbol.name.as_bytes()))
        }
        Body::BpfEvent(bpf) => {
            lines.field("type", named(bpf.event_type.0, bpf.event_type.name()));
            lines.field("flags", Hex(bpf.flags)).field("id", bpf.id).field("tag", Value::Bytes(bpf.tag.to_vec()))
        }
        Body::Cgroup(cgroup) => lines.field("id", cgroup.id).field("path", Escaped(cgroup.path.as_bytes())),
        Body::TextPoke(poke) => {
            lines.field("addr", Hex(poke.addr)).field("old_len", poke.old_len).field("new_len", poke.new_len);
            lines.item(format_args!("old: {}", Value::Bytes(poke.old_bytes().to_vec())));
            lines.item(format_args!("new: {}", Value::Bytes(poke.new_bytes().to_vec())))
        }
        Body::AuxOutputHwId(id) => lines.field("hw_id", Hex(id.hw_id)),
        Body::CallchainDeferred(chain) => {
            lines.begin("callchain:").field("cookie", Hex(chain.cookie)).field("nr", chain.nr);
            sample::chain(chain.ips, lines)
        }
        // It has no fields: `misc` and the trailer hold everything.
        Body::Switch => lines,
        other => lines.field("not_decoded", other.kind()),
    };
}

fn pid_tid<'l, 'w>(pid: u32, tid: u32, lines: &'l mut Lines<'w>) -> &'l mut Lines<'w> {
    lines.field("pid", pid.cast_signed()).field("tid", tid.cast_signed())
}

fn mmap2<'l, 'w>(map: &Mmap2<'_>, lines: &'l mut Lines<'w>) -> &'l mut Lines<'w> {
    pid_tid(map.pid, map.tid, lines).field("addr", Hex(map.addr)).field("len", Hex(map.len));
    lines.field("pgoff", Hex(map.pgoff));
    match map.identity {
        MmapIdentity::Inode(inode) => {
            lines.field("maj", format_args!("{:02x}", inode.maj)).field("min", format_args!("{:02x}", inode.min));
            lines.field("ino", inode.ino).field("ino_generation", inode.ino_generation)
        }
        MmapIdentity::BuildId(id) => {
            let text = map.identity.build_id().as_ref().map(BuildId::to_string);
            lines.field("build_id_size", id.size).field("build_id", text.unwrap_or_default())
        }
    };
    lines.field("prot", format_args!("{:#x} {}", map.prot, access_letters(map.prot, map.flags)));
    lines.field("flags", Hex(map.flags)).field("filename", Escaped(map.filename.as_bytes()))
}

/// Returns how a mapping may be used, and whether it is shared, in the letters of `/proc/PID/maps`.
pub(crate) fn access_letters(prot: u32, flags: u32) -> String {
    let letter = |bit, letter| if prot & bit != 0 { letter } else { '-' };
    let shared = if flags & map_flags::SHARED != 0 { 's' } else { 'p' };
    [letter(prot::READ, 'r'), letter(prot::WRITE, 'w'), letter(prot::EXEC, 'x'), shared].iter().collect()
}

/// Returns the letters of the flags: truncated, overwrite, partial, collision.
fn aux_flags(flags: AuxFlags) -> String {
    let letters =
        [(AuxFlags::TRUNCATED, 'T'), (AuxFlags::OVERWRITE, 'O'), (AuxFlags::PARTIAL, 'P'), (AuxFlags::COLLISION, 'C')];
    let set: String = letters.iter().filter(|(bit, _)| flags.contains(*bit)).map(|(_, letter)| letter).collect();
    if set.is_empty() { set } else { format!(" {set}") }
}
