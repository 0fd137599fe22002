//! `rec --help`, Side-band records: what is recorded besides samples.

use std::time::Duration;

use clap::{ArgMatches, Args};

use crate::cli::values;
use crate::cli::words::is_negated;
use crate::plan::config::{Config, SideBand, Synth};

/// Flags of side-band records.
#[derive(Debug, Args)]
#[command(next_help_heading = "Side-band records")]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent flag")]
pub(in crate::cli) struct SideBandFlags {
    /// Record when threads leave a CPU and when they run again, without callchains (for those:
    /// --off-cpu)
    #[arg(long)]
    switch_events: bool,
    /// Record when threads run, so that reports know how many run at once: the same as
    /// --switch-events
    #[arg(long)]
    latency: bool,
    /// Record the namespaces of processes
    #[arg(long)]
    namespaces: bool,
    /// Record cgroups, and the cgroup of each sample
    #[arg(long)]
    all_cgroups: bool,
    /// Do not record loading and unloading of BPF programs
    #[arg(long)]
    no_bpf_event: bool,
    /// Synthesize records of these kinds for what already exists, comma-separated: no, all, task,
    /// mmap, cgroup
    #[arg(long, value_name = "WHAT", value_parser = kinds)]
    synth: Option<Synth>,
    /// Spend at most MS milliseconds on the mappings of each existing process [default: 500]
    #[arg(long, value_name = "MS", value_parser = values::milliseconds)]
    proc_map_timeout: Option<Duration>,
    /// Write synthesized records at the end, not the beginning
    #[arg(long)]
    tail_synthesize: bool,
}

impl SideBandFlags {
    /// Sets the side-band records; `config` has the events already.
    pub(super) fn configure(self, config: &mut Config, matches: &ArgMatches) -> Result<(), String> {
        let is_off = is_negated(matches, "switch_events");
        if is_off && config.off_cpu {
            return Err("--no-switch-events: --off-cpu needs the records of when threads run \
                        again; leave it out"
                .to_owned());
        }
        config.side_band = SideBand {
            switch: match is_off {
                true => Some(false),
                false => (self.switch_events || self.latency || config.off_cpu).then_some(true),
            },
            namespaces: self.namespaces,
            cgroups: self.all_cgroups,
            no_bpf: self.no_bpf_event,
            synth: self.synth.unwrap_or_default(),
            map_timeout: self.proc_map_timeout,
        };
        config.rings.tail_synthesize = self.tail_synthesize;
        Ok(())
    }
}

fn kinds(text: &str) -> Result<Synth, String> {
    let mut all = Synth { task: false, mmap: false, cgroup: false };
    for word in text.split(',') {
        match word.to_ascii_lowercase().as_str() {
            "no" | "none" => return Ok(Synth { task: false, mmap: false, cgroup: false }),
            "all" => return Ok(Synth::default()),
            "task" => all.task = true,
            "mmap" => (all.task, all.mmap) = (true, true),
            "cgroup" => all.cgroup = true,
            _ => return Err(format!("'{word}' is not one of no, all, task, mmap, cgroup")),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_synthesized() {
        let of = |task, mmap, cgroup| Ok(Synth { task, mmap, cgroup });
        assert_eq!(kinds("no"), of(false, false, false));
        assert_eq!(kinds("all"), of(true, true, true));
        assert_eq!(kinds("task"), of(true, false, false));
        assert_eq!(kinds("mmap,cgroup"), of(true, true, true));
        assert_eq!(kinds("cgroup"), of(false, false, true));
        assert!(kinds("tasks").is_err());
    }
}
