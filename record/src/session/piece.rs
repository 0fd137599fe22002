//! One file of a recording, from its header to its last line; most recordings have only one.

use std::collections::HashSet;

use recrep_format::bytes::Encoder;
use recrep_format::endian::Endian;
use recrep_format::feature::BuildIdEvent;
use recrep_format::record::{Body, Record};
use recrep_format::write::FeatureWriter;

use super::live::{Live, Recording};
use super::{losses, updates};
use crate::kernel::Kernel;
use crate::kernel::counters::Reading;
use crate::machine::kernel_image::KernelImage;
use crate::messages::error::Result;
use crate::output::Output;
use crate::output::build_ids::{self, Identified};
use crate::output::features;
use crate::output::tally::Counts;
use crate::plan::config::BuildIds;
use crate::synthesize::{self, BpfCode, Scope, Synthesizer};
use crate::target::Target;

/// A file in the making.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) output: Output,
    /// Where the kernel is, if that is known.
    image: Option<KernelImage>,
    /// The build IDs that a stream has records of by now.
    written: Vec<Identified>,
}

impl<K: Kernel> Recording<'_, K> {
    /// Makes the next file, and writes what there is before the first record of the rings. `scope`: whose tasks.
    pub(super) fn begin(&self, live: &mut Live, scope: &Scope) -> Result<Piece> {
        live.drain.tally = live.drain.tally.renewed();
        let output = Output::create(&self.config.output, &self.entries, &self.head)?;
        let mut piece = Piece { output, image: None, written: Vec::new() };
        match self.prepare(live, &mut piece, scope) {
            Ok(()) => Ok(piece),
            Err(error) => {
                // Nothing was recorded yet: what was there before stays.
                piece.output.undo();
                Err(error)
            }
        }
    }

    fn prepare(&self, live: &mut Live, piece: &mut Piece, scope: &Scope) -> Result<()> {
        piece.output.write(&updates::units(self.counters))?;
        live.areas.write_head(self.counters, self.machine, &mut piece.output)?;
        // The command at the gate has nothing but a name, which will not be there at the end.
        let early = !self.config.rings.tail_synthesize || matches!(scope, Scope::Child(_));
        if early {
            self.synthesize(live, piece, scope)?;
        }
        if piece.output.is_pipe() {
            // What is known already, before the samples.
            self.stream_build_ids(piece, live)?;
        }
        Ok(())
    }

    /// Writes what was there before.
    fn synthesize(&self, live: &mut Live, piece: &mut Piece, scope: &Scope) -> Result<()> {
        let Some(tracker) = self.counters.tracker() else { return Ok(()) };
        let modules = &mut live.drain.tally.modules;
        let mut synthesizer = Synthesizer::new(
            &mut piece.output,
            modules,
            (&tracker.attr, self.counters.tracking_id()),
            &self.config.side_band,
        );
        if self.counters.sees_kernel() {
            let bpf = BpfCode::new(self.kernel.bpf_programs());
            piece.image = KernelImage::find(bpf.needs_symbols());
            match &piece.image {
                Some(image) => synthesizer.kernel(image)?,
                None => self.hidden_kernel(live.pieces),
            }
            let symbols = piece.image.as_ref().map(|image| image.bpf_symbols.as_slice());
            bpf.write(&mut synthesizer, symbols.unwrap_or_default())?;
        }
        synthesize::cgroups(&mut synthesizer)?;
        synthesize::tasks(&mut synthesizer, scope)?;
        let cut = synthesizer.finish()?;
        if cut > 0 {
            self.messages.warn(format_args!(
                "of {cut} processes not all mappings could be read in time: samples there may have no symbols; give more time \
                 with --proc-map-timeout MS"
            ));
        }
        Ok(())
    }

    fn hidden_kernel(&self, pieces: usize) {
        if pieces == 0 {
            self.messages.note(
                "the kernel's addresses are hidden (kernel.kptr_restrict): its samples will have no symbols; be root, or set \
                 kernel.kptr_restrict to 0",
            );
        }
    }

    /// Whose tasks there are by now.
    pub(super) fn present(&self, live: &Live) -> Scope {
        match &self.config.target {
            Target::System => Scope::All,
            target => {
                let mut tasks = if target.is_attached() { target.tasks().unwrap_or_default() } else { Vec::new() };
                // What was forked since, and has not ended.
                let forked = live.drain.tally.alive().into_iter().chain(live.child);
                let processes = forked.filter_map(|pid| Target::Processes(vec![pid]).tasks().ok());
                tasks.extend(processes.flatten());
                tasks.sort_unstable_by_key(|task| (task.pid, task.tid));
                tasks.dedup();
                Scope::These(tasks)
            }
        }
    }

    /// Completes the file: what was there, what was lost, build IDs, features, its name, the last line.
    pub(super) fn end(&self, mut piece: Piece, live: &mut Live) -> Result<()> {
        let (readings, counts, ids) = match self.last_records(&mut piece, live) {
            Ok(known) => known,
            Err(error) => {
                self.salvage(piece, live);
                return Err(error);
            }
        };
        let mut features = self.head.clone();
        live.areas.add_index(&mut features);
        features::add_end(&mut features, &counts, &ids);
        let length = piece.output.length();
        let finished = match piece.output.finish(features) {
            Ok(finished) => finished,
            Err(error) => {
                self.sum_up(&counts, length, &self.config.output.path.to_string_lossy());
                return Err(error);
            }
        };
        live.pieces += 1;
        self.messages.explain(|| format!("{} build IDs, throttled {} times", ids.len(), counts.throttled));
        if counts.damaged > 0 {
            self.messages.warn(format_args!(
                "{} times the kernel's ring held something that is no record: counts are too low from there on",
                counts.damaged
            ));
        }
        counts.aux.warnings().iter().for_each(|warning| self.messages.warn(warning));
        for (event, share) in losses::multiplexed(self.counters, &readings) {
            self.messages.note(format_args!(
                "{event} was counted {share:.1} % of the time: there were more events than the PMU has counters"
            ));
        }
        let name = finished.path.map_or_else(|| "-".into(), |path| path.to_string_lossy().into_owned());
        self.sum_up(&counts, finished.length, &name);
        Ok(())
    }

    /// Says what is in a file that has ended; with `-q` only where something was lost.
    fn sum_up(&self, counts: &Counts, bytes: u64, name: &str) {
        let line = counts.summary(bytes, name);
        if counts.is_lossy() { self.messages.warn(line) } else { self.messages.note(line) }
    }

    /// What the recording ends with, as records: what was there, what was lost, build IDs; and the file's name.
    fn last_records(&self, piece: &mut Piece, live: &mut Live) -> Result<(Vec<Reading>, Counts, Vec<Identified>)> {
        if self.config.rings.tail_synthesize {
            let scope = self.present(live);
            self.synthesize(live, piece, &scope)?;
        }
        let readings = self.counters.read(self.kernel)?;
        let (records, lost) = live.losses.records(self.counters, &readings);
        piece.output.write(&records)?;
        let mut counts = live.drain.tally.counts;
        counts.lost_samples += lost;
        let ids = self.stream_build_ids(piece, live)?;
        live.names.settle(&mut piece.output, &self.config.output.path)?;
        Ok((readings, counts, ids))
    }

    /// Returns the build IDs of what was mapped by now.
    fn build_ids(&self, piece: &Piece, live: &Live) -> Vec<Identified> {
        match self.config.build_ids {
            BuildIds::None => Vec::new(),
            BuildIds::InMmap | BuildIds::Table => build_ids::collect(&live.drain.tally.modules, piece.image.as_ref()),
        }
    }

    /// The same; a stream, which has no table of them at its end, gets a record of each that it has none of.
    fn stream_build_ids(&self, piece: &mut Piece, live: &Live) -> Result<Vec<Identified>> {
        let ids = self.build_ids(piece, live);
        if piece.output.is_pipe() {
            let mut e = Encoder::new(Endian::NATIVE);
            let written: HashSet<&Identified> = piece.written.iter().collect();
            for id in ids.iter().filter(|id| !written.contains(id)) {
                let entry = BuildIdEvent::new(id.mode, &id.id, &id.name);
                // A path is never too long for a record.
                let _ = Record::new(entry.misc, Body::HeaderBuildId(entry.body)).encode(&mut e);
            }
            piece.output.write(e.as_bytes())?;
            piece.written.clone_from(&ids);
        }
        Ok(ids)
    }

    /// Keeps what is there of a file that cannot be written to any more.
    pub(super) fn salvage(&self, mut piece: Piece, live: &mut Live) {
        let mut features: FeatureWriter = self.head.clone();
        live.areas.add_index(&mut features);
        let ids = self.build_ids(&piece, live);
        features::add_end(&mut features, &Counts::default(), &ids);
        // What the features will need at most: sizes, places, and when the first and the last sample were.
        let room = features.parts().map(|(_, bytes)| bytes.len() as u64 + 16).sum::<u64>() + 64;
        let tally = &mut live.drain.tally;
        piece.output.keep(room, |record| tally.walk(record.bytes, &[]));
        let counts = live.drain.tally.counts;
        features::add_end(&mut features, &counts, &ids);
        let length = piece.output.salvage(features);
        self.sum_up(&counts, length, &self.config.output.path.to_string_lossy());
    }
}
