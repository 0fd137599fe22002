//! A recording, from what was asked to the last line: the whole story.
//!
//! ```text
//!  open counters ─▶ begin a piece ─▶ rounds ─▶ end the piece ─▶ … next piece (--switch-output)
//!                     │ synthesize    │ wait: rings, signals, commands, timers
//!                     │ AUX head      └ the disk is full: what is there is kept, the command goes on
//!                     └ the file, named when it ends
//! ```

mod delays;
mod live;
mod losses;
mod obey;
mod opened;
mod piece;
mod recording;
mod schedule;
mod updates;

use crate::config::Config;
use crate::control::Channel;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::messages::Messages;
use crate::plan;
use crate::signals::Signals;
use crate::target::{Target, Task};
use crate::workload::Workload;
use live::{Live, Recording};

/// Records, and gives the exit status.
///
/// # Errors
/// Why there is no recording, or not a whole one.
pub fn run<K: Kernel>(config: &Config, kernel: &K, messages: &Messages) -> Result<u8> {
    let machine = Machine::read()?;
    let plan = plan::plan(config, &machine)?;
    plan.notes.iter().for_each(|note| messages.note(note));
    let signals = Signals::install()?;
    let channel = config.control.as_ref().map(Channel::open).transpose()?;
    let mut workload = Workload::at_gate(&config.command, config.output.is_stdout())?;
    let tasks = config.target.tasks()?;
    let threads = threads(&config.target, &tasks, workload.as_ref());
    let (counters, rings, areas) = opened::open(kernel, (config, plan), &threads, &machine, messages)?;
    let urgent = schedule::apply(config)?;
    let recording = Recording::new(config, (kernel, messages), (&machine, &tasks), &counters, &signals)?;
    let live = Live::new(&recording, (rings, areas), channel, urgent)?;
    let status = recording.run(live, workload.as_mut())?;
    let child = workload.map_or(0, Workload::finish);
    Ok(if child == 0 { status } else { child })
}

/// The threads that counters are opened for; `None` for all that runs on a CPU.
fn threads(target: &Target, tasks: &[Task], workload: Option<&Workload>) -> Vec<Option<u32>> {
    match target {
        Target::Command => workload.map(|w| Some(w.pid())).into_iter().collect(),
        Target::System => vec![None],
        Target::Processes(_) | Target::Threads(_) | Target::User(_) => {
            tasks.iter().map(|task| Some(task.tid)).collect()
        }
    }
}
