//! Call frame information written by hand, byte by byte (DWARF 5, sections 6.4 and 7.24; System V
//! ABI for x86-64, section 4.2.4), and the chains that follow from it.

use proptest::prelude::*;
use recrep_format::abi::RegsAbi;
use recrep_format::bytes::U64s;
use recrep_format::endian::Endian;
use recrep_format::record::Regs;

use super::Frame::{Exact, Missing, Return};
use super::*;

/// Linked address of `.eh_frame`; no code of a test is there.
const EH_FRAME: u64 = 0x10_0000;

const DEF_CFA: u8 = 0x0c;
const DEF_CFA_REGISTER: u8 = 0x0d;
const DEF_CFA_OFFSET: u8 = 0x0e;
const DEF_CFA_EXPRESSION: u8 = 0x0f;
const EXPRESSION: u8 = 0x10;
const UNDEFINED: u8 = 0x07;
const ADVANCE: u8 = 0x40;
const OFFSET: u8 = 0x80;

const RAX: u8 = 0;
const RBX: u8 = 3;
const RBP: u8 = 6;
const RSP: u8 = 7;
const RA: u8 = 16;

/// `.eh_frame` with a function for each range of addresses and its instructions. Each CIE says:
/// CFA = rsp + 8, return address at CFA - 8, offsets in units of -8 bytes.
#[derive(Default)]
pub(crate) struct Frames {
    bytes: Vec<u8>,
    /// First address of each function, and the offset of its entry.
    table: Vec<(u64, usize)>,
}

impl Frames {
    fn entry(&mut self, body: &[u8]) {
        let padding = body.len().next_multiple_of(8) - body.len();
        self.bytes.extend(u32::try_from(body.len() + padding).unwrap().to_le_bytes());
        self.bytes.extend(body);
        self.bytes.extend(std::iter::repeat_n(0, padding));
    }

    fn function(&mut self, start: u64, length: u64, augmentation: &[u8], program: &[u8]) {
        let cie = self.bytes.len();
        let mut body = vec![0, 0, 0, 0, 1];
        body.extend(augmentation);
        // Alignment of code 1 and of data -8, register of the return address; the augmentation's
        // data: addresses are absolute, of 8 bytes.
        body.extend([0, 1, 0x78, RA, 1, 0x04]);
        body.extend([DEF_CFA, RSP, 8, OFFSET | RA, 1]);
        self.entry(&body);
        let distance = u32::try_from(self.bytes.len() + 4 - cie).unwrap();
        self.table.push((start, self.bytes.len()));
        let mut body = distance.to_le_bytes().to_vec();
        body.extend(start.to_le_bytes());
        body.extend(length.to_le_bytes());
        body.push(0);
        body.extend(program);
        self.entry(&body);
    }

    pub(crate) fn with(mut self, start: u64, length: u64, program: &[u8]) -> Self {
        self.function(start, length, b"zR", program);
        self
    }

    fn with_signal(mut self, start: u64, length: u64, program: &[u8]) -> Self {
        self.function(start, length, b"zRS", program);
        self
    }

    /// The rules, found by a table of `.eh_frame_hdr` with this count.
    fn rules_by_table(self, count: u32) -> Rules<Vec<u8>> {
        // Version 1; a pointer relative to its place, a count, a table relative to the section.
        let mut header = vec![1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0];
        header.extend(count.to_le_bytes());
        let address = EH_FRAME - 0x100;
        for (start, offset) in self.table {
            for to in [start, EH_FRAME + offset as u64] {
                let distance = i32::try_from(to.cast_signed() - address.cast_signed()).unwrap();
                header.extend(distance.to_le_bytes());
            }
        }
        Rules::new(Sections {
            eh_frame: Some(Section { address: EH_FRAME, bytes: self.bytes }),
            eh_frame_hdr: Some(Section { address, bytes: header }),
            ..Sections::none(Machine::X86_64, Endian::Little)
        })
    }

    pub(crate) fn rules(self) -> Rules<Vec<u8>> {
        self.rules_with(None)
    }

    pub(crate) fn rules_of_go(self, go: GoRuntime) -> Rules<Vec<u8>> {
        self.rules_with(Some(go))
    }

    fn rules_with(self, go: Option<GoRuntime>) -> Rules<Vec<u8>> {
        Rules::new(Sections {
            go,
            eh_frame: Some(Section { address: EH_FRAME, bytes: self.bytes }),
            entry: 0x9000,
            ..Sections::none(Machine::X86_64, Endian::Little)
        })
    }
}

/// One module at its linked addresses, mapped from 0x1000 to 0xa000.
struct Process(Rules<Vec<u8>>);

impl Code for Process {
    type Bytes = Vec<u8>;

    fn place(&mut self, address: u64) -> Option<Place> {
        (0x1000..0xa000).contains(&address).then_some(Place { module: 0, address })
    }

    fn rules(&mut self, _: u32) -> Result<&Rules<Vec<u8>>, Unreadable> {
        Ok(&self.0)
    }

    /// Before addresses that end with 5 there is a call of 5 bytes.
    fn code_before(&mut self, address: u64) -> Option<[u8; 8]> {
        Some([0x90, 0x90, 0x90, if address & 0xf == 5 { 0xe8 } else { 0x90 }, 0, 0, 0, 0])
    }

    fn code_at(&mut self, _: u64, _: &mut [u8; 16]) -> usize {
        0
    }
}

pub(crate) fn registers(ip: u64, sp: u64, bp: u64) -> Registers {
    registers_of([0xa, 0xb, 0xc, 0xd, 0x51, 0xd1, bp, sp, ip])
}

/// Registers of a sample: those of x86-64 in perf's order, from AX to IP.
fn registers_of(words: [u64; 9]) -> Registers {
    let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let regs =
        Regs { abi: RegsAbi::ABI_64, mask: 0x1ff, values: U64s::new(&words, Endian::Little) };
    Registers::of_sample(Machine::X86_64, &regs).unwrap()
}

fn walk(
    rules: Rules<Vec<u8>>,
    registers: &Registers,
    words: &[u64],
    links: &[u64],
) -> (Vec<Frame>, End) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let memory = Memory { start: registers.sp(), bytes: &bytes, endian: Endian::Little, links };
    let (mut unwinder, mut frames) = (Unwinder::default(), Vec::new());
    let end = unwinder.walk(&mut Process(rules), registers, &memory, 100, &mut frames);
    (frames, end)
}

/// A function with a frame pointer from its fourth byte on.
const FRAMED: [u8; 9] =
    [ADVANCE | 1, DEF_CFA_OFFSET, 16, OFFSET | RBP, 2, ADVANCE | 3, DEF_CFA_REGISTER, RBP, 0];
/// The outermost function.
const ROOT: [u8; 2] = [UNDEFINED, RA];

/// Functions: 0x1000 without a frame, 0x2000 and 0x3000 with frame pointers, 0x4000 the outermost.
pub(crate) fn functions() -> Frames {
    Frames::default()
        .with(0x1000, 0x100, &[])
        .with(0x2000, 0x100, &FRAMED)
        .with(0x3000, 0x100, &FRAMED)
        .with(0x4000, 0x100, &ROOT)
}

#[test]
fn a_chain_reaches_the_outermost_function() {
    let stack = [0x2025, 0x11, 0x7_0028, 0x3035, 0x22, 0x7_0038, 0x4045];
    let (frames, end) =
        walk(functions().rules(), &registers(0x1010, 0x7_0000, 0x7_0010), &stack, &[]);

    assert_eq!(frames, [Exact(0x1010), Return(0x2025), Return(0x3035), Return(0x4045)]);
    assert_eq!(end, End::Whole);
}

#[test]
fn a_copy_that_is_too_short_is_told_apart_from_other_memory() {
    let (frames, end) =
        walk(functions().rules(), &registers(0x1010, 0x7_0000, 0x7_0010), &[0x2025, 0x11], &[]);
    assert_eq!((frames.len(), end), (2, End::Cut(Cause::Copy)));
    let (frames, end) =
        walk(functions().rules(), &registers(0x1010, 0x7_0000, 0x10), &[0x2025, 0x11], &[]);
    assert_eq!((frames.len(), end), (2, End::Cut(Cause::Lost)));
    let (frames, end) = walk(functions().rules(), &registers(0x1010, 0x7_0000, 0), &[0xb005], &[]);
    assert_eq!((frames.len(), end), (1, End::Cut(Cause::Unmapped)));
}

#[test]
fn the_kernels_chain_is_memory_beyond_the_copy() {
    // The copy ends above the caller's frame; the kernel passed both frame pointers.
    let links = [0x3035, 0x4045];
    let (frames, end) =
        walk(functions().rules(), &registers(0x1010, 0x7_0000, 0x7_0010), &[0x2025, 0x11], &links);

    assert_eq!(frames, [Exact(0x1010), Return(0x2025), Return(0x3035), Return(0x4045)]);
    assert_eq!(end, End::Whole);
    // Without the copy the caller of the innermost function is not known.
    let (frames, end) =
        walk(functions().rules(), &registers(0x1010, 0x7_0000, 0x7_0010), &[], &links);
    assert_eq!(frames, [Exact(0x1010), Missing, Return(0x3035), Return(0x4045)]);
    assert_eq!(end, End::Whole);
    // What follows no call is not believed.
    let (frames, _) =
        walk(functions().rules(), &registers(0x1010, 0x7_0000, 0x7_0010), &[], &[0x3036, 0x4045]);
    assert_eq!(frames, [Exact(0x1010)]);
}

#[test]
fn the_kernels_chain_is_not_believed_where_the_frame_pointer_is_something_else() {
    // Saves rbp, and uses it from then on.
    let changes = [ADVANCE | 1, DEF_CFA_OFFSET, 16, OFFSET | RBP, 2];
    let rules = functions().with(0x5000, 0x100, &changes).rules();
    let (frames, end) = walk(rules, &registers(0x5010, 0x7_0000, 0x7_0010), &[], &[0x3035, 0x4045]);
    assert_eq!((frames, end), (vec![Exact(0x5010)], End::Cut(Cause::Copy)));
}

#[test]
fn a_frame_can_begin_at_any_register_or_at_what_an_expression_says() {
    let by_rax = [DEF_CFA, RAX, 8];
    let rules = functions().with(0x5000, 0x100, &by_rax).rules();
    let sampled = registers_of([0x7_0020, 0, 0, 0, 0, 0, 0, 0x7_0000, 0x5010]);
    let (frames, end) = walk(rules, &sampled, &[1, 2, 3, 4, 0x4045], &[]);
    assert_eq!((frames, end), (vec![Exact(0x5010), Return(0x4045)], End::Whole));
    // DW_OP_breg7 16, DW_OP_deref, DW_OP_plus_uconst 8: what is saved at rsp + 16, plus 8.
    let saved = [DEF_CFA_EXPRESSION, 5, 0x77, 16, 0x06, 0x23, 8];
    let rules = functions().with(0x5000, 0x100, &saved).rules();
    let (frames, end) =
        walk(rules, &registers(0x5010, 0x7_0000, 0), &[1, 2, 0x7_0020, 4, 0x4045], &[]);
    assert_eq!((frames, end), (vec![Exact(0x5010), Return(0x4045)], End::Whole));
}

#[test]
fn a_signal_frame_leads_to_the_interrupted_instruction() {
    // Each register is saved at a place relative to rsp: DW_OP_breg7 N.
    let saved = |register, at| [EXPRESSION, register, 2, 0x77, at];
    let mut program = vec![DEF_CFA_EXPRESSION, 3, 0x77, 16, 0x06];
    for (register, at) in [(RBP, 8), (RSP, 16), (RA, 24)] {
        program.extend(saved(register, at));
    }
    // Its range begins one byte early, so that the address before its first one is found.
    let rules = functions().with_signal(0x5fff, 0x10, &program).rules();
    // 0x1010 was called by the trampoline at 0x6000; the signal came at the first byte of 0x2000.
    let stack = [0x6000, 0, 0x7_0048, 0x7_0030, 0x2000, 0, 0x3035, 0, 0, 0x7_0058, 0x4045];
    let (frames, end) = walk(rules, &registers(0x1010, 0x7_0000, 0), &stack, &[]);

    assert_eq!(
        frames,
        [Exact(0x1010), Exact(0x6000), Exact(0x2000), Return(0x3035), Return(0x4045)]
    );
    assert_eq!(end, End::Whole);
}

#[test]
fn registers_that_an_epilogue_popped_keep_their_values() {
    // rbx was at CFA - 16, which is below the stack pointer by now; so rbx has the CFA's base.
    let popped = [OFFSET | RBX, 2];
    let by_rbx = [DEF_CFA, RBX, 8];
    let rules = functions().with(0x5000, 0x100, &popped).with(0x6000, 0x100, &by_rbx).rules();
    let sampled = registers_of([0, 0x7_0018, 0, 0, 0, 0, 0, 0x7_0000, 0x5010]);
    let (frames, end) = walk(rules, &sampled, &[0x6005, 2, 3, 0x4045], &[]);
    assert_eq!((frames.len(), end), (3, End::Whole));
}

#[test]
fn code_without_rules_is_left_by_its_frame_pointer() {
    let framed = [1, 0x7_0020, 0x3035, 4, 0x7_0038, 0x4045];
    // The frame pointer is that of the code at 0x8000 itself.
    let (frames, end) =
        walk(functions().rules(), &registers(0x8010, 0x7_0000, 0x7_0008), &framed, &[]);
    assert_eq!((frames.len(), end), (3, End::Whole));
    // A frame pointer of 0 is that of the outermost frame.
    let (frames, end) = walk(functions().rules(), &registers(0x8010, 0x7_0000, 0), &[1], &[]);
    assert_eq!((frames.len(), end), (1, End::Whole));
    // What follows no call ends the chain.
    let (frames, end) =
        walk(functions().rules(), &registers(0x8010, 0x7_0000, 0x7_0000), &[0, 0x3036], &[]);
    assert_eq!((frames.len(), end), (1, End::Cut(Cause::NoRules(0))));
}

#[test]
fn a_chain_ends_where_a_thread_begins() {
    // The return address is the first one of a function: nothing called from before it.
    let (frames, end) = walk(functions().rules(), &registers(0x1010, 0x7_0000, 0), &[0x2000], &[]);
    assert_eq!((frames, end), (vec![Exact(0x1010), Exact(0x2000)], End::Whole));
    // Code at the module's entry.
    let (_, end) = walk(functions().rules(), &registers(0x1010, 0x7_0000, 0), &[0x9005], &[]);
    assert_eq!(end, End::Whole);
    let (_, end) = walk(functions().rules(), &registers(0x1010, 0x7_0000, 0), &[0], &[]);
    assert_eq!(end, End::Whole);
}

#[test]
fn a_chain_that_does_not_get_on_ends() {
    // CFA = rbp + 8, rbp as before: the same frame forever.
    let rules = functions().with(0x5000, 0x100, &[DEF_CFA, RBP, 8]).rules();
    let (frames, end) = walk(rules, &registers(0x5010, 0x7_0000, 0x7_0000), &[0x5015], &[]);
    assert_eq!((frames.len(), end), (2, End::Cut(Cause::Lost)));
}

#[test]
fn debug_frame_is_asked_where_eh_frame_has_no_rule() {
    // The same in `.debug_frame`: the CIE's mark is -1, and pointers to it are offsets.
    let mut bytes = Vec::new();
    bytes.extend(20u32.to_le_bytes());
    bytes.extend([0xff; 4]);
    // Version 3, no augmentation.
    bytes.extend([3, 0, 1, 0x78, RA, DEF_CFA, RSP, 8, OFFSET | RA, 1, 0, 0, 0, 0, 0, 0]);
    bytes.extend(24u32.to_le_bytes());
    bytes.extend(0u32.to_le_bytes());
    bytes.extend(0x5000u64.to_le_bytes());
    bytes.extend(0x100u64.to_le_bytes());
    bytes.extend([DEF_CFA_OFFSET, 16, 0, 0]);
    let rules = Rules::new(Sections {
        eh_frame: Some(Section { address: EH_FRAME, bytes: functions().bytes }),
        debug_frame: Some(bytes),
        ..Sections::none(Machine::X86_64, Endian::Little)
    });
    let (frames, end) = walk(rules, &registers(0x5010, 0x7_0000, 0), &[1, 0x4045], &[]);
    assert_eq!((frames.len(), end), (2, End::Whole));
}

#[test]
fn a_table_finds_the_entry_of_an_address() {
    let with_table = |count: u32| {
        let rules = functions().rules_by_table(count);
        [0xfff, 0x1000, 0x2004, 0x20ff, 0x2100, 0x4000].map(|at| rules.frame_pointer_at(at))
    };
    let found = with_table(4);
    use FramePointer::{Holds, Root, Unknown, Untouched};
    assert_eq!(found, [Unknown, Untouched, Holds, Holds, Unknown, Root]);
    // A table that is not there is not needed; one that lacks functions does.
    assert_eq!(with_table(u32::MAX), found);
    assert_eq!(with_table(2)[5], Unknown);
}

#[test]
fn functions_are_those_that_have_entries() {
    let listed = functions().rules();
    for rules in [&listed, &functions().rules_by_table(4)] {
        assert_eq!(rules.functions(), 4);
        let places = [0xfff, 0x1000, 0x10ff, 0x1100, 0x3010, 0x40ff, 0x4100];
        assert_eq!(
            places.map(|at| rules.function_at(at)),
            [None, Some(0), Some(0), None, Some(2), Some(3), None]
        );
        assert_eq!(rules.function(2), Some(0x3000..0x3100));
        assert_eq!(rules.function(4), None);
    }
    assert_eq!(functions().rules_by_table(2).functions(), 2);
    let none = Rules::<Vec<u8>>::new(Sections::none(Machine::X86_64, Endian::Little));
    assert_eq!((none.functions(), none.function_at(0), none.function(0)), (0, None, None));
}

#[test]
fn rules_say_what_the_frame_pointer_is() {
    let popped = [DEF_CFA_OFFSET, 8, OFFSET | RBP, 2];
    let rules = functions()
        .with(0x5000, 0x100, &[OFFSET | RBP, 2, DEF_CFA_OFFSET, 24])
        .with(0x6000, 0x100, &popped)
        .with_signal(0x7000, 0x100, &[])
        .rules();
    let says = |address| rules.frame_pointer_at(address);
    assert_eq!(says(0x1010), FramePointer::Untouched);
    // Before the frame pointer is saved, while it is, and afterwards.
    assert_eq!(
        [0x2000, 0x2001, 0x2004].map(says),
        [FramePointer::Untouched, FramePointer::Untouched, FramePointer::Holds]
    );
    assert_eq!(says(0x4010), FramePointer::Root);
    assert_eq!(says(0x5010), FramePointer::Changed);
    assert_eq!(says(0x6010), FramePointer::Untouched);
    assert_eq!(says(0x7010), FramePointer::Signal);
    assert_eq!(says(0x8010), FramePointer::Unknown);
}

#[test]
fn calls_are_known_by_their_bytes() {
    let is_call = |machine: Machine, end: &[u8]| {
        let mut code = [0x90; 8];
        code[8 - end.len()..].copy_from_slice(end);
        machine.is_call(code)
    };
    let calls: [&[u8]; 8] = [
        &[0xe8, 1, 2, 3, 4],
        // call *%rax; call *8(%rax); call *0x12345678(%rip)
        &[0xff, 0xd0],
        &[0xff, 0x50, 8],
        &[0xff, 0x15, 0x78, 0x56, 0x34, 0x12],
        // call *(%rax,%rbx,8); call *8(%rsp); call *0x100(%rax,%rbx,8); call *0x100(,%rbx,8)
        &[0xff, 0x14, 0xd8],
        &[0xff, 0x54, 0x24, 8],
        &[0xff, 0x94, 0xd8, 0, 1, 0, 0],
        &[0xff, 0x14, 0xdd, 0, 1, 0, 0],
    ];
    for call in calls {
        assert!(is_call(Machine::X86_64, call), "{call:x?}");
    }
    // jmp *%rax; jmp; ret
    for other in [&[0xff, 0xe0][..], &[0xe9, 1, 2, 3, 4], &[0xc3]] {
        assert!(!is_call(Machine::X86_64, other), "{other:x?}");
    }
    // bl; blr x8; blraa x8, x9
    for call in [0x9400_0010u32, 0xd63f_0100, 0xd73f_0909] {
        assert!(is_call(Machine::Aarch64, &call.to_le_bytes()), "{call:x}");
    }
    // b; br x8; ret
    for other in [0x1400_0010u32, 0xd61f_0100, 0xd65f_03c0] {
        assert!(!is_call(Machine::Aarch64, &other.to_le_bytes()), "{other:x}");
    }
}

proptest! {
    /// Whatever the sections contain, a walk ends, and finds no more frames than asked for.
    #[test]
    fn damaged_sections_end_the_chain(
        damage in prop::collection::vec((0usize..400, any::<u8>()), 0..12),
        header in prop::collection::vec(any::<u8>(), 0..64),
        has_header in any::<bool>(),
        words in prop::collection::vec(0x1000u64..0xa000, 0..40),
        ip in 0x1000u64..0xa000,
    ) {
        let mut frames = functions().bytes;
        for (at, byte) in damage {
            if let Some(old) = frames.get_mut(at) {
                *old = byte;
            }
        }
        let mut table = vec![1, 0x1b, 0x03, 0x3b];
        table.extend(header);
        let rules = Rules::new(Sections {
            eh_frame: Some(Section { address: EH_FRAME, bytes: frames.clone() }),
            eh_frame_hdr: has_header.then_some(Section { address: EH_FRAME - 0x100, bytes: table }),
            debug_frame: Some(frames),
..Sections::none(Machine::X86_64, Endian::Little)
});
        let _ = rules.frame_pointer_at(ip);
        let place = rules.function_at(ip);
        prop_assert!(place.is_none_or(|place| rules.function(place).unwrap().contains(&ip)));
        let (frames, _) = walk(rules, &registers(ip, 0x7_0000, 0x7_0010), &words, &words);
        prop_assert!(frames.len() <= 100);
    }
}
