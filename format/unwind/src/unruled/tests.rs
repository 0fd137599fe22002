//! Code without rules, written byte by byte, and the callers that are found from each of its
//! instructions.

use recrep_format::abi::RegsAbi;
use recrep_format::bytes::U64s;
use recrep_format::endian::Endian;
use recrep_format::record::Regs;

use crate::Frame::{Exact, Return};
use crate::tests::{Frames, functions, registers};
use crate::*;

const STACK: u64 = 0x7_0000;
/// Calls of 5 bytes end here: of code at 0x8000, of 0x2000, of what a register says.
const DIRECT: u64 = 0x2025;
const OTHER: u64 = 0x3035;
const INDIRECT: u64 = 0x2045;
/// No call is before this address, which has no rules.
const ENTRY: u64 = 0x8405;

/// Code that stands in place of return addresses.
const TRAMPOLINE: u64 = 0xf000;

/// One module at its linked addresses, with its code.
struct Program {
    rules: Rules<Vec<u8>>,
    code: Vec<(u64, Vec<u8>)>,
    /// Where direct calls of any function return to.
    returns: Vec<u64>,
}

impl Program {
    /// The functions of all tests, and this code at 0x8000.
    fn new(code: &[u8]) -> Self {
        let call = |end: u64, target: u64| {
            let distance = i32::try_from(target.cast_signed() - end.cast_signed()).unwrap();
            let mut bytes = vec![0x90, 0x90, 0x90, 0xe8];
            bytes.extend(distance.to_le_bytes());
            (end - 8, bytes)
        };
        let by_register = vec![0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0];
        let code = vec![
            (0x8000, code.to_vec()),
            call(DIRECT, 0x8000),
            call(OTHER, 0x2000),
            (INDIRECT - 8, by_register),
            call(0x4045, 0x2000),
            (ENTRY - 8, vec![0x90; 16]),
        ];
        Self { rules: functions().rules(), code, returns: Vec::new() }
    }

    fn walk(&mut self, registers: &Registers, words: &[u64], links: &[u64]) -> (Vec<Frame>, End) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let memory = Memory { start: registers.sp(), bytes: &bytes, endian: Endian::Little, links };
        let mut frames = Vec::new();
        let end = Unwinder::default().walk(self, registers, &memory, 100, &mut frames);
        (frames, end)
    }
}

impl Code for Program {
    type Bytes = Vec<u8>;

    fn place(&mut self, address: u64) -> Option<Place> {
        (0x1000..0xa000).contains(&address).then_some(Place { module: 0, address })
    }

    fn rules(&mut self, _: u32) -> Result<&Rules<Vec<u8>>, Unreadable> {
        Ok(&self.rules)
    }

    fn trampoline(&self) -> std::ops::Range<u64> {
        TRAMPOLINE..TRAMPOLINE + 0x1000
    }

    fn returns_from(&mut self, _: u64) -> Option<Vec<u64>> {
        Some(self.returns.clone())
    }

    fn code_before(&mut self, address: u64) -> Option<[u8; 8]> {
        let mut bytes = [0; 16];
        (self.code_at(address.wrapping_sub(8), &mut bytes) >= 8)
            .then(|| bytes[..8].try_into().unwrap())
    }

    fn code_at(&mut self, address: u64, to: &mut [u8; 16]) -> usize {
        let piece = self
            .code
            .iter()
            .find(|(start, code)| (*start..*start + code.len() as u64).contains(&address));
        let Some((start, code)) = piece else { return 0 };
        let bytes = &code[usize::try_from(address - start).unwrap()..];
        let length = bytes.len().min(16);
        to[..length].copy_from_slice(&bytes[..length]);
        length
    }
}

/// An instruction, the number of words that the function has on the stack before it, and whether
/// the frame pointer is the function's own by then.
type Instruction<'a> = (&'a [u8], usize, bool);

/// Checks the caller from each instruction of a function. What it has on the stack is full of
/// return addresses of other calls; the caller's frame pointer is at the word below its own return
/// address if it was pushed.
fn check(what: &str, code: &[Instruction<'_>], return_address: u64) {
    let bytes = code.iter().flat_map(|(bytes, ..)| bytes.iter().copied()).collect::<Vec<u8>>();
    let mut at = 0x8000;
    for (instruction, size, is_own) in code {
        let mut words = vec![OTHER; *size];
        let caller = STACK + 8 * (*size as u64 + 2);
        if let Some(saved) = words.last_mut() {
            *saved = caller;
        }
        words.extend([return_address, 0x22, 0, 0x4045]);
        let fp = if *is_own { STACK + 8 * (*size as u64 - 1) } else { caller };
        let (frames, _) = Program::new(&bytes).walk(&registers(at, STACK, fp), &words, &[]);
        assert_eq!(frames.get(1), Some(&Return(return_address)), "{what} at {at:x}: {frames:x?}");
        at += instruction.len() as u64;
    }
}

#[test]
fn the_code_tells_where_the_return_address_is() {
    for caller in [DIRECT, INDIRECT] {
        // push rbp; mov rbp,rsp; sub rsp,16; dec rcx; jnz; leave; ret
        let framed: &[Instruction<'_>] = &[
            (&[0x55], 0, false),
            (&[0x48, 0x89, 0xe5], 1, false),
            (&[0x48, 0x83, 0xec, 0x10], 1, true),
            (&[0x48, 0xff, 0xc9], 3, true),
            (&[0x75, 0xfb], 3, true),
            (&[0xc9], 3, true),
            (&[0xc3], 0, false),
        ];
        // mov rax,[rdi]; test rax,rax; je; add rax,1; ret
        let leaf: &[Instruction<'_>] = &[
            (&[0x48, 0x8b, 0x07], 0, false),
            (&[0x48, 0x85, 0xc0], 0, false),
            (&[0x74, 0x04], 0, false),
            (&[0x48, 0x83, 0xc0, 0x01], 0, false),
            (&[0xc3], 0, false),
        ];
        // As HotSpot's compilers have it: sub rsp,24; mov [rsp+16],rbp; vaddps; add rsp,16; pop
        // rbp; cmp rsp,[r15+0x348]; ja; ret
        let compiled: &[Instruction<'_>] = &[
            (&[0x48, 0x83, 0xec, 0x18], 0, false),
            (&[0x48, 0x89, 0x6c, 0x24, 0x10], 3, false),
            (&[0xc5, 0xf4, 0x58, 0xc2], 3, false),
            (&[0x48, 0x83, 0xc4, 0x10], 3, false),
            (&[0x5d], 1, false),
            (&[0x49, 0x3b, 0xa7, 0x48, 0x03, 0, 0], 0, false),
            (&[0x0f, 0x87, 0x01, 0, 0, 0], 0, false),
            (&[0xc3], 0, false),
        ];
        // Registers that are pushed: push rbx; push r12; sub rsp,8; …; add rsp,8; pop r12; pop rbx;
        // ret 16
        let pushes: &[Instruction<'_>] = &[
            (&[0x53], 0, false),
            (&[0x41, 0x54], 1, false),
            (&[0x48, 0x83, 0xec, 0x08], 2, false),
            (&[0x31, 0xc0], 3, false),
            (&[0x48, 0x83, 0xc4, 0x08], 3, false),
            (&[0x41, 0x5c], 2, false),
            (&[0x5b], 1, false),
            (&[0xc2, 0x10, 0], 0, false),
        ];
        for (what, code) in
            [("framed", framed), ("leaf", leaf), ("compiled", compiled), ("pushes", pushes)]
        {
            check(what, code, caller);
        }
    }
}

#[test]
fn a_trampoline_is_left_by_its_code() {
    // As CPython's are: sub rsp,8; call rcx; add rsp,8; ret
    let code = [0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3];
    // Called by it: a function with rules. The frame pointer is of no use.
    let stack = [0x8006, OTHER, INDIRECT, 0x22, STACK + 0x30, OTHER, 0x33, 0, 0x4045];
    let (frames, _) = Program::new(&code).walk(&registers(0x1010, STACK, 0x77), &stack, &[]);
    assert_eq!(frames[..3], [Exact(0x1010), Return(0x8006), Return(INDIRECT)]);
}

#[test]
fn a_word_is_no_caller_because_a_call_is_before_it() {
    // jmp *rax: where it returns is not known, and nothing else tells.
    let code = [0x90, 0x90, 0x90, 0xff, 0xe0];
    let walk = |top, fp, ip| {
        let stack = [top, 0x22, 0x33, 0x44];
        let (frames, end) = Program::new(&code).walk(&registers(ip, STACK, fp), &stack, &[]);
        (frames.get(1).copied(), end)
    };
    let unknown = (None, End::Cut(Cause::NoRules(0)));
    assert_eq!(walk(OTHER, 0x77, 0x8001), unknown, "the call is of another function");
    assert_eq!(walk(INDIRECT, 0x77, 0x8001), unknown, "the call may be of any function");
    assert_eq!(walk(DIRECT, 0x77, 0x8001).0, Some(Return(DIRECT)), "the call leads here");
    assert_eq!(walk(DIRECT, 0x77, 0x8005), unknown, "the code from there does not lead here");
}

#[test]
fn behind_a_call_that_never_returns_the_frame_pointer_decides() {
    // push rbp; mov rbp,rsp; sub rsp,16; call; behind which another function begins: pop rbx; ret
    let code = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0xe8, 1, 0, 0, 0, 0x5b, 0xc3];
    let stack = [1, OTHER, STACK + 0x20, DIRECT, 0, 0x4045];
    let (frames, _) = Program::new(&code).walk(&registers(0x8008, STACK, STACK + 16), &stack, &[]);
    assert_eq!(frames[1], Return(DIRECT));
    let stack = [1, OTHER, STACK + 0x20, INDIRECT, 0, 0x4045];
    let (frames, _) = Program::new(&code).walk(&registers(0x8008, STACK, STACK + 16), &stack, &[]);
    assert_eq!(frames[1], Return(INDIRECT));
}

#[test]
fn interpreters_push_return_addresses_and_jump() {
    let walk = |stack: &[u64], fp| {
        let mut program = Program::new(&[0x90, 0x90, 0xff, 0xe0]);
        program.walk(&registers(0x8001, STACK, fp), stack, &[])
    };
    // The frame pointer leads on to a return address.
    let (frames, _) = walk(&[1, STACK + 0x20, ENTRY, 4, 0, INDIRECT], STACK + 8);
    assert_eq!(frames, [Exact(0x8001), Return(ENTRY), Return(INDIRECT)]);
    // It leads to what is none.
    let (frames, end) = walk(&[1, STACK + 0x20, ENTRY, 4, 0, 0x77], STACK + 8);
    assert_eq!((frames.len(), end), (1, End::Cut(Cause::NoRules(0))));
    // Code with rules is returned to from calls only.
    let (frames, _) = walk(&[1, STACK + 0x20, 0x2030, 4, 0, INDIRECT], STACK + 8);
    assert_eq!(frames.len(), 1);
}

/// Registers of a sample of 64-bit Arm.
fn arm_registers(ip: u64, fp: u64, link: u64) -> Registers {
    let mut words = [0_u64; 33];
    (words[29], words[30], words[31], words[32]) = (fp, link, STACK, ip);
    let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let values = U64s::new(&words, Endian::Little);
    let regs = Regs { abi: RegsAbi::ABI_64, mask: (1 << 33) - 1, values };
    Registers::of_sample(Machine::Aarch64, &regs).unwrap()
}

#[test]
fn the_code_of_arm_tells_where_the_return_address_is() {
    let words = |code: &[u32]| code.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    // stp x29,x30,[sp,#-32]!; mov x29,sp; str x19,[sp,#16]; blr x3; ldr x19,[sp,#16]; cbz x0;
    // ldp x29,x30,[sp],#32; ret
    let framed = [
        0xa9be_7bfd,
        0x9100_03fd,
        0xf900_0bf3,
        0xd63f_0060,
        0xf940_0bf3,
        0xb400_0020,
        0xa8c2_7bfd,
        0xd65f_03c0,
    ];
    // sub sp,sp,#16; add x0,x0,#1; add sp,sp,#16; ret
    let leaf = [0xd100_43ff, 0x9100_0400, 0x9100_43ff, 0xd65f_03c0];
    for (code, sizes) in
        [(&framed[..], &[0, 4, 4, 4, 4, 4, 4, 0][..]), (&leaf[..], &[0, 2, 2, 0][..])]
    {
        for (number, size) in sizes.iter().enumerate() {
            let mut program = Program::new(&words(code));
            program.rules = Rules::new(Sections::none(Machine::Aarch64, Endian::Little));
            // bl; the frame record is at the stack pointer.
            program.code.extend([(0x2020, words(&[0x9400_0000, 0x9400_0000]))]);
            program.code.retain(|(start, _)| *start != DIRECT - 8);
            let is_stored = *size == 4;
            let mut stack = vec![0x33; *size];
            if is_stored {
                (stack[0], stack[1]) = (0, 0x2024);
            }
            let link = if is_stored { 0x77 } else { 0x2024 };
            let registers = arm_registers(0x8000 + 4 * number as u64, 0x77, link);
            let (frames, _) = program.walk(&registers, &stack, &[]);
            assert_eq!(frames.get(1), Some(&Return(0x2024)), "{number} of {code:x?}");
        }
    }
}

#[test]
fn go_switches_stacks() {
    let other = 0xc0_0000;
    let mut go = GoRuntime::default();
    go.add(b"runtime.systemstack.abi0", 0x2000..0x2100);
    go.add(b"runtime.goexit.abi0", 0x3000..0x3100);
    let mut program = Program::new(&[]);
    program.rules = Frames::default()
        .with(0x1000, 0x100, &[])
        .with(0x2000, 0x100, &[])
        .with(0x3000, 0x100, &[])
        .with(0x4000, 0x100, &[])
        .rules_of_go(go);
    // Rules say that each has a return address at the top of its stack. The innermost function has
    // a frame pointer beneath it, which no rule tells of.
    let stack = [DIRECT, OTHER, OTHER];
    // The kernel went on with the other stack: a function, and the start of the goroutine, before
    // whose address there is no call.
    let links = [0x4045, 0x3001];
    let (frames, end) = program.walk(&registers(0x1010, STACK, other), &stack, &links);
    assert_eq!(frames, [Exact(0x1010), Return(DIRECT), Return(0x4045), Return(0x3001)]);
    assert_eq!(end, End::Whole);
    // Without the kernel's chain nothing is known of the other stack.
    let (frames, end) = program.walk(&registers(0x1010, STACK, other), &stack, &[]);
    assert_eq!((frames.len(), end), (2, End::Cut(Cause::Lost)));
}

#[test]
fn a_stack_begins_where_the_frame_pointers_end_with_an_address_that_follows_no_call() {
    let mut program = Program::new(&[0x90, 0x90, 0xff, 0xe0]);
    // The copy ends within the first frame; the kernel found two more return addresses.
    let sampled = registers(0x8001, STACK, STACK + 8);
    let (frames, end) = program.walk(&sampled, &[1], &[INDIRECT, ENTRY]);
    assert_eq!((frames.len(), end), (3, End::Whole));
}

#[test]
fn lengths_of_instructions_are_known() {
    let codes = [
        "55",
        "4889e5",
        "4883ec10",
        "c9",
        "c3",
        "f30f1efa",
        "660f1f440000",
        "0f1f8000000000",
        "488d0500000000",
        "48b88877665544332211",
        "66b83412",
        "c5f877",
        "c5f458c2",
        "c4e27d18c0",
        "62f17c48280d00000000",
        "64488b042528000000",
        "ff1500000000",
        "f6c301",
        "f7c300000000",
        "48f7d8",
        "69c000010000",
        "6bc00a",
        "0fba e007",
        "0f3a0fc108",
        "660f3a0fc108",
        "d9c0",
        "e800000001",
        "7505",
        "0f8500000001",
        "eb05",
        "e900000001",
        "ffe0",
        "ff6424f8",
        "41ff5424f8",
        "49c7c001000000",
        "41c6042400",
        "8b84c800000100",
        "a8ff",
        "a9ffffffff",
        "660fc4c001",
        "f20f10442408",
        "480fafc1",
        "0fb6c0",
        "480f44c1",
        "f0480fb10f",
        "90",
        "cc",
    ];
    for digits in codes {
        let digits = digits.replace(' ', "");
        let code: Vec<u8> = (0..digits.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
            .collect();
        let mut padded = code.clone();
        padded.resize(16, 0x11);
        let step = x86::step(&padded).unwrap_or_else(|| panic!("{digits} is not known"));
        assert_eq!(step.length, code.len(), "{digits}");
        assert!(code.len() < 2 || x86::step(&code[..code.len() - 1]).is_none(), "{digits}");
    }
}

#[test]
fn frame_pointers_that_cannot_be_read_are_found_by_the_size_of_the_frame() {
    // push rbp; mov rbp,rsp; sub rsp,32; call
    let code = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0xe8, 0x40, 0, 0, 0, 0xc9, 0xc3];
    let mut program = Program::new(&code);
    // CFA = rsp + 16, rbp at CFA - 16 from the push on; CFA = rbp + 16 from the mov on.
    let framed = [0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6];
    let frames = Frames::default().with(0x7000, 0x10, &[]).with(0x8000, 0x20, &framed);
    program.rules = frames.with(0x2000, 0x100, &[0x07, 16]).rules();
    let registers = Registers::of_pointers(Machine::X86_64, 0x7000, STACK);
    let of = |return_address| [0x800d, 1, 2, 3, 4, 5, return_address];
    let (frames, end) = program.walk(&registers, &of(DIRECT), &[]);
    assert_eq!(frames, [Exact(0x7000), Return(0x800d), Return(DIRECT)]);
    assert_eq!(end, End::Whole);
    // No call is before it, so the size is wrong.
    let (frames, end) = program.walk(&registers, &of(ENTRY), &[]);
    assert_eq!(frames, [Exact(0x7000), Return(0x800d)]);
    assert_eq!(end, End::Cut(Cause::Lost));
}

#[test]
fn callers_of_functions_whose_return_is_probed_are_found_by_their_calls() {
    let mut program = Program::new(&[0x90; 16]);
    // The probed function, its callers, and the start of the program.
    let frames = Frames::default().with(0x7000, 0x10, &[]).with(0x2000, 0x100, &[0x0e, 16]);
    let frames = frames.with(0x4000, 0x100, &[0x0e, 32]).with(0x3000, 0x100, &[0x07, 16]);
    program.rules = frames.rules();
    let stack = [TRAMPOLINE, 7, OTHER, 8, 9, 10];
    let mut walked = |returns: &[u64], links: &[u64]| {
        program.returns = returns.to_vec();
        program.walk(&registers(0x7000, STACK, STACK - 8), &stack, links)
    };
    let whole = vec![Exact(0x7000), Return(DIRECT), Return(OTHER)];
    assert_eq!(walked(&[DIRECT, 0x4045], &[]), (whole.clone(), End::Whole));
    // The frame of neither is there, or those of two functions may be.
    let cut = (vec![Exact(0x7000)], End::Cut(Cause::Lost));
    assert_eq!(walked(&[0x4045], &[]), cut);
    assert_eq!(walked(&[], &[]), cut);
    // The kernel followed frame pointers, and knows the true one.
    assert_eq!(walked(&[], &[DIRECT, OTHER]), (whole, End::Whole));
}
