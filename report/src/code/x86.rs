//! Instructions of x86, by iced, as GNU objdump spells them.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, FormatMnemonicOptions, Formatter as _, GasFormatter,
    Instruction as X86Instruction, Mnemonic, OpKind, Register,
};

use super::instruction::{Flow, Instruction};

/// Decodes the first instructions of code of `bits` (32 or 64), at most so many.
pub(super) fn decode(most: usize, code: &[u8], address: u64, bits: u32) -> Vec<Instruction> {
    let mut decoder = Decoder::with_ip(bits, code, address, DecoderOptions::NONE);
    let (mut formatter, mut all) = (formatter(), Vec::new());
    let mut rest = code;
    while decoder.can_decode() && all.len() < most {
        let decoded = decoder.decode();
        let Some((bytes, after)) = rest.split_at_checked(decoded.len()) else { break };
        rest = after;
        all.push(instruction(&mut formatter, &decoded, bytes));
    }
    all
}

/// Returns the lengths of the instructions of code of `bits`.
pub(super) fn lengths(code: &[u8], bits: u32) -> Vec<usize> {
    Decoder::new(bits, code, DecoderOptions::NONE).iter().map(|decoded| decoded.len()).collect()
}

fn formatter() -> GasFormatter {
    let mut formatter = GasFormatter::new();
    let options = formatter.options_mut();
    options.set_uppercase_hex(false);
    options.set_hex_prefix("0x");
    options.set_small_hex_numbers_in_decimal(false);
    options.set_rip_relative_addresses(true);
    options.set_branch_leading_zeros(false);
    options.set_show_branch_size(false);
    options.set_signed_immediate_operands(false);
    options.set_signed_memory_displacements(true);
    options.set_displacement_leading_zeros(false);
    options.set_show_useless_prefixes(true);
    formatter
}

fn instruction(
    formatter: &mut GasFormatter,
    decoded: &X86Instruction,
    bytes: &[u8],
) -> Instruction {
    let flow = match decoded.flow_control() {
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => Flow::Jump,
        FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => Flow::Branch,
        // To iced a system call is a call.
        FlowControl::Call | FlowControl::IndirectCall if !is_of_system(decoded) => Flow::Call,
        FlowControl::Return => Flow::Return,
        _ => Flow::Next,
    };
    let is_near = |kind: OpKind| {
        matches!(kind, OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64)
    };
    let (mut text, mut target) = (String::new(), None);
    if decoded.op_count() == 1 && is_near(decoded.op0_kind()) {
        let to = decoded.near_branch_target();
        formatter.format_mnemonic_options(decoded, &mut text, FormatMnemonicOptions::NONE);
        text = format!("{}{text} {to:x}", ignored_prefixes(bytes));
        target = Some(to);
    } else if decoded.is_invalid() {
        text.push_str("(bad)");
    } else {
        text = with_operands(formatter, decoded, bytes);
        if decoded.is_ip_rel_memory_operand() {
            let data = decoded.ip_rel_memory_address();
            text.push_str(&format!("        # {data:x}"));
            target = Some(data);
        }
    }
    Instruction { len: decoded.len(), text, target, flow }
}

fn is_of_system(decoded: &X86Instruction) -> bool {
    matches!(decoded.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter | Mnemonic::Vmcall)
        || decoded.mnemonic() == Mnemonic::Vmmcall
}

/// Returns the text of an instruction with operands, in objdump's spelling.
fn with_operands(formatter: &mut GasFormatter, decoded: &X86Instruction, bytes: &[u8]) -> String {
    let is_prefix = |byte: &&u8| matches!(byte, 0x64..=0x67 | 0x26 | 0x2e | 0x36 | 0x3e);
    let opcode = bytes.iter().find(|byte| !is_prefix(byte)).copied().unwrap_or(0);
    let is_x87 = (0xd8..=0xdf).contains(&opcode);
    let options = formatter.options_mut();
    options.set_always_show_scale(decoded.memory_index() != Register::None);
    options.set_always_show_segment_register(decoded.is_string_instruction());
    let has_zero = decoded.memory_displ_size() > 0 && decoded.memory_displacement64() == 0;
    options.set_show_zero_displacements(has_zero);
    // Otherwise operands are left out.
    options.set_use_pseudo_ops(decoded.mnemonic() != Mnemonic::Imul && !is_x87);
    let mut text = String::new();
    formatter.format(decoded, &mut text);
    match decoded.mnemonic() {
        Mnemonic::Ret if text.starts_with("rep ") => text.replacen("rep", "repz", 1),
        Mnemonic::Call | Mnemonic::Jmp | Mnemonic::Push | Mnemonic::Pop | Mnemonic::Ret => {
            without_suffix(&text)
        }
        Mnemonic::Lea | Mnemonic::Mov if bytes.starts_with(&[0x66]) => {
            format!("{}{text}", ignored_prefixes(bytes))
        }
        Mnemonic::Shl
        | Mnemonic::Shr
        | Mnemonic::Sar
        | Mnemonic::Rol
        | Mnemonic::Ror
        | Mnemonic::Rcl
        | Mnemonic::Rcr
            if matches!(opcode_behind_rex(bytes), Some(0xd0 | 0xd1)) =>
        {
            text.replacen("$0x1,", "", 1)
        }
        Mnemonic::Sal => text.replacen("sa", "sh", 1),
        Mnemonic::In => text.replacen("%dx", "(%dx)", 1),
        Mnemonic::Out => text.strip_suffix("%dx").map_or(text.clone(), |of| format!("{of}(%dx)")),
        // Prefixes that make it longer and mean nothing.
        Mnemonic::Nop if decoded.segment_prefix() == Register::CS => {
            let sizes = bytes.iter().take_while(|byte| matches!(byte, 0x66 | 0x2e));
            let sizes = sizes.filter(|byte| **byte == 0x66).count();
            let longer = "data16 ".repeat(sizes.saturating_sub(1));
            format!("{longer}cs {}", text.replacen("%cs:", "", 1))
        }
        // Behind three bytes (opcode, and how the operand is made) comes the displacement.
        Mnemonic::Lea
            if bytes.first() == Some(&0x8d)
                && decoded.memory_index() == Register::None
                && !matches!(decoded.memory_base(), Register::None | Register::ESP)
                && bytes.len() == 3 + decoded.memory_displ_size() as usize =>
        {
            text.replacen("),", ",%eiz,1),", 1)
        }
        _ => text,
    }
}

/// Returns the prefixes that compilers put before code for thread-local storage, so that linkers can
/// replace it: they mean nothing beside one for 64-bit operands.
fn ignored_prefixes(bytes: &[u8]) -> String {
    let sizes = bytes.iter().take_while(|byte| **byte == 0x66).count();
    let mut rest = bytes.iter().skip(sizes).filter(|byte| !(0x64..=0x65).contains(*byte));
    match (rest.next(), rest.next()) {
        (Some(0x48..=0x4f), Some(0xe8)) => "data16 ".repeat(sizes) + "rex.W ",
        (Some(0x48..=0x4f), _) => "data16 ".repeat(sizes),
        _ => String::new(),
    }
}

/// Returns the first byte that is no prefix.
fn opcode_behind_rex(bytes: &[u8]) -> Option<u8> {
    bytes.iter().find(|byte| !matches!(byte, 0x40..=0x4f | 0x64..=0x67 | 0xf0..=0xf3)).copied()
}

/// Returns the text without the suffix of the operand's size, which is always the same.
fn without_suffix(text: &str) -> String {
    let (mnemonic, operands) = match text.split_once(" *").map(|(mnemonic, _)| mnemonic.len()) {
        Some(at) => text.split_at(at),
        None => text.split_at(text.find(' ').unwrap_or(text.len())),
    };
    let (before, last) = mnemonic.rsplit_once(' ').map_or(("", mnemonic), |(a, b)| (a, b));
    let bare = match last {
        "callq" | "calll" => "call",
        "jmpq" | "jmpl" => "jmp",
        "pushq" | "pushl" => "push",
        "popq" | "popl" => "pop",
        "retq" | "retl" => "ret",
        other => other,
    };
    let space = if before.is_empty() { "" } else { " " };
    format!("{before}{space}{bare}{operands}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_reads(bits: u32, cases: &[(&[u8], &str, Option<u64>, Flow)]) {
        for (bytes, text, target, flow) in cases {
            let read = decode(usize::MAX, bytes, 0x1000, bits);
            let expected = Instruction {
                len: bytes.len(),
                text: (*text).to_owned(),
                target: *target,
                flow: *flow,
            };
            assert_eq!(read, [expected], "{bytes:x?}");
        }
    }

    #[test]
    fn reads_as_objdump_prints() {
        assert_reads(
            64,
            &[
                (&[0x48, 0x8b, 0x7c, 0x24, 0x10], "mov 0x10(%rsp),%rdi", None, Flow::Next),
                (
                    &[0x48, 0x8d, 0x1d, 0xf9, 0x0f, 0, 0],
                    "lea 0xff9(%rip),%rbx        # 2000",
                    Some(0x2000),
                    Flow::Next,
                ),
                (&[0x74, 0x0e], "je 1010", Some(0x1010), Flow::Branch),
                (&[0xeb, 0xfe], "jmp 1000", Some(0x1000), Flow::Jump),
                (&[0xe8, 0xfb, 0x0f, 0, 0], "call 2000", Some(0x2000), Flow::Call),
                (&[0xff, 0x14, 0x24], "call *(%rsp)", None, Flow::Call),
                (&[0x0f, 0x05], "syscall", None, Flow::Next),
                (&[0xc3], "ret", None, Flow::Return),
                (&[0xd1, 0xe8], "shr %eax", None, Flow::Next),
                (&[0xc1, 0xe8, 1], "shr $0x1,%eax", None, Flow::Next),
                (&[0x69, 0xc0, 0xff, 0, 0, 0], "imul $0xff,%eax,%eax", None, Flow::Next),
                (&[0xf3, 0xab], "rep stos %eax,%es:(%rdi)", None, Flow::Next),
                (
                    &[0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
                    "data16 cs nopw 0x0(%rax,%rax,1)",
                    None,
                    Flow::Next,
                ),
                (&[0x06], "(bad)", None, Flow::Next),
            ],
        );
    }

    #[test]
    fn code_of_32_bits() {
        assert_reads(
            32,
            &[
                (&[0x8d, 0x74, 0x26, 0], "lea 0x0(%esi,%eiz,1),%esi", None, Flow::Next),
                (&[0xff, 0x75, 8], "push 0x8(%ebp)", None, Flow::Next),
                (&[0xff, 0x53, 4], "call *0x4(%ebx)", None, Flow::Call),
            ],
        );
    }

    #[test]
    fn all_bytes_have_texts() {
        let all: Vec<u8> = (0..=255).cycle().take(4096).collect();
        for bits in [32, 64] {
            for start in 0..64 {
                let read = decode(usize::MAX, &all[start..], 0x1000, bits);
                assert_eq!(read.iter().map(|one| one.len).sum::<usize>(), all.len() - start);
                assert!(read.iter().all(|one| one.len > 0 && !one.text.is_empty()));
            }
        }
    }
}
