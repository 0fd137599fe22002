//! Pieces of the critical path, and long waits, as those of a picture.

use std::collections::BTreeMap;

use super::build::{PictureBuilder, named};
use super::path::{PARTS, PicturePiece};
use super::waits::{PictureWait, ThreadWait, keep_longest};
use crate::profile::critical_path::PathPiece;
use crate::query::Steps;
use crate::timeline::{Activity, RanThread};

impl PictureBuilder {
    /// Adds the critical path of a side in steps of its only input. Its threads are those that have
    /// samples in the event of this name, which gets the times in which they ran on the path.
    pub(crate) fn add_path(&mut self, event: &str, side: u32, steps: Steps, path: &[PathPiece]) {
        let names = self.names(event, side);
        self.path.extend(path.iter().filter_map(|piece| {
            let (from, to) = (steps.part(piece.from, PARTS), steps.part(piece.to, PARTS));
            let thread = named(&names, [piece.pid, piece.tid], from / PARTS)?;
            Some(PicturePiece { thread, activity: piece.kind.byte(), from, to })
        }));
        let mut running: BTreeMap<[i32; 2], Vec<[u64; 2]>> = BTreeMap::new();
        for piece in path.iter().filter(|piece| piece.kind == Activity::Running) {
            running.entry([piece.pid, piece.tid]).or_default().push([piece.from, piece.to]);
        }
        let ran = running.into_iter().map(|(ids, times)| RanThread::of(ids, &times, steps));
        self.add_ran(event, side, &ran.collect::<Vec<_>>());
    }

    /// Adds the waits of a side that are as long as a step of its only input. Their threads are those
    /// that have samples in the event of this name.
    pub(crate) fn add_waits(
        &mut self,
        event: &str,
        side: u32,
        steps: Steps,
        mut waits: Vec<ThreadWait>,
    ) {
        waits.retain(|wait| wait.to - wait.from >= steps.length);
        keep_longest(&mut waits);
        let names = self.names(event, side);
        for wait in waits {
            let moments = [wait.from, wait.woken, wait.to];
            let [from, woken, to] = moments.map(|moment| steps.part(moment, PARTS));
            let ids = [wait.pid, wait.tid];
            let Some(thread) = named(&names, ids, from / PARTS) else { continue };
            let texts = [wait.what, wait.woken_by, wait.waker_stack];
            let [what, woken_by, waker_stack] = texts.map(|text| {
                let (place, _) = self.wait_texts.insert_full(text);
                u32::try_from(place).unwrap_or(0)
            });
            self.waits.push(PictureWait { thread, from, woken, to, what, woken_by, waker_stack });
        }
    }
}
