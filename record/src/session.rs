//! A recording, from what was asked to the last line: the whole story.

use recrep_format::attrs::AttrEntry;
use recrep_format::bytes::Encoder;
use recrep_format::endian::Endian;
use recrep_format::layout::TrailerLayout;
use recrep_format::record::{Body, LostSamples, Record, Trailer};
use recrep_format::write::FeatureWriter;

use crate::auxtrace::Areas;
use crate::config::Config;
use crate::counters::{self, Counters};
use crate::drain::{self, Drain};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::messages::Messages;
use crate::output::Output;
use crate::plan;
use crate::ring::Ring;
use crate::signals::Signals;
use crate::synthesize::{KernelImage, Scope, Synthesizer};
use crate::tally::Tally;
use crate::target::{Target, Task};
use crate::wait::Waiter;
use crate::workload::Workload;
use crate::{buildid, features, synthesize, tracepoint};

/// Records, and gives the exit status.
///
/// # Errors
/// Why there is no recording, or not a whole one.
pub fn run<K: Kernel>(config: &Config, kernel: &K, messages: &Messages) -> Result<u8> {
    let machine = Machine::read()?;
    let plan = plan::plan(config, &machine)?;
    plan.notes.iter().for_each(|note| messages.note(note));
    let signals = Signals::install()?;
    let mut workload = Workload::at_gate(&config.command)?;
    let tasks = config.target.tasks()?;
    let threads = threads(&config.target, &tasks, workload.as_ref());
    let mut counters = counters::open(kernel, &plan, &threads, (&config.target, &machine), messages)?;
    let mut rings = std::mem::take(&mut counters.rings);
    let mut areas = Areas::open(kernel, (config, &plan), &counters, &rings, messages)?;
    let recording = Recording { config, kernel, messages, machine: &machine, counters: &counters, signals: &signals };
    let status = recording.run((&mut rings, &mut areas), &tasks, workload.as_mut())?;
    Ok(workload.map_or(status, Workload::finish))
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

/// What stays as it is while recording.
struct Recording<'a, K> {
    config: &'a Config,
    kernel: &'a K,
    messages: &'a Messages,
    machine: &'a Machine,
    counters: &'a Counters,
    signals: &'a Signals,
}

impl<K: Kernel> Recording<'_, K> {
    /// From the file's first byte to its last.
    fn run(
        &self,
        (rings, areas): (&mut [Ring], &mut Areas),
        tasks: &[Task],
        mut workload: Option<&mut Workload>,
    ) -> Result<u8> {
        let entries = self.entries();
        let Some(first) = entries.first() else { return Err(Error::Failed("no event was opened".to_owned())) };
        let mut drain = Drain::new(Tally::new(&first.attr));
        let tracing =
            tracepoint::formats(&self.counters.tracepoints(), self.machine.tracefs.as_deref(), self.machine.page_size)?;
        let mut features = features::at_start(self.config, self.machine, self.counters, tracing.as_deref());
        let mut output = Output::create(&self.config.output, &entries, &features)?;
        areas.write_head(self.counters, self.machine, &mut output)?;
        let image = self.synthesize(&mut output, &mut drain, tasks, workload.as_deref())?;
        if self.config.target != Target::Command {
            self.counters.enable(self.kernel)?;
        }
        if let Some(workload) = workload.as_deref_mut()
            && let Err(error) = workload.release()
        {
            // Nothing ran, so nothing was recorded: what was there before stays.
            output.undo();
            return Err(error);
        }
        self.drain_until_the_end((rings, areas), &mut drain, &mut output, workload)?;
        areas.add_index(&mut features);
        self.finish(&drain.tally, output, features, image.as_ref())
    }

    fn entries(&self) -> Vec<AttrEntry> {
        let events = self.counters.events.iter().enumerate();
        let entry = |(index, event): (usize, &plan::PlannedEvent)| AttrEntry {
            attr: event.attr.clone(),
            ids: self.counters.ids(index),
            name: Some(event.full_name()),
        };
        events.map(entry).collect()
    }

    /// Writes what was there before. Gives where the kernel is, if that is known.
    fn synthesize(
        &self,
        output: &mut Output,
        drain: &mut Drain,
        tasks: &[Task],
        workload: Option<&Workload>,
    ) -> Result<Option<KernelImage>> {
        let Some(tracker) = self.counters.tracker() else { return Ok(None) };
        let modules = &mut drain.tally.modules;
        let mut synthesizer =
            Synthesizer::new(output, modules, &tracker.attr, self.counters.tracking_id(), self.config.sample.data);
        let image = if self.counters.sees_kernel() { KernelImage::find() } else { None };
        match &image {
            Some(image) => synthesizer.kernel(image)?,
            None if self.counters.sees_kernel() => self.messages.note(
                "the kernel's addresses are hidden (kernel.kptr_restrict): its samples will have no symbols; be root, or set \
                 kernel.kptr_restrict to 0",
            ),
            None => {}
        }
        let scope = match (&self.config.target, workload) {
            (Target::Command, Some(workload)) => Scope::Child(workload.pid()),
            (target, _) if target.is_attached() => Scope::These(tasks.to_vec()),
            _ => Scope::All,
        };
        synthesize::tasks(&mut synthesizer, &scope)?;
        synthesizer.finish()?;
        Ok(image)
    }

    /// Rounds, until the command ended, all that was attached to ended, or a signal came; and a last round.
    fn drain_until_the_end(
        &self,
        (rings, areas): (&mut [Ring], &mut Areas),
        drain: &mut Drain,
        output: &mut Output,
        mut workload: Option<&mut Workload>,
    ) -> Result<()> {
        let mut waiter = Waiter::new(self.signals, self.counters)?;
        let attached = self.config.target.is_attached();
        loop {
            // A round before each wait: what came before the waiter was made does not wake it any more.
            areas.drain(self.kernel, self.counters, output)?;
            drain.round(rings, output)?;
            let woken = waiter.wait(!drain::is_pressing(rings) && !areas.is_pressing())?;
            if woken.child {
                self.signals.clear_child();
            }
            let ended = workload.as_deref_mut().is_some_and(|w| w.ended().is_some());
            if woken.stop || ended || (attached && woken.all_ended) {
                break;
            }
        }
        self.counters.disable(self.kernel)?;
        areas.stop(true);
        areas.drain(self.kernel, self.counters, output)?;
        if areas.snapshots() == Some(true) {
            areas.snapshot(self.kernel, self.counters, output)?;
        }
        drain.round(rings, output)?;
        Ok(())
    }

    /// What was lost, build IDs, features, the last line.
    fn finish(
        &self,
        tally: &Tally,
        mut output: Output,
        mut features: FeatureWriter,
        image: Option<&KernelImage>,
    ) -> Result<u8> {
        let mut counts = tally.counts;
        counts.lost_samples += self.write_lost(&mut output)?;
        let ids = buildid::collect(&tally.modules, image);
        features::add_end(&mut features, &counts, &ids);
        let length = output.finish(features)?.length;
        self.messages.explain(|| format!("{} build IDs, throttled {} times", ids.len(), counts.throttled));
        if counts.damaged > 0 {
            self.messages.warn(format_args!(
                "{} times the kernel's ring held something that is no record: counts are too low from there on",
                counts.damaged
            ));
        }
        counts.aux.warnings().iter().for_each(|warning| self.messages.warn(warning));
        self.messages.summary(&counts, length, &self.config.output.path.to_string_lossy());
        Ok(0)
    }

    /// Writes a LOST_SAMPLES record for each counter that lost some. Gives their sum.
    fn write_lost(&self, output: &mut Output) -> Result<u64> {
        let mut e = Encoder::new(Endian::NATIVE);
        let mut all = 0;
        for reading in self.counters.read(self.kernel)?.iter().filter(|reading| reading.lost > 0) {
            let Some(counter) = self.counters.by_id(reading.id) else { continue };
            let event = self.counters.events.get(counter.event);
            let layout = event.map_or(TrailerLayout::NONE, |e| TrailerLayout::of(&e.attr));
            let cpu = counter.place.cpu.map(|cpu| [cpu, 0]);
            let trailer = Trailer { identifier: Some(counter.id), cpu, ..Trailer::default() }.shaped(&layout);
            // A few numbers are never too long for a record.
            let lost = Body::LostSamples(LostSamples { lost: reading.lost });
            let _ = Record::new(0, lost).with_trailer(trailer).encode(&mut e);
            all += reading.lost;
        }
        output.write(e.as_bytes())?;
        Ok(all)
    }
}
