//! The rules of a module: the frame description entry (FDE) of an address, and its row.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::OnceLock;

use gimli::{
    BaseAddresses, CieOrFde, CommonInformationEntry, DebugFrame, EhFrame, Encoding, EndianSlice,
    Expression, Format, FrameDescriptionEntry, RunTimeEndian, UnwindContext, UnwindExpression,
    UnwindSection, UnwindTable, Vendor,
};
use recrep_format::endian::Endian;

use super::go::{GoRuntime, Landmark};
use super::machine::Machine;
use super::rule::{FramePointer, Rows, Rule, RuleContext};

/// A section of a module, at the address that it is linked at.
#[derive(Clone, Copy, Debug)]
pub struct Section<B> {
    /// Linked address of the first byte.
    pub address: u64,
    /// The contents, uncompressed.
    pub bytes: B,
}

/// What unwinding needs of a module's file.
#[derive(Clone, Debug)]
pub struct Sections<B> {
    /// The machine that the module is for.
    pub machine: Machine,
    /// Byte order of the file.
    pub endian: Endian,
    /// `.eh_frame`.
    pub eh_frame: Option<Section<B>>,
    /// `.eh_frame_hdr`, whose table finds the entries of `.eh_frame`.
    pub eh_frame_hdr: Option<Section<B>>,
    /// `.debug_frame`: asked where `.eh_frame` has no rule.
    pub debug_frame: Option<B>,
    /// Linked address of `.text`, from which some pointers count; 0 if there is none.
    pub text: u64,
    /// Linked address of `.got`, the same.
    pub got: u64,
    /// Where the process enters the module (`e_entry`); 0 if it does not.
    pub entry: u64,
    /// The runtime of a Go program.
    pub go: Option<GoRuntime>,
}

impl<B> Sections<B> {
    /// A module without any: memory that has no file.
    pub fn none(machine: Machine, endian: Endian) -> Self {
        Self {
            machine,
            endian,
            eh_frame: None,
            eh_frame_hdr: None,
            debug_frame: None,
            text: 0,
            got: 0,
            entry: 0,
            go: None,
        }
    }

    /// The call frame information of a JIT's code, by addresses of the process. In perf's layout,
    /// which its offsets are for, it follows the code:
    ///
    /// ```text
    ///   │ code  │ │ .eh_frame │ .eh_frame_hdr │
    ///   └ start └ start + size, rounded up to 8
    /// ```
    pub fn of_jit(machine: Machine, endian: Endian, start: u64, size: u64, eh_frame: B) -> Self {
        let address = start.wrapping_add(size.wrapping_add(7) & !7);
        let eh_frame = Some(Section { address, bytes: eh_frame });
        Self { eh_frame, text: start, ..Self::none(machine, endian) }
    }
}

/// The rules of a module.
pub struct Rules<B> {
    sections: Sections<B>,
    bases: BaseAddresses,
    /// Entries of `.eh_frame`, if no table finds them.
    eh_entries: Option<Entries>,
    /// Entries of `.debug_frame`: many modules never need them.
    debug_entries: OnceLock<Entries>,
}

impl<B> fmt::Debug for Rules<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").field("machine", &self.sections.machine).finish_non_exhaustive()
    }
}

/// Entries of a section, sorted by their addresses.
type Entries = Vec<Entry>;

/// The addresses of an entry, and its place in the section.
#[derive(Clone, Debug)]
struct Entry {
    addresses: Range<u64>,
    offset: usize,
}

/// Greatest size of an entry in bytes, so that the work for a row is bounded. The largest entries
/// of real modules have some thousand.
const MOST_BYTES: usize = 1 << 16;

/// Size of the code at a module's entry, in bytes: that of the dynamic linker has no rules, calls
/// what prepares the program, and jumps there.
const ENTRY: u64 = 64;

/// Memory for reading rows, used again and again.
pub(super) type RowMemory = UnwindContext<usize, Rows>;

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

impl<B: Deref<Target = [u8]>> Rules<B> {
    /// Prepares the rules of a module. Addresses whose call frame information is damaged have no
    /// rules.
    pub fn new(sections: Sections<B>) -> Self {
        let address =
            |section: &Option<Section<B>>| section.as_ref().map(|section| section.address);
        let mut bases = BaseAddresses::default().set_text(sections.text).set_got(sections.got);
        if let Some(address) = address(&sections.eh_frame) {
            bases = bases.set_eh_frame(address);
        }
        if let Some(address) = address(&sections.eh_frame_hdr) {
            bases = bases.set_eh_frame_hdr(address);
        }
        let mut rules = Self { sections, bases, eh_entries: None, debug_entries: OnceLock::new() };
        if rules.table().is_none() {
            let entries = rules.eh_frame().map(|section| rules.entries(&section));
            rules.eh_entries = Some(entries.unwrap_or_default());
        }
        rules
    }

    /// Returns the machine that the module is for.
    pub fn machine(&self) -> Machine {
        self.sections.machine
    }

    /// Returns what the frame pointer is at a linked address: that of the instruction, which for a
    /// caller is the one before its return address.
    pub fn frame_pointer_at(&self, address: u64) -> FramePointer {
        self.frame_pointer_in(address).0
    }

    /// Does the same; also returns a range around the address where it is the same.
    pub fn frame_pointer_in(&self, address: u64) -> (FramePointer, Range<u64>) {
        let mut memory = RowMemory::new_in();
        let Some(found) = self.find(address, &mut memory) else {
            return (FramePointer::Unknown, address..address.saturating_add(1));
        };
        // Prologues are short: few rules need the next one, which takes as long to find.
        let next = || Some(self.find(found.end?, &mut memory)?.rule);
        (FramePointer::of(&found.rule, next, self.machine()), found.addresses)
    }

    /// Returns the number of the entries of `.eh_frame`, each of which is for a function: its code,
    /// or a part of it that the compiler moved away.
    pub fn functions(&self) -> usize {
        self.eh_entries.as_ref().map_or_else(|| self.table().map_or(0, <[_]>::len), Vec::len)
    }

    /// Returns the place of the function at a linked address among those of `.eh_frame`, in the
    /// order of their addresses.
    pub fn function_at(&self, address: u64) -> Option<usize> {
        let place = self.functions_until(address)?.checked_sub(1)?;
        self.function(place).filter(|function| function.contains(&address)).map(|_| place)
    }

    /// Returns the first linked address behind this one at which a function of `.eh_frame` begins.
    pub fn start_behind(&self, address: u64) -> Option<u64> {
        Some(self.function(self.functions_until(address)?)?.start)
    }

    /// Returns the number of functions that begin at this linked address or before.
    fn functions_until(&self, address: u64) -> Option<usize> {
        Some(match &self.eh_entries {
            Some(entries) => entries.partition_point(|entry| entry.addresses.start <= address),
            None => {
                let header = self.sections.eh_frame_hdr.as_ref()?.address;
                self.table()?.partition_point(|pair| self.start_of(header, pair) <= address)
            }
        })
    }

    /// Returns the linked addresses of the function at a place among those of `.eh_frame`.
    pub fn function(&self, place: usize) -> Option<Range<u64>> {
        if let Some(entries) = &self.eh_entries {
            return Some(entries.get(place)?.addresses.clone());
        }
        let fde = self.of_pair(&self.eh_frame()?, self.table()?.get(place)?)?;
        Some(fde.initial_address()..fde.end_address())
    }

    /// Returns whether a linked address is in the code with which a process begins.
    pub(super) fn is_entry(&self, address: u64) -> bool {
        let entry = self.sections.entry;
        entry > 0 && (entry..entry.saturating_add(ENTRY)).contains(&address)
    }

    /// Returns what the function at a linked address means for the chain.
    pub(super) fn landmark(&self, address: u64) -> Option<Landmark> {
        self.sections.go.as_ref()?.landmark(address)
    }

    /// Returns whether the functions keep frame pointers that the rules do not tell of.
    pub(super) fn is_go(&self) -> bool {
        self.sections.go.is_some()
    }

    /// Returns the rule at a linked address.
    pub(super) fn find(&self, address: u64, memory: &mut RowMemory) -> Option<Found> {
        let of_eh_frame = self.eh_frame().and_then(|section| {
            let fde = self.of_eh_frame(&section, address)?;
            self.row(&section, &fde, address, memory, false)
        });
        of_eh_frame.or_else(|| {
            let section = self.debug_frame()?;
            let entries = self.debug_entries.get_or_init(|| self.entries(&section));
            let fde = self.entry(&section, entries, address)?;
            self.row(&section, &fde, address, memory, true)
        })
    }

    /// Returns the linked address at which the function of an address begins.
    pub(super) fn beginning(&self, address: u64) -> Option<u64> {
        let of_eh_frame = self
            .eh_frame()
            .and_then(|section| Some(self.of_eh_frame(&section, address)?.initial_address()));
        of_eh_frame.or_else(|| {
            let section = self.debug_frame()?;
            let entries = self.debug_entries.get_or_init(|| self.entries(&section));
            Some(self.entry(&section, entries, address)?.initial_address())
        })
    }

    /// Returns an expression of a rule.
    pub(super) fn expression(
        &self,
        expression: UnwindExpression<usize>,
        in_debug_frame: bool,
    ) -> Option<Expression<Slice<'_>>> {
        if in_debug_frame {
            expression.get(&self.debug_frame()?).ok()
        } else {
            expression.get(&self.eh_frame()?).ok()
        }
    }

    fn endian(&self) -> RunTimeEndian {
        match self.sections.endian {
            Endian::Little => RunTimeEndian::Little,
            Endian::Big => RunTimeEndian::Big,
        }
    }

    fn vendor(&self) -> Vendor {
        match self.machine() {
            Machine::Aarch64 => Vendor::AArch64,
            Machine::X86_64 | Machine::X86 => Vendor::Default,
        }
    }

    fn eh_frame(&self) -> Option<EhFrame<Slice<'_>>> {
        let mut section = EhFrame::new(&self.sections.eh_frame.as_ref()?.bytes, self.endian());
        section.set_address_size(self.machine().word());
        section.set_vendor(self.vendor());
        Some(section)
    }

    fn debug_frame(&self) -> Option<DebugFrame<Slice<'_>>> {
        let mut section = DebugFrame::new(self.sections.debug_frame.as_ref()?, self.endian());
        section.set_address_size(self.machine().word());
        section.set_vendor(self.vendor());
        Some(section)
    }

    /// Returns the table of `.eh_frame_hdr` (Linux Standard Base, section 10.6.2), of pairs of
    /// offsets from the section's address: of a function, and of its entry. Linkers write no other
    /// form than this one.
    fn table(&self) -> Option<&[[u8; 8]]> {
        let bytes = &*self.sections.eh_frame_hdr.as_ref()?.bytes;
        let (head, rest) = bytes.split_first_chunk::<12>()?;
        // Version 1; a pointer of 4 bytes; a number of 4 bytes; signed offsets of 4 bytes.
        let [1, pointer, 0x03, 0x3b, _, _, _, _, a, b, c, d] = *head else { return None };
        if ![0x03, 0x0b].contains(&(pointer & 0x0f)) {
            return None;
        }
        let count = usize::try_from(self.sections.endian.u32([a, b, c, d])).ok()?;
        rest.as_chunks().0.get(..count).filter(|table| !table.is_empty())
    }

    /// Returns the entry of an address in `.eh_frame`.
    fn of_eh_frame<'a>(
        &'a self,
        section: &EhFrame<Slice<'a>>,
        address: u64,
    ) -> Option<FrameDescriptionEntry<Slice<'a>>> {
        match &self.eh_entries {
            Some(entries) => self.entry(section, entries, address),
            None => self.of_table(section, address),
        }
    }

    /// Returns the entry of an address by the table of `.eh_frame_hdr`.
    fn of_table<'a>(
        &'a self,
        section: &EhFrame<Slice<'a>>,
        address: u64,
    ) -> Option<FrameDescriptionEntry<Slice<'a>>> {
        let header = self.sections.eh_frame_hdr.as_ref()?.address;
        let table = self.table()?;
        let after = table.partition_point(|pair| self.start_of(header, pair) <= address);
        self.of_pair(section, table.get(after.checked_sub(1)?)?).filter(|fde| fde.contains(address))
    }

    /// Returns the linked address at which the function of a pair of the table begins.
    fn start_of(&self, header: u64, [a, b, c, d, ..]: &[u8; 8]) -> u64 {
        self.linked(header, [*a, *b, *c, *d])
    }

    /// Returns the linked address at an offset from that of the table's section.
    fn linked(&self, header: u64, offset: [u8; 4]) -> u64 {
        header.wrapping_add_signed(self.sections.endian.u32(offset).cast_signed().into())
    }

    /// Returns the entry that a pair of the table of `.eh_frame_hdr` is for.
    fn of_pair<'a>(
        &'a self,
        section: &EhFrame<Slice<'a>>,
        [.., a, b, c, d]: &[u8; 8],
    ) -> Option<FrameDescriptionEntry<Slice<'a>>> {
        let header = self.sections.eh_frame_hdr.as_ref()?.address;
        let entry = self.linked(header, [*a, *b, *c, *d]);
        let offset = entry.checked_sub(self.sections.eh_frame.as_ref()?.address)?;
        self.parse(section, usize::try_from(offset).ok()?)
    }

    /// Returns the entry of an address by a list.
    fn entry<'a, S: UnwindSection<Slice<'a>>>(
        &'a self,
        section: &S,
        entries: &[Entry],
        address: u64,
    ) -> Option<FrameDescriptionEntry<Slice<'a>>> {
        let after = entries.partition_point(|entry| entry.addresses.start <= address);
        let entry = entries.get(after.checked_sub(1)?)?;
        if !entry.addresses.contains(&address) {
            return None;
        }
        self.parse(section, entry.offset).filter(|fde| fde.contains(address))
    }

    /// Reads the entry at an offset.
    fn parse<'a, S: UnwindSection<Slice<'a>>>(
        &'a self,
        section: &S,
        offset: usize,
    ) -> Option<FrameDescriptionEntry<Slice<'a>>> {
        let fde = section.fde_from_offset(&self.bases, offset.into(), S::cie_from_offset).ok()?;
        let is_bounded = fde.entry_len() <= MOST_BYTES && fde.cie().entry_len() <= MOST_BYTES;
        is_bounded.then_some(fde)
    }

    /// Lists the entries of a section.
    fn entries<'a, S: UnwindSection<Slice<'a>>>(&'a self, section: &S) -> Entries {
        let (mut found, mut all) = (Vec::new(), section.entries(&self.bases));
        let mut last: Option<(S::Offset, CommonInformationEntry<Slice<'a>>)> = None;
        while let Ok(Some(entry)) = all.next() {
            let CieOrFde::Fde(partial) = entry else { continue };
            let fde = partial.parse(|section, bases, offset| match &last {
                Some((at, cie)) if *at == offset => Ok(cie.clone()),
                _ => {
                    let cie = section.cie_from_offset(bases, offset)?;
                    last = Some((offset, cie.clone()));
                    Ok(cie)
                }
            });
            if let Ok(fde) = fde {
                let addresses = fde.initial_address()..fde.end_address();
                found.push(Entry { addresses, offset: fde.offset() });
            }
        }
        found.sort_unstable_by_key(|entry| (entry.addresses.start, entry.offset));
        found
    }

    /// Returns the rule at an address of an entry.
    fn row<'a, S: UnwindSection<Slice<'a>>>(
        &'a self,
        section: &S,
        fde: &FrameDescriptionEntry<Slice<'a>>,
        address: u64,
        memory: &mut RowMemory,
        in_debug_frame: bool,
    ) -> Option<Found> {
        let cie = fde.cie();
        let context = RuleContext {
            machine: self.machine(),
            return_address: cie.return_address_register(),
            is_signal: fde.is_signal_trampoline(),
            encoding: Encoding {
                format: Format::Dwarf32,
                version: 4,
                address_size: self.machine().word(),
            },
            in_debug_frame,
        };
        let mut table = UnwindTable::new(section, &self.bases, memory, fde).ok()?;
        loop {
            let row = table.next_row().ok()??;
            if row.contains(address) {
                let end = row.end_address();
                let end = (end < fde.end_address()).then_some(end);
                let addresses = row.start_address()..row.end_address();
                return Some(Found { rule: Rule::of(row, context), addresses, end });
            }
        }
    }
}

/// A rule, and where the next rule of its function begins.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) rule: Rule,
    /// The addresses that it is for.
    pub(super) addresses: Range<u64>,
    pub(super) end: Option<u64>,
}
