//! Rows of samples with callchains, counted in their callers too if `--children` applies, and the
//! data for call trees.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::labeller::Labeller;
use crate::callchain::{Classified, Frame, RowId, Stacks, UNMAPPED};
use crate::count::metrics::Metrics;
use crate::count::{Layout, Rows, Sum as _};
use crate::profile::Profile;
use crate::profile::names::{
    FRAME_SLOT, FrameCode, FramePosition, FunctionName, NamedFrame, NewOrKnown, NumberSlot,
};
use crate::profile::stacks::{CallTrees, Shows};
use crate::query::{ChainOptions, Column, End, Filters, FrameKey, Key, NO_KEY, Query};
use crate::symbols::{LineId, LineOrName, SymbolId};

/// Adds the parts of the rows' self counts.
fn add_parts(rows: &Rows, classified: &Classified, metrics: &mut [(RowId, Metrics)]) {
    let mut own = FxHashMap::<RowId, Metrics>::default();
    for ((key, count), sample) in rows.iter().zip(&classified.samples) {
        own.entry((sample.base, sample.class)).or_default().add(&Metrics::of(count, Some(&key)));
    }
    for (id, row) in metrics {
        row.parts = own.remove(id).and_then(|own| own.parts);
    }
}

/// Returns, for each class of frames, the first one that looks like it.
fn same(of_classes: &[u64], width: usize) -> Vec<u32> {
    let mut first = FxHashMap::default();
    let classes = (0..).zip(of_classes.chunks_exact(width));
    classes.map(|(class, words)| *first.entry(words).or_insert(class)).collect()
}

/// Returns the words of rows from the words of their bases and classes; `shows` has the source of
/// each word.
fn of_ids(
    rows: &[(RowId, Metrics)],
    shows: &[Shows],
    of_bases: &[u64],
    of_classes: &[u64],
) -> Vec<u64> {
    let mut words = vec![0; rows.len() * shows.len()];
    words.par_chunks_exact_mut(shows.len()).zip(rows).for_each(|(words, ((base, class), _))| {
        let [base, class] = [base, class].map(|number| *number as usize * shows.len());
        for (place, (word, shows)) in words.iter_mut().zip(shows).enumerate() {
            let shown = if shows.frame {
                of_classes.get(class + place)
            } else {
                of_bases.get(base + place)
            };
            *word = shown.copied().unwrap_or(0);
        }
    });
    words
}

impl Labeller<'_> {
    /// Adds the rows of these samples, and of their callers if children are counted, and the data
    /// for call trees.
    pub(crate) fn cumulate(&self, rows: &Rows, stacks: Stacks, profile: &mut Profile) {
        let mut classified = Classified::new(rows, &stacks, &self.shown());
        let children = self.query.chains.children && !self.query.needs.stacks;
        let shows = self.shows();
        let label = |classified: &Classified,
                     rows: usize,
                     id: &(dyn Fn(usize) -> Option<RowId> + Sync)| {
            let read_key =
                |row: usize, key: &mut Key| *key = id(row).map_or(NO_KEY, |id| classified.key(id));
            self.label(rows, &read_key)
        };
        let number = |row: usize| u32::try_from(row).ok();
        let classes = if children { classified.shown.len() } else { 0 };
        let of_classes = label(&classified, classes, &|class| Some((0, number(class)?)));
        if children {
            // A sample counts once in each row, however many of its frames read like the row.
            classified.join(&same(&of_classes, shows.len()));
        }
        let mut metrics = classified.rows(&stacks, !children);
        if self.query.has_parts() {
            add_parts(rows, &classified, &mut metrics);
        }
        // Rows with callers are combinations of bases and classes, of which there are fewer.
        let words = if children && shows.iter().all(|shows| !(shows.frame && shows.base)) {
            let of_bases =
                label(&classified, classified.base_count(), &|base| Some((number(base)?, 0)));
            of_ids(&metrics, &shows, &of_bases, &of_classes)
        } else {
            label(&classified, metrics.len(), &|row| metrics.get(row).map(|(id, _)| *id))
        };
        let (mut ids, mut of_rows) = (Vec::new(), Vec::new());
        metrics.into_par_iter().unzip_into_vecs(&mut ids, &mut of_rows);
        let places = profile.set_rows(words, of_rows, false);
        if self.query.chains.graph.is_some() || self.query.needs.stacks {
            let names = self.names.frames(stacks.of_frames(|frame| self.numbered_frame(frame)));
            let branches = match self.query.chains.shows_branches() {
                true => stacks.frames.iter().map(|frame| frame.branch).collect(),
                false => Vec::new(),
            };
            profile.calls = CallTrees {
                chains: stacks.chains.closed(),
                samples: classified.samples,
                classes: classified.classes,
                names,
                branches,
                rows: ids.into_iter().zip(places).collect(),
                shows,
                merged: None,
            };
        }
    }

    /// Returns a frame's number if its symbol keeps that, else its name.
    fn numbered_frame(&self, frame: &Frame) -> NewOrKnown<'_, NamedFrame<FunctionName>> {
        let by_function = self.query.chains.key == FrameKey::Function;
        let slot = self.slot(frame, FRAME_SLOT, 0).filter(|_| by_function);
        match slot.and_then(NumberSlot::get) {
            Some(number) => NewOrKnown::Known(number),
            None => NewOrKnown::New(self.named_frame(frame), slot),
        }
    }

    /// Returns what each word of a row shows: the event, then the columns.
    fn shows(&self) -> Vec<Shows> {
        // A key with only a frame, and a key with all but the frame.
        let (mut frame, mut base) = (NO_KEY, NO_KEY.map(|_| u64::MAX));
        let end = End { cpu_mode: 1, is_inlined: true, is_symbol: true };
        let any = Frame {
            module: 1,
            end,
            address: 1,
            ip: 1,
            offset: 1,
            line: 1,
            size: 1,
            ..Frame::default()
        };
        any.put(&mut frame);
        Frame::default().put(&mut base);
        let shows = |column: &Column| {
            let [frame, base] =
                [frame, base].map(|key| column.key.declared().content(&key) != [0; 4]);
            Shows { frame, base }
        };
        std::iter::once(Shows { frame: false, base: true })
            .chain(self.query.columns.iter().map(shows))
            .collect()
    }

    /// Returns the fields that the columns show.
    fn shown(&self) -> Layout {
        let (chains, filters) = (ChainOptions::default(), Filters::default());
        Layout::of(&Query { chains, filters, ..self.query.clone() })
    }

    /// Returns the name of a frame: its function, or the address without one, and what else
    /// distinguishes frames in this query.
    fn named_frame(&self, frame: &Frame) -> NamedFrame<FunctionName> {
        let by_address = self.query.chains.key == FrameKey::Address;
        let Some(module) = self.module_number(frame.module.into()) else {
            if frame.is_missing() {
                return NamedFrame::from_code(FrameCode::CallersUnknown);
            }
            let address = Some(frame.address).filter(|address| by_address && *address != UNMAPPED);
            let code = address.map_or(FrameCode::Unmapped, FrameCode::Address);
            return NamedFrame { address, ..NamedFrame::from_code(code) };
        };
        let module = Some(module);
        let Some(function) = self.function_name(frame) else {
            let address = Some(frame.address).filter(|_| by_address);
            let code = FrameCode::Address(frame.address);
            return NamedFrame { module, address, ..NamedFrame::from_code(code) };
        };
        let code = FrameCode::Function { function, is_inlined: frame.end.is_inlined };
        let named = NamedFrame { module, ..NamedFrame::from_code(code) };
        match self.position(frame).filter(|_| self.query.chains.key != FrameKey::Function) {
            None => named,
            Some((address, line)) => NamedFrame {
                address: by_address.then_some(address),
                start: self.start(frame).filter(|_| by_address),
                position: line
                    .map(FramePosition::Line)
                    .or_else(|| by_address.then_some(FramePosition::Offset(frame.offset))),
                ..named
            },
        }
    }

    /// Returns the first address of the function that replaced the address of a frame.
    fn start(&self, frame: &Frame) -> Option<u64> {
        let id = u32::try_from(frame.address).ok().filter(|_| !frame.end.is_inlined)?;
        self.loaded(frame.module.into())?.start(SymbolId(id))
    }

    /// Returns the address of a frame that has a function, and its source line, if known; `None` if
    /// no lines were looked up.
    fn position(&self, frame: &Frame) -> Option<(u64, Option<LineOrName>)> {
        let loaded = self.loaded(frame.module.into())?;
        let line = frame.line.checked_sub(1).map(LineId)?;
        let address = self.start(frame).unwrap_or(0).wrapping_add(u64::from(frame.offset));
        let is_known = frame.end.is_inlined || loaded.lines().line(address).is_some();
        Some((address, is_known.then(|| loaded.lines().get(line))))
    }
}
