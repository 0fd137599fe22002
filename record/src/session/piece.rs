//! One file of a recording (a piece), from its header to its summary line. Most recordings have
//! only one.

use std::collections::HashSet;
use std::mem;

use recrep_format::abi::AttrFlags;
use recrep_format::bytes::Encoder;
use recrep_format::endian::Endian;
use recrep_format::feature::BuildIdEvent;
use recrep_format::record::{Body, Record};
use recrep_format::write::FeatureWriter;

use super::state::{Progress, Recording, State};
use super::{hottest, losses, nothing, rates, updates};
use crate::aux;
use crate::drain::Drain;
use crate::kernel::Kernel;
use crate::kernel::counters::Reading;
use crate::machine::kernel_image::KernelImage;
use crate::messages::error::Result;
use crate::output::build_ids::{self, Identified, Modules};
use crate::output::features;
use crate::output::tally::{Counts, Tally};
use crate::output::{Output, Written};
use crate::plan::PlannedEvent;
use crate::plan::config::{BuildIds, Config, Delay};
use crate::synthesize::{self, BpfCode, Scope, SwitchEvents, Synthesizer, Waits};
use crate::tasks::Target;

/// A file that is being written.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) output: Output,
    mapped: MappedFiles,
}

/// Facts about the files that are mapped.
#[derive(Debug)]
pub(super) struct MappedFiles {
    /// Addresses and modules of the kernel, if known.
    image: Option<KernelImage>,
    modules: Modules,
    /// Build IDs already written as records (pipe mode).
    written: Vec<Identified>,
}

impl MappedFiles {
    fn add(&mut self, other: Self) {
        self.image = self.image.take().or(other.image);
        self.modules.absorb(other.modules);
        self.written.extend(other.written);
    }
}

impl Piece {
    /// Adds what was mapped by the records that were drained into it.
    pub(super) fn take_modules(&mut self, drain: &mut Drain) {
        let none = drain.tally.modules.renewed();
        self.mapped.modules.absorb(mem::replace(&mut drain.tally.modules, none));
    }

    /// Adds what was found while the rings were drained into it already.
    pub(super) fn add_mapped(&mut self, mapped: MappedFiles) {
        self.mapped.add(mapped);
    }
}

impl<K: Kernel + Sync> Recording<'_, K> {
    /// Returns the facts about mapped files before any is known.
    fn nothing_mapped(&self) -> MappedFiles {
        MappedFiles { image: None, modules: self.modules.renewed(), written: Vec::new() }
    }

    /// Makes a file, up to its first record of a task or a ring.
    pub(super) fn create(&self, state: &State) -> Result<Piece> {
        let output = Output::create(&self.config.output, &self.entries, &self.head, &state.layout)?;
        let begun = output.write(&updates::units(self.counters));
        match begun.and_then(|()| state.areas.write_head(self.counters, self.machine, &output)) {
            Ok(()) => Ok(Piece { output, mapped: self.nothing_mapped() }),
            Err(error) => {
                output.undo();
                Err(error)
            }
        }
    }

    /// Writes what is there before the first record of the rings, or among the first ones.
    /// `pieces`: the number of files before.
    pub(super) fn prepare(
        &self,
        output: &Output,
        scope: &Scope,
        pieces: usize,
    ) -> Result<MappedFiles> {
        // Before its exec, the command has only its comm, which could no longer be read at the end.
        let early = !self.config.rings.tail_synthesize || matches!(scope, Scope::Child(_));
        let mut mapped =
            if early { self.synthesize(output, scope, pieces)? } else { self.nothing_mapped() };
        if output.is_pipe() {
            // Build IDs that are known already come before the samples.
            self.stream_build_ids(output, &mut mapped)?;
        }
        Ok(mapped)
    }

    fn synthesize(&self, output: &Output, scope: &Scope, pieces: usize) -> Result<MappedFiles> {
        let mut mapped = self.nothing_mapped();
        let Some(tracker) = self.counters.tracker() else { return Ok(mapped) };
        let mut synthesizer = Synthesizer::new(
            output,
            &mut mapped.modules,
            &tracker.attr,
            self.counters.tracking_id(),
            &self.config.side_band,
        );
        if self.counters.sees_kernel() {
            let bpf = BpfCode::new(self.kernel.bpf_programs());
            mapped.image = KernelImage::find(bpf.needs_symbols());
            match &mapped.image {
                Some(image) => synthesizer.kernel(image)?,
                None => self.hidden_kernel(pieces),
            }
            let symbols = mapped.image.as_ref().map(|image| image.bpf_symbols.as_slice());
            bpf.write(&mut synthesizer, symbols.unwrap_or_default())?;
        }
        synthesize::cgroups(&mut synthesizer)?;
        synthesize::tasks(&mut synthesizer, scope)?;
        let cut = synthesizer.finish()?;
        if cut > 0 {
            self.messages.warn(format_args!(
                "the mappings of {cut} processes could not all be read in time: their samples may \
                 have no symbols; give more time with --proc-map-timeout MS"
            ));
        }
        Ok(mapped)
    }

    /// Returns the writer of records of threads that wait now, if waits are recorded from the
    /// moment on at which a file begins, and the tasks are known that are recorded.
    pub(super) fn waits<'o>(&'o self, output: &'o Output) -> Option<Waits<'o>> {
        let Config { off_cpu, waits, delay, rings, cgroups, .. } = self.config;
        let has_cgroups = cgroups.iter().any(Option::is_some);
        if !off_cpu || *delay != Delay::None || rings.overwrite || has_cgroups {
            return None;
        }
        let carries = |event: &PlannedEvent| event.attr.flags.contains(AttrFlags::CONTEXT_SWITCH);
        let is_sampled =
            |event: &PlannedEvent| event.is_context_switches() && event.attr.sample_period == 1;
        let records = self.counters.first(carries)?;
        let events = SwitchEvents { records, samples: self.counters.first(is_sampled) };
        let time = self.kernel.now(self.config.clock)?.clock;
        Some(Waits::new(output, events, time, *waits))
    }

    fn hidden_kernel(&self, pieces: usize) {
        if pieces == 0 {
            self.messages.note(
                "kernel samples will have no symbols, as its addresses are hidden \
                 (kernel.kptr_restrict); be root, or set kernel.kptr_restrict to 0",
            );
        }
    }

    /// Returns the scope of the target's current tasks.
    pub(super) fn present(&self, state: &State) -> Scope {
        match &self.config.target {
            Target::System => Scope::All,
            target => {
                let mut tasks = if target.is_attached() {
                    target.tasks().unwrap_or_default()
                } else {
                    Vec::new()
                };
                // The command, and the processes forked since that have not exited.
                let forked = state.drain.tally.alive().into_iter().chain(state.child);
                let processes = forked.filter_map(|pid| Target::Processes(vec![pid]).tasks().ok());
                tasks.extend(processes.flatten());
                tasks.sort_unstable_by_key(|task| (task.pid, task.tid));
                tasks.dedup();
                Scope::These(tasks)
            }
        }
    }

    /// Completes the file: synthesized records, lost samples, build IDs, features, file name,
    /// summary line. `scope`: whose tasks, where they are written at the end.
    pub(super) fn end(
        &self,
        mut piece: Piece,
        progress: &mut Progress,
        scope: Option<&Scope>,
    ) -> Result<()> {
        let ended = match self.last_records(&mut piece, progress, scope) {
            Ok(ended) => ended,
            Err(error) => {
                self.salvage(piece, progress);
                return Err(error);
            }
        };
        let Ended { readings, written, ids } = ended;
        let mut features = self.head.clone();
        self.add_end(&mut features, progress, &written, &ids);
        let length = piece.output.length();
        let finished = match piece.output.finish(features) {
            Ok(finished) => finished,
            Err(error) => {
                self.sum_up(&written, length, &self.config.output.path.to_string_lossy());
                return Err(error);
            }
        };
        progress.pieces += 1;
        self.describe(&written, &readings, ids.len(), progress);
        if progress.is_last {
            // The file is complete.
            self.keep();
        }
        hottest::show(self.config, &finished, written.counts.samples, self.messages);
        let name =
            finished.path.map_or_else(|| "-".into(), |path| path.to_string_lossy().into_owned());
        self.sum_up(&written, finished.length, &name);
        Ok(())
    }

    /// Prints what the user should know of a complete file: losses, and what samples lack.
    fn describe(&self, written: &Written, readings: &[Reading], ids: usize, progress: &Progress) {
        let counts = &written.counts;
        self.messages.explain(|| {
            let stalls = written.stalls;
            format!(
                "{ids} build IDs, throttled {} times, waited {stalls} times for the file",
                counts.throttled
            )
        });
        if counts.damaged > 0 {
            self.messages.warn(format_args!(
                "the kernel's rings held {} invalid records: counts are too low from there on",
                counts.damaged
            ));
        }
        for warning in counts.aux.warnings() {
            self.messages.warn(warning);
        }
        if written.stalls > 0 && counts.is_lossy() {
            self.messages.warn(format_args!(
                "{} times the queue of records to write was full, since the file takes them too \
                 slowly, and rings filled up: let more wait (--queue-size), compress (-z), or \
                 write elsewhere (-o)",
                written.stalls
            ));
        }
        for (event, share) in losses::multiplexed(self.counters, readings) {
            self.messages.note(format_args!(
                "{event} was counted {share:.1} % of the time, as the PMU has too few counters; \
                 record fewer events"
            ));
        }
        for event in losses::failed(self.counters, readings) {
            self.messages.warn(format_args!(
                "{} stopped counting: it is pinned (D), and the PMU had no room for it; leave out \
                 the modifier, or record fewer events",
                event.full_name()
            ));
        }
        // A lost record may be the one that shows that a process went on.
        let silenced = nothing::silenced(&progress.silenced).filter(|_| !counts.is_lossy());
        let lacks_samples = counts.samples == 0 && !counts.is_lossy() && silenced.is_none();
        if let Some(silenced) = silenced {
            self.messages.warn(silenced);
        }
        if let Some(why) =
            nothing::why(self.config, self.counters, readings, progress).filter(|_| lacks_samples)
        {
            self.messages.note(format_args!("no samples: {why}"));
        }
        if let Some(counted) = nothing::counted(self.counters, readings) {
            self.messages.note(counted);
        }
        for limit in rates::limited(&self.counters.events, counts.throttled, self.machine) {
            self.messages.warn(limit);
        }
    }

    fn add_end(
        &self,
        features: &mut FeatureWriter,
        progress: &Progress,
        written: &Written,
        ids: &[Identified],
    ) {
        if progress.has_areas {
            aux::add_index(features, &written.traces);
        }
        features::add_end(features, &written.counts, ids);
        // perf refuses a stream with features that it does not know.
        if !self.config.output.is_stdout() {
            features::add_chains(features, &written.chains);
        }
    }

    /// Prints the summary line of a completed file; with `-q` only if something was lost.
    fn sum_up(&self, written: &Written, bytes: u64, name: &str) {
        // Counts alone (-n) are printed, and not in the file, but for those of threads (-s).
        let sample = &self.config.sample;
        let view = (!sample.none || sample.stat).then_some(self.config.view);
        let used = self.usage.summary(self.machine.online.len());
        let line = written.counts.summary(&written.chains, &used, bytes, name, view);
        if written.counts.is_lossy() { self.messages.warn(line) } else { self.messages.note(line) }
    }

    /// Writes the records at the end (synthesized records, lost samples, build IDs), and gives the
    /// file its final name.
    fn last_records(
        &self,
        piece: &mut Piece,
        progress: &mut Progress,
        scope: Option<&Scope>,
    ) -> Result<Ended> {
        let Piece { output, mapped } = piece;
        if let Some(scope) = scope.filter(|_| self.config.rings.tail_synthesize) {
            mapped.add(self.synthesize(output, scope, progress.pieces)?);
        }
        let readings = self.counters.read(self.kernel)?;
        let (records, lost) = progress.losses.records(self.counters, &readings);
        output.write(&records)?;
        let ids = self.stream_build_ids(output, mapped)?;
        let mut written = output.settle()?;
        written.counts.lost_samples += lost;
        keep_jits(mapped, &written.counts);
        Ok(Ended { readings, written, ids })
    }

    /// Returns the build IDs of what was mapped by now.
    fn build_ids(&self, mapped: &MappedFiles) -> Vec<Identified> {
        match self.config.build_ids {
            BuildIds::None => Vec::new(),
            BuildIds::InMmap | BuildIds::Table => {
                build_ids::collect(&mapped.modules, mapped.image.as_ref())
            }
        }
    }

    /// Returns the build IDs; in pipe mode, which has no table at the end, writes a record for each
    /// new one.
    fn stream_build_ids(
        &self,
        output: &Output,
        mapped: &mut MappedFiles,
    ) -> Result<Vec<Identified>> {
        let ids = self.build_ids(mapped);
        if output.is_pipe() {
            let mut e = Encoder::new(Endian::NATIVE);
            let written: HashSet<&Identified> = mapped.written.iter().collect();
            // A record's build ID is searched in GNU notes.
            let new = ids.iter().filter(|id| !written.contains(id) && !id.id.is_of_go());
            for id in new {
                let entry = BuildIdEvent::new(id.mode, &id.id, &id.name);
                // A path cannot exceed a record's size limit.
                let _ = Record::new(entry.misc, Body::HeaderBuildId(entry.body)).encode(&mut e);
            }
            output.write(e.as_bytes())?;
            mapped.written.clone_from(&ids);
        }
        Ok(ids)
    }

    /// Completes a file that can no longer be written, with the records that are in it.
    pub(super) fn salvage(&self, mut piece: Piece, progress: &Progress) {
        let ids = self.build_ids(&piece.mapped);
        let mut most = self.head.clone();
        self.add_end(&mut most, progress, &piece.output.written(), &ids);
        // Upper limit of the space for features: section headers, contents, and the times of the
        // first and last sample.
        let room = most.parts().map(|(_, bytes)| bytes.len() as u64 + 16).sum::<u64>() + 64;
        let Some(first) = self.entries.first() else { return };
        let mut kept = Tally::new(&first.attr);
        let mut written = piece.output.keep(room, |record| kept.count(record));
        written.counts.add(&kept.counts);
        keep_jits(&piece.mapped, &written.counts);
        let mut features = self.head.clone();
        self.add_end(&mut features, progress, &written, &ids);
        let length = piece.output.salvage(features);
        self.sum_up(&written, length, &self.config.output.path.to_string_lossy());
    }
}

/// Keeps the lists of JITs' code, by the times that the file has of its samples.
fn keep_jits(mapped: &MappedFiles, counts: &Counts) {
    if let Some(first) = counts.first {
        mapped.modules.keep_jits(first, counts.last);
    }
}

/// Last contents of a file.
struct Ended {
    readings: Vec<Reading>,
    written: Written,
    ids: Vec<Identified>,
}
