//! Whole names of C++ functions that have no linkage name, from the tree of their debug
//! information.
//!
//! g++ gives no linkage name to functions in anonymous namespaces, lambdas and members of local
//! classes: debug information has only `churn` or `operator()`, by which different functions would
//! be one. Their scopes tell them apart:
//!
//! ```text
//!   namespace red ─► namespace (no name) ─► function churn          red::(anonymous namespace)::churn
//!                                               ▲ abstract origin, specification
//!   function go ─► inlined function ────────────┘
//! ```
//!
//! The entries of a unit do not know their parents, so the scopes of a unit are listed once
//! ([`ScopeTree`]), when the first of its names is asked for. Debug information is untrusted: chains
//! of references and scopes are followed so far only.

use std::borrow::Cow;
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use addr2line::gimli::{
    self, AbbreviationsCacheStrategy, AttributeValue, DebugInfoOffset, Dwarf, DwarfSections,
    EndianSlice, RunTimeEndian, SectionId, Unit, UnitOffset,
};
use object::{Object, ObjectKind, ObjectSection};
use recrep_console::demangle;
use rustc_hash::FxHashMap;

use super::scope_tree::{EntryRef, FunctionDeclaration, ScopeKind, ScopeReader, ScopeTree};
use crate::input::map::Bytes;
use crate::symbols::file::{self, kept};

/// Most references from an entry to the one that declares it.
const MOST_REFERENCES: usize = 16;
/// Most scopes around a function.
const MOST_SCOPES: usize = 64;
/// Most bytes of a whole name.
const MOST_BYTES: usize = 1 << 14;
/// Most ranges that are tried for an address: those of different units seldom
/// overlap.
const MOST_RANGES: usize = 8;

/// Debug information of a file, as far as names need it.
pub(crate) struct Scopes {
    sections: DwarfSections<Bytes>,
    shared: Option<DwarfSections<Bytes>>,
    endian: RunTimeEndian,
    /// Offsets of the units, in ascending order.
    units: Vec<usize>,
    /// Addresses of the units, by their start.
    ranges: Vec<UnitRange>,
    trees: Mutex<FxHashMap<usize, Arc<ScopeTree>>>,
    names: Mutex<FxHashMap<DebugEntry, Option<ScopedName>>>,
}

struct UnitRange {
    begin: u64,
    end: u64,
    unit: usize,
}

/// Entry of debug information: offset of its unit, and its offset in that.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct DebugEntry {
    unit: usize,
    entry: usize,
}

#[derive(Clone)]
struct ScopedName {
    /// ScopedName without the scopes.
    bare: String,
    whole: String,
}

/// Entry that declares another one, and what was met on the way to it.
struct Declared {
    at: DebugEntry,
    name: Option<String>,
    linkage_name: Option<String>,
}

/// Returns whether names of this language are completed.
pub(crate) fn are_completed(language: Option<gimli::DwLang>) -> bool {
    matches!(
        language,
        Some(
            gimli::DW_LANG_C_plus_plus
                | gimli::DW_LANG_C_plus_plus_03
                | gimli::DW_LANG_C_plus_plus_11
                | gimli::DW_LANG_C_plus_plus_14
                | gimli::DW_LANG_C_plus_plus_17
                | gimli::DW_LANG_C_plus_plus_20
        )
    )
}

impl Scopes {
    /// Opens the debug information of a file, and the part that it shares with others; `None` if it
    /// cannot be read.
    pub(crate) fn open(path: &Path, shared: Option<&Path>) -> Option<Self> {
        let shared = shared.and_then(sections).map(|(sections, _)| sections);
        let (sections, endian) = sections(path)?;
        let (mut units, mut ranges) = (Vec::new(), Vec::new());
        let mut opened = Self {
            sections,
            shared,
            endian,
            units: Vec::new(),
            ranges: Vec::new(),
            trees: Mutex::default(),
            names: Mutex::default(),
        };
        let mut dwarf = opened.dwarf();
        dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let Some(DebugInfoOffset(unit)) = header.debug_info_offset() else { continue };
            units.push(unit);
            let Ok(parsed) = dwarf.unit(header) else { continue };
            let Ok(mut of_unit) = dwarf.unit_ranges(&parsed) else { continue };
            while let Ok(Some(range)) = of_unit.next() {
                ranges.push(UnitRange { begin: range.begin, end: range.end, unit });
            }
        }
        drop(dwarf);
        ranges.sort_by_key(|range| range.begin);
        (opened.units, opened.ranges) = (units, ranges);
        Some(opened)
    }

    /// Returns the whole name of the function `bare` at an address, whose entry is the one at this
    /// offset in its unit; `None` if it has a linkage name or is not found.
    pub(crate) fn name(&self, address: u64, entry: usize, bare: &str) -> Option<String> {
        self.entries(address, entry).find_map(|entry| {
            let known = self.known(entry);
            known.filter(|name| name.bare == bare).map(|name| name.whole)
        })
    }

    /// Returns the line at which the function at an address begins, whose entry is the one at this
    /// offset in its unit; 0 if unknown.
    pub(crate) fn start_line(&self, address: u64, entry: usize) -> u32 {
        self.entries(address, entry).find_map(|entry| self.declared_line(entry)).unwrap_or(0)
    }

    /// Returns the entries at this offset in the units that have an address.
    fn entries(&self, address: u64, entry: usize) -> impl Iterator<Item = DebugEntry> {
        let after = self.ranges.partition_point(|range| range.begin <= address);
        let before = self.ranges.iter().take(after).rev().take(MOST_RANGES);
        let containing = before.filter(move |range| address < range.end);
        containing.map(move |range| DebugEntry { unit: range.unit, entry })
    }

    /// Follows a function's references to the entry that has its line.
    fn declared_line(&self, mut at: DebugEntry) -> Option<u32> {
        for _ in 0..MOST_REFERENCES {
            let tree = self.tree_of(at.unit)?;
            let index = tree.nodes.binary_search_by_key(&at.entry, |node| node.entry).ok()?;
            let FunctionDeclaration { line, origin } = tree.nodes.get(index)?.declaration;
            if line > 0 {
                return Some(line);
            }
            at = match origin? {
                EntryRef::InUnit(entry) => DebugEntry { entry, ..at },
                EntryRef::InFile(offset) => self.place(offset)?,
            };
        }
        None
    }

    fn known(&self, place: DebugEntry) -> Option<ScopedName> {
        if let Some(known) = lock(&self.names).get(&place) {
            return known.clone();
        }
        let name =
            ScopeWalk { scopes: self, dwarf: self.dwarf(), last: RefCell::default() }.name(place);
        lock(&self.names).insert(place, name.clone());
        name
    }

    fn dwarf(&self) -> Dwarf<ScopeReader<'_>> {
        self.sections
            .borrow_with_sup(self.shared.as_ref(), |bytes| EndianSlice::new(bytes, self.endian))
    }

    /// Returns the place of an entry by its offset among those of all units.
    fn place(&self, offset: usize) -> Option<DebugEntry> {
        let after = self.units.partition_point(|unit| *unit <= offset);
        let unit = *self.units.get(after.checked_sub(1)?)?;
        Some(DebugEntry { unit, entry: offset - unit })
    }

    /// Returns the scopes of the unit at an offset.
    fn tree_of(&self, unit: usize) -> Option<Arc<ScopeTree>> {
        if let Some(known) = lock(&self.trees).get(&unit) {
            return Some(Arc::clone(known));
        }
        let dwarf = self.dwarf();
        let parsed = dwarf.unit(dwarf.unit_header(DebugInfoOffset(unit)).ok()?).ok()?;
        Some(self.tree(DebugEntry { unit, entry: 0 }, &parsed))
    }

    fn tree(&self, place: DebugEntry, unit: &Unit<ScopeReader<'_>>) -> Arc<ScopeTree> {
        if let Some(known) = lock(&self.trees).get(&place.unit) {
            return Arc::clone(known);
        }
        let tree = Arc::new(ScopeTree::of(unit));
        lock(&self.trees).insert(place.unit, Arc::clone(&tree));
        tree
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Way through the debug information from one function to its outermost scope.
struct ScopeWalk<'s> {
    scopes: &'s Scopes,
    dwarf: Dwarf<ScopeReader<'s>>,
    /// Unit that was read last, with its offset: most references stay in it.
    last: RefCell<Option<(usize, Rc<Unit<ScopeReader<'s>>>)>>,
}

impl<'s> ScopeWalk<'s> {
    fn name(&self, place: DebugEntry) -> Option<ScopedName> {
        let declared = self.declared(place)?;
        if declared.linkage_name.is_some() {
            return None;
        }
        let bare = declared.name?;
        let mut parts = vec![bare.clone()];
        let (mut at, mut size) = (declared.at, bare.len());
        while let Some(scope) = self.parent(at)? {
            let declared = self.declared(scope.at)?;
            at = declared.at;
            // A function's linkage name has all scopes around it, and its parameters.
            let whole = declared
                .linkage_name
                .filter(|_| scope.kind == ScopeKind::Function)
                .and_then(|name| as_scope(&name));
            let is_outermost = whole.is_some();
            let part = match (whole.or(declared.name), scope.kind) {
                (Some(name), _) => name,
                (None, ScopeKind::Namespace) => "(anonymous namespace)".to_owned(),
                (None, ScopeKind::Class) if bare == "operator()" => {
                    format!("{{lambda#{}}}", scope.number)
                }
                (None, ScopeKind::Class) => format!("{{unnamed type#{}}}", scope.number),
                (None, ScopeKind::Function) => return None,
            };
            size += part.len() + 2;
            if size > MOST_BYTES || parts.len() > MOST_SCOPES {
                return None;
            }
            parts.push(part);
            if is_outermost {
                break;
            }
        }
        parts.reverse();
        Some(ScopedName { bare, whole: parts.join("::") })
    }

    fn unit(&self, place: DebugEntry) -> Option<Rc<Unit<ScopeReader<'s>>>> {
        let mut last = self.last.borrow_mut();
        if let Some((offset, unit)) = &*last
            && *offset == place.unit
        {
            return Some(Rc::clone(unit));
        }
        let header = self.dwarf.unit_header(DebugInfoOffset(place.unit)).ok()?;
        let unit = Rc::new(self.dwarf.unit(header).ok()?);
        *last = Some((place.unit, Rc::clone(&unit)));
        Some(unit)
    }

    /// Follows an entry's references to the one that declares it.
    fn declared(&self, place: DebugEntry) -> Option<Declared> {
        let mut declared = Declared { at: place, name: None, linkage_name: None };
        let mut unit = self.unit(place)?;
        for _ in 0..MOST_REFERENCES {
            let entry = unit.entry(UnitOffset(declared.at.entry)).ok()?;
            let text = |name| {
                let text = self.dwarf.attr_string(&unit, entry.attr_value(name)?).ok()?;
                (text.len() <= MOST_BYTES).then(|| text.to_string_lossy().into_owned())
            };
            declared.name = declared.name.or_else(|| text(gimli::DW_AT_name));
            for name in [gimli::DW_AT_linkage_name, gimli::DW_AT_MIPS_linkage_name] {
                declared.linkage_name = declared.linkage_name.or_else(|| text(name));
            }
            let origin = entry.attr_value(gimli::DW_AT_abstract_origin);
            let next = match origin.or_else(|| entry.attr_value(gimli::DW_AT_specification)) {
                Some(AttributeValue::UnitRef(UnitOffset(entry))) => {
                    DebugEntry { entry, ..declared.at }
                }
                Some(AttributeValue::DebugInfoRef(DebugInfoOffset(offset))) => {
                    self.scopes.place(offset)?
                }
                Some(_) => return None,
                None => return Some(declared),
            };
            if next.unit != declared.at.unit {
                unit = self.unit(next)?;
            }
            declared.at = next;
        }
        None
    }

    /// Returns the scope around an entry; `Some(None)` if that is the unit, `None` if the entry is
    /// unknown.
    #[allow(clippy::option_option, reason = "the outer one is an error")]
    fn parent(&self, of: DebugEntry) -> Option<Option<Scope>> {
        let unit = self.unit(of)?;
        let tree = self.scopes.tree(of, &unit);
        let index = tree.nodes.binary_search_by_key(&of.entry, |node| node.entry).ok()?;
        let Some(parent) = tree.nodes.get(index)?.parent else { return Some(None) };
        let node = tree.nodes.get(parent)?;
        let at = DebugEntry { entry: node.entry, ..of };
        Some(Some(Scope { at, kind: node.kind, number: node.number }))
    }
}

/// Scope around an entry.
struct Scope {
    at: DebugEntry,
    kind: ScopeKind,
    /// See [`ScopeNode::number`].
    number: u32,
}

/// Returns a mangled function as the scope of its local names: with its parameters, without its
/// return type.
fn as_scope(mangled: &str) -> Option<String> {
    let local = format!("_ZZ{}E1x", mangled.strip_prefix("_Z")?);
    demangle::demangled(local.as_bytes()).strip_suffix("::x").map(str::to_owned)
}

/// Reads the sections of a linked file that names need.
fn sections(path: &Path) -> Option<(DwarfSections<Bytes>, RunTimeEndian)> {
    let file = file::bytes_of(file::open(path).ok()?).ok()?;
    let object = object::File::parse(&*file).ok()?;
    // The references in a file that is not linked are not resolved.
    if object.kind() == ObjectKind::Relocatable {
        return None;
    }
    let endian = if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let sections = DwarfSections::load(|id| section(&file, &object, id).ok_or(())).ok()?;
    Some((sections, endian))
}

/// Reads a section; empty if it is missing, or names do not need it.
fn section(file: &Bytes, object: &object::File<'_>, id: SectionId) -> Option<Bytes> {
    use SectionId::{
        DebugAbbrev, DebugAddr, DebugInfo, DebugLine, DebugLineStr, DebugRanges, DebugRngLists,
        DebugStr, DebugStrOffsets,
    };
    let is_needed = matches!(
        id,
        DebugAbbrev
            | DebugAddr
            | DebugInfo
            | DebugLine
            | DebugLineStr
            | DebugRanges
            | DebugRngLists
            | DebugStr
            | DebugStrOffsets
    );
    let Some(section) = object.section_by_name(id.name()).filter(|_| is_needed) else {
        return Some(Bytes::default());
    };
    match (section.uncompressed_data().ok()?, section.file_range()) {
        (Cow::Borrowed(_), Some((offset, size))) => kept(file, offset, size).ok(),
        (data, _) => Some(data.into_owned().into()),
    }
}
