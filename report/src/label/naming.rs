//! Functions in the place of addresses: of modules that are known to be hit, or of each when it is met.

use std::sync::{Arc, OnceLock};

use super::labeller::Labeller;
use super::side::Symbols;
use crate::aggregate::{End, Key, NO_KEY};
use crate::callchain::Frame;
use crate::resolve::{Loaded, Module, Resolver};
use crate::scan;

/// What a file's addresses are called.
#[derive(Debug)]
pub struct Naming<'l, 'f> {
    /// Who knows the keys.
    pub labeller: &'l Labeller<'f>,
    /// The symbols of the modules that were hit.
    pub symbols: &'l Symbols,
}

impl scan::Naming for Naming<'_, '_> {
    fn key(&self, key: Key) -> Key {
        self.labeller.resolve(key, self.symbols)
    }

    fn frame(&self, frame: Frame) -> Frame {
        let mut key = NO_KEY;
        frame.put(&mut key);
        Frame::of(&self.labeller.resolve(key, self.symbols))
    }
}

/// The same, of modules that are loaded when they are first met.
#[derive(Debug)]
pub struct EarlyNaming<'f> {
    modules: Vec<&'f Module>,
    loaded: Vec<OnceLock<Arc<Loaded>>>,
    resolver: &'f Resolver,
}

impl<'f> EarlyNaming<'f> {
    /// Of these modules, by their numbers.
    #[must_use]
    pub fn new(modules: Vec<&'f Module>, resolver: &'f Resolver) -> Self {
        let loaded = modules.iter().map(|_| OnceLock::new()).collect();
        Self { modules, loaded, resolver }
    }
}

impl scan::Naming for EarlyNaming<'_> {
    fn key(&self, key: Key) -> Key {
        key
    }

    fn frame(&self, frame: Frame) -> Frame {
        let index = (frame.module as usize).checked_sub(1);
        let slot = index.and_then(|index| self.loaded.get(index).zip(self.modules.get(index)));
        let loaded = slot.map(|(slot, module)| slot.get_or_init(|| self.resolver.load(module)));
        let symbol = loaded.and_then(|loaded| loaded.table.find(frame.address)).filter(|_| !frame.end.is_symbol);
        match symbol {
            Some(symbol) => Frame { end: End { is_symbol: true, ..frame.end }, address: u64::from(symbol.0), ..frame },
            None => frame,
        }
    }
}
