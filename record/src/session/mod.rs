//! A recording session, from opening the counters to the summary line.
//!
//! ```text
//!  open counters ─▶ begin a piece ─▶ rounds ─▶ end the piece ─▶ … next piece (--switch-output)
//!                     │ synthesize    │ wait: rings, signals, commands, timers
//!                     │ AUX head      └ disk full: the file is completed as far as written, the command keeps running
//!                     └ the file; gets its final name at its end
//! ```

mod commands;
pub mod control;
mod coverage;
mod delays;
pub mod dry_run;
mod hottest;
mod losses;
mod nothing;

mod opened;
pub mod page;
mod piece;
mod rates;
mod recording;
mod schedule;
mod state;
mod status;
mod timer;
mod updates;
mod usage;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::kernel::Kernel;
use crate::kernel::signals::{Arrived, Signals};
use crate::machine::Machine;
use crate::messages::Messages;
use crate::messages::error::Result;
use crate::plan;
use crate::plan::config::Config;
use crate::session::control::Channel;
use crate::session::coverage::Coverage;
use crate::tasks::Task;
use crate::tasks::workload::{Inherited, Workload};
use schedule::Priority;
use state::{RecordedTasks, Recording, State};

/// Runs a recording, and returns the exit status.
pub fn run<K: Kernel + Sync>(config: &Config, kernel: &K, messages: &Messages) -> Result<u8> {
    let machine = Machine::read()?;
    let mut plan = plan::plan(config, &machine)?;
    for note in &plan.notes {
        messages.note(note);
    }
    let before = Inherited::now();
    let signals = Signals::install()?;
    if !config.command.is_empty() {
        Signals::leave_quit_to_command()?;
    }
    let channel = config.control.as_ref().map(Channel::open).transpose()?;
    let mut workload = Workload::at_gate(&config.command, config.output.is_stdout(), before)?;
    let tasks = config.target.tasks()?;
    let coverage = Coverage::choose(config, &plan, &tasks, workload.as_ref(), &machine, messages);
    // Dropped after the counters, as the kernel keeps a probe that is in use.
    let _probes = coverage.register_probes(&mut plan, &machine)?;
    let (counters, rings, areas) =
        opened::open(kernel, config, plan, &coverage, &machine, messages)?;
    if let Some(left_out) = left_out(&tasks, &counters.hidden) {
        messages.warn(left_out);
    }
    // Check the permission now; raise the priority only while draining.
    drop(Priority::apply(&config.rings, false)?);
    let recorded = RecordedTasks { tasks: &tasks, coverage: &coverage };
    let recording =
        Recording::new(config, kernel, messages, &machine, recorded, &counters, &signals)?;
    let state = State::new(&recording, rings, areas, channel)?;
    let status = recording.run(state, workload.as_mut())?;
    let child = workload.map_or(0, |workload| end_of_command(workload, &signals, messages));
    Ok(if child == 0 { status } else { child })
}

/// Returns the exit status of the command, which is asked to end if it still runs. If the recording
/// was ended by a key of the terminal (Ctrl-C), the command has had that signal too, and ends or
/// goes on as it does without rec, until there is another one.
pub(crate) fn end_of_command(mut workload: Workload, signals: &Signals, messages: &Messages) -> u8 {
    let mut patience = Some(Duration::from_secs(1));
    let is_left_alone = signals.is_from_terminal();
    signals.clear_stop();
    while is_left_alone && workload.ended().is_none() {
        match signals.wait(patience) {
            Arrived::Stop => break,
            Arrived::Other => signals.clear_child(),
            Arrived::Nothing => {
                patience = None;
                messages.note("the command is still running; press Ctrl-C again to send SIGTERM");
            }
        }
    }
    workload.finish()
}

/// Returns a note on the processes that are not recorded because this user may not trace them.
fn left_out(tasks: &[Task], hidden: &BTreeSet<u32>) -> Option<String> {
    let pids: BTreeSet<u32> =
        tasks.iter().filter(|task| hidden.contains(&task.tid)).map(|task| task.pid).collect();
    let some: Vec<String> = pids.iter().take(5).map(u32::to_string).collect();
    let more = if pids.len() > some.len() { ", …" } else { "" };
    (!pids.is_empty()).then(|| {
        format!(
            "{} of the user's processes are not recorded (-u), as they are protected from ptrace: \
             {}{more}; be root, or have CAP_PERFMON",
            pids.len(),
            some.join(", ")
        )
    })
}

#[cfg(test)]
mod tests;
