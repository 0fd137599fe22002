//! Fields of samples, and those that trailers share with them.

use recrep_format::abi::{BranchPrivilege, CallchainContext, DataSrc, RegisterName, RegsAbi};
use recrep_format::bytes::U64s;
use recrep_format::fields::{Fields as _, Value};
use recrep_format::record::{BranchStack, ReadValues, Regs, SampleFields, SampleId};

use super::record::RecordLines;

impl RecordLines<'_> {
    /// Prints the fields that the sample has: single values first, then those with lines of their
    /// own.
    pub(super) fn sample(&mut self, fields: &SampleFields<'_>) {
        self.maybe("identifier", fields.identifier).hex("ip", fields.ip);
        self.shared_fields(&SampleId { identifier: None, ..fields.as_sample_id() });
        fields.each(&mut |name, value| match (name, &value) {
            ("identifier" | "ip" | "tid" | "time" | "id" | "stream_id" | "cpu", _)
            | ("regs_user" | "regs_intr", _) => {}
            ("data_src", Value::Hex(src)) => {
                self.field(name, format_args!("{src:#x} {}", DataSrc(*src)));
            }
            _ => _ = self.value(name, &value),
        });
        self.end();
        if let Some(read) = &fields.read {
            self.values(read);
        }
        if let Some(chain) = fields.callchain {
            self.begin("callchain:").field("nr", chain.len()).chain(chain);
        }
        if let Some(stack) = &fields.branch_stack {
            self.branches(stack);
        }
        for (name, regs) in [("regs_user:", &fields.regs_user), ("regs_intr:", &fields.regs_intr)] {
            if let Some(regs) = regs {
                self.registers(name, regs);
            }
        }
    }

    /// Prints the fields that samples and trailers have in common.
    pub(super) fn shared_fields(&mut self, trailer: &SampleId) -> &mut Self {
        let SampleId { tid: _, time, id, stream_id, cpu, identifier } = *trailer;
        self.maybe("pid", trailer.pid()).maybe("tid", trailer.tid()).maybe("time", time);
        self.maybe("id", id).maybe("stream_id", stream_id);
        // The reserved word should be 0; it is printed only if it is not.
        let reserved = cpu.map(|[_, reserved]| reserved).filter(|reserved| *reserved != 0);
        self.maybe("cpu", trailer.cpu()).maybe("res", reserved).maybe("identifier", identifier)
    }

    /// Prints the values that were read from a counter or a group of counters.
    pub(super) fn values(&mut self, read: &ReadValues<'_>) -> &mut Self {
        self.begin("read:").maybe("nr", read.is_group().then(|| read.nr()));
        self.maybe("time_enabled", read.time_enabled()).maybe("time_running", read.time_running());
        for counter in read.counters() {
            let id = counter.id.map(|id| format!(", id: {id}")).unwrap_or_default();
            let lost = counter.lost.map(|lost| format!(", lost: {lost}")).unwrap_or_default();
            self.item(format_args!("value: {}{id}{lost}", counter.value));
        }
        self.end()
    }

    /// Prints the addresses of a callchain, with the names of the context markers among them.
    pub(super) fn chain(&mut self, chain: U64s<'_>) -> &mut Self {
        for (place, ip) in chain.iter().enumerate() {
            let name = CallchainContext::of(ip).and_then(CallchainContext::name);
            let marker = name.map(|name| format!(" PERF_CONTEXT_{name}")).unwrap_or_default();
            self.item(format_args!("{place:>3}: {ip:016x}{marker}"));
        }
        self.end()
    }

    fn branches(&mut self, stack: &BranchStack<'_>) {
        let hw_idx = stack.hw_idx.map(u64::cast_signed);
        self.begin("branch_stack:").field("nr", stack.entries().len()).maybe("hw_idx", hw_idx);
        let mut counters = stack.counters.map(|words| words.iter());
        for (place, branch) in stack.entries().enumerate() {
            let flags = branch.flags;
            let letters = [
                (flags.mispred(), 'M'),
                (flags.predicted(), 'P'),
                (flags.abort(), 'A'),
                (flags.in_tx(), 'T'),
            ];
            let letters: String = letters
                .iter()
                .map(|(is_set, letter)| if *is_set { *letter } else { ' ' })
                .collect();
            let privilege = match flags.privilege() {
                BranchPrivilege::UNKNOWN => "",
                BranchPrivilege::USER => " user",
                BranchPrivilege::KERNEL => " kernel",
                BranchPrivilege::HV => " hv",
                _ => " ?",
            };
            let counter = counters
                .as_mut()
                .and_then(Iterator::next)
                .map(|word| format!(" counters {word:#x}"));
            let (from, to, cycles) = (branch.from, branch.to, flags.cycles());
            let (kind, spec, counter) =
                (flags.kind_name(), flags.spec_name(), counter.unwrap_or_default());
            let rest = format!("{cycles} cycles {letters} {kind} {spec}{privilege}{counter}");
            self.item(format_args!("{place:>3}: {from:016x} -> {to:016x} {rest}"));
        }
        self.end();
    }

    fn registers(&mut self, name: &str, regs: &Regs<'_>) {
        let abi = match regs.abi {
            RegsAbi::NONE => "none".to_owned(),
            RegsAbi::ABI_32 => "32-bit".to_owned(),
            RegsAbi::ABI_64 => "64-bit".to_owned(),
            RegsAbi(other) => other.to_string(),
        };
        self.begin(name).field("abi", abi).hex("mask", regs.mask);
        for (number, value) in regs.iter() {
            self.item(format_args!(
                "{:<9} {value:#018x}",
                RegisterName::of(self.known.registers, number)
            ));
        }
        self.end();
    }
}
