//! The numbers of a page: columns of LEB128, each packed alone.
//!
//! `docs/page.md` has the layout.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use rayon::prelude::*;

use crate::count::Count;
use crate::picture::{Picture, PictureEvent, PicturePiece, PictureRan, PictureWait};
use crate::timeline::RanSpan;

/// A column before it is packed.
#[derive(Debug)]
pub(super) struct PageColumn {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// A column as it is in the page: base64 of raw deflate.
#[derive(Debug)]
pub(super) struct PackedColumn {
    pub(super) name: String,
    pub(super) text: String,
}

/// How an event's weights are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Weights {
    /// All samples weigh the same.
    Equal(u64),
    /// Each entry has its weight in these units.
    Units(u64),
}

/// Numbers, one after the other.
#[derive(Debug, Default)]
struct Numbers(Vec<u8>);

impl Numbers {
    fn put(&mut self, mut number: u64) {
        loop {
            let low = u8::try_from(number & 0x7f).unwrap_or(0);
            number >>= 7;
            self.0.push(if number == 0 { low } else { low | 0x80 });
            if number == 0 {
                return;
            }
        }
    }

    fn column(self, name: impl Into<String>) -> PageColumn {
        PageColumn { name: name.into(), bytes: self.0 }
    }
}

impl PageColumn {
    /// Creates a column of texts, joined by NUL.
    fn texts<'t>(name: &str, texts: impl Iterator<Item = &'t str>) -> Self {
        // A NUL of a text's own would end it.
        let texts: Vec<String> = texts.map(|text| text.replace('\0', "\u{fffd}")).collect();
        Self { name: name.into(), bytes: texts.join("\0").into_bytes() }
    }

    fn packed(&self) -> io::Result<PackedColumn> {
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::new(6));
        packed.write_all(&self.bytes)?;
        Ok(PackedColumn { name: self.name.clone(), text: STANDARD.encode(packed.finish()?) })
    }
}

/// Packs columns on all cores.
pub(super) fn packed(columns: &[PageColumn]) -> io::Result<Vec<PackedColumn>> {
    columns.par_iter().map(PageColumn::packed).collect()
}

/// Returns the columns of a picture: names, tree, threads, and those of each event.
pub(super) fn columns(picture: &Picture) -> Vec<PageColumn> {
    let mut columns = vec![
        PageColumn::texts("names", picture.frames.iter().map(|frame| frame.name.as_str())),
        frames(picture),
        PageColumn::texts("commands", picture.commands.iter().map(String::as_str)),
        threads(picture),
    ];
    columns.extend(tree(picture));
    if !picture.path.is_empty() {
        columns.push(path(picture));
    }
    if !picture.waits.is_empty() {
        columns.push(waits(picture));
        let texts = picture.wait_texts.iter().map(String::as_str);
        columns.push(PageColumn::texts("waited", texts));
    }
    for (number, event) in picture.events.iter().enumerate() {
        columns.push(cells(picture, event, number));
        if event.has_extents {
            columns.push(extents(event, number));
            columns.push(ran(picture, event, number));
        }
        columns.extend(entries(picture, event, number));
        columns.push(sums(picture, event, number));
    }
    columns
}

/// Runs of frames of one module and kind.
fn frames(picture: &Picture) -> PageColumn {
    let mut numbers = Numbers::default();
    for run in picture.frames.chunk_by(|a, b| (a.module, a.kind) == (b.module, b.kind)) {
        let Some(first) = run.first() else { continue };
        numbers.put(first.module.into());
        numbers.put(first.kind as u64);
        numbers.put(run.len() as u64);
    }
    numbers.column("frames")
}

fn threads(picture: &Picture) -> PageColumn {
    let mut numbers = Numbers::default();
    for thread in &picture.threads {
        numbers.put(thread.command.into());
        numbers.put(thread.side.into());
        for number in [thread.pid, thread.tid] {
            numbers.put(u64::try_from(i64::from(number) + 1).unwrap_or(0));
        }
    }
    numbers.column("threads")
}

/// The number of pieces of the critical path, and for each its thread, what that did, and in 256ths
/// of a step how far it begins behind the one before and how long it is.
fn path(picture: &Picture) -> PageColumn {
    let mut numbers = Numbers::default();
    numbers.put(picture.path.len() as u64);
    let mut before = 0;
    for PicturePiece { thread, activity, from, to } in &picture.path {
        numbers.put((*thread).into());
        numbers.put((*activity).into());
        numbers.put(from.saturating_sub(before));
        numbers.put(to.saturating_sub(*from.max(&before)));
        before = *to.max(&before);
    }
    numbers.column("path")
}

/// The numbers of long waits and of their texts, and for each wait its thread less the one before's, in 256ths of a step how
/// far it begins behind that of the thread before it, how long it lasts until the wake, and how long
/// from then on until the thread runs, and the texts of what it is for, who ended it, and that one's callchain.
fn waits(picture: &Picture) -> PageColumn {
    let mut numbers = Numbers::default();
    numbers.put(picture.waits.len() as u64);
    numbers.put(picture.wait_texts.len() as u64);
    let mut before = PictureWait::default();
    for wait in &picture.waits {
        if wait.thread != before.thread {
            before = PictureWait { thread: before.thread, ..PictureWait::default() };
        }
        numbers.put((wait.thread - before.thread).into());
        numbers.put(wait.from - before.from);
        numbers.put(wait.woken.saturating_sub(wait.from));
        numbers.put(wait.to.saturating_sub(wait.woken));
        numbers.put(wait.what.into());
        numbers.put(wait.woken_by.into());
        numbers.put(wait.waker_stack.into());
        before = *wait;
    }
    numbers.column("waits")
}

/// For each node how far up its caller is, and the difference to the sibling before it.
fn tree(picture: &Picture) -> [PageColumn; 2] {
    let (mut pops, mut siblings) = (Numbers::default(), Numbers::default());
    // The last frame of each depth, among the children of the current callers.
    let mut last: Vec<u32> = Vec::new();
    let mut before = 0;
    for node in &picture.nodes {
        pops.put((before + 1 - node.depth).into());
        before = node.depth;
        let depth = node.depth as usize;
        let sibling = if last.len() >= depth { last.get(depth - 1).copied() } else { None };
        siblings.put(node.frame.saturating_sub(sibling.unwrap_or(0)).into());
        last.truncate(depth);
        last.resize(depth, 0);
        if let Some(slot) = last.last_mut() {
            *slot = node.frame;
        }
    }
    [pops.column("pops"), siblings.column("sibs")]
}

/// For each thread the number of its cells, then their steps, then their CPUs.
fn cells(picture: &Picture, event: &PictureEvent, number: usize) -> PageColumn {
    let mut numbers = Numbers::default();
    let mut cells = event.cells.as_slice();
    for thread in 0..picture.threads.len() {
        let len = cells.iter().take_while(|cell| cell.thread as usize == thread).count();
        let (own, rest) = cells.split_at_checked(len).unwrap_or((cells, &[]));
        cells = rest;
        numbers.put(len as u64);
        let mut before = 0;
        for cell in own {
            numbers.put(cell.step - before);
            before = cell.step;
        }
        own.iter().for_each(|cell| numbers.put(cell.cpu.into()));
    }
    numbers.column(format!("cells{number}"))
}

/// For each cell what its thread did, then the numbers of steps after the first one, then of those
/// that have some the part of the first step.
fn extents(event: &PictureEvent, number: usize) -> PageColumn {
    let mut numbers = Numbers::default();
    let extents = event.cells.iter().map(|cell| cell.extent);
    extents.clone().for_each(|extent| numbers.put(extent.activity.into()));
    extents.clone().for_each(|extent| numbers.put(extent.more));
    for extent in extents.filter(|extent| extent.more > 0) {
        numbers.put(extent.head.into());
    }
    numbers.column(format!("extents{number}"))
}

/// For each thread the number of its running times, then their steps, the numbers of steps after
/// the first one, parts of the first step, and lengths in 256ths of a step: of all that lie in a
/// step, else of the part in the last one.
fn ran(picture: &Picture, event: &PictureEvent, number: usize) -> PageColumn {
    let mut numbers = Numbers::default();
    let mut all = event.ran.as_slice();
    for thread in 0..picture.threads.len() {
        let len = all.iter().take_while(|ran| ran.thread as usize == thread).count();
        let (own, rest) = all.split_at_checked(len).unwrap_or((all, &[]));
        all = rest;
        numbers.put(len as u64);
        let mut before = 0;
        for PictureRan { span, .. } in own {
            numbers.put(span.step - before);
            before = span.step;
        }
        own.iter().for_each(|ran| numbers.put(ran.span.extent.more));
        for PictureRan { span: RanSpan { extent, .. }, .. } in own {
            if extent.more > 0 {
                numbers.put(extent.head.into());
            }
        }
        for PictureRan { span: RanSpan { extent, time, .. }, .. } in own {
            let parts = |time: u64| {
                u64::try_from(u128::from(time) * 256 / u128::from(picture.step.max(1)))
                    .unwrap_or(u64::MAX)
            };
            let before = match extent.more {
                0 => 0,
                more => u64::from(extent.head) + 1 + (more - 1) * 256,
            };
            numbers.put(parts(*time).saturating_sub(before));
        }
    }
    numbers.column(format!("ran{number}"))
}

/// For each node the number of its entries; for each entry its cell, samples and weight.
fn entries(picture: &Picture, event: &PictureEvent, number: usize) -> Vec<PageColumn> {
    let (mut lens, mut gaps) = (Numbers::default(), Numbers::default());
    let (mut counts, mut weights) = (Numbers::default(), Numbers::default());
    let of_event = event.weights(picture.step);
    let mut entries = event.entries.as_slice();
    for node in 0..picture.nodes.len() {
        let len = entries.iter().take_while(|entry| entry.node as usize == node).count();
        let (own, rest) = entries.split_at_checked(len).unwrap_or((entries, &[]));
        entries = rest;
        lens.put(len as u64);
        let mut next = 0;
        // What rounding left over is carried on, so that sums are off by less than a unit.
        let mut left = 0_i128;
        for entry in own {
            gaps.put(u64::from(entry.cell) - next);
            next = u64::from(entry.cell) + 1;
            counts.put(entry.count.samples.saturating_sub(1));
            if let Weights::Units(unit) = of_event {
                let exact = i128::from(entry.count.period) + left;
                let units = ((exact + i128::from(unit) / 2) / i128::from(unit)).max(0);
                left = exact - units * i128::from(unit);
                weights.put(u64::try_from(units).unwrap_or(0));
            }
        }
    }
    let mut all = vec![
        lens.column(format!("lens{number}")),
        gaps.column(format!("gaps{number}")),
        counts.column(format!("counts{number}")),
    ];
    if let Weights::Units(_) = of_event {
        all.push(weights.column(format!("weights{number}")));
    }
    all
}

/// Exact sums of functions, which rounded weights do not give.
fn sums(picture: &Picture, event: &PictureEvent, number: usize) -> PageColumn {
    let mut numbers = Numbers::default();
    let of_frames = picture.frame_sums(event);
    for side in 0..picture.sides {
        for sums in &of_frames {
            for of_side in [&sums.own, &sums.all] {
                let Count { samples, period } = of_side.get(side).copied().unwrap_or_default();
                numbers.put(samples);
                numbers.put(period);
            }
        }
    }
    numbers.column(format!("sums{number}"))
}

impl PictureEvent {
    /// Returns how weights are kept: units of a quarter of the mean, and of at most a 64th of a step
    /// where these are lengths of times. Samples of tracepoints weigh the same, as in
    /// [`Picture::weight`].
    pub(super) fn weights(&self, step: u64) -> Weights {
        if self.is_tracepoint {
            return Weights::Equal(1);
        }
        let total = self.totals.iter().copied().sum::<Count>();
        let mean = total.period.checked_div(total.samples).unwrap_or(0);
        let is_equal = |count: &Count| count.samples.checked_mul(mean) == Some(count.period);
        let most = if self.has_extents { step / 64 } else { u64::MAX };
        match self.entries.iter().all(|entry| is_equal(&entry.count)) {
            true => Weights::Equal(mean),
            false => Weights::Units((mean / 4).min(most).max(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::{Cell, FrameKind, PictureEntry, PictureFrame, PictureNode, PictureThread};
    use crate::query::Extent;

    fn count(samples: u64, period: u64) -> Count {
        Count { samples, period }
    }

    /// main -> { f -> g, h } of a thread, and f of another one at an unknown CPU.
    fn picture() -> Picture {
        let frame = |name: &str, module, kind| PictureFrame { module, kind, name: name.into() };
        let node = |frame, depth| PictureNode { frame, depth };
        let cell = |thread, step, cpu| Cell { thread, step, cpu, ..Cell::default() };
        let entry = |node, cell, count| PictureEntry { node, cell, count };
        Picture {
            frames: vec![
                frame("[callers unknown]", 0, FrameKind::Cut),
                frame("f", 1, FrameKind::User),
                frame("g", 1, FrameKind::User),
                frame("h", 1, FrameKind::InlinedUser),
                frame("main", 2, FrameKind::User),
            ],
            nodes: vec![node(1, 1), node(4, 1), node(1, 2), node(2, 3), node(3, 2)],
            commands: vec!["a".into(), "b".into()],
            threads: vec![
                PictureThread { command: 0, side: 0, pid: 300, tid: 301 },
                PictureThread { command: 1, side: 0, pid: -1, tid: 7 },
            ],
            events: vec![PictureEvent {
                cells: vec![cell(0, 3, 1), cell(0, 3, 2), cell(0, 303, 1), cell(1, 5, 0)],
                entries: vec![
                    entry(0, 3, count(1, 10)),
                    entry(3, 0, count(2, 13)),
                    entry(3, 2, count(1, 8)),
                    entry(4, 1, count(130, 1300)),
                ],
                totals: [count(134, 1331), Count::default()],
                ..PictureEvent::default()
            }],
            step: 1,
            sides: 1,
            ..Picture::default()
        }
    }

    #[test]
    fn columns_are_these_bytes() {
        let columns = columns(&picture());
        let found: Vec<(&str, &[u8])> =
            columns.iter().map(|column| (column.name.as_str(), column.bytes.as_slice())).collect();
        let expected: [(&str, &[u8]); 11] = [
            ("names", b"[callers unknown]\0f\0g\0h\0main"),
            // module, kind, length: of five runs.
            ("frames", &[0, 4, 1, 1, 0, 2, 1, 5, 1, 2, 0, 1]),
            ("commands", b"a\0b"),
            ("threads", &[0, 0, 0xad, 2, 0xae, 2, 1, 0, 0, 8]),
            ("pops", &[0, 1, 0, 0, 2]),
            // f; main - f; f; g; h - f
            ("sibs", &[1, 3, 1, 2, 2]),
            ("cells0", &[3, 3, 0, 0xac, 2, 1, 2, 1, 1, 5, 0]),
            ("lens0", &[1, 0, 0, 2, 1]),
            ("gaps0", &[3, 0, 1, 1]),
            ("counts0", &[0, 1, 0, 0x81, 1]),
            // Units of 2 (9 / 4): 5; 13 -> 7, one too much, so 8 -> 4 (3.5); 650.
            ("weights0", &[5, 7, 4, 0x8a, 5]),
        ];
        assert_eq!(found.get(..11), Some(expected.as_slice()));
        let sums: &[u8] = &[
            0, 0, 0, 0, 1, 10, 4, 31, 3, 21, 3, 21, 0x82, 1, 0x94, 10, 0x82, 1, 0x94, 10, 0, 0,
            0x85, 1, 0xa9, 10,
        ];
        assert_eq!(found.get(11..), Some([("sums0", sums)].as_slice()));
    }

    #[test]
    fn times_reach_over_steps() {
        let extent = |activity, more, head| Extent { activity, more, head };
        let mut picture = picture();
        picture.step = 1024;
        picture.events[0].has_extents = true;
        picture.events[0].cells[0].extent = extent(1, 0, 0);
        picture.events[0].cells[2].extent = extent(2, 2, 63);
        let ran = |thread, step, more, head, time| {
            let span = RanSpan { step, extent: extent(0, more, head), time };
            PictureRan { thread, span }
        };
        // Of 256 + 512: a quarter of a step, and half of the next one.
        picture.events[0].ran =
            vec![ran(0, 2, 0, 0, 512), ran(0, 5, 1, 63, 768), ran(1, 9, 0, 0, 4)];
        let find = |picture: &Picture, name: &str| {
            columns(picture).into_iter().find(|column| column.name == name).unwrap().bytes
        };
        assert_eq!(find(&picture, "extents0"), [1, 0, 2, 0, 0, 0, 2, 0, 63]);
        assert_eq!(
            find(&picture, "ran0"),
            [2, 2, 3, 0, 1, 63, 0x80, 1, 0x80, 1, 1, 9, 0, 1],
            "of two threads"
        );
        // 303 to 305 are 151 and 152.
        let longer = picture.with_longer_steps();
        assert_eq!(find(&longer, "extents0"), [1, 0, 2, 0, 0, 0, 1, 0, 31]);
        assert_eq!(find(&longer, "ran0"), [2, 1, 1, 0, 1, 31, 64, 64, 1, 4, 0, 0]);
    }

    #[test]
    fn the_path_is_a_column() {
        let piece = |thread, activity, from, to| PicturePiece { thread, activity, from, to };
        let path = vec![piece(1, 0, 10, 300), piece(0, 4, 300, 310), piece(0, 0, 320, 330)];
        let columns = columns(&Picture { path, ..picture() });
        let found = columns.iter().find(|column| column.name == "path").unwrap();
        assert_eq!(found.bytes, [3, 1, 0, 10, 0xa2, 2, 0, 4, 0, 10, 0, 0, 10, 10]);
    }

    #[test]
    fn long_waits_are_columns() {
        let wait = |thread, from, woken, to, what, woken_by, waker_stack| PictureWait {
            thread,
            from,
            woken,
            to,
            what,
            woken_by,
            waker_stack,
        };
        let waits = vec![wait(1, 8, 20, 21, 0, 1, 3), wait(1, 40, 60, 60, 2, 1, 3)];
        let texts = ["sleep", "timer", "disk", "a\nb"].map(str::to_owned);
        let picture = Picture { waits, wait_texts: texts.into(), ..picture() };
        let of = |picture: &Picture, name: &str| {
            columns(picture).into_iter().find(|column| column.name == name).map(|one| one.bytes)
        };
        let want = [2, 4, 1, 8, 12, 1, 0, 1, 3, 0, 32, 20, 0, 2, 1, 3];
        assert_eq!(of(&picture, "waits").unwrap(), want);
        assert_eq!(of(&picture, "waited").unwrap(), b"sleep\0timer\0disk\0a\nb");
        let longer = picture.with_longer_steps();
        assert_eq!(
            of(&longer, "waits").unwrap(),
            [2, 4, 1, 4, 6, 0, 0, 1, 3, 0, 16, 10, 0, 2, 1, 3]
        );
    }

    #[test]
    fn equal_weights_need_no_column() {
        let mut picture = picture();
        for entry in &mut picture.events[0].entries {
            entry.count.period = entry.count.samples * 7;
        }
        picture.events[0].totals[0].period = 134 * 7;
        assert_eq!(picture.events[0].weights(1), Weights::Equal(7));
        assert!(columns(&picture).iter().all(|column| column.name != "weights0"));
    }
}
