//! Functions, modules and locations of a profile's frames.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::pprof::is_kernel;
use crate::profile::Profile;
use crate::profile::names::{ModuleName, Named, NamedFrame, Subject};

/// Address with its functions: inlined ones, innermost first, then the one that contains them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct CodePlace {
    /// Number of the module in [`Frames::modules`].
    pub(super) module: Option<usize>,
    /// Address in the module's own terms; a recorded one without a module.
    pub(super) address: Option<u64>,
    /// Numbers of functions in [`Frames::functions`], and source lines, 0 if unknown.
    pub(super) lines: Vec<(usize, u32)>,
}

/// A function.
#[derive(Debug)]
pub(super) struct FunctionNames<'p> {
    module: Option<usize>,
    pub(super) name: String,
    /// Name as the file spells it.
    pub(super) system_name: String,
    /// `None` if only its name tells it from others.
    named: Option<&'p Named>,
    /// Source file at the lowest address that is known, and that address.
    pub(super) file: &'p str,
    lowest: u64,
    /// First address of the function, in the module's own terms, if it is known.
    start: Option<u64>,
}

/// A frame of callchains.
#[derive(Clone, Copy, Debug, Default)]
struct ExportedFrame {
    module: Option<usize>,
    address: Option<u64>,
    function: Option<usize>,
    line: u32,
    is_inlined: bool,
}

/// All frames of a profile.
#[derive(Debug)]
pub(super) struct Frames<'p> {
    /// By their numbers in chains.
    all: Vec<ExportedFrame>,
    pub(super) functions: Vec<FunctionNames<'p>>,
    pub(super) modules: Vec<&'p ModuleName>,
}

impl<'p> Frames<'p> {
    pub(super) fn of(profile: &'p Profile) -> Self {
        let calls = &profile.calls;
        let mut functions = FunctionTable::default();
        let mut all: Vec<ExportedFrame> = Vec::with_capacity(calls.names.len());
        let mut are_used = vec![false; calls.names.len()];
        for node in calls.chains.nodes() {
            if let Some(is_used) = are_used.get_mut(node.frame as usize) {
                *is_used = true;
            }
        }
        // What was sampled has frames of its own, which are no places.
        let of_chains = || calls.names.iter().zip(&are_used).map(|(name, is)| is.then_some(*name));
        let (modules, of_module) = modules(profile, of_chains().flatten());
        let module = |frame: &NamedFrame| of_module.get(&frame.module?).copied();
        for label in of_chains() {
            let Some(label) = label else {
                all.push(ExportedFrame::default());
                continue;
            };
            let text = profile.frames.text(label.into());
            let Subject::Frame(frame) = profile.frames.subject(label.into()) else {
                // It stands for callers that are not known.
                let function = functions.number(FunctionNames::without_module(text));
                all.push(ExportedFrame { function: Some(function), ..ExportedFrame::default() });
                continue;
            };
            let (file, line) = frame.line.as_deref().map_or(("", 0), file_and_line);
            let name = frame.name_len.map(|len| match &frame.named {
                Some(named) => named.in_text(text),
                None => text.get(..len).unwrap_or(text),
            });
            let function = name.map(|name| {
                functions.number(FunctionNames {
                    module: module(frame),
                    name: name.to_owned(),
                    system_name: profile
                        .frames
                        .mangled(label.into())
                        .unwrap_or_else(|| name.to_owned()),
                    named: frame.named.as_ref(),
                    file,
                    start: frame.start,
                    lowest: if file.is_empty() { u64::MAX } else { frame.address.unwrap_or(0) },
                })
            });
            all.push(ExportedFrame {
                module: module(frame),
                address: frame.address,
                function,
                line,
                is_inlined: frame.is_inlined,
            });
        }
        let (functions, ranks) = functions.sorted();
        for function in all.iter_mut().filter_map(|frame| frame.function.as_mut()) {
            *function = ranks.get(*function).copied().unwrap_or(0);
        }
        Self { all, functions, modules }
    }

    /// Returns the CPU mode that follows from an address.
    pub(super) fn mode(&self, place: &CodePlace) -> &'static str {
        let module = place.module.and_then(|module| self.modules.get(module));
        let name = module.map_or("", |module| module.name.as_str());
        if is_kernel(place.address.unwrap_or(0), name.as_bytes()) { "kernel" } else { "user" }
    }

    /// Returns the first addresses of functions. No sample is there, but they tell functions of one
    /// name apart.
    pub(super) fn starts(&self) -> impl Iterator<Item = CodePlace> {
        let place = |(number, function): (usize, &FunctionNames<'_>)| {
            let (module, address) = (Some(function.module?), Some(function.start?));
            Some(CodePlace { module, address, lines: vec![(number, 0)] })
        };
        self.functions.iter().enumerate().filter_map(place)
    }

    /// Returns the places of frames, given their numbers, innermost first.
    pub(super) fn places(&self, frames: impl Iterator<Item = u32>) -> Vec<CodePlace> {
        let (mut places, mut open) = (Vec::new(), CodePlace::default());
        for number in frames {
            let Some(frame) = self.all.get(number as usize) else { continue };
            open.lines.extend(frame.function.map(|function| (function, frame.line)));
            if !frame.is_inlined {
                (open.module, open.address) = (frame.module, frame.address);
                places.push(std::mem::take(&mut open));
            }
        }
        if !open.lines.is_empty() {
            places.push(open);
        }
        places
    }
}

/// Returns the modules of the frames with these texts, sorted, and their places by their numbers in the profile.
fn modules(
    profile: &Profile,
    labels: impl Iterator<Item = u32>,
) -> (Vec<&ModuleName>, FxHashMap<u32, usize>) {
    let of_frames = labels.filter_map(|label| {
        let Subject::Frame(frame) = profile.frames.subject(label.into()) else { return None };
        frame.module
    });
    let used: FxHashSet<u32> = of_frames.collect();
    let mut used: Vec<(&ModuleName, u32)> = used
        .into_iter()
        .filter_map(|number| Some((profile.modules.get(number as usize)?, number)))
        .collect();
    used.sort_by_key(|(module, _)| {
        // pprof takes the first for the program.
        let is_other = !module.path.starts_with('/')
            || module.path.contains(".so")
            || module.identity.start > 0
            || module.name != module.path.rsplit('/').next().unwrap_or_default();
        let id = module.identity.build_id.map(|id| id.to_string());
        (is_other, &module.name, &module.path, module.identity.start, id)
    });
    let places = used.iter().zip(0..).map(|((_, number), place)| (*number, place)).collect();
    (used.into_iter().map(|(module, _)| module).collect(), places)
}

/// Splits `path:line`.
fn file_and_line(text: &str) -> (&str, u32) {
    let split = text.rsplit_once(':');
    split.map_or((text, 0), |(file, line)| (file, line.parse().unwrap_or(0)))
}

impl FunctionNames<'_> {
    fn without_module(name: &str) -> Self {
        Self {
            module: None,
            name: name.to_owned(),
            system_name: name.to_owned(),
            named: None,
            file: "",
            lowest: u64::MAX,
            start: None,
        }
    }

    fn is(&self, other: &Self) -> bool {
        match (self.named, other.named) {
            (Some(a), Some(b)) => a.function == b.function,
            (a, b) => a.is_none() && b.is_none(),
        }
    }
}

/// Distinct functions, by module and name.
#[derive(Debug, Default)]
struct FunctionTable<'p> {
    all: Vec<FunctionNames<'p>>,
    numbers: FxHashMap<(Option<usize>, String), Vec<usize>>,
}

impl<'p> FunctionTable<'p> {
    fn number(&mut self, function: FunctionNames<'p>) -> usize {
        let key = (function.module, function.system_name.clone());
        let numbers = self.numbers.entry(key).or_default();
        for number in numbers.iter() {
            if let Some(known) = self.all.get_mut(*number).filter(|known| known.is(&function)) {
                if (function.lowest, function.file) < (known.lowest, known.file) {
                    (known.lowest, known.file) = (function.lowest, function.file);
                }
                known.start = known.start.into_iter().chain(function.start).min();
                return *number;
            }
        }
        numbers.push(self.all.len());
        self.all.push(function);
        self.all.len() - 1
    }

    /// Returns the functions, sorted, and their places by their numbers.
    fn sorted(self) -> (Vec<FunctionNames<'p>>, Vec<usize>) {
        let mut all: Vec<(usize, FunctionNames<'p>)> = self.all.into_iter().enumerate().collect();
        all.sort_by(|(_, a), (_, b)| {
            let by_name =
                (a.module, &a.name, &a.system_name).cmp(&(b.module, &b.name, &b.system_name));
            let functions = [a, b].map(|one| one.named.map(|named| &named.function));
            by_name.then_with(|| functions[0].cmp(&functions[1]))
        });
        let mut ranks = vec![0; all.len()];
        for (rank, (number, _)) in all.iter().enumerate() {
            if let Some(slot) = ranks.get_mut(*number) {
                *slot = rank;
            }
        }
        (all.into_iter().map(|(_, function)| function).collect(), ranks)
    }
}

#[cfg(test)]
impl<'p> Frames<'p> {
    /// Returns no frames in these modules.
    pub(super) fn of_modules(modules: Vec<&'p ModuleName>) -> Self {
        Self { all: Vec::new(), functions: Vec::new(), modules }
    }
}
