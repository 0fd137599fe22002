//! Addresses of a sample: what mapping and function they belong to.

use std::borrow::Cow;
use std::sync::Arc;

use recrep_format::abi::{CpuMode, context};
use recrep_format::bytes::U64s;

use crate::resolve::{Loaded, Resolver, SymbolId};
use crate::stage::Stage;
use crate::timeline::{Moment, Place, Task};
use crate::view::escape;

/// Finds places and names; modules are loaded when first asked for.
pub(super) struct Finder<'s, 'f> {
    stage: &'s Stage<'f>,
    resolver: &'s Resolver,
    loaded: Vec<Option<Arc<Loaded>>>,
}

impl<'s, 'f> Finder<'s, 'f> {
    pub(super) fn new(stage: &'s Stage<'f>, resolver: &'s Resolver) -> Self {
        Self { stage, resolver, loaded: vec![None; stage.side_band.modules.len()] }
    }

    pub(super) fn place(&self, mode: CpuMode, task: &Task, ip: u64, at: Moment) -> Place {
        self.stage.timeline.place(mode, task, ip, at)
    }

    /// The same of an address that may be of the other level: code of one, data or a branch's end in the other.
    pub(super) fn place_of_either(&self, mode: CpuMode, task: &Task, address: u64, at: Moment) -> Place {
        let place = self.place(mode, task, address, at);
        let other = if mode == CpuMode::Kernel { CpuMode::User } else { CpuMode::Kernel };
        if place.module.is_some() { place } else { self.place(other, task, address, at) }
    }

    /// The module as `perf script` prints it: its whole path.
    pub(super) fn dso(&self, place: Place) -> Cow<'s, str> {
        let module = place.module.and_then(|id| self.stage.side_band.modules.get_index(id.0 as usize));
        match module {
            Some(module) => Cow::Owned(escape(&module.long_name()).into_owned()),
            None => "[unknown]".into(),
        }
    }

    /// The function's name, and how far into it the address is.
    pub(super) fn symbol(&mut self, place: Place) -> Option<(String, u64)> {
        let index = place.module?.0 as usize;
        let module = self.stage.side_band.modules.get_index(index)?;
        let slot = self.loaded.get_mut(index)?;
        let loaded = slot.get_or_insert_with(|| self.resolver.load(module));
        let symbol = loaded.lookup(place.address)?;
        let (id, start): (SymbolId, u64) = (symbol.id, symbol.start);
        let name = loaded.name(id)?;
        Some((escape(&name).into_owned(), place.address.wrapping_sub(start)))
    }
}

/// The addresses of a callchain with the CPU mode of each: the context marks between them say it.
pub(super) fn frames(chain: U64s<'_>, mode: CpuMode, most: usize) -> Vec<(CpuMode, u64)> {
    let mut mode = mode;
    let mut frames = Vec::new();
    for ip in chain.iter() {
        if ip >= context::MAX {
            mode = match ip {
                context::HV => CpuMode::Hypervisor,
                context::KERNEL => CpuMode::Kernel,
                context::USER => CpuMode::User,
                // perf takes a mark that it does not know for a damaged chain and lets go of it.
                _ => return Vec::new(),
            };
        } else if frames.len() < most {
            frames.push((mode, ip));
        }
    }
    frames
}
