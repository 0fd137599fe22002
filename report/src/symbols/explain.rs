//! Why addresses of a module have no function, and what would help.

use super::module::{Module, ModuleKind};
use super::outcome::{Outcome, Refusal, Source};

/// A reason.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Explanation {
    /// A short stable word for scripts.
    pub code: &'static str,
    /// What is the matter.
    pub message: &'static str,
    /// What would help.
    pub help: &'static str,
}

const fn because(code: &'static str, message: &'static str, help: &'static str) -> Explanation {
    Explanation { code, message, help }
}

/// Why addresses where nothing is known to have been mapped have no function.
pub const UNMAPPED: Explanation = because(
    "unmapped",
    "nothing was mapped at these addresses as far as the recording says",
    "mappings may have been lost with other records (see the counts of lost records; -m gives larger rings), or the code was \
     mapped before the recording began and its process was gone when its mappings were listed",
);

/// Why samples of guests have no function.
pub const GUEST: Explanation = because(
    "guest",
    "these samples are of a guest: neither this machine's files nor its kernel are theirs",
    "record within the guest",
);

/// Why addresses in `module` have no function, as far as its search tells.
#[must_use]
pub fn explain(module: &Module, outcome: &Outcome) -> Explanation {
    let found = outcome.found().next().is_some();
    match &module.kind {
        ModuleKind::PerfMap { .. } if found => because(
            "jit-map-incomplete",
            "the map that the JIT wrote does not have this code",
            "have the JIT write its map until it ends, and read it before another process gets the same number",
        ),
        ModuleKind::PerfMap { .. } if outcome.unproven().is_some() => UNPROVEN_JIT,
        ModuleKind::PerfMap { .. } => because(
            "jit-without-map",
            "the code is in anonymous memory (a JIT made it), and there is neither a /tmp/perf-PID.map nor a jitdump",
            "run the program so that it writes one (node --perf-basic-prof, java -XX:+DumpPerfMapAtExit, python -X perf, …) \
             and keep the file",
        ),
        ModuleKind::Opaque => because(
            "no-code",
            "this memory holds data: heap, stack or shared memory",
            "nothing: an address here is of no function, or comes from a stack that could not be followed",
        ),
        ModuleKind::Kernel | ModuleKind::KernelModule { .. } | ModuleKind::KernelSymbol { .. } => {
            kernel(outcome, found)
        }
        ModuleKind::Vdso | ModuleKind::File => file(module, outcome, found),
    }
}

fn kernel(outcome: &Outcome, found: bool) -> Explanation {
    let has = |is: fn(&Refusal) -> bool| refusals(outcome).any(is);
    if found {
        BETWEEN
    } else if has(|refusal| matches!(refusal, Refusal::Restricted)) {
        because(
            "kernel-restricted",
            "the kernel hides its addresses from this user (/proc/kallsyms has zeros)",
            "read as root, or set kernel.kptr_restrict=0; or give --kallsyms FILE or --vmlinux FILE of that kernel",
        )
    } else if has(|refusal| matches!(refusal, Refusal::MovedKernelModule { .. })) {
        because(
            "module-moved",
            "this kernel module was loaded anew since, elsewhere",
            "keep its file: with the recorded build ID it names its functions wherever it was",
        )
    } else if has(Refusal::is_unproven) {
        because(
            "other-kernel",
            "the kernel that runs here is not shown to be the recorded one",
            "give --kallsyms FILE (a copy of the recorded machine's /proc/kallsyms) or --vmlinux FILE",
        )
    } else {
        because(
            "no-kernel-symbols",
            "nothing here lists this kernel's symbols",
            "give --kallsyms FILE (a copy of the recorded machine's /proc/kallsyms) or --vmlinux FILE",
        )
    }
}

/// There is a file, but nothing shows that it is the recorded one.
const UNPROVEN: Explanation = because(
    "unproven",
    "no build ID was recorded, and nothing else shows that the file at the recorded path is the recorded one",
    "record with build IDs (rec and perf record do so unless told otherwise); --trust-paths takes the file all the same, --symfs DIR \
     one below DIR",
);

/// There is a JIT's map or dump, but nothing shows that it is of the recorded process.
const UNPROVEN_JIT: Explanation = because(
    "unproven",
    "there is a map or dump of a JIT, but nothing shows that it is of the recorded process",
    "put it below --symfs DIR, or take what lies at the recorded path with --trust-paths",
);

/// There are symbols, but none for these addresses.
const BETWEEN: Explanation = because(
    "between-symbols",
    "the symbols that were found leave these addresses out",
    "nothing, if the code was written in assembly without symbols; otherwise see whether its file is the right one",
);

fn file(module: &Module, outcome: &Outcome, found: bool) -> Explanation {
    let other_version = refusals(outcome).any(|refusal| {
        matches!(refusal, Refusal::BuildIdMismatch { .. } | Refusal::NoBuildId { .. } | Refusal::CrcMismatch { .. })
    });
    let recorded_is_other = outcome.attempts.iter().any(|attempt| {
        let mismatch = matches!(attempt.result, Err(Refusal::BuildIdMismatch { .. } | Refusal::NoBuildId { .. }));
        attempt.source == Source::Path && mismatch && outcome.contradiction.is_none()
    });
    let stripped = outcome.dynamic_only || refusals(outcome).any(|refusal| matches!(refusal, Refusal::NoSymbols));
    if recorded_is_other || (other_version && !found && !stripped) {
        because(
            "build-id-mismatch",
            "the file that is there now is not the recorded one, so its symbols would be wrong",
            "put the recorded version below --symfs DIR, or in the build ID cache (perf buildid-cache --add FILE)",
        )
    } else if outcome.unproven().is_some() {
        UNPROVEN
    } else if outcome.dynamic_only || (stripped && !found) {
        because(
            "stripped",
            "the file has no symbol table, or only the names that others may link to",
            "install its debug package, put its debug file below /usr/lib/debug/.build-id or next to it, or build it \
             unstripped; --debuginfod fetches it from the servers in DEBUGINFOD_URLS",
        )
    } else if found {
        BETWEEN
    } else if module.path.ends_with(b" (deleted)") || module.path.starts_with(b"/memfd:") {
        because(
            "deleted",
            "the file was deleted while it was mapped, and no copy is known",
            "keep copies by build ID (perf buildid-cache, perf archive), or put the file below --symfs DIR",
        )
    } else if refusals(outcome).any(|refusal| matches!(refusal, Refusal::Io(_) | Refusal::Malformed(_))) {
        because("unreadable", "the file is there but cannot be read", "see what was tried below")
    } else {
        because(
            "missing",
            "the file is not on this machine, and no copy is known by its build ID",
            "put it below --symfs DIR under its recorded path, unpack what perf archive made into ~/.debug, or fetch it with \
             --debuginfod from the servers in DEBUGINFOD_URLS",
        )
    }
}

fn refusals(outcome: &Outcome) -> impl Iterator<Item = &Refusal> {
    outcome.attempts.iter().filter_map(|attempt| attempt.result.as_ref().err())
}
