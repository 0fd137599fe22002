//! Functions, modules and code places of a profile's frames, for exports that list each once: sorted by
//! what they are, so that numbers do not depend on the number of threads.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::pprof::is_kernel;
use crate::profile::Profile;
use crate::profile::names::{
    CALLERS_UNKNOWN, CodeKind, FrameCode, FrameId, FunctionId, ModuleName, ModuleNameId,
    NamedFrame, ProfileNames,
};
use crate::query::{FrameKey, Needs, Query};

/// Adds to a query what [`Frames`] need: whole stacks of addresses, with functions and source lines.
pub(super) fn complete(query: &mut Query) {
    query.needs = Needs { stacks: true, addresses: true, ..Needs::NONE };
    query.chains.key = FrameKey::Address;
    query.chains.most = Some(usize::MAX);
    query.symbol_sources.source_paths = true;
    // Else a line is that of the innermost of several functions.
    query.symbol_sources.start_lines = query.chains.inlined == Some(true);
}

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
pub(super) struct ExportedFunction<'p> {
    pub(super) module: Option<usize>,
    pub(super) name: String,
    /// Name as the file spells it.
    pub(super) system_name: String,
    /// `None` if it stands for callers that are not known.
    function: Option<FunctionId>,
    /// Source file at the lowest address that is known, the line at which the function begins (0 if
    /// unknown), and that address.
    pub(super) file: &'p str,
    pub(super) start_line: u32,
    lowest: u64,
    /// First address of the function, in the module's own terms, if it is known.
    pub(super) start: Option<u64>,
}

/// A frame of callchains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ExportedFrame {
    /// Number of the module in [`Frames::modules`].
    pub(super) module: Option<usize>,
    /// Address in the module's own terms; a recorded one without a module.
    pub(super) address: Option<u64>,
    /// Number of the function in [`Frames::functions`].
    pub(super) function: Option<usize>,
    /// Source line, 0 if unknown.
    pub(super) line: u32,
    /// `true` for an inlined function; the frame that contains it follows in chains.
    pub(super) is_inlined: bool,
}

/// Kind of the code of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CodeType {
    Kernel,
    Native,
    /// Made at run time.
    Jit,
    /// A function of Python, for which CPython made code at run time.
    Python,
}

impl CodeType {
    /// Returns the kind of a frame in a module, at an address and in a function; `None` if it stands
    /// for callers that are not known.
    pub(super) fn of(
        module: Option<&ModuleName>,
        address: u64,
        function: Option<&ExportedFunction<'_>>,
    ) -> Option<Self> {
        /// Beginning of the names that CPython gives to its functions.
        const PYTHON: &str = "py::";
        let is_python = function.is_some_and(|function| function.name.starts_with(PYTHON));
        match module.map(|module| module.code) {
            Some(CodeKind::Kernel) => Some(Self::Kernel),
            Some(CodeKind::Jit) if is_python => Some(Self::Python),
            Some(CodeKind::Jit) => Some(Self::Jit),
            Some(CodeKind::User) => Some(Self::Native),
            None if address == 0 && function.is_some() => None,
            None if is_kernel(address, b"") => Some(Self::Kernel),
            None => Some(Self::Native),
        }
    }
}

/// All frames of a profile.
#[derive(Debug)]
pub(super) struct Frames<'p> {
    /// By their numbers in chains.
    all: Vec<ExportedFrame>,
    pub(super) functions: Vec<ExportedFunction<'p>>,
    pub(super) modules: Vec<&'p ModuleName>,
}

impl<'p> Frames<'p> {
    pub(super) fn of(profile: &'p Profile) -> Self {
        let calls = &profile.calls;
        let mut functions = ExportedFunctions::default();
        let mut all: Vec<ExportedFrame> = Vec::with_capacity(calls.names.len());
        let mut are_used = vec![false; calls.names.len()];
        for node in calls.chains.nodes() {
            if let Some(is_used) = are_used.get_mut(node.frame as usize) {
                *is_used = true;
            }
        }
        // Sampled addresses have frames of their own that are in no chain: they make no locations.
        let of_chains = || calls.names.iter().zip(&are_used).map(|(name, is)| is.then_some(*name));
        let names = &profile.names;
        let (modules, of_module) = modules(names, of_chains().flatten());
        for frame in of_chains() {
            let frame = frame.and_then(|frame| names.frame(frame));
            all.push(frame.map_or_else(ExportedFrame::default, |frame| {
                let module = frame.module.and_then(|module| of_module.get(&module)).copied();
                functions.frame(names, frame, module)
            }));
        }
        let (functions, ranks) = functions.sorted(names);
        for function in all.iter_mut().filter_map(|frame| frame.function.as_mut()) {
            *function = ranks.get(*function).copied().unwrap_or(0);
        }
        Self { all, functions, modules }
    }

    /// Returns a frame, given its number in chains.
    pub(super) fn get(&self, number: u32) -> Option<&ExportedFrame> {
        self.all.get(number as usize)
    }

    /// Iterates over the frames by their numbers in chains.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ExportedFrame> {
        self.all.iter()
    }

    /// Returns the text of a frame: its function, or `module+address` without one.
    pub(super) fn text(&self, frame: &ExportedFrame) -> Cow<'_, str> {
        let function = frame.function.and_then(|function| self.functions.get(function));
        let module = frame.module.and_then(|module| self.modules.get(module));
        match (function, module, frame.address) {
            (Some(function), ..) => function.name.as_str().into(),
            (None, Some(module), Some(address)) => format!("{}+{address:#x}", module.name).into(),
            (None, None, Some(address)) => format!("{address:#x}").into(),
            (None, _, None) => "[unknown]".into(),
        }
    }

    /// Returns the kind of a frame's code; `None` if it stands for callers that are not known.
    pub(super) fn kind(&self, frame: &ExportedFrame) -> Option<CodeType> {
        let module = frame.module.and_then(|module| self.modules.get(module));
        let function = frame.function.and_then(|function| self.functions.get(function));
        CodeType::of(module.copied(), frame.address.unwrap_or(0), function)
    }

    /// Returns the CPU mode that follows from an address.
    pub(super) fn mode(&self, place: &CodePlace) -> &'static str {
        let module = place.module.and_then(|module| self.modules.get(module));
        let name = module.map_or("", |module| module.name.as_str());
        if is_kernel(place.address.unwrap_or(0), name.as_bytes()) { "kernel" } else { "user" }
    }

    /// Returns the first addresses of functions: no sample is there, but they distinguish functions of
    /// one name.
    pub(super) fn starts(&self) -> impl Iterator<Item = CodePlace> {
        let place = |(number, function): (usize, &ExportedFunction<'_>)| {
            let (module, address) = (Some(function.module?), Some(function.start?));
            Some(CodePlace { module, address, lines: vec![(number, 0)] })
        };
        self.functions.iter().enumerate().filter_map(place)
    }

    /// Returns the place of inlined functions, innermost first, and the frame that contains them,
    /// given their numbers.
    pub(super) fn place(&self, numbers: &[u32]) -> CodePlace {
        let mut place = CodePlace::default();
        for frame in numbers.iter().filter_map(|number| self.get(*number)) {
            place.lines.extend(frame.function.map(|function| (function, frame.line)));
            if !frame.is_inlined {
                (place.module, place.address) = (frame.module, frame.address);
            }
        }
        place
    }
}

/// Returns the modules of these frames, sorted, and their ranks by their numbers in the profile.
fn modules(
    names: &ProfileNames,
    frames: impl Iterator<Item = FrameId>,
) -> (Vec<&ModuleName>, FxHashMap<ModuleNameId, usize>) {
    let used: FxHashSet<ModuleNameId> =
        frames.filter_map(|frame| names.frame(frame)?.module).collect();
    let mut used: Vec<(&ModuleName, ModuleNameId)> =
        used.into_iter().filter_map(|id| Some((names.module(id)?, id))).collect();
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

impl ExportedFunction<'_> {
    fn from_callers_unknown() -> Self {
        Self {
            module: None,
            name: CALLERS_UNKNOWN.to_owned(),
            system_name: CALLERS_UNKNOWN.to_owned(),
            function: None,
            file: "",
            start_line: 0,
            lowest: u64::MAX,
            start: None,
        }
    }
}

/// Distinct functions, by module.
#[derive(Debug, Default)]
struct ExportedFunctions<'p> {
    all: Vec<ExportedFunction<'p>>,
    numbers: FxHashMap<(Option<usize>, Option<FunctionId>), usize>,
}

impl<'p> ExportedFunctions<'p> {
    /// Returns a frame as it is exported, adding its function if that is new.
    fn frame(
        &mut self,
        names: &'p ProfileNames,
        frame: &'p NamedFrame,
        module: Option<usize>,
    ) -> ExportedFrame {
        let (function, is_inlined) = match frame.code {
            FrameCode::CallersUnknown => {
                let function = self.number(ExportedFunction::from_callers_unknown());
                return ExportedFrame { function: Some(function), ..ExportedFrame::default() };
            }
            FrameCode::Unmapped | FrameCode::Address(_) => (None, false),
            FrameCode::Function { function, is_inlined } => (Some(function), is_inlined),
        };
        let line = frame.source_line();
        let file = line.map_or("", |line| &line.file);
        let (start_line, line) = line.map_or((0, 0), |line| (line.start, line.line));
        let function = function.map(|function| {
            let name = names.spelled(function).to_owned();
            self.number(ExportedFunction {
                module,
                system_name: names.mangled(function).unwrap_or_else(|| name.clone()),
                name,
                function: Some(function),
                file,
                start_line,
                start: frame.start,
                lowest: if file.is_empty() { u64::MAX } else { frame.address.unwrap_or(0) },
            })
        });
        ExportedFrame { module, address: frame.address, function, line, is_inlined }
    }

    fn number(&mut self, function: ExportedFunction<'p>) -> usize {
        let key = (function.module, function.function);
        let number = *self.numbers.entry(key).or_insert(self.all.len());
        match self.all.get_mut(number) {
            None => self.all.push(function),
            Some(known) => {
                if (function.lowest, function.file) < (known.lowest, known.file) {
                    (known.lowest, known.file) = (function.lowest, function.file);
                    known.start_line = function.start_line;
                }
                known.start = known.start.into_iter().chain(function.start).min();
            }
        }
        number
    }

    /// Returns the functions, sorted, and their ranks by number.
    fn sorted(self, names: &ProfileNames) -> (Vec<ExportedFunction<'p>>, Vec<usize>) {
        let mut all: Vec<(usize, ExportedFunction<'p>)> =
            self.all.into_iter().enumerate().collect();
        all.sort_by(|(_, a), (_, b)| {
            let by_name =
                (a.module, &a.name, &a.system_name).cmp(&(b.module, &b.name, &b.system_name));
            by_name.then_with(|| names.compare_functions(a.function, b.function))
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
