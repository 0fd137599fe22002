//! Rows of samples with callchains, counted in their callers too if `--children` applies, and the
//! data for call trees.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::labeller::Labeller;
use crate::callchain::trees::{CallTrees, Shows, frame_name};
use crate::callchain::{Classified, Frame, RowId, Stacks, UNMAPPED};
use crate::count::metrics::Metrics;
use crate::count::{Layout, Rows, Sum as _};
use crate::query::{ChainOptions, Column, End, Filters, FrameKey, Key, NO_KEY, Query};
use crate::symbols::labels::Text;
use crate::symbols::{LineId, SymbolId};
use crate::table::profile::Profile;

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
    pub fn cumulate(&self, rows: &Rows, stacks: Stacks, profile: &mut Profile) {
        let mut classified = Classified::new(rows, &stacks, &self.shown());
        let (children, shows) = (self.query.chains.children, self.shows());
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
        if self.query.chains.graph.is_some() {
            let by_function = self.query.chains.key == FrameKey::Function;
            let name = |frame: &Frame| {
                let slot =
                    self.label_slots(frame).filter(|_| by_function).map(|slots| (&slots.frame, 0));
                Text::known(slot).unwrap_or_else(|| {
                    let (module, function) = self.frame_name(frame);
                    let name = self.function(frame).filter(|name| function.starts_with(&**name));
                    let named = name.and_then(|name| self.named(frame, 0, &name));
                    Text::New(frame_name(&module, &function), named, slot)
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

    /// Returns the module and the function of a frame; without a function, `module+offset`. If
    /// frames are told apart by address or source line, the texts are those of [`Self::position`].
    pub(super) fn frame_name(&self, frame: &Frame) -> (String, String) {
        let Some(module) = self.module(frame.module.into()) else {
            let has_address =
                self.query.chains.key == FrameKey::Address && frame.address != UNMAPPED;
            return (
                String::new(),
                if has_address { format!("{:#x}", frame.address) } else { "[unknown]".into() },
            );
        };
        let name = module.name().into_owned();
        if self.query.chains.key != FrameKey::Function
            && let Some(names) = self.position(frame, &name)
        {
            return names;
        }
        let function = match self.function(frame) {
            Some(function) => function.into_owned(),
            None => format!("{name}+{:#x}", frame.address),
        };
        (name, function)
    }

    /// Returns the module and the function of a frame that is told apart by its position in the
    /// function; `None` if it has no function or line. As in perf, the text is `function line`; if
    /// the line is unknown, `function`, or `function +offset` by address. By address, the module is
    /// `module+address`.
    fn position(&self, frame: &Frame, module: &str) -> Option<(String, String)> {
        let function = self.function(frame)?;
        let loaded = self.loaded(frame.module.into())?;
        let line = frame.line.checked_sub(1).map(|line| loaded.lines().text(LineId(line)))?;
        // For an unknown line the text is `function+offset`.
        let offset = line.strip_prefix(&*function).filter(|offset| offset.starts_with('+'));
        if self.query.chains.key == FrameKey::Srcline {
            let text =
                if offset.is_some() { function.into_owned() } else { format!("{function} {line}") };
            return Some((module.to_owned(), text));
        }
        let id = u32::try_from(frame.address).ok().filter(|_| !frame.end.is_inlined).map(SymbolId);
        let start = id.and_then(|id| loaded.table.get(id)).map_or(0, |symbol| symbol.start);
        let place = format!("{module}+{:016x}", start.wrapping_add(u64::from(frame.offset)));
        Some((place, format!("{function} {}", offset.unwrap_or(&line))))
    }
}
