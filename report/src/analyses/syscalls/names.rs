//! Names of system calls and of their errors on the recorded machine, by their numbers. A 64-bit
//! kernel has a table of its own for 32-bit calls (`tables`).

use std::borrow::Cow;

use recrep_format::feature::Arch;
use recrep_format::read::File;
use rustc_hash::FxHashMap;
use syscalls::{
    Errno, aarch64, arm, loongarch64, mips, mips64, powerpc, powerpc64, riscv32, riscv64, s390x,
    sparc, sparc64, x86, x86_64,
};

/// Number of a system call; negative if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CallNumber(i32);

/// Returns the name of the system call with a number.
type NameTable = fn(usize) -> Option<&'static str>;

/// Names on the machine of one file.
#[derive(Debug)]
pub(super) struct SyscallNames {
    /// Names of its architecture; `None` if that is unknown.
    table: Option<NameTable>,
    /// Names of the calls of its 32-bit programs.
    compat: Option<NameTable>,
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
        Self::of(&arch(file), recorded)
    }

    /// Returns the names of an architecture, as `uname -m` spells it.
    pub(super) fn of(arch: &str, recorded: FxHashMap<i32, String>) -> Self {
        let has_common_errors =
            !["mips", "sparc", "alpha", "parisc"].iter().any(|other| arch.starts_with(other));
        let compat = compat_of(arch).and_then(table);
        Self { table: table(arch), compat, has_common_errors, recorded }
    }

    /// Returns the name of the system call with this number. That of its tracepoint may be another
    /// one (`newfstat` for `fstat`), so it counts only if the architecture is unknown.
    pub(super) fn call(&self, number: CallNumber) -> Option<&str> {
        let table = if number.is_compat() { self.compat } else { self.table };
        let number_of_table = usize::try_from(number.value()).ok();
        let name = table.zip(number_of_table).and_then(|(table, number)| table(number));
        let recorded = || self.recorded.get(&number.value()).filter(|_| !number.is_compat());
        name.or_else(|| recorded().map(String::as_str))
    }

    /// Returns the name of an error.
    pub(super) fn error(&self, errno: i32) -> Option<&'static str> {
        let is_known = self.has_common_errors || errno <= SAME_ERRORS;
        Errno::new(errno).name().filter(|_| is_known)
    }

    /// Returns the name of a system call, or its number; that of a 32-bit one says so.
    pub(super) fn shown(&self, number: CallNumber) -> Cow<'_, str> {
        let name =
            self.call(number).map_or_else(|| Cow::from(number.value().to_string()), Cow::Borrowed);
        if number.is_compat() { format!("{name} (32-bit)").into() } else { name }
    }

    /// Returns whether the call makes a task, which returns from it, too.
    pub(super) fn is_fork(&self, number: CallNumber) -> bool {
        matches!(self.call(number), Some("fork" | "vfork" | "clone" | "clone3"))
    }

    /// Returns whether the call may return to a program of another architecture, as a call with
    /// another number, and in another thread.
    pub(super) fn is_exec(&self, number: CallNumber) -> bool {
        matches!(self.call(number), Some("execve" | "execveat"))
    }
}

/// Returns the architecture that a file was recorded on, as `uname -m` spells it.
pub(super) fn arch(file: &File<'_>) -> String {
    let arch = file.feature::<Arch<'_>>().and_then(Result::ok);
    arch.map(|arch| arch.0.to_text().into_owned()).unwrap_or_default()
}

/// Returns the architecture of the 32-bit programs that a machine runs beside its own.
pub(super) fn compat_of(arch: &str) -> Option<&'static str> {
    Some(match arch {
        "x86_64" => "i386",
        "aarch64" | "arm64" => "arm",
        "ppc64" | "ppc64le" => "ppc",
        "mips64" => "mips",
        "sparc64" => "sparc",
        "riscv64" => "riscv32",
        _ => return None,
    })
}

impl CallNumber {
    /// Number with which a call leaves whose registers are another context's.
    pub(super) const OTHER_CONTEXT: Self = Self(-1);
    /// It is of the 32-bit table.
    const COMPAT: i32 = 1 << 29;
    /// Registers showed which table it is of.
    const PROVEN: i32 = 1 << 28;

    /// Returns a number whose table the registers `proved` to be the 32-bit one or not; if they did
    /// not, the program decides.
    pub(super) fn of(number: i32, proved: Option<bool>, is_of_32_bits: bool) -> Self {
        if number < 0 {
            return Self(number);
        }
        let compat = if proved.unwrap_or(is_of_32_bits) { Self::COMPAT } else { 0 };
        Self(number | compat | if proved.is_some() { Self::PROVEN } else { 0 })
    }

    /// Returns a number of the machine's own table.
    #[cfg(test)]
    pub(super) fn native(number: i32) -> Self {
        Self::of(number, None, false)
    }

    pub(super) fn value(self) -> i32 {
        if self.0 < 0 { self.0 } else { self.0 & !(Self::COMPAT | Self::PROVEN) }
    }

    pub(super) fn is_compat(self) -> bool {
        self.0 > 0 && self.0 & Self::COMPAT != 0
    }

    /// Returns the number of a call whose sides have this and the `other` one; `None` if they are of
    /// two calls.
    pub(super) fn joined(self, other: Self) -> Option<Self> {
        let is_proven = other.0 > 0 && other.0 & Self::PROVEN != 0 && self.0 & Self::PROVEN == 0;
        match self.value() == other.value() {
            true if is_proven => Some(other),
            true => Some(self),
            false => (other == Self::OTHER_CONTEXT).then_some(self),
        }
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
                SyscallNames::of(arch, FxHashMap::default()).call(CallNumber::native(number)),
                name,
                "{arch} {number}"
            );
        }
        let names = SyscallNames::of("vax", [(5, "newfstat".to_owned())].into_iter().collect());
        let shown = [5, 6].map(|number| names.shown(CallNumber::native(number)));
        assert_eq!(shown, ["newfstat", "6"]);
    }

    #[test]
    fn one_side_proves_the_table_of_both() {
        let guessed = CallNumber::native(20);
        let proven = CallNumber::of(20, Some(true), false);
        assert_eq!(guessed.joined(proven), Some(proven));
        assert_eq!(proven.joined(guessed), Some(proven));
        assert_eq!(guessed.joined(CallNumber::native(21)), None);
        assert_eq!(proven.joined(CallNumber::OTHER_CONTEXT), Some(proven));
        assert_eq!([proven.value(), CallNumber::OTHER_CONTEXT.value()], [20, -1]);
        assert!(!CallNumber::OTHER_CONTEXT.is_compat());
    }

    #[test]
    fn programs_of_32_bits_have_numbers_of_their_own() {
        for (arch, number, name) in [
            ("x86_64", 20, "getpid (32-bit)"),
            ("x86_64", 6, "close (32-bit)"),
            ("x86_64", 100_000, "100000 (32-bit)"),
            ("aarch64", 20, "getpid (32-bit)"),
            ("vax", 20, "20 (32-bit)"),
        ] {
            let names = SyscallNames::of(arch, [(20, "newfstat".to_owned())].into_iter().collect());
            let number = CallNumber::of(number, Some(true), false);
            assert_eq!(names.shown(number), name, "{arch}");
        }
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
