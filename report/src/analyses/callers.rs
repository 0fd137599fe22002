//! Callers of the kernel: the innermost function of the program, outside of code that only passes
//! calls on.

use std::borrow::Cow;

use indexmap::IndexSet;
use recrep_format::abi::CpuMode;
use recrep_format::record::Sample;
use rustc_hash::FxBuildHasher;

use crate::callchain::{CallSite, ChainOrigin, FrameWord};
use crate::samples::{ChainReader, ChainSetup, Session};
use crate::symbols::{Functions, SymbolId};
use crate::timeline::{SampleContext, SpaceEpoch};

/// A function that calls the system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Caller {
    /// Its name; of a function without one, its module's.
    pub(super) name: String,
    pub(super) module: String,
}

/// Function that gets each function that passes calls on: its number, whether it is the kernel's, and the
/// function.
pub(super) type PassedFunctions<'a> = &'a mut dyn FnMut(u32, bool, &Caller);

/// Finds the callers of one worker's samples.
pub(super) struct Callers<'s> {
    session: &'s Session<'s>,
    functions: Option<&'s Functions<'s>>,
    chains: ChainReader<'s>,
    frames: Vec<FrameWord>,
    /// Returns whether a function only passes calls on.
    passes_on: fn(&Caller) -> bool,
    /// Callers; the first stands for none.
    found: IndexSet<Caller, FxBuildHasher>,
    /// For each frame of the finder, whether it is the program's, and the number of its caller.
    of_frames: Vec<Option<(bool, u32)>>,
}

/// Name of a caller that is not known.
const UNKNOWN: &str = "[unknown]";

impl Caller {
    pub(super) fn is_known(&self) -> bool {
        self.name != UNKNOWN
    }

    /// Returns the name, or the module's if it is not known.
    pub(super) fn label(&self) -> &str {
        if self.is_known() { &self.name } else { &self.module }
    }
}

impl<'s> Callers<'s> {
    pub(super) fn new(
        session: &'s Session<'s>,
        chains: &'s ChainSetup<'s>,
        passes_on: fn(&Caller) -> bool,
    ) -> Self {
        let unknown = Caller { name: UNKNOWN.into(), module: UNKNOWN.into() };
        Self {
            session,
            functions: chains.functions,
            chains: chains.reader(),
            frames: Vec::new(),
            passes_on,
            found: [unknown].into_iter().collect(),
            of_frames: Vec::new(),
        }
    }

    /// Returns the number of the caller of a sample: of the innermost frame outside of code that
    /// passes calls on, or if there is none of the innermost one. `passed` gets the functions in front
    /// of it that have names, innermost first.
    pub(super) fn number(
        &mut self,
        sample: &Sample<'_, '_>,
        origin: ChainOrigin,
        at: SampleContext,
        mut passed: Option<PassedFunctions<'_>>,
    ) -> u32 {
        let mut frames = std::mem::take(&mut self.frames);
        self.chains.frames(sample, origin, at, &mut frames);
        let epoch = self.chains.finder.epoch(at.space, at.moment);
        let mut chosen = 0;
        for frame in &frames {
            let is_user = frame.mode == CpuMode::User;
            if !is_user && passed.is_none() {
                continue;
            }
            let Some((is_program, caller)) = self.of_frame(frame, epoch, at) else { continue };
            if let Some(act) = passed.as_mut().filter(|_| !is_user || !is_program) {
                let known = self.found.get_index(caller as usize);
                if let Some(known) = known.filter(|known| known.is_known()) {
                    act(caller, !is_user, known);
                }
            }
            if is_user && (chosen == 0 || is_program) {
                chosen = caller;
            }
            if is_user && is_program {
                break;
            }
        }
        self.frames = frames;
        chosen
    }

    /// Returns the numbers of all functions of a sample's callchain, innermost first.
    pub(super) fn stack(
        &mut self,
        sample: &Sample<'_, '_>,
        origin: ChainOrigin,
        at: SampleContext,
    ) -> Vec<u32> {
        let mut frames = std::mem::take(&mut self.frames);
        self.chains.frames(sample, origin, at, &mut frames);
        let epoch = self.chains.finder.epoch(at.space, at.moment);
        let mut numbers = Vec::with_capacity(frames.len());
        for frame in &frames {
            numbers.extend(self.of_frame(frame, epoch, at).map(|(_, number)| number));
        }
        self.frames = frames;
        numbers
    }

    /// Returns whether a frame of a callchain is the program's, and the number of its function;
    /// `None` if it is nowhere.
    fn of_frame(
        &mut self,
        frame: &FrameWord,
        epoch: SpaceEpoch,
        at: SampleContext,
    ) -> Option<(bool, u32)> {
        if frame.site == CallSite::Nowhere {
            return None;
        }
        let number = self.chains.finder.resolve_word(epoch, at.moment, frame);
        Some(self.caller(number))
    }

    /// Returns whether a frame of the finder is the program's, and the number of its caller.
    fn caller(&mut self, frame: u32) -> (bool, u32) {
        let place = frame as usize;
        if self.of_frames.len() <= place {
            self.of_frames.resize(place + 1, None);
        }
        if let Some(Some(known)) = self.of_frames.get(place) {
            return *known;
        }
        let made = self.described(frame).map_or((false, 0), |caller| {
            let is_program = !(self.passes_on)(&caller);
            let (number, _) = self.found.insert_full(caller);
            (is_program, u32::try_from(number).unwrap_or(0))
        });
        if let Some(slot) = self.of_frames.get_mut(place) {
            *slot = Some(made);
        }
        made
    }

    fn described(&self, frame: u32) -> Option<Caller> {
        let frame = self.chains.finder.stacks.frame(frame)?;
        let module = frame.module.checked_sub(1)? as usize;
        let name = self.session.side_band.modules.get_index(module)?.name().into_owned();
        let function =
            self.functions.and_then(|functions| functions.loaded(module)).and_then(|loaded| {
                let symbol = u32::try_from(frame.address).ok().filter(|_| frame.end.is_symbol)?;
                loaded.name(SymbolId(symbol)).map(Cow::into_owned)
            });
        Some(Caller { name: function.unwrap_or_else(|| UNKNOWN.into()), module: name })
    }

    pub(super) fn into_found(self) -> Vec<Caller> {
        self.found.into_iter().collect()
    }
}

/// Returns whether a module only passes calls on to the kernel: the C library with its parts, or
/// the code that the kernel maps for that.
pub(super) fn is_c_library(name: &str) -> bool {
    const NAMES: [&str; 8] =
        ["libc.so", "libc-2", "libc.musl", "ld-", "libpthread", "librt", "[vdso]", "linux-vdso"];
    NAMES.iter().any(|begin| name.starts_with(begin))
}

/// Returns whether a function of the C library may wait at two futexes in turn, which are beside each
/// other: those of a condition, or of a lock for readers and writers.
pub(super) fn has_two_futexes(name: &str) -> bool {
    const STARTS: [&str; 5] = [
        "__futex_abstimed_wait",
        "pthread_cond_",
        "__pthread_cond_",
        "pthread_rwlock_",
        "__pthread_rwlock_",
    ];
    STARTS.iter().any(|start| name.starts_with(start))
}

/// Returns whether a function is a language's own code of locks, channels and sleeping.
pub(super) fn is_lock_code(caller: &Caller) -> bool {
    const STARTS: [&str; 22] = [
        "std::sys::",
        "std::sync::",
        "std::thread::",
        "std::io::",
        "<std::sync::",
        "<std::sys::",
        "<std::thread::",
        "core::",
        "parking_lot",
        "<parking_lot",
        "lock_api::",
        "std::mutex",
        "std::condition_variable",
        "std::__",
        "std::this_thread::",
        "__gthread_",
        "runtime.",
        "sync.",
        "internal/runtime",
        "syscall.",
        "internal/poll.",
        "PyThread_",
    ];
    let is_library = caller.module.starts_with("libstdc++") || caller.module.starts_with("libc++");
    is_library || STARTS.iter().any(|start| caller.name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_not_the_c_library() {
        for name in ["libc.so.6", "libc-2.31.so", "ld-linux-x86-64.so.2", "[vdso]"] {
            assert!(is_c_library(name), "{name}");
        }
        assert!(
            !["app", "libcrypto.so.3", "ld", "libc++.so.1"].iter().any(|name| is_c_library(name))
        );
    }

    #[test]
    fn languages_have_lock_code_of_their_own() {
        let is_lock = |name: &str, module: &str| {
            is_lock_code(&Caller { name: name.into(), module: module.into() })
        };
        assert!(is_lock("std::sys::sync::mutex::futex::Mutex::lock_contended", "app"));
        assert!(is_lock("<std::sys::thread::unix::Thread>::join", "app"));
        assert!(is_lock("sync.(*Mutex).Lock", "app") && is_lock("wait", "libstdc++.so.6"));
        assert!(!is_lock("app::sync::wait", "app") && !is_lock("main", "app"));
    }
}
