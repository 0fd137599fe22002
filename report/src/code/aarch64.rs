//! Instructions of aarch64, by yaxpeax, as GNU objdump spells them. Of SVE and SME it knows none.

use std::borrow::Cow;

use yaxpeax_arch::{Decoder as _, U8Reader};
use yaxpeax_arm::armv8::a64::{InstDecoder, Opcode, Operand};

use super::instruction::{Flow, Instruction};

/// Decodes the first instructions of code, at most so many.
pub(super) fn decode(most: usize, code: &[u8], address: u64) -> Vec<Instruction> {
    let decoder = InstDecoder::default();
    let (words, rest) = code.as_chunks::<4>();
    let mut all = Vec::with_capacity(words.len().min(most));
    let mut at = address;
    for bytes in words.iter().take(most) {
        let word = u32::from_le_bytes(*bytes);
        let read = decoder.decode(&mut U8Reader::new(bytes));
        all.push(match read {
            Ok(decoded) => instruction(word, at, &decoded.to_string(), &decoded),
            Err(_) => of_bytes(4, format!(".inst 0x{word:08x} ; undefined")),
        });
        at = at.wrapping_add(4);
    }
    if !rest.is_empty() && all.len() < most {
        let bytes: Vec<String> = rest.iter().map(|byte| format!("0x{byte:02x}")).collect();
        all.push(of_bytes(rest.len(), format!(".byte {}", bytes.join(", "))));
    }
    all
}

fn of_bytes(len: usize, text: String) -> Instruction {
    Instruction { len, text, ..Instruction::default() }
}

type ArmInstruction = yaxpeax_arm::armv8::a64::Instruction;

fn instruction(word: u32, address: u64, text: &str, decoded: &ArmInstruction) -> Instruction {
    let base = if decoded.opcode == Opcode::ADRP { address & !0xfff } else { address };
    let target = decoded.operands.iter().find_map(|operand| match operand {
        Operand::PCOffset(offset) => Some(base.wrapping_add_signed(*offset)),
        _ => None,
    });
    let (mnemonic, operands) = text.split_once(' ').unwrap_or((text, ""));
    let mut operands: Vec<Cow<'_, str>> = match operands {
        "" => Vec::new(),
        operands => operands.split(", ").map(Cow::Borrowed).collect(),
    };
    let has_hex = has_hexadecimal(mnemonic);
    for operand in &mut operands {
        if let Some((at, to)) = operand.find('$').zip(target) {
            let before = operand.get(..at).unwrap_or_default();
            *operand = format!("{before}{to:x}").into();
        }
        if !has_hex {
            in_decimal(operand);
        }
        *operand = condition(operand).map_or(std::mem::take(operand), Cow::Borrowed);
    }
    let mnemonic = respelt(word, mnemonic, &mut operands);
    let operands = operands.join(", ");
    let space = if operands.is_empty() { "" } else { " " };
    Instruction { len: 4, text: format!("{mnemonic}{space}{operands}"), target, flow: flow(word) }
}

/// Returns where execution goes on: the encodings of branches are few.
fn flow(word: u32) -> Flow {
    let is = |mask: u32, bits: u32| word & mask == bits;
    match word {
        _ if is(0xfc00_0000, 0x1400_0000) => Flow::Jump,
        _ if is(0xfc00_0000, 0x9400_0000) => Flow::Call,
        // b.cond, bc.cond; cbz, cbnz; tbz, tbnz.
        _ if is(0xff00_0000, 0x5400_0000)
            || is(0x7e00_0000, 0x3400_0000)
            || is(0x7e00_0000, 0x3600_0000) =>
        {
            Flow::Branch
        }
        // br, blr, ret, and with pointer authentication.
        _ if is(0xfe00_0000, 0xd600_0000) => match word >> 21 & 0b111 {
            0 => Flow::Jump,
            1 => Flow::Call,
            2 => Flow::Return,
            _ => Flow::Next,
        },
        _ => Flow::Next,
    }
}

/// Returns whether objdump prints the immediate operands of an instruction in hexadecimal.
fn has_hexadecimal(mnemonic: &str) -> bool {
    const ALL: &str = " mov movk movn movz movi mvni add adds sub subs cmp cmn and ands bic orr eor \
                       tst ccmp ccmn fccmp fccmpe svc hvc smc brk hlt hint ";
    ALL.match_indices(mnemonic).any(|(at, found)| {
        let around = [at.checked_sub(1), at.checked_add(found.len())];
        around.iter().flatten().all(|at| ALL.as_bytes().get(*at) == Some(&b' '))
    })
}

/// Replaces a hexadecimal immediate in an operand.
fn in_decimal(operand: &mut Cow<'_, str>) {
    let Some((before, rest)) = operand.split_once("0x").filter(|(at, _)| at.ends_with(['#', '-']))
    else {
        return;
    };
    let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
    let (digits, after) = rest.split_at(end);
    if let Ok(number) = u64::from_str_radix(digits, 16) {
        *operand = format!("{before}{number}{after}").into();
    }
}

/// Returns objdump's name of a condition that has two.
fn condition(name: &str) -> Option<&'static str> {
    match name {
        "hs" => Some("cs"),
        "lo" => Some("cc"),
        _ => None,
    }
}

/// Rewrites what yaxpeax spells otherwise; returns the mnemonic.
fn respelt<'m>(word: u32, mnemonic: &'m str, operands: &mut Vec<Cow<'_, str>>) -> Cow<'m, str> {
    if let Some(of) = mnemonic.strip_prefix("b.").and_then(condition) {
        return format!("b.{of}").into();
    }
    let is = |mask: u32, bits: u32| word & mask == bits;
    // Addition and subtraction of an extended register: yaxpeax takes its extension for a shift.
    if is(0x1fe0_0000, 0x0b20_0000) && word >> 13 & 7 == 2 {
        let is_64 = word >> 31 == 1;
        let has_flags = word >> 29 & 1 == 1;
        let is_stack = word >> 5 & 31 == 31 || word & 31 == 31 && !has_flags;
        if is_64 || !is_stack {
            let shift = word >> 10 & 7;
            operands.pop_if(|last| last.starts_with("lsl") || last.starts_with("uxtw"));
            operands.push(if shift == 0 { "uxtw".into() } else { format!("uxtw #{shift}").into() });
        }
    }
    // A load or store by a register that is not shifted.
    if is(0x3b20_0c00, 0x3820_0800)
        && word >> 12 & 1 == 0
        && let Some(last) = operands.last_mut()
        && let Some(bare) = last.strip_suffix(" #0]")
    {
        *last = format!("{bare}]").into();
    }
    if mnemonic == "fmov"
        && let Some(last) = operands.last_mut()
        && let Some(number) = last.strip_prefix('#').and_then(|text| text.parse::<f64>().ok())
    {
        *last = format!("#{}", scientific(number)).into();
    }
    match (mnemonic, &mut operands[..]) {
        ("hint", [number]) => {
            if let Some(name) = hint(number) {
                operands.clear();
                return name.into();
            }
        }
        ("mrs", [_, register]) | ("msr", [register, _]) => {
            if let Some(name) = system_register(register) {
                *register = name.into();
            }
        }
        ("sys", [op1, n, m, op2, register]) => {
            if let Some((kind, name)) = cache_operation([op1, n, m, op2]) {
                *operands = vec![name.into(), register.clone()];
                return kind.into();
            }
        }
        ("ushll" | "ushll2" | "sshll" | "sshll2", [_, _, shift]) if *shift == "#0" => {
            operands.pop();
            let widens = mnemonic.replacen("shll", "xtl", 1);
            return widens.into();
        }
        ("mov", [to, from]) if from.ends_with(']') && to.contains('.') && !to.ends_with(']') => {
            return "dup".into();
        }
        _ => {}
    }
    mnemonic.into()
}

/// Returns a number as C's `%.18e` prints it.
fn scientific(number: f64) -> String {
    let text = format!("{number:.18e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) =
        exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

fn hint(number: &str) -> Option<&'static str> {
    Some(match number {
        "#0x6" => "dgh",
        "#0x7" => "xpaclri",
        "#0x8" => "pacia1716",
        "#0xa" => "pacib1716",
        "#0xc" => "autia1716",
        "#0xe" => "autib1716",
        "#0x10" => "esb",
        "#0x11" => "psb csync",
        "#0x12" => "tsb csync",
        "#0x14" => "csdb",
        "#0x18" => "paciaz",
        "#0x19" => "paciasp",
        "#0x1a" => "pacibz",
        "#0x1b" => "pacibsp",
        "#0x1c" => "autiaz",
        "#0x1d" => "autiasp",
        "#0x1e" => "autibz",
        "#0x1f" => "autibsp",
        "#0x20" => "bti",
        "#0x22" => "bti c",
        "#0x24" => "bti j",
        "#0x26" => "bti jc",
        _ => return None,
    })
}

/// Returns the name of a system register that programs and the kernel often use.
fn system_register(number: &str) -> Option<&'static str> {
    Some(match number {
        "s3_0_c0_c0_0" => "midr_el1",
        "s3_0_c0_c0_5" => "mpidr_el1",
        "s3_0_c0_c4_0" => "id_aa64pfr0_el1",
        "s3_0_c0_c6_0" => "id_aa64isar0_el1",
        "s3_0_c1_c0_0" => "sctlr_el1",
        "s3_0_c1_c0_2" => "cpacr_el1",
        "s3_0_c2_c0_0" => "ttbr0_el1",
        "s3_0_c2_c0_1" => "ttbr1_el1",
        "s3_0_c2_c0_2" => "tcr_el1",
        "s3_0_c4_c0_0" => "spsr_el1",
        "s3_0_c4_c0_1" => "elr_el1",
        "s3_0_c4_c1_0" => "sp_el0",
        "s3_0_c4_c2_2" => "currentel",
        "s3_0_c5_c2_0" => "esr_el1",
        "s3_0_c6_c0_0" => "far_el1",
        "s3_0_c12_c0_0" => "vbar_el1",
        "s3_0_c13_c0_1" => "contextidr_el1",
        "s3_0_c13_c0_4" => "tpidr_el1",
        "s3_3_c0_c0_1" => "ctr_el0",
        "s3_3_c0_c0_7" => "dczid_el0",
        "s3_3_c4_c2_0" => "nzcv",
        "s3_3_c4_c2_1" => "daif",
        "s3_3_c4_c4_0" => "fpcr",
        "s3_3_c4_c4_1" => "fpsr",
        "s3_3_c9_c13_0" => "pmccntr_el0",
        "s3_3_c13_c0_2" => "tpidr_el0",
        "s3_3_c13_c0_3" => "tpidrro_el0",
        "s3_3_c14_c0_0" => "cntfrq_el0",
        "s3_3_c14_c0_1" => "cntpct_el0",
        "s3_3_c14_c0_2" => "cntvct_el0",
        _ => return None,
    })
}

/// Returns the name of an operation on caches, given the operands of `sys`.
fn cache_operation(numbers: [&str; 4]) -> Option<(&'static str, &'static str)> {
    Some(match numbers {
        ["#3", "c7", "c4", "#1"] => ("dc", "zva"),
        ["#3", "c7", "c4", "#3"] => ("dc", "gva"),
        ["#3", "c7", "c4", "#4"] => ("dc", "gzva"),
        ["#3", "c7", "c5", "#1"] => ("ic", "ivau"),
        ["#3", "c7", "c10", "#1"] => ("dc", "cvac"),
        ["#3", "c7", "c11", "#1"] => ("dc", "cvau"),
        ["#3", "c7", "c14", "#1"] => ("dc", "civac"),
        ["#0", "c7", "c6", "#1"] => ("dc", "ivac"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_objdump_prints() {
        let cases: [(u32, &str, Option<u64>, Flow); 24] = [
            (0x9100_03fd, "mov x29, sp", None, Flow::Next),
            (0xa9bf_7bf0, "stp x16, x30, [sp, #-16]!", None, Flow::Next),
            (0xf947_fe11, "ldr x17, [x16, #4088]", None, Flow::Next),
            (0x913f_e210, "add x16, x16, #0xff8", None, Flow::Next),
            (0x9400_0400, "bl 2000", Some(0x2000), Flow::Call),
            (0x17ff_ffff, "b ffc", Some(0xffc), Flow::Jump),
            (0x5400_0082, "b.cs 1010", Some(0x1010), Flow::Branch),
            (0x3400_0080, "cbz w0, 1010", Some(0x1010), Flow::Branch),
            (0x3708_0780, "tbnz w0, #1, 10f0", Some(0x10f0), Flow::Branch),
            (0xb000_0010, "adrp x16, 2000", Some(0x2000), Flow::Next),
            (0xd61f_0200, "br x16", None, Flow::Jump),
            (0xd63f_0200, "blr x16", None, Flow::Call),
            (0xd65f_03c0, "ret", None, Flow::Return),
            (0x8b3b_4ebb, "add x27, x21, w27, uxtw #3", None, Flow::Next),
            (0x3876_c821, "ldrb w1, [x1, w22, sxtw]", None, Flow::Next),
            (0x1a81_2013, "csel w19, w0, w1, cs", None, Flow::Next),
            (0xd53b_4401, "mrs x1, fpcr", None, Flow::Next),
            (0xd503_245f, "bti c", None, Flow::Next),
            (0xd50b_7423, "dc zva, x3", None, Flow::Next),
            (0x1e6e_1001, "fmov d1, #1.000000000000000000e+00", None, Flow::Next),
            (0x2f20_a400, "uxtl v0.2d, v0.2s", None, Flow::Next),
            (0x4e08_0400, "dup v0.2d, v0.d[0]", None, Flow::Next),
            (0xd503_201f, "nop", None, Flow::Next),
            (0xe400_e000, ".inst 0xe400e000 ; undefined", None, Flow::Next),
        ];
        for (word, text, target, flow) in cases {
            let expected = Instruction { len: 4, text: text.into(), target, flow };
            assert_eq!(decode(1, &word.to_le_bytes(), 0x1000), [expected], "{word:x}");
        }
    }

    #[test]
    fn all_words_have_texts() {
        // A multiplier that visits words of all kinds.
        let words = (0..200_000u32).map(|number| number.wrapping_mul(2_654_435_761));
        let mut code: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        code.push(7);
        let read = decode(usize::MAX, &code, 0x1000);
        assert_eq!(read.iter().map(|one| one.len).sum::<usize>(), code.len());
        assert!(read.iter().all(|one| !one.text.is_empty()));
        assert_eq!(read.last().map(|one| one.text.as_str()), Some(".byte 0x07"));
    }
}
