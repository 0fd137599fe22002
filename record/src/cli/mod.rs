//! The command line: the options of perf record, under the same names, read by clap into a
//! `Config`.
//!
//! ```text
//!  words as typed ── words ──▶ words for clap ── flags ──▶ Flags ── here, values, selection ──▶ Config
//! ```
//!
//! `rec mem`, `rec c2c` and `rec trace` (`tools`) are the same with a few flags more or less, and
//! choose the events.
//!
//! A flag of perf record that rec lacks is refused by name, with an alternative; nothing is
//! accepted and ignored. `record/docs/options.md` lists all flags.

mod flags;
mod help;
pub mod list;
pub mod manual;
mod refusal;
mod selection;
pub mod stat;
mod target;
mod tools;
mod values;
mod words;

use std::ffi::OsString;
use std::io::Write as _;

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};

use crate::event::EventSpec;
use crate::event::sampling::{self, Callchain, Rate};
use crate::machine::Machine;
use crate::machine::registers::Of;
use crate::messages::error::Error;
use crate::messages::{Messages, Verbosity};
use crate::plan::config::{
    Affinity, Aux, BuildIds, Config, Delay, Only, OutputOptions, RingSize, Rings, Sample, SideBand,
    Synth, Threads,
};
use crate::tasks::{self, Target};
use flags::Flags;
use tools::{Chosen, Tool};
use words::is_negated;

/// A command line that is no recording: a mistake, or a request for help, the version or a list.
#[derive(Debug)]
pub enum Refusal {
    /// A mistake, or a request for help or the version.
    Usage(clap::Error),
    /// A list that was asked for, or the short help.
    List(String),
    /// A machine that cannot do what is asked for.
    Failed(Error),
}

impl Refusal {
    /// Prints the error to standard error, or the help to standard output, and returns the exit
    /// status.
    pub fn print(&self) -> u8 {
        // If the output cannot be written, there is no place left to report that.
        let _ = match self {
            Self::Usage(error) if error.use_stderr() => {
                Messages::stderr(Verbosity::Normal).error(refusal::sentence(error));
                Ok(())
            }
            Self::Usage(error) => error.print(),
            Self::List(list) => std::io::stdout().lock().write_all(list.as_bytes()),
            Self::Failed(error) => {
                Messages::stderr(Verbosity::Normal).error(error);
                Ok(())
            }
        };
        self.exit_status()
    }

    fn exit_status(&self) -> u8 {
        match self {
            Self::Usage(error) => u8::try_from(error.exit_code()).unwrap_or(2),
            Self::List(_) => 0,
            Self::Failed(error) => error.exit_status(),
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usage(error) if error.use_stderr() => f.write_str(&refusal::sentence(error)),
            Self::Usage(error) => error.fmt(f),
            Self::List(list) => list.fmt(f),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

/// Parses the command line, which begins with the program's name.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Config, Refusal> {
    let mut args: Vec<OsString> = args.into_iter().collect();
    let cmdline = args.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    let tool = Tool::of(&args);
    if tool.is_some() {
        args.remove(1);
    }
    // After a `--`, and after commands, which have rules of their own, any word is the command.
    let may_be_of_others = tool.is_none() && !args.iter().any(|word| word == "--");
    let mut command = words::with_negations(tool.map_or_else(Flags::command, Tool::command));
    let (args, subcommand) =
        words::separated(args, &command, tool.map_or(&[], |_| &["record", "report"]));
    if let (Some(tool), Some("report")) = (tool, subcommand) {
        return Err(Refusal::Usage(
            command.error(ErrorKind::InvalidSubcommand, tool.has_no_reports()),
        ));
    }
    let before_command =
        args.iter().skip(1).take_while(|word| word.as_encoded_bytes().starts_with(b"-"));
    let is_whole = before_command.clone().any(|word| word.as_encoded_bytes().starts_with(b"--h"));
    let matches = command.try_get_matches_from_mut(args).map_err(|error| {
        if error.kind() == ErrorKind::DisplayHelp && tool.is_none() && !is_whole {
            return Refusal::List(help::SHORT.to_owned());
        }
        let error = words::name_perfs_own(error, &mut command);
        Refusal::Usage(refusal::name_nearest(error, &mut command))
    })?;
    let mut flags = Flags::from_arg_matches(&matches).map_err(Refusal::Usage)?;
    let mut wrong = |e: Error| match e {
        Error::Usage(why) => Refusal::Usage(command.error(ErrorKind::ValueValidation, why)),
        other => Refusal::Failed(other),
    };
    let first = flags.command.first().filter(|_| may_be_of_others);
    if let Some(advice) = refusal::command_of_others(first.map(OsString::as_os_str)) {
        return Err(wrong(Error::Usage(advice)));
    }
    let machine = match &flags.machine {
        Some(path) => Machine::given(path),
        None if flags.event_tables.is_some() => Machine::read().map(Machine::with_cpuid),
        None => Machine::read(),
    };
    let machine = machine.map_err(&mut wrong)?;
    let mut chosen = None;
    if let Some(tool) = tool {
        if let Some(list) = tool.listing(&flags, &machine).map_err(&mut wrong)? {
            return Err(Refusal::List(list));
        }
        chosen = Some(tool.choose(&mut flags, &matches, &machine).map_err(&mut wrong)?);
    }
    config(flags, &matches, chosen, &machine, cmdline).map_err(|why| wrong(Error::Usage(why)))
}

fn config(
    flags: Flags,
    matches: &ArgMatches,
    chosen: Option<Chosen>,
    machine: &Machine,
    cmdline: Vec<String>,
) -> Result<Config, String> {
    for (id, why) in words::ALWAYS {
        if is_negated(matches, id) {
            return Err((*why).to_owned());
        }
    }
    let notes = chosen.as_ref().map(|chosen| chosen.notes.clone()).unwrap_or_default();
    let view = chosen.as_ref().map_or("", |chosen| chosen.view);
    let (events, cgroups) = selection::read(
        matches,
        chosen.map(|chosen| chosen.lists),
        flags.event_tables.as_deref(),
        machine,
    )?;
    let target = flags.target_words().target()?;
    let sample = sample(&flags, matches, machine)?;
    let mut output = output(&flags)?;
    if copies_stacks(&sample, &events) && !is_negated(matches, "compression_level") {
        output.compression.get_or_insert(STACKS_LEVEL);
    }
    if target == Target::Command && flags.command.is_empty() {
        return Err(
            "nothing to record: give a COMMAND, -C, -p, -t or -u; or -a to record everything on \
             all CPUs until rec is stopped, as perf record does by default"
                .to_owned(),
        );
    }
    if target != Target::System && cgroups.iter().any(Option::is_some) {
        return Err("-G: cgroups can be counted only on whole CPUs; add -a or -C".to_owned());
    }
    Ok(Config {
        events,
        cgroups,
        rate: rate(&flags)?,
        strict_freq: flags.strict_freq,
        sample,
        side_band: SideBand {
            switch: switch(&flags, matches)?,
            namespaces: flags.namespaces,
            cgroups: flags.all_cgroups,
            no_bpf: flags.no_bpf_event,
            synth: flags.synth.as_deref().map_or(Ok(Synth::default()), values::synth)?,
            map_timeout: given(&flags.proc_map_timeout, values::map_timeout)?,
        },
        off_cpu: flags.off_cpu,
        only: one_of(flags.all_kernel, flags.all_user),
        cpus: given(&flags.cpu, tasks::parse_cpus).map_err(|e| format!("-C: {e}"))?,
        per_thread: flags.per_thread,
        // -t means exactly these threads, without their children, unless --inherit is given.
        no_inherit: flags.no_inherit || (flags.tid.is_some() && !is_negated(matches, "no_inherit")),
        delay: flags.delay.as_deref().map_or(Ok(Delay::None), values::delay)?,
        control: given(&flags.control, values::control)?,
        rings: rings(&flags)?,
        aux: Aux {
            snapshot: given(&flags.snapshot, values::snapshot)?,
            sample: given(&flags.aux_sample, values::aux_sample)?,
        },
        output,
        build_ids: build_ids(matches, &flags),
        keep: match &flags.keep_size {
            _ if flags.no_keep => None,
            Some(size) => Some(values::size("--keep-size", size)?),
            None => Some(KEPT),
        },
        clock: given(&flags.clockid, values::clock)?,
        dry_run: flags.dry_run,
        json: flags.json,
        machine: flags.machine.is_some().then(|| machine.clone()),
        notes,
        view,
        verbosity: match (flags.quiet, flags.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, _) => Verbosity::Verbose,
        },
        target,
        command: flags.command,
        cmdline,
    })
}

/// Parses the value of a flag, if it was given.
fn given<T>(
    value: &Option<String>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    value.as_deref().map(parse).transpose()
}

fn rate(flags: &Flags) -> Result<Rate, String> {
    match (flags.freq.as_deref(), flags.count.as_deref()) {
        (Some(text), _) => values::hertz(text),
        (None, Some(text)) => values::period(text),
        (None, None) => Ok(Rate::Default),
    }
}

fn one_of(kernel: bool, user: bool) -> Option<Only> {
    match (kernel, user) {
        (true, _) => Some(Only::Kernel),
        (false, true) => Some(Only::User),
        (false, false) => None,
    }
}

fn sample(flags: &Flags, matches: &ArgMatches, machine: &Machine) -> Result<Sample, String> {
    let (callchain, depth) = match flags.call_graph.as_deref() {
        Some(mode) => Callchain::parse(mode).map_err(|e| format!("--call-graph: {e}"))?,
        // The samples of switches are too many to copy a stack with each.
        None if flags.off_cpu && !flags.graph => (Callchain::Fp, None),
        None => (Callchain::Best, None),
    };
    let implied = flags.off_cpu && !is_negated(matches, "call_graph");
    let with_callchain = flags.graph || flags.call_graph.is_some() || implied;
    let max_stack = given(&flags.max_stack, values::max_stack)?;
    let branches = flags.branch_filter.as_deref().map(sampling::parse_branches).transpose();
    Ok(Sample {
        callchain: with_callchain.then_some(callchain),
        callchain_only: one_of(flags.kernel_callchains, flags.user_callchains),
        max_stack: depth.or(max_stack),
        branches: match branches.map_err(|e| format!("-j: {e}"))? {
            None => flags.branch_any.then_some(recrep_format::abi::BranchSampleType::ANY),
            filters => filters,
        },
        data: flags.data,
        phys_data: flags.phys_data,
        data_page_size: flags.data_page_size,
        code_page_size: flags.code_page_size,
        weight: flags.weight,
        transaction: flags.transaction,
        regs_intr: registers(&flags.intr_regs, Of::Interrupt, machine)
            .map_err(|e| format!("-I: {e}"))?,
        regs_user: registers(&flags.user_regs, Of::User, machine)
            .map_err(|e| format!("--user-regs: {e}"))?,
        raw: flags.raw_samples,
        period: if is_negated(matches, "period") {
            Some(false)
        } else {
            flags.period.then_some(true)
        },
        none: flags.no_samples,
        stat: flags.stat,
        running_time: flags.running_time,
    })
}

/// Level of compression of copied stacks, unless another was asked for: they repeat, so that the
/// file is 11 to 150 times smaller, for less than writing them costs.
const STACKS_LEVEL: i32 = 1;

/// Returns whether copies of stacks are to be in the file.
fn copies_stacks(sample: &Sample, events: &[EventSpec]) -> bool {
    let own = events.iter().filter_map(|spec| spec.terms.callchain.flatten());
    sample.callchain.into_iter().chain(own).any(|chain| matches!(chain, Callchain::Dwarf { .. }))
}

fn registers(list: &Option<String>, of: Of, machine: &Machine) -> Result<Option<u64>, String> {
    given(list, |list| match list {
        "" => machine.arch.parse_all(of, machine.sve),
        _ => machine.arch.parse(list, of, machine.sve),
    })
}

fn switch(flags: &Flags, matches: &ArgMatches) -> Result<Option<bool>, String> {
    match (is_negated(matches, "switch_events"), flags.off_cpu) {
        (true, true) => {
            Err("--no-switch-events: --off-cpu needs the records of when threads run again; leave \
                 it out"
                .to_owned())
        }
        (true, false) => Ok(Some(false)),
        (false, off_cpu) => Ok((flags.switch_events || off_cpu).then_some(true)),
    }
}

fn rings(flags: &Flags) -> Result<Rings, String> {
    let (data, aux) = flags.mmap_pages.as_deref().map_or(Ok((None, None)), values::rings)?;
    let affinity = match flags.affinity.as_deref() {
        None | Some("sys") => Affinity::System,
        Some("node") => Affinity::Node,
        Some("cpu") => Affinity::Cpu,
        Some(other) => return Err(format!("--affinity: '{other}' is neither node nor cpu")),
    };
    Ok(Rings {
        data,
        aux,
        overwrite: flags.overwrite,
        // Overwritten rings end with the newest records, so tasks and mappings are described as of
        // then.
        tail_synthesize: flags.tail_synthesize || flags.overwrite,
        flush: given(&flags.mmap_flush, values::flush)?,
        no_buffering: flags.no_buffering,
        nice: given(&flags.nice, values::niceness)?,
        realtime: given(&flags.realtime, values::priority)?,
        threads: Threads { split: given(&flags.threads, values::threads)?, affinity },
    })
}

fn output(flags: &Flags) -> Result<OutputOptions, String> {
    let output = OutputOptions {
        path: flags.output.clone(),
        compression: given(&flags.compression_level, values::compression)?,
        max_size: given(&flags.max_size, |text| values::size("--max-size", text))?,
        switch: given(&flags.switch_output, values::switch)?,
        max_samples: given(&flags.max_samples, values::max_samples)?,
        max_files: given(&flags.switch_max_files, values::max_files)?,
        timestamp_name: flags.timestamp_filename,
        html: flags.html.clone(),
        queue: given(&flags.queue_size, |text| values::size("--queue-size", text))?,
    };
    if output.is_stdout() && (output.switch.is_some() || output.timestamp_name) {
        let flag = if output.switch.is_some() { "--switch-output" } else { "--timestamp-filename" };
        return Err(format!(
            "-o -: standard output has no name that {flag} could change; name a file with -o"
        ));
    }
    if output.is_stdout() && output.html.is_some() {
        return Err("--html needs the recording in a file: name one with -o".to_owned());
    }
    if output.max_files.is_some() && output.switch.is_none() {
        return Err(
            "--switch-max-files: there is only one file to keep; add --switch-output".to_owned()
        );
    }
    Ok(output)
}

/// Default of `--keep-size`.
const KEPT: u64 = 1 << 30;

fn build_ids(matches: &ArgMatches, flags: &Flags) -> BuildIds {
    match (flags.buildid_mmap, flags.no_buildid) {
        (true, _) => BuildIds::InMmap,
        (false, true) => BuildIds::None,
        (false, false) if is_negated(matches, "buildid_mmap") => BuildIds::Table,
        (false, false) => BuildIds::InMmap,
    }
}

/// Conversion to pages, which needs the machine's page size.
impl RingSize {
    /// Returns the number of pages of `page` bytes, rounded up.
    pub fn pages(self, page: u64) -> u64 {
        match self {
            Self::Pages(pages) => pages,
            Self::Bytes(bytes) => bytes.div_ceil(page),
        }
    }
}

#[cfg(test)]
mod tests;
