//! Frames of several profiles as functions by module and name.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{FrameKind, PictureFrame, PictureModule, sides};
use crate::compare::matching::module_key;
use crate::profile::Profile;
use crate::profile::names::{CodeKind, FrameCode, FrameId};

/// Distinct frames and modules, in the order in which they were found.
#[derive(Debug, Default)]
pub(super) struct FrameTable {
    modules: Vec<PictureModule>,
    of_modules: FxHashMap<String, u32>,
    frames: Vec<PictureFrame>,
    of_frames: FxHashMap<PictureFrame, u32>,
}

/// Frames and modules, sorted.
#[derive(Debug, Default)]
pub(super) struct SortedFrames {
    pub(super) modules: Vec<PictureModule>,
    pub(super) frames: Vec<PictureFrame>,
    /// Place of each frame by its number.
    pub(super) places: Vec<u32>,
}

impl FrameTable {
    /// Adds the frame that stands for stacks with few samples: a page may need it.
    pub(super) fn add_rare_stacks(&mut self) {
        self.number(PictureFrame::rare_stacks());
    }

    /// Takes each module of a profile for the one at another path whose name is the same between
    /// builds, if they are the only ones of their sides with that name.
    pub(super) fn match_modules(&mut self, profile: &Profile) {
        let paths = sides::modules(profile);
        let mut pairs = BTreeMap::<String, (Vec<u32>, Vec<&str>)>::new();
        for (path, number) in self.of_modules.iter().filter(|(path, _)| !paths.contains(&path[..]))
        {
            pairs.entry(module_key(path).into_owned()).or_default().0.push(*number);
        }
        for path in paths.into_iter().filter(|path| !self.of_modules.contains_key(*path)) {
            pairs.entry(module_key(path).into_owned()).or_default().1.push(path);
        }
        for (known, new) in pairs.into_values() {
            if let ([number], [path]) = (&known[..], &new[..]) {
                self.of_modules.insert((*path).to_owned(), *number);
            }
        }
    }

    /// Takes a module for a known one, by their paths.
    pub(super) fn take_for(&mut self, path: &str, known: &str) {
        if let Some(number) = self.of_modules.get(known).copied() {
            self.of_modules.insert(path.to_owned(), number);
        }
    }

    /// Returns the numbers of a profile's frames, by their numbers there.
    pub(super) fn numbers(&mut self, profile: &Profile) -> Vec<u32> {
        let mut known = FxHashMap::<FrameId, u32>::default();
        let mut number =
            |frame: FrameId| *known.entry(frame).or_insert_with(|| self.add(profile, frame));
        profile.calls.names.iter().map(|frame| number(*frame)).collect()
    }

    /// Adds a frame of a profile, and returns its number here.
    fn add(&mut self, profile: &Profile, frame: FrameId) -> u32 {
        let names = &profile.names;
        let (code, module) = match names.frame(frame) {
            Some(frame) => (&frame.code, frame.module.and_then(|module| names.module(module))),
            None => (&FrameCode::CallersUnknown, None),
        };
        let of_code = module.map_or(CodeKind::User, |module| module.code);
        let (name, kind) = match (code, of_code) {
            (FrameCode::CallersUnknown, _) => {
                return self.number(PictureFrame {
                    module: 0,
                    kind: FrameKind::Cut,
                    name: names.frame_text(frame).into(),
                });
            }
            (FrameCode::Unmapped | FrameCode::Address(_), _) => {
                let name = module.map_or_else(
                    || "(unknown code)".into(),
                    |module| format!("{} (no name)", module.name),
                );
                (name, FrameKind::NoName)
            }
            (FrameCode::Function { function, is_inlined }, of_code) => {
                let kind = match of_code {
                    _ if names.is_inferred(*function) => FrameKind::Inferred,
                    CodeKind::Jit => FrameKind::Jit,
                    CodeKind::User if *is_inlined => FrameKind::InlinedUser,
                    CodeKind::Kernel if *is_inlined => FrameKind::InlinedKernel,
                    CodeKind::User => FrameKind::User,
                    CodeKind::Kernel => FrameKind::Kernel,
                };
                (names.spelled(*function).to_owned(), kind)
            }
        };
        let module = module.map_or(0, |module| {
            *self.of_modules.entry(module.long_name.clone()).or_insert_with(|| {
                let name = module.name.clone();
                self.modules.push(PictureModule { name, path: module.long_name.clone() });
                u32::try_from(self.modules.len()).unwrap_or(0)
            })
        });
        self.number(PictureFrame { module, kind, name })
    }

    fn number(&mut self, frame: PictureFrame) -> u32 {
        let next = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
        let number = *self.of_frames.entry(frame.clone()).or_insert(next);
        if number == next {
            self.frames.push(frame);
        }
        number
    }

    pub(super) fn sorted(self) -> SortedFrames {
        let modules: BTreeMap<PictureModule, usize> = self.modules.into_iter().zip(0..).collect();
        let mut of_modules = vec![0; modules.len() + 1];
        for (place, number) in (1..).zip(modules.values()) {
            if let Some(slot) = of_modules.get_mut(number + 1) {
                *slot = place;
            }
        }
        let moved = |frame: PictureFrame| PictureFrame {
            module: of_modules.get(frame.module as usize).copied().unwrap_or(0),
            ..frame
        };
        let mut frames: Vec<(PictureFrame, usize)> =
            self.frames.into_iter().map(moved).zip(0..).collect();
        frames.sort_unstable();
        let mut places = vec![0; frames.len()];
        for (place, (_, number)) in (0..).zip(&frames) {
            if let Some(slot) = places.get_mut(*number) {
                *slot = place;
            }
        }
        SortedFrames {
            modules: modules.into_keys().collect(),
            frames: frames.into_iter().map(|(frame, _)| frame).collect(),
            places,
        }
    }
}
