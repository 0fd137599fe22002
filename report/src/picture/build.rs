//! Builds a picture of the profiles of sides and of kinds of events.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::frames::{FrameTable, SortedFrames};
use super::path::{self, PicturePiece};
use super::sides::Program;
use super::tree::{NO_NODE, SortedTree};
use super::{Cell, Picture, PictureEntry, PictureEvent, PictureRan, PictureThread, PictureWait};
use crate::callchain::Chains;
use crate::count::merge_equal;
use crate::profile::{Event, Profile};
use crate::query::{Column, Extent, Query, SortKey};
use crate::table::RowTexts;
use crate::timeline::RanThread;

/// Returns the columns of a profile that a picture is made of: without `cells`, commands only.
pub(crate) fn columns(cells: bool) -> Vec<Column> {
    let all = [
        ("comm", SortKey::Comm),
        ("pid", SortKey::Process),
        ("tid", SortKey::Tid),
        ("cpu", SortKey::Cpu),
        ("time", SortKey::Time),
    ];
    let of_key = |(typed, key): (&str, SortKey)| Column { typed: typed.into(), key };
    all.into_iter().take(if cells { 5 } else { 1 }).map(of_key).collect()
}

/// Returns the columns of a profile of what threads did: those with cells, and how far each reaches.
pub(crate) fn columns_of_times() -> Vec<Column> {
    let mut all = columns(true);
    all.push(Column { typed: String::new(), key: SortKey::Extent });
    all
}

/// A picture that is being built: numbers are those of the order in which things were found.
#[derive(Debug, Default)]
pub(crate) struct PictureBuilder {
    frames: FrameTable,
    tree: Chains,
    commands: Vec<String>,
    of_commands: FxHashMap<String, u32>,
    threads: Vec<PictureThread>,
    of_threads: FxHashMap<PictureThread, u32>,
    events: Vec<PictureEvent>,
    /// Length of a step of each side.
    pub(super) side_steps: Vec<u64>,
    pub(super) path: Vec<PicturePiece>,
    pub(super) waits: Vec<PictureWait>,
    pub(super) wait_texts: IndexSet<String, FxBuildHasher>,
    /// `true` if events of time off CPUs are added, which show more than the samples of switches.
    has_times: bool,
    /// Program of the first side.
    program: Option<Program>,
}

/// A program of another side that has the place of the first side's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RenamedProgram {
    pub(crate) command: String,
    pub(crate) shown_as: String,
}

/// Places of the columns in rows, behind the event.
struct Columns {
    comm: Option<usize>,
    pid: Option<usize>,
    tid: Option<usize>,
    cpu: Option<usize>,
    time: Option<usize>,
    extent: Option<usize>,
}

impl Columns {
    fn of(query: &Query) -> Self {
        let place = |key: SortKey| query.columns.iter().position(|column| column.key == key);
        Self {
            comm: place(SortKey::Comm),
            pid: place(SortKey::Process),
            tid: place(SortKey::Tid),
            cpu: place(SortKey::Cpu),
            time: place(SortKey::Time),
            extent: place(SortKey::Extent),
        }
    }
}

/// Event and cell of a row.
#[derive(Clone, Copy, Default)]
struct RowPlace {
    event: usize,
    cell: u32,
}

impl PictureBuilder {
    /// Returns a builder of a picture that has events of time off CPUs, where these were recorded.
    pub(crate) fn with_times() -> Self {
        Self { has_times: true, ..Self::default() }
    }

    /// Adds the profile that answers a query by [`columns`], with times in steps of `step`
    /// nanoseconds since the first sample. Returns the program that is shown under another name, as
    /// the first side's.
    pub(crate) fn add(
        &mut self,
        profile: &Profile,
        query: &Query,
        side: u32,
        step: u64,
    ) -> Option<RenamedProgram> {
        let is_new = self.side_steps.len() <= side as usize;
        if is_new {
            self.side_steps.resize(side as usize + 1, step);
        }
        let renamed = if is_new { self.matched(profile, query, side) } else { None };
        let calls = &profile.calls;
        let frames = self.frames.numbers(profile);
        let frame = |number: u32| frames.get(number as usize).copied();
        let tree = &mut self.tree;
        let nodes = calls.chains.fold_callers(0, |node, callers| match frame(node.frame) {
            Some(frame) => tree.add(callers, frame),
            None => callers,
        });
        let rows = self.rows(profile, query, side, step);
        let mut of_bases = Vec::new();
        for ((base, _), row) in &calls.rows {
            let base = *base as usize;
            of_bases.resize(of_bases.len().max(base + 1), None);
            if let Some(slot) = of_bases.get_mut(base) {
                *slot = rows.get(*row).copied();
            }
        }
        for sample in &calls.samples {
            let Some(Some(RowPlace { event, cell })) = of_bases.get(sample.base as usize).copied()
            else {
                continue;
            };
            let callers = nodes.get(sample.callers as usize).copied().unwrap_or(0);
            let node = match frame(sample.frame) {
                Some(own) => self.tree.add(callers, own),
                None => callers,
            };
            if let Some(event) = self.events.get_mut(event) {
                event.entries.push(PictureEntry { node, cell, count: sample.count });
                if let Some(total) = event.totals.get_mut(side as usize) {
                    total.add(sample.count);
                }
            }
        }
        renamed
    }

    /// Matches the program and the modules of a new side with those of the first one.
    fn matched(&mut self, profile: &Profile, query: &Query, side: u32) -> Option<RenamedProgram> {
        let program = Program::of(profile, query);
        if side == 0 {
            self.program = program;
            return None;
        }
        self.frames.match_modules(profile);
        let (first, program) = (self.program.as_ref()?, program?);
        if !first.is_renamed(&program) {
            return None;
        }
        let shown_as = first.command.clone();
        self.frames.take_for(&program.module, &first.module);
        let number = self.of_commands.get(&shown_as).copied()?;
        self.of_commands.insert(program.command.clone(), number);
        Some(RenamedProgram { command: program.command, shown_as })
    }

    /// Returns the events and cells of a profile's rows.
    fn rows(&mut self, profile: &Profile, query: &Query, side: u32, step: u64) -> Vec<RowPlace> {
        let (names, texts) = (&profile.names, RowTexts::new(profile, query, &profile.names));
        let columns = Columns::of(query);
        let events: Vec<Option<usize>> = profile
            .events()
            .iter()
            .map(|event| (!self.has_times || !path::is_of_times(event)).then(|| self.event(event)))
            .collect();
        let mut of_cells = vec![FxHashMap::<Cell, u32>::default(); self.events.len()];
        let mut places = Vec::with_capacity(profile.rows.len());
        for (words, _) in profile.rows.iter() {
            let [event, cells @ ..] = words else { continue };
            let word = |place: Option<usize>| cells.get(place?).copied();
            let task = |place: Option<usize>| texts.task(place?, word(place)?);
            let thread = PictureThread {
                command: self
                    .command(&word(columns.comm).map_or("".into(), |comm| names.label_text(comm))),
                side,
                pid: task(columns.pid).unwrap_or(-1),
                tid: task(columns.tid).unwrap_or(-1),
            };
            let cpu = word(columns.cpu).and_then(|cpu| u32::try_from(cpu).ok()?.checked_add(1));
            let cell = Cell {
                thread: self.thread(thread),
                step: word(columns.time).map_or(0, |time| time / step.max(1)),
                cpu: cpu.unwrap_or(0),
                extent: word(columns.extent).map(Extent::unpack).unwrap_or_default(),
            };
            let event = usize::try_from(*event).ok().and_then(|event| events.get(event).copied());
            let Some(event) = event.unwrap_or(Some(0)) else {
                places.push(RowPlace { event: usize::MAX, cell: 0 });
                continue;
            };
            let Some((known, of_event)) = of_cells.get_mut(event).zip(self.events.get_mut(event))
            else {
                continue;
            };
            of_event.has_extents |= columns.extent.is_some();
            let cell = *known.entry(cell).or_insert_with(|| {
                of_event.cells.push(cell);
                small(of_event.cells.len() - 1)
            });
            places.push(RowPlace { event, cell });
        }
        places
    }

    /// Adds when threads ran to the event of this name, if a sample of theirs is in it.
    pub(crate) fn add_ran(&mut self, event: &str, side: u32, ran: &[RanThread]) {
        let names = self.names(event, side);
        let Some(event) = self.events.iter_mut().find(|known| known.name == event) else { return };
        for RanThread { pid, tid, spans } in ran {
            event.ran.extend(spans.iter().filter_map(|span| {
                let thread = named(&names, [*pid, *tid], span.step)?;
                Some(PictureRan { thread, span: *span })
            }));
        }
    }

    /// Returns the threads that have samples in an event, with the steps from which on they have
    /// their names, by pid and tid: one under several names has them one after the other.
    pub(super) fn names(&self, event: &str, side: u32) -> FxHashMap<[i32; 2], Vec<(u64, u32)>> {
        let mut names: FxHashMap<[i32; 2], Vec<(u64, u32)>> = FxHashMap::default();
        let event = self.events.iter().find(|known| known.name == event);
        for cell in event.iter().flat_map(|event| &event.cells) {
            let Some(thread) = self.threads.get(cell.thread as usize) else { continue };
            if thread.side != side {
                continue;
            }
            let known = names.entry([thread.pid, thread.tid]).or_default();
            match known.iter_mut().find(|(_, number)| *number == cell.thread) {
                Some((first, _)) => *first = cell.step.min(*first),
                None => known.push((cell.step, cell.thread)),
            }
        }
        names.values_mut().for_each(|known| known.sort_unstable());
        names
    }

    /// Returns the place of the event with this name.
    fn event(&mut self, event: &Event) -> usize {
        let known = self.events.iter_mut().enumerate().find(|(_, known)| known.name == event.name);
        if let Some((place, known)) = known {
            known.lost_samples = known.lost_samples.saturating_add(event.lost_samples);
            return place;
        }
        self.events.push(PictureEvent {
            name: event.name.clone(),
            counts_time: event.counts_time,
            is_tracepoint: event.is_tracepoint,
            lost_samples: event.lost_samples,
            ..PictureEvent::default()
        });
        self.events.len() - 1
    }

    fn command(&mut self, name: &str) -> u32 {
        if let Some(number) = self.of_commands.get(name) {
            return *number;
        }
        let number = small(self.commands.len());
        self.commands.push(name.to_owned());
        self.of_commands.insert(name.to_owned(), number);
        number
    }

    fn thread(&mut self, thread: PictureThread) -> u32 {
        *self.of_threads.entry(thread).or_insert_with(|| {
            self.threads.push(thread);
            small(self.threads.len() - 1)
        })
    }

    /// Returns the picture, in an order that depends only on what is in it. Times are in steps of
    /// `step` nanoseconds.
    pub(crate) fn finish(self, step: u64) -> Picture {
        let sides = self.side_steps.len();
        let mut frames = self.frames;
        frames.add_rare_stacks();
        let SortedFrames { modules, frames, places } = frames.sorted();
        let place = |frame: u32| places.get(frame as usize).copied().unwrap_or(0);
        let SortedTree { nodes, places: of_nodes } = SortedTree::of(&self.tree, place);
        let mut events = self.events;
        let of_threads = sort_threads(&self.threads, &self.commands, &events);
        let mut commands: Vec<(String, u32)> = self.commands.into_iter().zip(0..).collect();
        commands.sort_unstable();
        let of_commands = inverse(commands.iter().map(|(_, number)| *number));
        let command = |number: u32| of_commands.get(number as usize).copied().unwrap_or(0);
        for event in &mut events {
            for (side, length) in (0..).zip(&self.side_steps) {
                let times = step.checked_div(*length).unwrap_or(1).max(1).ilog2();
                let is_of = |thread: u32| {
                    self.threads.get(thread as usize).is_some_and(|thread| thread.side == side)
                };
                (0..times).for_each(|_| event.join_steps(is_of));
            }
            let place = |thread: u32| of_threads.get(thread as usize).copied().unwrap_or(0);
            event.cells.iter_mut().for_each(|cell| cell.thread = place(cell.thread));
            event.ran.iter_mut().for_each(|ran| ran.thread = place(ran.thread));
            for entry in &mut event.entries {
                entry.node = of_nodes.get(entry.node as usize).copied().unwrap_or(NO_NODE);
            }
            // Samples without any frame cannot be shown in a tree.
            event.entries.retain(|entry| entry.node != NO_NODE);
            event.settle();
        }
        events.retain(|event| !event.entries.is_empty());
        let (mut path, mut waits) = (self.path, self.waits);
        let times = |thread: u32| {
            let side = self.threads.get(thread as usize).map_or(0, |thread| thread.side);
            let length = self.side_steps.get(side as usize).copied().unwrap_or(step);
            step.checked_div(length).unwrap_or(1).max(1)
        };
        for piece in &mut path {
            let times = times(piece.thread);
            (piece.from, piece.to) = (piece.from / times, piece.to / times);
            piece.thread = of_threads.get(piece.thread as usize).copied().unwrap_or(0);
        }
        path::join(&mut path);
        for wait in &mut waits {
            *wait = wait.in_longer_steps(times(wait.thread));
            wait.thread = of_threads.get(wait.thread as usize).copied().unwrap_or(0);
        }
        waits.sort_unstable_by_key(|wait| (wait.thread, wait.from));
        let mut threads: Vec<(u32, PictureThread)> =
            of_threads.iter().copied().zip(self.threads).collect();
        threads.sort_unstable_by_key(|(place, _)| *place);
        Picture {
            modules,
            frames,
            nodes,
            commands: commands.into_iter().map(|(name, _)| name).collect(),
            threads: threads
                .into_iter()
                .map(|(_, thread)| PictureThread { command: command(thread.command), ..thread })
                .collect(),
            events,
            path,
            waits,
            wait_texts: self.wait_texts.into_iter().collect(),
            step,
            sides,
        }
    }
}

/// Returns the number of the thread that has this pid and tid in a step.
pub(super) fn named(
    names: &FxHashMap<[i32; 2], Vec<(u64, u32)>>,
    ids: [i32; 2],
    step: u64,
) -> Option<u32> {
    let names = names.get(&ids)?;
    let after = names.partition_point(|(first, _)| *first <= step);
    names.get(after.saturating_sub(1)).map(|(_, thread)| *thread)
}

/// Returns the places of threads in the order of their commands' names, sides, processes, and
/// first samples.
fn sort_threads(
    threads: &[PictureThread],
    commands: &[String],
    events: &[PictureEvent],
) -> Vec<u32> {
    let mut first = vec![u64::MAX; threads.len()];
    for cell in events.iter().flat_map(|event| &event.cells) {
        if let Some(first) = first.get_mut(cell.thread as usize) {
            *first = cell.step.min(*first);
        }
    }
    let mut order: Vec<u32> = (0..small(threads.len())).collect();
    order.sort_unstable_by_key(|number| {
        let thread = threads.get(*number as usize).copied().unwrap_or_default();
        let command = commands.get(thread.command as usize).map_or("", String::as_str);
        let first = first.get(*number as usize).copied().unwrap_or(0);
        (command, thread.side, thread.pid, first, thread.tid)
    });
    inverse(order.into_iter())
}

/// Returns the place of each number in an order of all numbers.
fn inverse(order: impl ExactSizeIterator<Item = u32>) -> Vec<u32> {
    let mut places = vec![0; order.len()];
    for (place, number) in (0..).zip(order) {
        if let Some(slot) = places.get_mut(number as usize) {
            *slot = place;
        }
    }
    places
}

fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl PictureEvent {
    /// Puts the cells and times of threads into steps of twice the length.
    fn join_steps(&mut self, is_of: impl Fn(u32) -> bool) {
        for cell in self.cells.iter_mut().filter(|cell| is_of(cell.thread)) {
            cell.extent = cell.extent.in_longer_steps(cell.step);
            cell.step /= 2;
        }
        for PictureRan { span, .. } in self.ran.iter_mut().filter(|ran| is_of(ran.thread)) {
            span.extent = span.extent.in_longer_steps(span.step);
            span.step /= 2;
        }
    }

    /// Sorts cells and entries, and makes one of equal ones.
    pub(super) fn settle(&mut self) {
        self.ran.sort_unstable_by_key(|ran| (ran.thread, ran.span.step, ran.span.extent.more));
        self.ran.dedup_by(|next, kept| {
            let is_one = (kept.thread, kept.span.step) == (next.thread, next.span.step)
                && kept.span.extent.more == 0
                && next.span.extent.more == 0;
            if is_one {
                kept.span.time = kept.span.time.saturating_add(next.span.time);
            }
            is_one
        });
        let mut order: Vec<(Cell, u32)> = self.cells.iter().copied().zip(0..).collect();
        order.sort_unstable();
        let mut places = vec![0; order.len()];
        self.cells.clear();
        for (cell, number) in order {
            if self.cells.last() != Some(&cell) {
                self.cells.push(cell);
            }
            if let Some(slot) = places.get_mut(number as usize) {
                *slot = small(self.cells.len() - 1);
            }
        }
        for entry in &mut self.entries {
            entry.cell = places.get(entry.cell as usize).copied().unwrap_or(0);
        }
        merge_equal(
            &mut self.entries,
            |entry| (entry.node, entry.cell),
            |entry, next| entry.count.add(next.count),
        );
    }
}

impl Picture {
    /// Returns the same with steps of twice the length.
    pub(crate) fn with_longer_steps(mut self) -> Self {
        self.step = self.step.saturating_mul(2);
        for event in &mut self.events {
            event.join_steps(|_| true);
            event.settle();
        }
        for piece in &mut self.path {
            (piece.from, piece.to) = (piece.from / 2, piece.to / 2);
        }
        path::join(&mut self.path);
        for wait in &mut self.waits {
            *wait = wait.in_longer_steps(2);
        }
        self
    }
}
