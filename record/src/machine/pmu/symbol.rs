//! Offsets of functions in files, for uprobes and address filters.

use std::fs;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};

/// A function in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Offset of its first byte in the file.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
}

/// Returns the absolute path of a file, as the recorded command may run in another directory.
///
/// # Errors
/// Returns an error if the path does not exist or is not a file.
pub fn file(path: &str) -> Result<PathBuf, String> {
    let absolute =
        fs::canonicalize(path).map_err(|error| format!("{path}: {}", crate::messages::error::why_words(&error)))?;
    if absolute.is_file() { Ok(absolute) } else { Err(format!("{path} is not a file")) }
}

/// Returns the functions of this name (as in the symbol table, or as a Rust path) in a file, sorted by offset. Symbols
/// at the same offset count once.
///
/// # Errors
/// Returns an error if the file cannot be read or is not an ELF file.
pub fn functions(path: &Path, name: &str) -> Result<Vec<Function>, String> {
    let shown = path.display();
    let data = read(path)?;
    let elf = object::File::parse(&data[..]).map_err(|error| format!("{shown} is not an ELF file: {error}"))?;
    let symbols = elf.symbols().chain(elf.dynamic_symbols());
    let mut found: Vec<_> = symbols
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
        .filter(|symbol| symbol.name().is_ok_and(|symbol| is_called(symbol, name)))
        .filter_map(|symbol| Some(Function { offset: offset(&elf, symbol.address())?, size: symbol.size() }))
        .collect();
    found.sort_by_key(|function| function.offset);
    found.dedup_by_key(|function| function.offset);
    Ok(found)
}

/// Returns whether a symbol has this name, or demangles to this Rust path.
fn is_called(symbol: &str, name: &str) -> bool {
    let is_mangled = || symbol.starts_with("_ZN") || symbol.starts_with("_R");
    symbol == name
        || name.contains("::")
            && is_mangled()
            && rustc_demangle::try_demangle(symbol).is_ok_and(|path| format!("{path:#}") == name)
}

/// Returns the range from the first function of a file to the end of the last.
///
/// # Errors
/// Returns an error if the file cannot be read, is not an ELF file, or has no functions in its symbol tables.
pub fn extent(path: &Path) -> Result<Function, String> {
    let shown = path.display();
    let data = read(path)?;
    let elf = object::File::parse(&data[..]).map_err(|error| format!("{shown} is not an ELF file: {error}"))?;
    let code = elf.symbols().chain(elf.dynamic_symbols());
    let code = code.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
    let places = code.filter_map(|symbol| {
        let start = offset(&elf, symbol.address())?;
        Some((start, start + symbol.size()))
    });
    let all = places.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)));
    let (start, end) = all.ok_or_else(|| format!("{shown} has no functions in its symbol tables"))?;
    Ok(Function { offset: start, size: end - start })
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {}", path.display(), crate::messages::error::why_words(&error)))
}

/// Converts an SVMA to a file offset.
fn offset(elf: &object::File<'_>, address: u64) -> Option<u64> {
    elf.segments().find_map(|segment| {
        let (start, length) = segment.file_range();
        let within = address.checked_sub(segment.address()).filter(|within| *within < length)?;
        Some(start + within)
    })
}

/// Returns the kernel's functions of this name: address, and distance to the next symbol.
#[must_use]
pub fn kernel(kallsyms: &Path, name: &str) -> Vec<Function> {
    let text = fs::read_to_string(kallsyms).unwrap_or_default();
    let symbols = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        Some((address, words.next()?, words.next()?))
    });
    let mut code: Vec<_> =
        symbols.filter(|(address, kind, _)| *address != 0 && kind.eq_ignore_ascii_case("t")).collect();
    code.sort_unstable();
    let next = |address| code.iter().map(|(start, ..)| *start).find(|start| *start > address);
    let named = code.iter().filter(|(.., symbol)| *symbol == name);
    named.map(|(at, ..)| Function { offset: *at, size: next(*at).map_or(0, |next| next - at) }).collect()
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
        assert!(functions(Path::new("/proc/self/status"), "main").unwrap_err().contains("not an ELF file"));
        assert!(file("/nonexistent").unwrap_err().contains("/nonexistent"));
        assert!(file("/").unwrap_err().contains("not a file"));
    }

    #[test]
    fn functions_by_their_path_in_rust() {
        assert!(is_called("_ZN8workload5calls6called17h0123456789abcdefE", "workload::calls::called"));
        assert!(!is_called("_ZN8workload5calls6called17h0123456789abcdefE", "workload::calls::call"));
        assert!(is_called("workload::calls", "workload::calls"));
    }

    #[test]
    fn functions_of_the_kernel() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kallsyms");
        fs::write(&path, "ffffffff81000100 T b\nffffffff81000000 t a\t[mod]\nffffffff81000040 D data\n").unwrap();
        assert_eq!(kernel(&path, "a"), [Function { offset: 0xffff_ffff_8100_0000, size: 0x100 }]);
        assert_eq!(kernel(&path, "b"), [Function { offset: 0xffff_ffff_8100_0100, size: 0 }]);
        assert!(kernel(&path, "data").is_empty());
    }
}
