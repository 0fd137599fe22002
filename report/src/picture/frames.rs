//! Frames of several profiles as functions by module and name.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{FrameKind, PictureFrame, PictureModule, sides};
use crate::compare::matching::module_key;
use crate::profile::Profile;
use crate::profile::names::{CodeKind, NamedFrame, Subject};

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
        let mut of_labels = FxHashMap::<u32, u32>::default();
        let mut number =
            |label: u32| *of_labels.entry(label).or_insert_with(|| self.of_label(profile, label));
        profile.calls.names.iter().map(|label| number(*label)).collect()
    }

    fn of_label(&mut self, profile: &Profile, label: u32) -> u32 {
        let text = profile.frames.text(label.into());
        let Subject::Frame(frame) = profile.frames.subject(label.into()) else {
            // It stands for callers that are not known.
            return self.number(PictureFrame {
                module: 0,
                kind: FrameKind::Cut,
                name: text.into(),
            });
        };
        let NamedFrame { module, name_len, named, is_inlined, .. } = frame;
        let module = module.and_then(|module| profile.modules.get(module as usize));
        let code = module.map_or(CodeKind::User, |module| module.code);
        let name = name_len.map(|len| match named {
            Some(named) => named.in_text(text),
            None => text.get(..len).unwrap_or(text),
        });
        let is_inferred = named.as_ref().is_some_and(|named| named.function.is_inferred());
        let (name, kind) = match (name, code) {
            (None, _) => (None, FrameKind::NoName),
            (name, _) if is_inferred => (name, FrameKind::Inferred),
            (name, CodeKind::Jit) => (name, FrameKind::Jit),
            (name, CodeKind::User) if *is_inlined => (name, FrameKind::InlinedUser),
            (name, CodeKind::Kernel) if *is_inlined => (name, FrameKind::InlinedKernel),
            (name, CodeKind::User) => (name, FrameKind::User),
            (name, CodeKind::Kernel) => (name, FrameKind::Kernel),
        };
        let name = match (name, module) {
            (Some(name), _) => name.to_owned(),
            (None, Some(module)) => format!("{} (no name)", module.name),
            (None, None) => "(unknown code)".into(),
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
