//! `rec --help`, Samples: what each sample has.

use clap::{ArgMatches, Args};
use recrep_format::abi::BranchSampleType;

use crate::cli::values;
use crate::cli::words::{is_negated, refuse_negated};
use crate::event::sampling::{self, Callchain};
use crate::machine::Machine;
use crate::machine::registers::Of;
use crate::plan::config::{Config, Sample};

/// Flags that are always on, with the message for an attempt to turn them off.
const ALWAYS: [(&str, &str); 3] = [
    (
        "timestamp",
        "--no-timestamp: samples of rec always have their time; without it records cannot be \
         sorted",
    ),
    ("sample_cpu", "--no-sample-cpu: samples of rec always have their CPU"),
    (
        "sample_identifier",
        "--no-sample-identifier: samples of rec always have their counter's identifier",
    ),
];

/// Flags of samples.
#[derive(Debug, Args)]
#[command(next_help_heading = "Samples")]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent flag")]
pub(in crate::cli) struct SampleFlags {
    /// Record callchains: unwound by rec while it records, where the rate is known (-F), else by frame
    /// pointers
    #[arg(short = 'g')]
    pub(in crate::cli) graph: bool,
    /// Record callchains, using MODE: unwind[,STACK_BYTES] (as -g), fp (frame pointers), dwarf[,STACK_BYTES]
    /// (stacks stay in the file) or lbr
    #[arg(long, value_name = "MODE", value_parser = chain_mode)]
    pub(in crate::cli) call_graph: Option<ChainMode>,
    /// Limit callchains to N frames
    #[arg(long, value_name = "N", value_parser = frames)]
    max_stack: Option<u16>,
    /// Record only the kernel part of callchains
    #[arg(long, conflicts_with = "user_callchains")]
    kernel_callchains: bool,
    /// Record only the user part of callchains
    #[arg(long)]
    user_callchains: bool,
    /// Record branch stacks with branches of any type
    #[arg(short = 'b', long, conflicts_with = "branch_filter")]
    branch_any: bool,
    /// Record branch stacks with these branches: any, any_call, any_ret, ind_call, cond, u, k,
    /// save_type, ...
    #[arg(short = 'j', long, value_name = "FILTERS", value_parser = sampling::parse_branches)]
    branch_filter: Option<BranchSampleType>,
    /// Record the data address of each sample
    #[arg(short, long)]
    pub(in crate::cli) data: bool,
    /// Record where the data of each sample came from, without its address
    #[arg(long)]
    sample_mem_info: bool,
    /// Record the physical data address of each sample
    #[arg(long)]
    pub(in crate::cli) phys_data: bool,
    /// Record the page size of each data address
    #[arg(long)]
    data_page_size: bool,
    /// Record the page size of each code address
    #[arg(long)]
    code_page_size: bool,
    /// Record weights (such as latencies) of events that provide them
    #[arg(short = 'W', long)]
    pub(in crate::cli) weight: bool,
    /// Record transaction flags of events that provide them
    #[arg(long)]
    transaction: bool,
    /// Record registers at the sampling interrupt; '-I?' lists their names
    #[arg(
        short = 'I', long, value_name = "REGS", num_args = 0..=1, require_equals = true,
        default_missing_value = ""
    )]
    intr_regs: Option<String>,
    /// Record user-space registers; '--user-regs=?' lists their names
    #[arg(
        long, value_name = "REGS", num_args = 0..=1, require_equals = true,
        default_missing_value = ""
    )]
    user_regs: Option<String>,
    /// Record raw data (PERF_SAMPLE_RAW) for all events
    #[arg(short = 'R', long)]
    raw_samples: bool,
    /// Record each sample's period, even if constant
    #[arg(short = 'P', long)]
    period: bool,
    /// Record the time of each sample (always on)
    #[arg(short = 'T', long)]
    timestamp: bool,
    /// Record the CPU of each sample (always on)
    #[arg(long)]
    sample_cpu: bool,
    /// Record the counter's identifier in each sample (always on)
    #[arg(long)]
    sample_identifier: bool,
    /// Count events without taking samples
    #[arg(short, long)]
    no_samples: bool,
    /// Record event counts per thread
    #[arg(short, long)]
    stat: bool,
    /// With group reads (:S), record how long counters were enabled and running
    #[arg(long)]
    running_time: bool,
    /// Timestamp with CLOCK: mono, raw, real, boot, tai, or a clock number
    #[arg(short = 'k', long, value_name = "CLOCK", value_parser = clock)]
    clockid: Option<i32>,
}

/// Value of `--call-graph`.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct ChainMode {
    pub(in crate::cli) callchain: Callchain,
    /// Maximum depth, as of `--max-stack`.
    depth: Option<u16>,
}

impl SampleFlags {
    /// Sets the contents of samples; `config` has the events already.
    pub(super) fn configure(
        self,
        config: &mut Config,
        matches: &ArgMatches,
        machine: &Machine,
    ) -> Result<(), String> {
        refuse_negated(matches, &ALWAYS)?;
        let is_asked = self.graph || self.call_graph.is_some();
        let is_implied = config.off_cpu && !is_negated(matches, "call_graph");
        let callchain = match self.call_graph {
            Some(mode) => mode.callchain,
            // The samples of switches are too many to copy a stack with each.
            None if config.off_cpu && !self.graph => Callchain::Fp,
            None => Callchain::Best,
        };
        let any_branch = self.branch_any.then_some(BranchSampleType::ANY);
        config.sample = Sample {
            callchain: (is_asked || is_implied).then_some(callchain),
            callchain_only: values::restriction(self.kernel_callchains, self.user_callchains),
            max_stack: self.call_graph.and_then(|mode| mode.depth).or(self.max_stack),
            branches: self.branch_filter.or(any_branch),
            data: self.data,
            memory_info: self.sample_mem_info,
            phys_data: self.phys_data,
            data_page_size: self.data_page_size,
            code_page_size: self.code_page_size,
            weight: self.weight,
            transaction: self.transaction,
            regs_intr: registers(self.intr_regs.as_deref(), Of::Interrupt, machine)
                .map_err(|why| format!("-I: {why}"))?,
            regs_user: registers(self.user_regs.as_deref(), Of::User, machine)
                .map_err(|why| format!("--user-regs: {why}"))?,
            raw: self.raw_samples,
            period: match is_negated(matches, "period") {
                true => Some(false),
                false => self.period.then_some(true),
            },
            none: self.no_samples,
            stat: self.stat,
            running_time: self.running_time,
        };
        config.clock = self.clockid;
        Ok(())
    }
}

fn chain_mode(text: &str) -> Result<ChainMode, String> {
    let (callchain, depth) = Callchain::parse(text)?;
    Ok(ChainMode { callchain, depth })
}

fn frames(text: &str) -> Result<u16, String> {
    values::number_in(text, 1..=u16::MAX)
        .ok_or_else(|| format!("'{text}' is not a number of frames"))
}

/// Parses a clock number (clock_gettime(2)), or a clock name with or without `CLOCK_`.
fn clock(text: &str) -> Result<i32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let upper = text.to_ascii_uppercase();
    match upper.strip_prefix("CLOCK_").unwrap_or(&upper) {
        "REALTIME" | "REAL" => Ok(0),
        "MONOTONIC" | "MONO" => Ok(1),
        "MONOTONIC_RAW" | "RAW" => Ok(4),
        "BOOTTIME" | "BOOT" => Ok(7),
        "TAI" => Ok(11),
        _ => Err(format!(
            "unknown clock '{text}'; use mono, raw, real, boot, tai, or a clock number"
        )),
    }
}

/// Returns the mask of the registers of a list, whose names depend on the machine; an empty list is
/// all of them.
fn registers(list: Option<&str>, of: Of, machine: &Machine) -> Result<Option<u64>, String> {
    match list {
        None => Ok(None),
        Some("") => machine.arch.parse_all(of, machine.sve).map(Some),
        Some(list) => machine.arch.parse(list, of, machine.sve).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks() {
        for (text, number) in [
            ("mono", 1),
            ("CLOCK_MONOTONIC_RAW", 4),
            ("raw", 4),
            ("real", 0),
            ("boot", 7),
            ("tai", 11),
            ("3", 3),
        ] {
            assert_eq!(clock(text), Ok(number), "{text}");
        }
        assert!(clock("wall").is_err());
    }

    #[test]
    fn depths() {
        assert!(frames("0").is_err() && frames("127").is_ok());
    }
}
