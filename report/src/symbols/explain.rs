//! Reasons why addresses of a module have no function, with advice.

use crate::symbols::file::Refusal;
use crate::symbols::module::{Module, ModuleKind};
use crate::symbols::outcome::{Outcome, Source};

/// Reason why addresses have no function.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Explanation {
    /// Short stable word for scripts.
    pub code: &'static str,
    pub message: &'static str,
    pub help: &'static str,
}

const fn because(code: &'static str, message: &'static str, help: &'static str) -> Explanation {
    Explanation { code, message, help }
}

pub(crate) const UNMAPPED: Explanation = because(
    "unmapped",
    "the recording has no mapping at these addresses (it has none of a guest's code)",
    "the mapping may have been lost with other records (see the counts of lost records; rec -m \
     enlarges the rings), or it was older than the recording and its process exited before rec \
     could list its mappings; for a guest's code, record inside the guest",
);

/// Note on a file whose text was moved to anonymous memory.
pub(super) const MOVED: &str = "text was moved to anonymous memory; the file mapped there before \
                                was used (nothing shows that the bytes are the same)";

/// Returns the reason why addresses in `module` have no function, judging by the outcome of its
/// search.
pub(crate) fn explain(module: &Module, outcome: &Outcome) -> Explanation {
    let found = outcome.found().next().is_some();
    match &module.kind {
        ModuleKind::PerfMap { .. } if found => because(
            "jit-map-incomplete",
            "the JIT's map or dump does not list this code",
            "let the JIT write its map until it exits; rec keeps it as it is at the end of the \
             recording",
        ),
        ModuleKind::PerfMap { .. } if outcome.unproven().is_some() => UNPROVEN_JIT,
        ModuleKind::PerfMap { .. } => because(
            "jit-without-map",
            "the code is in anonymous memory (made by a JIT), and there is neither a \
             /tmp/perf-PID.map nor a jitdump; a process in a container has them below \
             /proc/PID/root, while it lives",
            "run the program so that it writes one (node --perf-basic-prof, java \
             -XX:+DumpPerfMapAtExit, python -X perf, …); rec keeps it for the time after the \
             process or its container, unless --no-keep is given",
        ),
        ModuleKind::Opaque => because(
            "no-code",
            "this memory holds data: heap, stack or shared memory",
            "nothing: addresses here belong to no function, or come from a stack that could not \
             be unwound",
        ),
        ModuleKind::Kernel | ModuleKind::KernelModule { .. } | ModuleKind::KernelSymbol { .. } => {
            kernel(outcome, found)
        }
        ModuleKind::Vdso | ModuleKind::File => file(module, outcome, found),
    }
}

fn kernel(outcome: &Outcome, found: bool) -> Explanation {
    let has = |is: fn(&Refusal) -> bool| outcome.refusals().any(is);
    if found {
        BETWEEN
    } else if has(|refusal| matches!(refusal, Refusal::Restricted)) {
        because(
            "kernel-restricted",
            "the kernel hides its addresses from this user (/proc/kallsyms has zeros)",
            "run rep as root, set kernel.kptr_restrict=0, or give --kallsyms FILE or --vmlinux \
             FILE of that kernel",
        )
    } else if has(|refusal| matches!(refusal, Refusal::MovedKernelModule { .. })) {
        because(
            "module-moved",
            "this kernel module was reloaded at another address after the recording",
            "keep its file: if it has the recorded build ID, it names the functions at any load \
             address",
        )
    } else if has(|refusal| matches!(refusal, Refusal::NoReference)) {
        because(
            "kernel-unplaced",
            "the recording does not say where its kernel was loaded, which may differ at each boot",
            "record as root or with kernel.kptr_restrict=0; for this recording give --kallsyms \
             FILE, a copy of /proc/kallsyms made in that boot",
        )
    } else if has(Refusal::is_unproven) {
        because(
            "other-kernel",
            "nothing shows that the running kernel is the recorded one",
            "give --kallsyms FILE (a copy of the recorded machine's /proc/kallsyms) or --vmlinux \
             FILE",
        )
    } else {
        because(
            "no-kernel-symbols",
            "no symbols of this kernel were found",
            "give --kallsyms FILE (a copy of the recorded machine's /proc/kallsyms) or --vmlinux \
             FILE",
        )
    }
}

/// Reason if a file exists, but nothing shows that it is the recorded one.
const UNPROVEN: Explanation = because(
    "unproven",
    "no build ID was recorded, and nothing else shows that the file at the recorded path is the \
     recorded one",
    "record with build IDs (the default of rec and perf record); --trust-paths uses the file \
     without proof, --symfs DIR the one below DIR",
);

/// Reason if a JIT's map or dump exists, but nothing shows that it belongs to the recorded process.
const UNPROVEN_JIT: Explanation = because(
    "unproven",
    "there is a JIT's map or dump, but nothing shows that it belongs to the recorded process",
    "record with rec, which keeps a map while it is known whose it is; put the file below --symfs \
     DIR, or use that at the recorded path with --trust-paths",
);

/// Reason if symbols were found, but none for these addresses.
const BETWEEN: Explanation = because(
    "between-symbols",
    "the symbols that were found do not cover these addresses",
    "nothing, if this is assembly code without symbols; otherwise check that the file is the \
     right one",
);

fn file(module: &Module, outcome: &Outcome, found: bool) -> Explanation {
    let other_version = outcome.refusals().any(|refusal| {
        matches!(
            refusal,
            Refusal::BuildIdMismatch { .. }
                | Refusal::NoBuildId { .. }
                | Refusal::CrcMismatch { .. }
        )
    });
    let recorded_is_other = outcome.attempts.iter().any(|attempt| {
        let mismatch = matches!(
            attempt.result,
            Err(Refusal::BuildIdMismatch { .. } | Refusal::NoBuildId { .. })
        );
        attempt.source == Source::Path && mismatch && outcome.contradiction.is_none()
    });
    let stripped = outcome.dynamic_only
        || outcome.refusals().any(|refusal| matches!(refusal, Refusal::NoSymbols));
    if recorded_is_other || (other_version && !found && !stripped) {
        because(
            "build-id-mismatch",
            "the file that was found is not the recorded one, so its symbols would be wrong",
            "put the recorded version below --symfs DIR, or in the build ID cache (perf \
             buildid-cache --add FILE)",
        )
    } else if outcome.unproven().is_some() {
        UNPROVEN
    } else if outcome.dynamic_only || (stripped && !found) {
        because(
            "stripped",
            "the file has no symbol table, or only dynamic symbols",
            "install its debug package, put its debug file below /usr/lib/debug/.build-id or next \
             to it, or build it unstripped; --debuginfod fetches it from the servers in \
             DEBUGINFOD_URLS",
        )
    } else if found {
        BETWEEN
    } else {
        missing_file(module, outcome)
    }
}

/// Explains that neither the file nor a copy of it could be read.
fn missing_file(module: &Module, outcome: &Outcome) -> Explanation {
    if module.path.ends_with(b" (deleted)") || module.path.starts_with(b"/memfd:") {
        because(
            "deleted",
            "the file was deleted while it was mapped, no process has it any more, and no copy is \
             known by its build ID",
            "record with rec, which keeps such files (unless --no-keep is given), run rep while \
             the program runs, or put the file below --symfs DIR",
        )
    } else if outcome.is_elsewhere {
        because(
            "container",
            "the file is in a container (another mount namespace), of which no process lives, and \
             no copy is known by its build ID",
            "record with rec, which keeps files of containers (unless --no-keep is given), run rep \
             while the container runs, when its files are below /proc/PID/root, or give --symfs \
             DIR, a copy of its root",
        )
    } else if outcome
        .refusals()
        .any(|refusal| matches!(refusal, Refusal::Io(_) | Refusal::Malformed(_)))
    {
        because("unreadable", "the file exists but cannot be read", "see the attempts below")
    } else {
        because(
            "missing",
            "the file is not on this machine, no living process has it mapped (in a container: \
             below /proc/PID/root), and no copy is known by its build ID",
            "put it below --symfs DIR under its recorded path, unpack the output of perf archive \
             into ~/.debug, or fetch it with --debuginfod from the servers in DEBUGINFOD_URLS",
        )
    }
}
