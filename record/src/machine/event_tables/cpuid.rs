//! Identity of this CPU, as `mapfile.csv` spells it, and the rows of that file that are for it.
//!
//! | architecture | spelling | from |
//! |---|---|---|
//! | x86 | `GenuineIntel-6-55-4`: vendor, family, model and stepping (hexadecimal) | `/proc/cpuinfo` |
//! | Arm | `0x00000000410fd490`: the register MIDR | sysfs, for each core |
//! | RISC-V | `0x489-0x8000000000000007-0x…`: vendor, architecture, implementation | `/proc/cpuinfo` |
//! | POWER | `0x004e1202`: the register PVR | `/proc/cpuinfo` |
//! | s390 | `IBM,3906,704,M03,3.6,002f`: maker, type, model, version and authorization of the counter facility | `/proc/sysinfo`, `/proc/service_levels` |

use std::fs;
use std::path::Path;

use regex_lite::Regex;

/// The variant and the revision in MIDR.
const MIDR_VARIANT: u64 = 0xf << 20;
const MIDR_REVISION: u64 = 0xf;

/// Returns the CPU of this machine, unless its cores say so themselves (Arm).
pub(crate) fn read() -> Option<String> {
    of_cpuinfo(&text_of("/proc/cpuinfo"))
        .or_else(|| of_sysinfo(&text_of("/proc/sysinfo"), &text_of("/proc/service_levels")))
}

fn text_of(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Returns what an Arm core says it is.
pub(crate) fn of_core(sysfs: &Path, cpu: u32) -> Option<String> {
    let path = sysfs.join(format!("devices/system/cpu/cpu{cpu}/regs/identification/midr_el1"));
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// x86, RISC-V and POWER, by the first CPU's fields.
fn of_cpuinfo(text: &str) -> Option<String> {
    x86(text).or_else(|| riscv(text)).or_else(|| power(text))
}

fn x86(cpuinfo: &str) -> Option<String> {
    let family = field(cpuinfo, "cpu family")?.parse::<u32>().ok()?;
    let model = field(cpuinfo, "model")?.parse::<u32>().ok()?;
    let stepping = field(cpuinfo, "stepping")?.parse::<u32>().ok()?;
    Some(format!("{}-{family}-{model:X}-{stepping:X}", field(cpuinfo, "vendor_id")?))
}

fn riscv(cpuinfo: &str) -> Option<String> {
    let [vendor, arch, implementation] =
        ["mvendorid", "marchid", "mimpid"].map(|name| field(cpuinfo, name));
    Some(format!("{}-{}-{}", vendor?, arch?, implementation?))
}

fn power(cpuinfo: &str) -> Option<String> {
    // revision : 2.2 (pvr 004e 1202)
    let pvr = field(cpuinfo, "revision")?.split_once("(pvr ")?.1.trim_end_matches(')');
    Some(format!("0x{}", pvr.replace(' ', "")))
}

/// Returns a field's value in text such as `model name : Intel(R) Xeon(R)`; of several CPUs'
/// fields, the first.
pub(crate) fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    fields.find_map(|(key, value)| (key.trim_end() == name).then(|| value.trim()))
}

/// s390.
fn of_sysinfo(sysinfo: &str, service_levels: &str) -> Option<String> {
    let field = |name: &str| {
        let value = sysinfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value
            .map(|value| value.split_whitespace().collect::<Vec<_>>())
            .filter(|words| !words.is_empty())
    };
    let (maker, kind, model) =
        (field("Manufacturer")?.concat(), field("Type")?.concat(), field("Model")?.join(","));
    let facility =
        service_levels.lines().find_map(|line| line.strip_prefix("CPU-MF:")).unwrap_or("");
    let fact = |name: &str| {
        facility.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    };
    Some(match (fact("version"), fact("authorization")) {
        (Some(version), Some(authorization)) => {
            format!("{maker},{kind},{model},{version},{authorization}")
        }
        _ => format!("{maker},{kind},{model}"),
    })
}

/// Returns whether a row for this pattern of CPUs is for this CPU.
///
/// An Arm row is for its version of the core and all later ones; other rows are regular
/// expressions. Those of x86 that say nothing of the stepping are for all of them.
pub(crate) fn is_meant_by(id: &str, pattern: &str) -> bool {
    if let (Some(id), Some(row)) = (midr(id, &[16]), midr(pattern, &[8, 16])) {
        return midr_part(id) == midr_part(row) && midr_version(id) >= midr_version(row);
    }
    let id = match id.rsplit_once('-') {
        Some((without, _)) if has_stepping(id) && !has_stepping(pattern) => without,
        _ => id,
    };
    is_match(pattern, id)
}

fn has_stepping(text: &str) -> bool {
    text.matches('-').count() >= 3
}

fn midr_part(midr: u64) -> u64 {
    midr & !(MIDR_VARIANT | MIDR_REVISION)
}

fn midr_version(midr: u64) -> (u64, u64) {
    (midr & MIDR_VARIANT, midr & MIDR_REVISION)
}

/// Returns whether a regular expression matches all of the text.
pub(super) fn is_match(pattern: &str, text: &str) -> bool {
    Regex::new(&format!("^(?:{pattern})$")).is_ok_and(|pattern| pattern.is_match(text))
}

/// Parses a MIDR with one of these numbers of digits: in the formulas of metrics it has 8.
fn midr(text: &str, lengths: &[usize]) -> Option<u64> {
    let digits = text.strip_prefix("0x").filter(|digits| lengths.contains(&digits.len()))?;
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_architecture_s_own_spelling() {
        let x86 = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: \
                   143\nmodel name\t: Xeon\nstepping\t: 10\n";
        assert_eq!(of_cpuinfo(x86).as_deref(), Some("GenuineIntel-6-8F-A"));
        let riscv = "hart\t: 0\nmvendorid\t: 0x489\nmarchid\t\t: 0x8000000000000007\nmimpid\t\t: \
                     0x20181004\n";
        assert_eq!(of_cpuinfo(riscv).as_deref(), Some("0x489-0x8000000000000007-0x20181004"));
        let power = "cpu\t\t: POWER9\nrevision\t: 2.2 (pvr 004e 1202)\n";
        assert_eq!(of_cpuinfo(power).as_deref(), Some("0x004e1202"));
        assert_eq!(of_cpuinfo("processor\t: 0\nBogoMIPS\t: 50.00\n"), None);
        let s390 = "Manufacturer:         IBM\nType:                 3906\nModel:                \
                    704              M03\n";
        let levels = "CPU-MF: Counter facility: version=3.6 authorization=002f\n";
        assert_eq!(of_sysinfo(s390, levels).as_deref(), Some("IBM,3906,704,M03,3.6,002f"));
        assert_eq!(of_sysinfo(s390, "").as_deref(), Some("IBM,3906,704,M03"));
    }

    #[test]
    fn rows_for_a_cpu() {
        for (id, pattern, is) in [
            ("GenuineIntel-6-55-4", "GenuineIntel-6-55-[01234]", true),
            ("GenuineIntel-6-55-7", "GenuineIntel-6-55-[0-4]", false),
            ("GenuineIntel-6-9E-B", "GenuineIntel-6-(4E|5E|9E)", true),
            ("GenuineIntel-6-9E-B", "GenuineIntel-6-9", false),
            ("AuthenticAMD-25-61-2", "AuthenticAMD-25-([245][[:xdigit:]]|[[:xdigit:]])", false),
            ("AuthenticAMD-25-61-2", "AuthenticAMD-25-[[:xdigit:]]+", true),
            ("0x00000000410fd490", "0x00000000410fd490", true),
            ("0x00000000413fd491", "0x00000000410fd490", true),
            ("0x00000000410fd490", "0x00000000413fd490", false),
            ("0x00000000410fd4f0", "0x00000000410fd490", false),
            ("0x004e1202", "0x004e[[:xdigit:]]{4}", true),
            (
                "0x489-0x8000000000000007-0x20181004",
                "0x489-0x8000000000000007-0x[[:xdigit:]]+",
                true,
            ),
            ("IBM,3906,704,M03,3.6,002f", "^IBM.390[67].*[13]\\.[1-5].[[:xdigit:]]+$", false),
            ("IBM,3906,704,M03,3.5,002f", "^IBM.390[67].*[13]\\.[1-5].[[:xdigit:]]+$", true),
            ("x", "(", false),
        ] {
            assert_eq!(is_meant_by(id, pattern), is, "{id} {pattern}");
        }
    }
}
