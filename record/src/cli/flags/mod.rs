//! The flags as clap parses them, with perf record's letters and meanings.
//!
//! Each part of `rec --help` has a file: with the definition of each flag, the parser of its value,
//! and what it sets in [`Config`]. [`super::words`] adds the negations (`--no-FLAG`).

mod events;
mod general;
mod output;
mod rings;
mod samples;
mod side_band;
mod targets;

use std::ffi::OsString;

use clap::{ArgMatches, Parser};

use super::help;
use crate::machine::Machine;
use crate::plan::config::Config;
use events::EventFlags;
use general::GeneralFlags;
use output::OutputFlags;
use rings::RingFlags;
pub(super) use rings::Sizes;
use samples::SampleFlags;
use side_band::SideBandFlags;
use targets::TargetFlags;

/// Record events of programs and the system into a perf.data file.
#[derive(Debug, Parser)]
#[command(
    name = "rec",
    version,
    args_override_self = true,
    infer_long_args = true,
    override_usage = "rec [OPTIONS] [--] COMMAND [ARGS]...\n       rec [OPTIONS] -a | -C LIST | \
                      -p PIDS | -t TIDS | -u USER [[--] COMMAND [ARGS]...]\n       rec list",
    help_template = help::TEMPLATE,
    after_help = help::AFTER
)]
pub(super) struct Flags {
    #[command(flatten)]
    pub(super) events: EventFlags,
    #[command(flatten)]
    pub(super) samples: SampleFlags,
    #[command(flatten)]
    side_band: SideBandFlags,
    #[command(flatten)]
    pub(super) targets: TargetFlags,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    pub(super) rings: RingFlags,
    #[command(flatten)]
    pub(super) general: GeneralFlags,
    /// Command to run and record, with its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND", help_heading = None::<&str>)]
    pub(super) command: Vec<OsString>,
}

impl Flags {
    /// Returns the configuration of the recording; `lists` are events in place of those of `-e`.
    pub(super) fn config(
        self,
        matches: &ArgMatches,
        lists: Option<Vec<String>>,
        machine: &Machine,
        cmdline: Vec<String>,
    ) -> Result<Config, String> {
        let mut config = Config { command: self.command, cmdline, ..Config::default() };
        self.events.configure(&mut config, matches, lists, machine)?;
        self.samples.configure(&mut config, matches, machine)?;
        self.side_band.configure(&mut config, matches)?;
        self.targets.configure(&mut config, matches)?;
        self.output.configure(&mut config, matches)?;
        self.rings.configure(&mut config);
        self.general.configure(&mut config, machine);
        Ok(config)
    }
}

/// Flags of perf record that rec lacks, with the reason and an alternative.
pub(super) const PERFS_OWN: &[(&str, &str)] = &[
    (
        "--kcore",
        "rep needs no copy of the kernel's memory; keep the vmlinux of that build ID for reports \
         elsewhere",
    ),
    (
        "--vmlinux",
        "it serves symbols in address filters of AUX events; use addresses (filter 0xADDR/0xLEN)",
    ),
    (
        "--pfm-events",
        "rec does not use libpfm; use the PMU's name of the event (see rec list) or its raw code \
         (rNNN)",
    ),
    (
        "--debuginfod",
        "rec fetches nothing from the network; give --debuginfod to rep, which resolves symbols",
    ),
    (
        "--setup-filter",
        "it pins perf's BPF filter programs; rec filters in the kernel with --filter on \
         tracepoints",
    ),
    (
        "--off-cpu-thresh",
        "rec records each switch with its own time, short or long; rep --off-cpu adds them up",
    ),
    (
        "--aio",
        "rec always writes in a thread of its own; --queue-size says how much may wait for it, \
         --threads spreads the work",
    ),
    (
        "--switch-output-event",
        "rec starts a new file at a signal, a size or an interval only; use --switch-output",
    ),
    (
        "--num-thread-synthesize",
        "rec reads /proc in one thread, in a fraction of perf's time; leave the flag out",
    ),
];
