//! Rows of samples with callchains, counted in their callers too if `--children` applies, and the
//! data for call trees.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::labeller::{Labeller, name_len};
use crate::callchain::{Classified, Frame, RowId, Stacks, UNMAPPED};
use crate::count::metrics::Metrics;
use crate::count::{Layout, Rows, Sum as _};
use crate::profile::Profile;
use crate::profile::names::{CALLERS_UNKNOWN, NamedFrame, Subject, Text};
use crate::profile::stacks::{CallTrees, Shows};
use crate::query::{ChainOptions, Column, End, Filters, FrameKey, Key, NO_KEY, Query};
use crate::symbols::{LineId, SymbolId};

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

/// Returns the words of rows, given those of their bases and classes and which of these each word
/// shows.
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
            let by_function = self.query.chains.key == FrameKey::Function;
            let name = |frame: &Frame| {
                let slot =
                    self.label_slots(frame).filter(|_| by_function).map(|slots| (&slots.frame, 0));
                Text::known(slot).unwrap_or_else(|| {
                    let (text, subject) = self.frame_text(frame);
                    Text::New(text, subject, slot)
                })
            };
            let names: Vec<Text<'_>> = stacks.of_frames(name);
            let mut labels = self.labels.frames.lock();
            let names = names.into_iter().map(|name| labels.number(name)).collect();
            drop(labels);
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

    /// Returns the text of a frame, and what it stands for: its function, or `module+offset` without
    /// one. If frames are told apart by address or source line, that follows the function, as in
    /// perf: `function line`; if the line is unknown, `function`, or `function +offset` by address.
    fn frame_text(&self, frame: &Frame) -> (String, Subject) {
        let key = self.query.chains.key;
        let Some(module) = self.module(frame.module.into()) else {
            if frame.is_missing() {
                return (CALLERS_UNKNOWN.into(), Subject::Text);
            }
            let has_address = key == FrameKey::Address && frame.address != UNMAPPED;
            let text =
                if has_address { format!("{:#x}", frame.address) } else { "[unknown]".into() };
            let address = has_address.then_some(frame.address);
            return (text, Subject::Frame(NamedFrame { address, ..NamedFrame::default() }));
        };
        let mut of =
            NamedFrame { module: self.module_number(frame.module.into()), ..NamedFrame::default() };
        let Some(function) = self.function(frame) else {
            let text = format!("{}+{:#x}", module.name(), frame.address);
            of.address = Some(frame.address).filter(|_| key == FrameKey::Address);
            return (text, Subject::Frame(of));
        };
        of.name_len = Some(name_len(frame, &function));
        of.named = self.named(frame, 0, &function);
        of.is_inlined = frame.end.is_inlined;
        let at = self.position(frame).filter(|_| key != FrameKey::Function);
        let after = at.map_or_else(String::new, |(address, line)| {
            of.address = Some(address).filter(|_| key == FrameKey::Address);
            of.start = of.address.and(self.start(frame));
            of.line = line.as_deref().map(Box::from);
            match line {
                Some(line) => format!(" {line}"),
                None if key == FrameKey::Address => format!(" +{}", frame.offset),
                None => String::new(),
            }
        });
        ([&*function, &after].concat(), Subject::Frame(of))
    }

    /// Returns the first address of the function that replaced the address of a frame.
    fn start(&self, frame: &Frame) -> Option<u64> {
        let id = u32::try_from(frame.address).ok().filter(|_| !frame.end.is_inlined)?;
        self.loaded(frame.module.into())?.start(SymbolId(id))
    }

    /// Returns the address of a frame that has a function, and its source line, if known; `None` if
    /// no lines were looked up.
    fn position(&self, frame: &Frame) -> Option<(u64, Option<String>)> {
        let loaded = self.loaded(frame.module.into())?;
        let line = frame.line.checked_sub(1).map(LineId)?;
        let address = self.start(frame).unwrap_or(0).wrapping_add(u64::from(frame.offset));
        let is_known = frame.end.is_inlined || loaded.lines().line(address).is_some();
        Some((address, is_known.then(|| loaded.lines().text(line))))
    }
}
