//! Fields of samples, and those that trailers share with them.

use std::fmt;
use std::io::{self, Write};

use recrep_format::abi::{DataSrc, ReadFormat, SampleType, context, regs_abi};
use recrep_format::attr::Attr;
use recrep_format::bytes::U64s;
use recrep_format::record::{BranchStack, RawRecord, ReadValues, Regs, SampleFields, Trailer};

use super::known::FileFacts;
use super::line::{Hex, Lines};
use super::regs::RegisterNames;

/// Prints the fields that the sample has: single values first, then those with lines of their own.
pub(super) fn print<W: Write>(
    known: &FileFacts<'_>,
    raw: &RawRecord<'_>,
    fields: &SampleFields<'_>,
    lines: &mut Lines<'_, W>,
) -> io::Result<()> {
    let attrs = &known.file.attrs;
    let attr = attrs.event_of(raw).and_then(|index| attrs.get(index)).map(|entry| &entry.attr);
    // All fields are named, so that a new one does not compile until it is printed here.
    let SampleFields {
        identifier,
        ip,
        tid: _,
        time: _,
        addr,
        id: _,
        stream_id: _,
        cpu: _,
        period,
        read,
        callchain,
        raw: data,
        branch_stack,
        regs_user,
        stack_user,
        weight,
        data_src,
        transaction,
        regs_intr,
        phys_addr,
        cgroup,
        data_page_size,
        code_page_size,
        aux,
    } = fields;
    lines.maybe("identifier", *identifier)?.maybe("ip", ip.map(Hex))?;
    shared_fields(&Trailer { identifier: None, ..fields.as_trailer() }, lines)?;
    lines.maybe("addr", addr.map(Hex))?.maybe("period", *period)?;
    lines.maybe("raw_size", data.map(<[u8]>::len))?;
    if let Some(stack) = stack_user {
        lines.field("stack_user_size", stack.bytes.len())?.maybe("dyn_size", stack.dyn_size)?;
    }
    self::weight(*weight, attr, lines)?;
    lines.maybe("data_src", data_src.map(|src| Source(DataSrc(src))))?;
    lines
        .maybe("transaction", transaction.map(Hex))?
        .maybe("phys_addr", phys_addr.map(Hex))?
        .maybe("cgroup", *cgroup)?;
    lines.maybe("data_page_size", *data_page_size)?.maybe("code_page_size", *code_page_size)?;
    lines.maybe("aux_size", aux.map(<[u8]>::len))?.end()?;
    if let Some(read) = read {
        values(read, lines)?;
    }
    if let Some(chain) = callchain {
        lines.begin("callchain:")?.field("nr", chain.len())?;
        self::chain(*chain, lines)?;
    }
    if let Some(stack) = branch_stack {
        branches(stack, lines)?;
    }
    let masks = attr.map_or((0, 0), |attr| (attr.sample_regs_user, attr.sample_regs_intr));
    for (name, regs, mask) in [("regs_user:", regs_user, masks.0), ("regs_intr:", regs_intr, masks.1)] {
        if let Some(regs) = regs {
            registers(name, regs, mask, known.registers, lines)?;
        }
    }
    Ok(())
}

/// Prints the fields that samples and trailers have in common.
pub(super) fn shared_fields<W: Write>(trailer: &Trailer, lines: &mut Lines<'_, W>) -> io::Result<()> {
    let Trailer { tid, time, id, stream_id, cpu, identifier } = *trailer;
    let [pid, tid] = [0, 1].map(|part: usize| tid.and_then(|both| both.get(part).map(|word| word.cast_signed())));
    lines.maybe("pid", pid)?.maybe("tid", tid)?.maybe("time", time)?.maybe("id", id)?.maybe("stream_id", stream_id)?;
    // The reserved word should be 0; it is printed only if it is not.
    let reserved = cpu.map(|[_, reserved]| reserved).filter(|reserved| *reserved != 0);
    lines.maybe("cpu", cpu.map(|[cpu, _]| cpu.cast_signed()))?.maybe("res", reserved)?;
    lines.maybe("identifier", identifier)?;
    Ok(())
}

fn weight<W: Write>(weight: Option<u64>, attr: Option<&Attr>, lines: &mut Lines<'_, W>) -> io::Result<()> {
    let Some(weight) = weight else { return Ok(()) };
    if attr.is_some_and(|attr| attr.sample_type.contains(SampleType::WEIGHT_STRUCT)) {
        lines.field("var1_dw", weight & 0xffff_ffff)?.field("var2_w", weight >> 32 & 0xffff)?;
        lines.field("var3_w", weight >> 48)?;
    } else {
        lines.field("weight", weight)?;
    }
    Ok(())
}

/// A `data_src` that prints as a number and as text.
struct Source(DataSrc);

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x} {}", self.0.0, self.0)
    }
}

/// Prints the values that were read from a counter or a group of counters.
pub(super) fn values<W: Write>(read: &ReadValues<'_>, lines: &mut Lines<'_, W>) -> io::Result<()> {
    lines.begin("read:")?;
    if read.format.contains(ReadFormat::GROUP) {
        lines.maybe("nr", read.words.get(0))?;
    }
    // The times follow the first word, which is the number of counters or the counter's value.
    let mut place = 1;
    for (bit, name) in
        [(ReadFormat::TOTAL_TIME_ENABLED, "time_enabled"), (ReadFormat::TOTAL_TIME_RUNNING, "time_running")]
    {
        if read.format.contains(bit) {
            lines.maybe(name, read.words.get(place))?;
            place += 1;
        }
    }
    for counter in read.counters() {
        let id = counter.id.map(|id| format!(", id: {id}")).unwrap_or_default();
        let lost = counter.lost.map(|lost| format!(", lost: {lost}")).unwrap_or_default();
        lines.item(format_args!("value: {}{id}{lost}", counter.value))?;
    }
    lines.end()
}

/// Prints the addresses of a callchain, with the names of the context markers among them.
pub(super) fn chain<W: Write>(chain: U64s<'_>, lines: &mut Lines<'_, W>) -> io::Result<()> {
    for (place, ip) in chain.iter().enumerate() {
        let marker = match ip {
            context::HV => " PERF_CONTEXT_HV",
            context::KERNEL => " PERF_CONTEXT_KERNEL",
            context::USER => " PERF_CONTEXT_USER",
            context::USER_DEFERRED => " PERF_CONTEXT_USER_DEFERRED",
            context::GUEST => " PERF_CONTEXT_GUEST",
            context::GUEST_KERNEL => " PERF_CONTEXT_GUEST_KERNEL",
            context::GUEST_USER => " PERF_CONTEXT_GUEST_USER",
            _ => "",
        };
        lines.item(format_args!("{place:>3}: {ip:016x}{marker}"))?;
    }
    lines.end()
}

fn branches<W: Write>(stack: &BranchStack<'_>, lines: &mut Lines<'_, W>) -> io::Result<()> {
    let hw_idx = stack.hw_idx.map(u64::cast_signed);
    lines.begin("branch_stack:")?.field("nr", stack.entries().len())?.maybe("hw_idx", hw_idx)?;
    let mut counters = stack.counters.map(|words| words.iter());
    for (place, branch) in stack.entries().enumerate() {
        let flags = branch.flags;
        let letter = |set, letter| if set { letter } else { ' ' };
        let letters: String = [
            letter(flags.mispred(), 'M'),
            letter(flags.predicted(), 'P'),
            letter(flags.abort(), 'A'),
            letter(flags.in_tx(), 'T'),
        ]
        .iter()
        .collect();
        let privilege = ["", " user", " kernel", " hv"].get(usize::from(flags.privilege())).copied().unwrap_or(" ?");
        let counter = counters.as_mut().and_then(Iterator::next).map(|word| format!(" counters {word:#x}"));
        let (from, to, cycles) = (branch.from, branch.to, flags.cycles());
        let (kind, spec, counter) = (flags.kind_name(), flags.spec_name(), counter.unwrap_or_default());
        let rest = format!("{cycles} cycles {letters} {kind} {spec}{privilege}{counter}");
        lines.item(format_args!("{place:>3}: {from:016x} -> {to:016x} {rest}"))?;
    }
    lines.end()
}

fn registers<W: Write>(
    name: &str,
    regs: &Regs<'_>,
    mask: u64,
    names: RegisterNames,
    lines: &mut Lines<'_, W>,
) -> io::Result<()> {
    let abi = match regs.abi {
        regs_abi::NONE => "none".to_owned(),
        regs_abi::ABI_32 => "32-bit".to_owned(),
        regs_abi::ABI_64 => "64-bit".to_owned(),
        other => other.to_string(),
    };
    lines.begin(name)?.field("abi", abi)?.field("mask", Hex(mask))?;
    let numbers = (0..u64::BITS).filter(|bit| mask >> bit & 1 == 1);
    for (number, value) in numbers.zip(regs.values.iter()) {
        lines.item(format_args!("{:<9} {value:#018x}", names.name(number)))?;
    }
    lines.end()
}
