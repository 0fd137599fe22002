//! Scopes and functions of one unit of debug information, with what the entries of functions say
//! about their declaration.

use addr2line::gimli::{
    self, AttributeValue, DebugInfoOffset, EndianSlice, RunTimeEndian, Unit, UnitOffset,
};

pub(super) type ScopeReader<'a> = EndianSlice<'a, RunTimeEndian>;

/// Scopes and functions of a unit, by their offset.
#[derive(Default)]
pub(super) struct ScopeTree {
    pub(super) nodes: Vec<ScopeNode>,
}

pub(super) struct ScopeNode {
    pub(super) entry: usize,
    /// Index of the scope around it; `None` if that is the unit.
    pub(super) parent: Option<usize>,
    pub(super) kind: ScopeKind,
    /// For a class without a name: its number among those of its scope, from 1.
    pub(super) number: u32,
    pub(super) declaration: FunctionDeclaration,
}

/// Where a function is declared.
#[derive(Clone, Copy, Default)]
pub(super) struct FunctionDeclaration {
    /// Line; 0 if the entry does not say it.
    pub(super) line: u32,
    /// Entry that says more.
    pub(super) origin: Option<EntryRef>,
}

/// Reference to an entry.
#[derive(Clone, Copy)]
pub(super) enum EntryRef {
    /// By its offset in the unit.
    InUnit(usize),
    /// By its offset among those of all units.
    InFile(usize),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ScopeKind {
    Namespace,
    Class,
    Function,
}

impl ScopeKind {
    fn of(tag: gimli::DwTag) -> Option<Self> {
        match tag {
            gimli::DW_TAG_namespace => Some(Self::Namespace),
            gimli::DW_TAG_class_type | gimli::DW_TAG_structure_type | gimli::DW_TAG_union_type => {
                Some(Self::Class)
            }
            gimli::DW_TAG_subprogram | gimli::DW_TAG_inlined_subroutine => Some(Self::Function),
            _ => None,
        }
    }
}

impl ScopeTree {
    /// Lists the scopes of a unit; of damaged debug information, those before the damage.
    pub(super) fn of(unit: &Unit<ScopeReader<'_>>) -> Self {
        let mut tree = Self::default();
        // The scopes around the current entry: their depths and indices, and how many of their
        // classes have no name.
        let mut around: Vec<Around> = vec![Around { depth: isize::MIN, index: None, unnamed: 0 }];
        let Ok(mut entries) = unit.entries_raw(None) else { return tree };
        while !entries.is_empty() {
            let (entry, depth) = (entries.next_offset().0, entries.next_depth());
            let Ok(abbreviation) = entries.read_abbreviation() else { break };
            let Some(abbreviation) = abbreviation else { continue };
            let attributes = abbreviation.attributes();
            if let Some(kind) = ScopeKind::of(abbreviation.tag()) {
                while around.last().is_some_and(|scope| scope.depth >= depth) {
                    around.pop();
                }
                let Some(parent) = around.last_mut() else { break };
                let is_unnamed =
                    attributes.iter().all(|attribute| attribute.name() != gimli::DW_AT_name);
                parent.unnamed += u32::from(is_unnamed && kind == ScopeKind::Class);
                let (parent, number) = (parent.index, parent.unnamed);
                around.push(Around { depth, index: Some(tree.nodes.len()), unnamed: 0 });
                let declaration = FunctionDeclaration::default();
                tree.nodes.push(ScopeNode { entry, parent, kind, number, declaration });
            }
            if ScopeKind::of(abbreviation.tag()) == Some(ScopeKind::Function) {
                let Ok(declaration) = FunctionDeclaration::read(&mut entries, attributes) else {
                    break;
                };
                if let Some(node) = tree.nodes.last_mut() {
                    node.declaration = declaration;
                }
            } else if entries.skip_attributes(attributes).is_err() {
                break;
            }
        }
        tree
    }
}

impl FunctionDeclaration {
    /// Reads the attributes of a function's entry.
    fn read(
        entries: &mut gimli::EntriesRaw<'_, ScopeReader<'_>>,
        attributes: &[gimli::AttributeSpecification],
    ) -> gimli::Result<Self> {
        let mut read = Self::default();
        for attribute in attributes {
            let attribute = entries.read_attribute(*attribute)?;
            match (attribute.name(), attribute.value()) {
                (gimli::DW_AT_decl_line, _) => {
                    let line = attribute.udata_value().and_then(|line| u32::try_from(line).ok());
                    read.line = line.unwrap_or(0);
                }
                (gimli::DW_AT_abstract_origin | gimli::DW_AT_specification, value) => {
                    read.origin = match value {
                        AttributeValue::UnitRef(UnitOffset(entry)) => Some(EntryRef::InUnit(entry)),
                        AttributeValue::DebugInfoRef(DebugInfoOffset(offset)) => {
                            Some(EntryRef::InFile(offset))
                        }
                        _ => None,
                    };
                }
                _ => {}
            }
        }
        Ok(read)
    }
}

/// Scope around the current entry of a walk through a unit.
struct Around {
    depth: isize,
    index: Option<usize>,
    /// Classes without a name so far.
    unnamed: u32,
}
