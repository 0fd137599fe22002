//! Branches in one worker: only those without a recent row are looked up in the timeline. Their
//! functions are found after the scan: there are far fewer distinct branches than branches.

use recrep_format::abi::{BranchEntry, CpuMode};
use recrep_format::record::BranchStack;

use super::recent::Branch;
use super::worker::Worker;
use crate::query::{Field, Key, Meta, Mode};
use crate::timeline::{SampleContext, SpaceEpoch};

impl Worker<'_> {
    /// Counts a row for each branch of a sample; with `is_read`, the rows are only collected: the
    /// sample's counter readings say how often they count. Only of a guest's sample do we know the
    /// CPU mode of the ends: its addresses are not those of this machine.
    pub(super) fn branches(
        &mut self,
        key: &Key,
        guest: Option<CpuMode>,
        found: Option<SampleContext>,
        stack: &BranchStack<'_>,
        is_read: bool,
    ) {
        let (mode, layout) = (self.scan.query.mode, &self.scan.layout);
        let has_external = layout.has(Field::External);
        let context = found.map(|at| {
            layout.pack(key, &mut self.packed);
            let epoch = match guest {
                Some(mode) => SpaceEpoch::of_guest(mode),
                None => self.chains.reader.finder.epoch(at.space, at.moment),
            };
            self.recent.context(&self.packed, epoch)
        });
        let mut newer: Option<BranchEntry> = None;
        for branch in stack.entries() {
            // Newest first: the code run after a branch ends at the source of the previous entry.
            let (from, to) = match (mode, newer.replace(branch)) {
                (Mode::FallThroughs, None) => continue,
                (Mode::FallThroughs, Some(next)) => (branch.to, next.from),
                _ => (branch.from, branch.to),
            };
            self.rows.count += 1;
            let Some((context, found)) = context.zip(found) else { continue };
            let before = if has_external { branch.from } else { 0 };
            let counted =
                Branch { from, to, flags: branch.flags.0 & layout.branch, before, context };
            let (place, is_recent) = self.recent.find(&counted);
            if !is_recent {
                let mut key = self.branch_key(key, guest, found, &counted);
                if has_external {
                    let [from, to] =
                        [branch.from, branch.to].map(|ip| self.code(guest, found, ip).module);
                    let is_external = from != to;
                    *Field::External.of_mut(&mut key) = u64::from(is_external);
                }
                layout.pack(&key, &mut self.packed);
                self.recent.replace(place, counted, &self.packed, &mut self.histogram);
            }
            if is_read {
                self.rows.keys.extend_from_slice(self.recent.key(place));
            } else {
                self.recent.take(place);
            }
        }
    }

    fn branch_key(
        &mut self,
        key: &Key,
        guest: Option<CpuMode>,
        found: SampleContext,
        branch: &Branch,
    ) -> Key {
        let (layout, mut key) = (&self.scan.layout, *key);
        let mut meta = Meta::unpack(Field::Meta.of(&key));
        if layout.has(Field::Module) {
            let to = self.code(guest, found, branch.to);
            meta.at = to.end;
            *Field::Module.of_mut(&mut key) = u64::from(to.module);
            *Field::Address.of_mut(&mut key) = to.address;
            *Field::MapSize.of_mut(&mut key) = to.size;
        }
        if layout.has(Field::FromModule) {
            let from = self.code(guest, found, branch.from);
            meta.from = from.end;
            *Field::FromModule.of_mut(&mut key) = u64::from(from.module);
            *Field::FromAddress.of_mut(&mut key) = from.address;
        }
        *Field::Meta.of_mut(&mut key) = meta.pack();
        *Field::From.of_mut(&mut key) = branch.from;
        *Field::To.of_mut(&mut key) = branch.to;
        *Field::Branch.of_mut(&mut key) = branch.flags;
        key
    }
}
