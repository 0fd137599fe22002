//! Offsets of functions in files, for uprobes and address filters.

use std::path::{Path, PathBuf};
use std::{fmt, fs};

use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};
use recrep_console::demangle::{CppParts, cpp_name, rust_path};
use recrep_console::nearest;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// Offset of its first byte in the file.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
}

/// Returns the absolute path of a file, as the recorded command may run in another directory.
pub(crate) fn file(path: &str) -> Result<PathBuf, String> {
    let absolute = fs::canonicalize(path)
        .map_err(|error| format!("{path}: {}", crate::messages::error::why_words(&error)))?;
    if absolute.is_file() { Ok(absolute) } else { Err(format!("{path} is not a file")) }
}

/// A function with its name in the symbol table; prints it with what it demangles to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// Name as in the symbol table.
    pub symbol: String,
    pub function: Function,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { symbol, function } = self;
        match cpp_name(symbol, CppParts::Full).or_else(|| rust_path(symbol)) {
            Some(name) => write!(f, "{symbol} ({name}, offset {:#x})", function.offset),
            None => write!(f, "{symbol} (offset {:#x})", function.offset),
        }
    }
}

/// Returns the functions of this name in a file, sorted by offset. The name is that in the symbol
/// table, a Rust path, or a C++ name with or without parameters. Symbols at the same offset count
/// once.
pub(crate) fn functions(path: &Path, name: &str) -> Result<Vec<Function>, String> {
    Ok(named(path, name)?.into_iter().map(|named| named.function).collect())
}

/// Like [`functions`], with their names in the symbol table.
pub(crate) fn named(path: &Path, name: &str) -> Result<Vec<Named>, String> {
    let mut all = all(path)?;
    // A name in the symbol table comes before other spellings.
    if all.iter().any(|named| named.symbol == name) {
        all.retain(|named| named.symbol == name);
    } else {
        all.retain(|named| is_called(&named.symbol, name));
    }
    all.dedup_by_key(|named| named.function.offset);
    Ok(all)
}

/// Returns at most three functions with a similar name: the same in another scope, else those that
/// are spelt nearly so.
pub(crate) fn near(path: &Path, name: &str) -> Result<Vec<Named>, String> {
    const MOST: usize = 3;
    let plain = name.split('(').next().unwrap_or(name);
    let inner = plain.rsplit("::").next().unwrap_or(plain);
    let likeness = |named: &Named| {
        let shown = cpp_name(&named.symbol, CppParts::Name).or_else(|| rust_path(&named.symbol));
        let shown = shown.as_deref().unwrap_or(&named.symbol);
        let own = shown.rsplit("::").next().unwrap_or(shown);
        let alike = nearest::likeness(shown, plain);
        if own == inner { alike + 1.0 } else { alike }
    };
    let mut all: Vec<_> = all(path)?.into_iter().map(|named| (likeness(&named), named)).collect();
    all.retain(|(likeness, _)| *likeness >= 0.7);
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    Ok(all.into_iter().take(MOST).map(|(_, named)| named).collect())
}

/// Returns the functions in a file's symbol tables, by offset; of those with the same offset,
/// global ones first.
fn all(path: &Path) -> Result<Vec<Named>, String> {
    let shown = path.display();
    let data = read(path)?;
    let elf = object::File::parse(&data[..])
        .map_err(|error| format!("{shown} is not an ELF file: {error}"))?;
    let symbols = elf.symbols().chain(elf.dynamic_symbols());
    let mut found: Vec<_> = symbols
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
        .filter_map(|symbol| {
            let function =
                Function { offset: offset(&elf, symbol.address())?, size: symbol.size() };
            Some((symbol.is_local(), Named { symbol: symbol.name().ok()?.to_owned(), function }))
        })
        .collect();
    found.sort_by(|(a_local, a), (b_local, b)| {
        (a.function.offset, a_local, &a.symbol).cmp(&(b.function.offset, b_local, &b.symbol))
    });
    found.dedup();
    Ok(found.into_iter().map(|(_, named)| named).collect())
}

/// Returns whether a symbol has this name, or demangles to this Rust path or C++ function.
fn is_called(symbol: &str, name: &str) -> bool {
    symbol == name
        || name.contains("::") && rust_path(symbol).is_some_and(|path| path == name)
        // The parts of a function that the compiler split off have a suffix.
        || is_cpp(symbol, name) && !symbol.contains('.') && is_cpp_name(symbol, name)
}

/// Returns whether a symbol may be this C++ function: mangled names have the identifiers of what
/// they stand for.
fn is_cpp(symbol: &str, name: &str) -> bool {
    let plain = name.split(['(', '<']).next().unwrap_or(name);
    let identifier = plain.rsplit("::").next().unwrap_or(plain);
    let has_it = |word: &str| symbol.contains(word.trim_start_matches('~'));
    symbol.starts_with("_Z") && (identifier.contains("operator") || has_it(identifier))
}

fn is_cpp_name(symbol: &str, name: &str) -> bool {
    // Spaces differ between demanglers.
    let name = unspaced(name);
    [CppParts::Name, CppParts::NameAndParameters, CppParts::Full]
        .into_iter()
        .any(|parts| cpp_name(symbol, parts).is_some_and(|shown| unspaced(&shown) == name))
}

fn unspaced(text: &str) -> String {
    text.split_whitespace().collect::<String>()
}

/// Returns the range from the first function of a file to the end of the last.
pub(crate) fn extent(path: &Path) -> Result<Function, String> {
    let shown = path.display();
    let data = read(path)?;
    let elf = object::File::parse(&data[..])
        .map_err(|error| format!("{shown} is not an ELF file: {error}"))?;
    let code = elf.symbols().chain(elf.dynamic_symbols());
    let code = code.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
    let places = code.filter_map(|symbol| {
        let start = offset(&elf, symbol.address())?;
        Some((start, start + symbol.size()))
    });
    let all = places.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)));
    let (start, end) =
        all.ok_or_else(|| format!("{shown} has no functions in its symbol tables"))?;
    Ok(Function { offset: start, size: end - start })
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| {
        format!("{}: {}", path.display(), crate::messages::error::why_words(&error))
    })
}

/// Converts an SVMA to a file offset.
fn offset(elf: &object::File<'_>, address: u64) -> Option<u64> {
    elf.segments().find_map(|segment| {
        let (start, length) = segment.file_range();
        let within = address.checked_sub(segment.address()).filter(|within| *within < length)?;
        Some(start + within)
    })
}

/// Returns address, type and name by lines `address type name [module]`; none whose address is hidden.
pub(crate) fn kernel_symbols(text: &str) -> impl Iterator<Item = (u64, &str, &str)> {
    text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok().filter(|at| *at != 0)?;
        Some((address, words.next()?, words.next()?))
    })
}

/// Returns the kernel's functions of this name: address, and distance to the next symbol.
pub(crate) fn kernel(kallsyms: &Path, name: &str) -> Vec<Function> {
    let text = fs::read_to_string(kallsyms).unwrap_or_default();
    let mut code: Vec<_> =
        kernel_symbols(&text).filter(|(_, kind, _)| kind.eq_ignore_ascii_case("t")).collect();
    code.sort_unstable();
    let next = |address| code.iter().map(|(start, ..)| *start).find(|start| *start > address);
    let named = code.iter().filter(|(.., symbol)| *symbol == name);
    named
        .map(|(at, ..)| Function { offset: *at, size: next(*at).map_or(0, |next| next - at) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_this_program() {
        let me = std::env::current_exe().unwrap();
        let [main] = functions(&me, "main").unwrap()[..] else { panic!("a program has one main") };
        assert!(main.offset > 0 && main.offset < fs::metadata(&me).unwrap().len());
        assert!(functions(&me, "no_such_function").unwrap().is_empty());
        assert!(
            functions(Path::new("/proc/self/status"), "main")
                .unwrap_err()
                .contains("not an ELF file")
        );
        assert!(file("/nonexistent").unwrap_err().contains("/nonexistent"));
        assert!(file("/").unwrap_err().contains("not a file"));
    }

    #[test]
    fn functions_by_their_path_in_rust() {
        assert!(is_called(
            "_ZN8workload5calls6called17h0123456789abcdefE",
            "workload::calls::called"
        ));
        assert!(!is_called(
            "_ZN8workload5calls6called17h0123456789abcdefE",
            "workload::calls::call"
        ));
        assert!(is_called("workload::calls", "workload::calls"));
    }

    #[test]
    fn functions_by_their_names_in_cpp() {
        let symbols = [
            "_ZN3lib5outerEi",
            "_ZN3lib5outerEcPKc",
            "_ZNK3lib4List4sizeEv",
            "_ZN3lib4plusIiEET_S1_",
        ];
        let called = |name: &str| symbols.iter().filter(|symbol| is_called(symbol, name)).count();
        assert_eq!(called("lib::outer"), 2);
        assert_eq!(called("lib::outer(int)"), 1);
        assert_eq!(called("lib::outer(char,char const*)"), 1);
        assert_eq!(called("lib::List::size() const"), 1);
        assert_eq!(called("lib::plus<int>"), 1);
        assert_eq!((called("outer"), called("lib::out"), called("_ZN3lib5outerEi")), (0, 0, 1));
        assert!(!is_called("_ZN3lib5outerEi.cold", "lib::outer"), "a part of the function");
    }

    #[test]
    fn functions_of_the_kernel() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kallsyms");
        fs::write(
            &path,
            "ffffffff81000100 T b\nffffffff81000000 t a\t[mod]\nffffffff81000040 D data\n",
        )
        .unwrap();
        assert_eq!(kernel(&path, "a"), [Function { offset: 0xffff_ffff_8100_0000, size: 0x100 }]);
        assert_eq!(kernel(&path, "b"), [Function { offset: 0xffff_ffff_8100_0100, size: 0 }]);
        assert!(kernel(&path, "data").is_empty());
    }
}
