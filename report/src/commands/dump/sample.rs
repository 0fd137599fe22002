//! Fields of samples, and those that trailers share with them.

use recrep_format::abi::{BranchPrivilege, CallchainContext, DataSrc, RegisterName, RegsAbi, RegsArch, Weight};
use recrep_format::bytes::U64s;
use recrep_format::record::{BranchStack, ReadValues, Regs, SampleFields, SampleId};

use super::known::FileFacts;
use super::line::Lines;
use crate::commands::info::Value::Hex;

/// Prints the fields that the sample has: single values first, then those with lines of their own.
pub(super) fn print(known: &FileFacts<'_>, fields: &SampleFields<'_>, lines: &mut Lines<'_>) {
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
    lines.maybe("identifier", *identifier).maybe("ip", ip.map(Hex));
    shared_fields(&SampleId { identifier: None, ..fields.as_sample_id() }, lines);
    lines.maybe("addr", addr.map(Hex)).maybe("period", *period);
    lines.maybe("raw_size", data.map(<[u8]>::len));
    if let Some(stack) = stack_user {
        lines.field("stack_user_size", stack.bytes.len()).maybe("dyn_size", stack.dyn_size);
    }
    match weight {
        Some(Weight::Whole(weight)) => lines.field("weight", weight),
        Some(Weight::Parts(parts)) => {
            lines.field("var1_dw", parts.var1).field("var2_w", parts.var2).field("var3_w", parts.var3)
        }
        None => lines,
    };
    if let Some(src) = *data_src {
        lines.field("data_src", format_args!("{src:#x} {}", DataSrc(src)));
    }
    lines.maybe("transaction", transaction.map(Hex)).maybe("phys_addr", phys_addr.map(Hex)).maybe("cgroup", *cgroup);
    lines.maybe("data_page_size", *data_page_size).maybe("code_page_size", *code_page_size);
    lines.maybe("aux_size", aux.map(<[u8]>::len)).end();
    if let Some(read) = read {
        values(read, lines);
    }
    if let Some(chain) = callchain {
        lines.begin("callchain:").field("nr", chain.len());
        self::chain(*chain, lines);
    }
    if let Some(stack) = branch_stack {
        branches(stack, lines);
    }
    for (name, regs) in [("regs_user:", regs_user), ("regs_intr:", regs_intr)] {
        if let Some(regs) = regs {
            registers(name, regs, known.registers, lines);
        }
    }
}

/// Prints the fields that samples and trailers have in common.
pub(super) fn shared_fields(trailer: &SampleId, lines: &mut Lines<'_>) {
    let SampleId { tid: _, time, id, stream_id, cpu, identifier } = *trailer;
    lines
        .maybe("pid", trailer.pid())
        .maybe("tid", trailer.tid())
        .maybe("time", time)
        .maybe("id", id)
        .maybe("stream_id", stream_id);
    // The reserved word should be 0; it is printed only if it is not.
    let reserved = cpu.map(|[_, reserved]| reserved).filter(|reserved| *reserved != 0);
    lines.maybe("cpu", trailer.cpu()).maybe("res", reserved);
    lines.maybe("identifier", identifier);
}

/// Prints the values that were read from a counter or a group of counters.
pub(super) fn values<'l, 'w>(read: &ReadValues<'_>, lines: &'l mut Lines<'w>) -> &'l mut Lines<'w> {
    lines.begin("read:").maybe("nr", read.is_group().then(|| read.nr()));
    lines.maybe("time_enabled", read.time_enabled()).maybe("time_running", read.time_running());
    for counter in read.counters() {
        let id = counter.id.map(|id| format!(", id: {id}")).unwrap_or_default();
        let lost = counter.lost.map(|lost| format!(", lost: {lost}")).unwrap_or_default();
        lines.item(format_args!("value: {}{id}{lost}", counter.value));
    }
    lines.end()
}

/// Prints the addresses of a callchain, with the names of the context markers among them.
pub(super) fn chain<'l, 'w>(chain: U64s<'_>, lines: &'l mut Lines<'w>) -> &'l mut Lines<'w> {
    for (place, ip) in chain.iter().enumerate() {
        let name = CallchainContext::of(ip).and_then(CallchainContext::name);
        let marker = name.map(|name| format!(" PERF_CONTEXT_{name}")).unwrap_or_default();
        lines.item(format_args!("{place:>3}: {ip:016x}{marker}"));
    }
    lines.end()
}

fn branches(stack: &BranchStack<'_>, lines: &mut Lines<'_>) {
    let hw_idx = stack.hw_idx.map(u64::cast_signed);
    lines.begin("branch_stack:").field("nr", stack.entries().len()).maybe("hw_idx", hw_idx);
    let mut counters = stack.counters.map(|words| words.iter());
    for (place, branch) in stack.entries().enumerate() {
        let flags = branch.flags;
        let letters = [(flags.mispred(), 'M'), (flags.predicted(), 'P'), (flags.abort(), 'A'), (flags.in_tx(), 'T')];
        let letters: String = letters.iter().map(|(is_set, letter)| if *is_set { *letter } else { ' ' }).collect();
        let privilege = match flags.privilege() {
            BranchPrivilege::UNKNOWN => "",
            BranchPrivilege::USER => " user",
            BranchPrivilege::KERNEL => " kernel",
            BranchPrivilege::HV => " hv",
            _ => " ?",
        };
        let counter = counters.as_mut().and_then(Iterator::next).map(|word| format!(" counters {word:#x}"));
        let (from, to, cycles) = (branch.from, branch.to, flags.cycles());
        let (kind, spec, counter) = (flags.kind_name(), flags.spec_name(), counter.unwrap_or_default());
        let rest = format!("{cycles} cycles {letters} {kind} {spec}{privilege}{counter}");
        lines.item(format_args!("{place:>3}: {from:016x} -> {to:016x} {rest}"));
    }
    lines.end();
}

fn registers(name: &str, regs: &Regs<'_>, names: Option<RegsArch>, lines: &mut Lines<'_>) {
    let abi = match regs.abi {
        RegsAbi::NONE => "none".to_owned(),
        RegsAbi::ABI_32 => "32-bit".to_owned(),
        RegsAbi::ABI_64 => "64-bit".to_owned(),
        RegsAbi(other) => other.to_string(),
    };
    lines.begin(name).field("abi", abi).field("mask", Hex(regs.mask));
    for (number, value) in regs.iter() {
        lines.item(format_args!("{:<9} {value:#018x}", RegisterName::of(names, number)));
    }
    lines.end();
}
