//! Fields of samples, and those that trailers share with them.

use recrep_format::abi::{
    BranchPrivilege, CallchainContext, DataSrc, RegisterName, RegsAbi, Weight,
};
use recrep_format::bytes::U64s;
use recrep_format::record::{BranchStack, ReadValues, Regs, SampleFields, SampleId};

use super::record::Lines;

impl Lines<'_> {
    /// Prints the fields that the sample has: single values first, then those with lines of their
    /// own.
    pub(super) fn sample(&mut self, fields: &SampleFields<'_>) {
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
        self.maybe("identifier", *identifier).hex("ip", *ip);
        self.shared_fields(&SampleId { identifier: None, ..fields.as_sample_id() });
        self.hex("addr", *addr).maybe("period", *period);
        self.maybe("raw_size", data.map(<[u8]>::len));
        if let Some(stack) = stack_user {
            self.field("stack_user_size", stack.bytes.len()).maybe("dyn_size", stack.dyn_size);
        }
        match weight {
            Some(Weight::Whole(weight)) => self.field("weight", weight),
            Some(Weight::Parts(parts)) => self
                .field("var1_dw", parts.var1)
                .field("var2_w", parts.var2)
                .field("var3_w", parts.var3),
            None => self,
        };
        if let Some(src) = *data_src {
            self.field("data_src", format_args!("{src:#x} {}", DataSrc(src)));
        }
        self.hex("transaction", *transaction).hex("phys_addr", *phys_addr).maybe("cgroup", *cgroup);
        self.maybe("data_page_size", *data_page_size).maybe("code_page_size", *code_page_size);
        self.maybe("aux_size", aux.map(<[u8]>::len)).end();
        if let Some(read) = read {
            self.values(read);
        }
        if let Some(chain) = callchain {
            self.begin("callchain:").field("nr", chain.len()).chain(*chain);
        }
        if let Some(stack) = branch_stack {
            self.branches(stack);
        }
        for (name, regs) in [("regs_user:", regs_user), ("regs_intr:", regs_intr)] {
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
