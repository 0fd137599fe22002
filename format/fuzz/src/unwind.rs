// Unwinding with call frame information of any bytes.

use recrep_format::abi::{RegsAbi, RegsArch};
use recrep_format::bytes::U64s;
use recrep_format::endian::Endian;
use recrep_format::record::Regs;
use recrep_unwind::{
    Code, End, Frame, Machine, Memory, Place, Registers, Rules, Section, Sections, Unreadable,
    Unwinder,
};

/// Linked addresses: code, then `.eh_frame_hdr`, then `.eh_frame`.
const CODE: u64 = 0x1000;
const HEADER: u64 = 0x20_0000;
const FRAMES: u64 = 0x30_0000;
const STACK: u64 = 0x7000_0000;
/// Greatest number of frames.
const MOST: usize = 64;

/// One module, mapped at its linked addresses.
struct Module<'a>(Rules<&'a [u8]>);

impl<'a> Code for Module<'a> {
    type Bytes = &'a [u8];

    fn place(&mut self, address: u64) -> Option<Place> {
        (CODE..STACK).contains(&address).then_some(Place { module: 0, address })
    }

    fn rules(&mut self, _: u32) -> Result<&Rules<&'a [u8]>, Unreadable> {
        Ok(&self.0)
    }

    fn code_before(&mut self, address: u64) -> Option<[u8; 8]> {
        Some([if address.is_multiple_of(3) { 0xe8 } else { 0x90 }; 8])
    }

    /// Any bytes, with returns among them.
    fn code_at(&mut self, address: u64, bytes: &mut [u8; 16]) -> usize {
        let mut at = address;
        for byte in bytes.iter_mut() {
            *byte = (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
            at = at.wrapping_add(1);
        }
        bytes.len()
    }
}

/// A byte of choice, the lengths of `.eh_frame`, `.eh_frame_hdr` and `.debug_frame` in 16 bits each, a
/// byte without meaning, the sections, then words: 33 registers, the stack; its last 4 are the
/// kernel's chain. The chain has no more frames than asked for, and is the same from rules that
/// are kept.
pub(crate) fn unwind(bytes: &[u8]) {
    let Some((head, rest)) = bytes.split_first_chunk::<8>() else { return };
    let [choice, a, b, c, d, e, f, _] = *head;
    let endian = if choice & 4 == 0 { Endian::Little } else { Endian::Big };
    let (arch, abi) = match choice & 3 {
        0 | 1 => (RegsArch::X86, RegsAbi::ABI_64),
        2 => (RegsArch::X86, RegsAbi::ABI_32),
        _ => (RegsArch::Arm64, RegsAbi::ABI_64),
    };
    let mut rest = rest;
    let mut take = |length: [u8; 2]| {
        let (taken, left) = rest.split_at(usize::from(u16::from_le_bytes(length)).min(rest.len()));
        rest = left;
        Some(taken).filter(|taken| !taken.is_empty())
    };
    let (frames, header, debug_frame) = (take([a, b]), take([c, d]), take([e, f]));
    let (words, _) = rest.as_chunks::<8>();
    let words = words.get(..words.len().min(1000)).unwrap_or_default();
    let Some((registers, stack)) = words.split_at_checked(33) else { return };
    let links = stack.len().saturating_sub(4);
    let links: Vec<u64> = stack[links..].iter().map(|word| endian.u64(*word)).collect();
    let machine = Machine::of(arch, abi).expect("these are machines");
    let registers = registers[..machine.sampled_registers().count_ones() as usize].as_flattened();
    let values = U64s::new(registers, endian);
    let regs = Regs { abi, mask: machine.sampled_registers(), values };
    let registers = Registers::of_sample(machine, &regs).expect("all registers are there");
    let section = |address| move |bytes| Section { address, bytes };
    let mut module = Module(Rules::new(Sections {
        machine,
        endian,
        eh_frame: frames.map(section(FRAMES)),
        eh_frame_hdr: header.map(section(HEADER)),
        debug_frame,
        text: CODE,
        got: 0,
        entry: CODE,
        go: None,
    }));
    let _ = module.0.frame_pointer_at(registers.ip());
    let memory =
        Memory { start: registers.sp(), bytes: stack.as_flattened(), endian, links: &links };
    let mut unwinder = Unwinder::default();
    let mut walk = || {
        let mut frames: Vec<Frame> = Vec::new();
        let end = unwinder.walk(&mut module, &registers, &memory, MOST, &mut frames);
        (frames, end)
    };
    let (frames, end) = walk();
    assert!(frames.len() <= MOST && !frames.is_empty(), "{} frames", frames.len());
    assert!(end != End::Limit || frames.len() == MOST);
    assert_eq!(walk(), (frames, end), "rules that are kept lead elsewhere");
}
