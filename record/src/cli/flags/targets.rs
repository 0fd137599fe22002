//! `rec --help`, Targets: what is recorded, and when.

use std::path::PathBuf;

use clap::{ArgMatches, Args};

use crate::cli::values::{self, CpuList};
use crate::cli::words::is_negated;
use crate::plan::config::{Config, Control, Delay};
use crate::tasks::{self, Target};

/// Flags of targets.
#[derive(Debug, Args)]
#[command(next_help_heading = "Targets")]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent flag")]
pub(in crate::cli) struct TargetFlags {
    /// Record all processes on all CPUs
    #[arg(short, long, conflicts_with_all = ["pid", "tid", "uid"])]
    all_cpus: bool,
    /// Record on these CPUs only, such as 0-3,8; without -p, -t or -u, all processes on them
    #[arg(short = 'C', long, value_name = "LIST", value_parser = tasks::parse_cpus)]
    pub(in crate::cli) cpu: Option<CpuList>,
    /// Record existing processes, given by process IDs
    #[arg(
        short, long, value_name = "PIDS", conflicts_with_all = ["tid", "uid"],
        value_parser = values::processes
    )]
    pid: Option<Target>,
    /// Record existing threads, given by thread IDs
    #[arg(short, long, value_name = "TIDS", conflicts_with = "uid", value_parser = values::threads)]
    tid: Option<Target>,
    /// Record all processes of a user, given by name or ID
    #[arg(short, long, value_name = "USER", value_parser = values::user)]
    uid: Option<Target>,
    /// Open one counter and ring per thread, not per CPU
    #[arg(long, conflicts_with_all = ["all_cpus", "cpu"])]
    per_thread: bool,
    /// Do not record new child processes and threads
    #[arg(short = 'i', long)]
    no_inherit: bool,
    /// Start after MS milliseconds, or stopped if -1 (see --control); or record from FROM to TO
    /// milliseconds only, ...
    #[arg(
        short = 'D', long, value_name = "MS", allow_hyphen_values = true,
        value_parser = values::delay
    )]
    delay: Option<Delay>,
    /// Read commands (enable, disable, snapshot, stop, ...) from fd:CTL[,ACK] or fifo:CTL[,ACK];
    /// ACK gets the answers
    #[arg(long, value_name = "WHERE", value_parser = control)]
    control: Option<Control>,
}

impl TargetFlags {
    /// Sets the target; `config` has the command and the cgroups already.
    pub(super) fn configure(self, config: &mut Config, matches: &ArgMatches) -> Result<(), String> {
        // -t means exactly these threads, without their children, unless --inherit is given.
        let is_threads_alone = self.tid.is_some() && !is_negated(matches, "no_inherit");
        config.no_inherit = self.no_inherit || is_threads_alone;
        let is_on_cpus = self.all_cpus || self.cpu.is_some();
        let attached = self.pid.or(self.tid).or(self.uid);
        config.target = attached.unwrap_or_else(|| values::target_without_tasks(is_on_cpus));
        if config.target == Target::Command && config.command.is_empty() {
            return Err("nothing to record: give a COMMAND, -C, -p, -t or -u; or -a to record \
                        everything on all CPUs until rec is stopped, as perf record does by default"
                .to_owned());
        }
        if config.target != Target::System && config.cgroups.iter().any(Option::is_some) {
            return Err("-G: cgroups can be counted only on whole CPUs; add -a or -C".to_owned());
        }
        config.cpus = self.cpu;
        config.per_thread = self.per_thread;
        config.delay = self.delay.unwrap_or_default();
        config.control = self.control;
        Ok(())
    }
}

fn control(text: &str) -> Result<Control, String> {
    parse_control(text)
        .ok_or_else(|| format!("'{text}' is neither fd:CTL[,ACK] nor fifo:CTL[,ACK]"))
}

fn parse_control(text: &str) -> Option<Control> {
    let (kind, ends) = text.split_once(':')?;
    let (commands, acks) = ends.split_once(',').map_or((ends, None), |(ctl, ack)| (ctl, Some(ack)));
    let acks = acks.filter(|ack| !ack.is_empty());
    match kind {
        "fd" => Some(Control::Fd {
            commands: descriptor(commands)?,
            acks: match acks {
                None => None,
                Some(acks) => Some(descriptor(acks)?),
            },
        }),
        "fifo" if !commands.is_empty() => {
            Some(Control::Fifo { commands: commands.into(), acks: acks.map(PathBuf::from) })
        }
        _ => None,
    }
}

fn descriptor(text: &str) -> Option<i32> {
    values::number_in(text, 0..=i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_steers() {
        assert_eq!(control("fd:3"), Ok(Control::Fd { commands: 3, acks: None }));
        assert_eq!(control("fd:3,4"), Ok(Control::Fd { commands: 3, acks: Some(4) }));
        assert_eq!(
            control("fifo:a,b"),
            Ok(Control::Fifo { commands: "a".into(), acks: Some("b".into()) })
        );
        for wrong in ["", "3", "fd:", "fd:x", "fd:-1", "fifo:", "fifo:,b", "pipe:a"] {
            assert!(control(wrong).is_err(), "{wrong}");
        }
    }
}
