//! Pieces of the critical path as those of a picture.

use std::collections::BTreeMap;

use super::build::{PictureBuilder, named};
use super::path::{PARTS, PicturePiece};
use crate::profile::critical_path::PathPiece;
use crate::query::Steps;
use crate::timeline::{Activity, RanThread};

impl PictureBuilder {
    /// Adds the critical path of a side in steps of its only input. Its threads are those that have
    /// samples in the event of this name, which gets the times in which they ran on the path.
    pub(crate) fn add_path(&mut self, event: &str, side: u32, steps: Steps, path: &[PathPiece]) {
        let names = self.names(event, side);
        let place = |time: u64| {
            let parts = u128::from(time.saturating_sub(steps.origin)) * u128::from(PARTS);
            u64::try_from(parts / u128::from(steps.length.max(1))).unwrap_or(u64::MAX)
        };
        self.path.extend(path.iter().filter_map(|piece| {
            let (from, to) = (place(piece.from), place(piece.to));
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
}
