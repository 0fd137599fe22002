//! A recording, from what was asked to the last line: the whole story.
//!
//! ```text
//!  open counters ─▶ begin a piece ─▶ rounds ─▶ end the piece ─▶ … next piece (--switch-output)
//!                     │ synthesize    │ wait: rings, signals, commands, timers
//!                     │ AUX head      └ the disk is full: what is there is kept, the command goes on
//!                     └ the file, named when it ends
//! ```

pub mod control;
mod coverage;
mod delays;
pub mod dry_run;
mod live;
mod losses;
mod obey;
mod opened;
mod piece;
mod recording;
mod schedule;
mod status;
mod timer;
mod updates;

use std::collections::BTreeSet;

use crate::kernel::Kernel;
use crate::kernel::signals::Signals;
use crate::machine::Machine;
use crate::messages::Messages;
use crate::messages::error::Result;
use crate::plan;
use crate::plan::config::Config;
use crate::session::control::Channel;
use crate::session::coverage::Coverage;
use crate::target::Task;
use crate::target::workload::Workload;
use live::{Live, Recording};
use schedule::Urgent;

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
    let coverage = Coverage::choose(config, &plan, (&tasks, workload.as_ref()), &machine, messages);
    let (counters, rings, areas) = opened::open(kernel, (config, plan), &coverage, &machine, messages)?;
    if let Some(left_out) = left_out(&tasks, &counters.hidden) {
        messages.warn(left_out);
    }
    // Whether it can be had is known before anything runs; it is had only while rings are drained.
    drop(Urgent::apply(&config.rings)?);
    let recording = Recording::new(config, (kernel, messages), (&machine, &tasks, &coverage), &counters, &signals)?;
    let live = Live::new(&recording, (rings, areas), channel)?;
    let status = recording.run(live, workload.as_mut())?;
    let child = workload.map_or(0, Workload::finish);
    Ok(if child == 0 { status } else { child })
}

/// Says which processes are not recorded, as this user may not look into them.
fn left_out(tasks: &[Task], hidden: &BTreeSet<u32>) -> Option<String> {
    let pids: BTreeSet<u32> = tasks.iter().filter(|task| hidden.contains(&task.tid)).map(|task| task.pid).collect();
    let some: Vec<String> = pids.iter().take(5).map(u32::to_string).collect();
    let more = if pids.len() > some.len() { ", …" } else { "" };
    (!pids.is_empty()).then(|| {
        format!(
            "{} of the user's processes not recorded (-u), as they are protected from ptrace: {}{more}; be root, or have \
             CAP_PERFMON",
            pids.len(),
            some.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use recrep_format::feature::EventDesc;
    use recrep_format::read::File;

    use super::*;
    use crate::fake_kernel::FakeKernel;
    use crate::messages::Verbosity;

    #[test]
    fn a_recording_that_fails_leaves_a_file_with_its_features() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.data");
        let words = ["rec", "-e", "cpu-clock", "-o", path.to_str().unwrap(), "true"];
        let config = crate::cli::parse(words.map(Into::into)).unwrap();
        let kernel = FakeKernel::new(|_, _| Vec::new()).with_unstoppable_counters(rustix::io::Errno::IO);
        let messages = Messages::to(Verbosity::Quiet, Box::new(std::io::sink()));
        let error = run(&config, &kernel, &messages).unwrap_err().to_string();
        assert_eq!(error, "cannot stop a counter: Input/output error");
        let bytes = std::fs::read(&path).unwrap();
        let file = File::parse(&bytes).unwrap();
        assert_eq!(file.warnings, []);
        assert!(file.feature::<EventDesc<'_>>().is_some());
    }

    #[test]
    fn bpf_programs_from_before_are_in_the_file() {
        use crate::kernel::bpf::{BpfFunction, BpfProgram};
        use recrep_format::record::Body;
        let function = BpfFunction { addr: 0xffff_0000_0000_1000, len: 64, tag: [0xab; 8] };
        let program =
            BpfProgram { id: 7, tag: [0xab; 8], name: b"f".to_vec(), has_btf: false, functions: vec![function] };
        for (flag, events) in [("--bpf-event", 1), ("--no-bpf-event", 0)] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("x.data");
            let words = ["rec", "-a", "-e", "cpu-clock", flag, "-o", path.to_str().unwrap(), "true"];
            let config = crate::cli::parse(words.map(Into::into)).unwrap();
            let kernel = FakeKernel::new(|_, _| Vec::new()).with_bpf_programs(Ok(vec![program.clone()]));
            let messages = Messages::to(Verbosity::Quiet, Box::new(std::io::sink()));
            assert_eq!(run(&config, &kernel, &messages).unwrap(), 0);
            let bytes = std::fs::read(&path).unwrap();
            let file = File::parse(&bytes).unwrap();
            let raw: Vec<_> = file.records().map(std::result::Result::unwrap).collect();
            let records: Vec<_> = raw.iter().map(|raw| file.attrs.decode(raw).unwrap().body).collect();
            let is_symbol = |body: &Body<'_>| {
                let Body::KSymbol(symbol) = body else { return false };
                let name = symbol.name.as_bytes();
                (symbol.addr, symbol.len, name) == (function.addr, 64, b"bpf_prog_abababababababab_f")
            };
            assert_eq!(records.iter().filter(|body| is_symbol(body)).count(), 1, "{flag}");
            let is_event = |body: &Body<'_>| matches!(body, Body::BpfEvent(event) if event.id == 7);
            assert_eq!(records.iter().filter(|body| is_event(body)).count(), events, "{flag}");
        }
    }

    #[test]
    fn processes_that_were_left_out_are_told_each_once() {
        let tasks: Vec<Task> = (1..=7).flat_map(|pid| [0, 100].map(|more| Task { pid, tid: pid + more })).collect();
        assert_eq!(left_out(&tasks, &BTreeSet::new()), None);
        let one = left_out(&tasks, &[2, 102].into()).unwrap();
        assert!(one.starts_with("1 of the user's processes") && one.contains("ptrace: 2;"), "{one}");
        let many = left_out(&tasks, &(101..=107).collect()).unwrap();
        assert!(many.starts_with("7 of") && many.contains(": 1, 2, 3, 4, 5, …;"), "{many}");
    }
}
