//! Names of system calls and of their errors on the recorded machine.

use std::borrow::Cow;

use recrep_format::feature::Arch;
use recrep_format::read::File;
use rustc_hash::FxHashMap;
use syscalls::{
    Errno, aarch64, arm, loongarch64, mips, mips64, powerpc, powerpc64, riscv32, riscv64, s390x,
    sparc, sparc64, x86, x86_64,
};

/// Returns the name of the system call with a number.
type NameTable = fn(usize) -> Option<&'static str>;

/// Names on the machine of one file.
#[derive(Debug)]
pub(super) struct SyscallNames {
    /// Names of its architecture; `None` if that is unknown.
    table: Option<NameTable>,
    /// `true` if its errors have the numbers that most architectures share.
    has_common_errors: bool,
    /// Names of the recorded tracepoints (`syscalls:sys_enter_openat`), by number.
    recorded: FxHashMap<i32, String>,
}

/// Errors up to this number are the same on all architectures.
const SAME_ERRORS: i32 = 34;

impl SyscallNames {
    /// Returns the names for a file, whose tracepoints have given the `recorded` ones.
    pub(super) fn new(file: &File<'_>, recorded: FxHashMap<i32, String>) -> Self {
        let arch = file.feature::<Arch<'_>>().and_then(Result::ok).map(|arch| arch.0.to_text());
        Self::of(arch.as_deref().unwrap_or_default(), recorded)
    }

    /// Returns the names of an architecture, as `uname -m` spells it.
    pub(super) fn of(arch: &str, recorded: FxHashMap<i32, String>) -> Self {
        let has_common_errors =
            !["mips", "sparc", "alpha", "parisc"].iter().any(|other| arch.starts_with(other));
        Self { table: table(arch), has_common_errors, recorded }
    }

    /// Returns the name of the system call with this number. That of its tracepoint may be another
    /// one (`newfstat` for `fstat`), so it counts only if the architecture is unknown.
    pub(super) fn call(&self, number: i32) -> Option<&str> {
        let number_of_table = usize::try_from(number).ok();
        let name = self.table.zip(number_of_table).and_then(|(table, number)| table(number));
        name.or_else(|| self.recorded.get(&number).map(String::as_str))
    }

    /// Returns the name of an error.
    pub(super) fn error(&self, errno: i32) -> Option<&'static str> {
        let is_known = self.has_common_errors || errno <= SAME_ERRORS;
        Errno::new(errno).name().filter(|_| is_known)
    }

    /// Returns the name of a system call, or its number.
    pub(super) fn shown(&self, number: i32) -> Cow<'_, str> {
        self.call(number).map_or_else(|| number.to_string().into(), Cow::Borrowed)
    }

    /// Returns whether the call makes a task, which returns from it, too.
    pub(super) fn is_fork(&self, number: i32) -> bool {
        matches!(self.call(number), Some("fork" | "vfork" | "clone" | "clone3"))
    }

    /// Returns whether the call may return to a program of another architecture, as a call with
    /// another number.
    pub(super) fn is_exec(&self, number: i32) -> bool {
        matches!(self.call(number), Some("execve" | "execveat"))
    }
}

fn table(arch: &str) -> Option<NameTable> {
    macro_rules! names_of {
        ($arch:ident) => {
            |number| {
                let name = $arch::Sysno::new(number)?.name();
                // A keyword of Rust.
                Some(name.strip_prefix("r#").unwrap_or(name))
            }
        };
    }
    let table: NameTable = match arch {
        "x86_64" => names_of!(x86_64),
        "x86" | "i386" | "i486" | "i586" | "i686" => names_of!(x86),
        "aarch64" | "arm64" => names_of!(aarch64),
        "riscv64" => names_of!(riscv64),
        "riscv32" => names_of!(riscv32),
        "ppc64" | "ppc64le" => names_of!(powerpc64),
        "ppc" => names_of!(powerpc),
        "s390x" => names_of!(s390x),
        "loongarch64" => names_of!(loongarch64),
        "mips64" => names_of!(mips64),
        "mips" => names_of!(mips),
        "sparc64" => names_of!(sparc64),
        "sparc" => names_of!(sparc),
        _ if arch.starts_with("arm") => names_of!(arm),
        _ => return None,
    };
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_recorded_architecture() {
        for (arch, number, name) in [
            ("x86_64", 0, Some("read")),
            ("x86_64", 5, Some("fstat")),
            ("x86_64", 435, Some("clone3")),
            ("i686", 3, Some("read")),
            ("i686", 17, Some("break")),
            ("aarch64", 63, Some("read")),
            ("armv7l", 3, Some("read")),
            ("x86_64", 100_000, None),
            ("x86_64", -1, None),
            ("vax", 0, None),
        ] {
            assert_eq!(
                SyscallNames::of(arch, FxHashMap::default()).call(number),
                name,
                "{arch} {number}"
            );
        }
        let names = SyscallNames::of("vax", [(5, "newfstat".to_owned())].into_iter().collect());
        assert_eq!([names.shown(5), names.shown(6)], ["newfstat", "6"]);
    }

    #[test]
    fn errors_have_the_numbers_of_their_architecture() {
        let x86 = SyscallNames::of("x86_64", FxHashMap::default());
        let names = [2, 110, 512, 514, 999].map(|errno| x86.error(errno));
        let expected = ["ENOENT", "ETIMEDOUT", "ERESTARTSYS", "ERESTARTNOHAND"].map(Some);
        assert_eq!((&names[..4], names[4]), (&expected[..], None));
        let mips = SyscallNames::of("mips64", FxHashMap::default());
        assert_eq!([mips.error(2), mips.error(110)], [Some("ENOENT"), None]);
    }
}
