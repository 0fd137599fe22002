//! Fields that are values of the sample itself: weights, registers, page sizes, BPF output.

use std::io::{self, Write};

use recrep_format::abi::{EventType, RegisterName, RegsAbi, RegsArch, Weight};
use recrep_format::record::SampleFields;

use super::fields::{Fields, OutputField};
use super::sample::ScriptSample;
use crate::decode::Elapsed;

/// Number of bytes of BPF output per line.
const BYTES: usize = 8;

/// Prints the weight and its latency parts.
pub(super) fn weights(
    fields: &Fields,
    s: &SampleFields<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    if fields.has(OutputField::Weight) {
        write!(out, "{:>16}", weight(s))?;
    }
    let parts = s.weight.and_then(Weight::parts).unwrap_or_default();
    for (field, part) in [(OutputField::InsLat, parts.var2), (OutputField::RetireLat, parts.var3)] {
        if fields.has(field) {
            write!(out, "{part:>16}")?;
        }
    }
    Ok(())
}

/// Returns the weight; of three parts the first.
pub(super) fn weight(s: &SampleFields<'_>) -> u64 {
    s.weight.map_or(0, Weight::cost)
}

/// Prints the registers at the interrupt, then the user registers.
pub(super) fn registers(
    fields: &Fields,
    names: Option<RegsArch>,
    s: &SampleFields<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    for (field, regs) in [(OutputField::Iregs, &s.regs_intr), (OutputField::Uregs, &s.regs_user)] {
        if let Some(regs) =
            regs.as_ref().filter(|regs| fields.has(field) && regs.abi != RegsAbi::NONE)
        {
            write!(out, " ABI:{} ", regs.abi.0)?;
            for (number, value) in regs.iter() {
                write!(out, "{:>5}:0x{value:x} ", RegisterName::of(names, number))?;
            }
        }
    }
    Ok(())
}

pub(super) fn page_sizes(
    fields: &Fields,
    s: &SampleFields<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let sizes = [
        (OutputField::DataPageSize, s.data_page_size),
        (OutputField::CodePageSize, s.code_page_size),
    ];
    for (_, size) in sizes.iter().filter(|(field, _)| fields.has(*field)) {
        write!(out, " {}", page_size(size.unwrap_or(0)))?;
    }
    Ok(())
}

/// Prints the instructions per cycle since the sample before, if there are both.
pub(super) fn ipc(fields: &Fields, s: &ScriptSample<'_>, out: &mut impl Write) -> io::Result<()> {
    let elapsed = fields.has(OutputField::Ipc).then(|| elapsed(s)).flatten();
    let Some(Elapsed { instructions: instructions @ 1.., cycles }) = elapsed else { return Ok(()) };
    let Some(hundredths) = (u128::from(instructions) * 100).checked_div(cycles.into()) else {
        return Ok(());
    };
    let (whole, rest) = (hundredths / 100, hundredths % 100);
    write!(out, " \t IPC: {whole}.{rest:02} ({instructions}/{cycles}) ")
}

/// Returns the instructions and cycles since the sample before, if the trace tells of cycles there.
pub(super) fn elapsed(s: &ScriptSample<'_>) -> Option<Elapsed> {
    let raw = s.fields.raw.filter(|_| s.attr.kind == EventType::HARDWARE)?;
    Elapsed::read(raw)
}

/// Formats a page size as perf does.
pub(super) fn page_size(bytes: u64) -> String {
    match bytes {
        0 => "N/A".into(),
        _ if bytes >= 1 << 30 => format!("{}G", bytes >> 30),
        _ if bytes >= 1 << 20 => format!("{}M", bytes >> 20),
        _ if bytes >= 1 << 10 => format!("{}K", bytes >> 10),
        _ => format!("{bytes}B"),
    }
}

/// Prints the output of a BPF program: bytes with their characters, then the string if it is one.
pub(super) fn bpf_output(raw: &[u8], out: &mut impl Write) -> io::Result<()> {
    writeln!(out)?;
    for (number, bytes) in raw.chunks(BYTES).enumerate() {
        write!(
            out,
            "{:>17} {:04x}:",
            if number == 0 { "BPF output:" } else { "" },
            number * BYTES
        )?;
        bytes.iter().try_for_each(|byte| write!(out, " {byte:02x}"))?;
        let missing = BYTES - bytes.len();
        write!(out, "{:width$}  ", "", width = 3 * missing)?;
        let shown = bytes.iter().map(|byte| if is_printable(*byte) { *byte as char } else { '.' });
        writeln!(out, "{}{:missing$}", shown.collect::<String>(), "")?;
    }
    let end = raw.iter().position(|byte| *byte == 0).unwrap_or(raw.len());
    let (text, rest) = raw.split_at_checked(end).unwrap_or((raw, &[]));
    if !rest.is_empty()
        && text.iter().all(|byte| is_printable(*byte))
        && rest.iter().all(|byte| *byte == 0)
    {
        writeln!(out, "{:>17} \"{}\"", "BPF string:", String::from_utf8_lossy(text))?;
    }
    Ok(())
}

fn is_printable(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bpf_output_is_printed_as_bytes_and_text() {
        let text = |raw: &[u8]| {
            let mut out = Vec::new();
            bpf_output(raw, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let two = "\n      BPF output: 0000: 68 65 6c 6c 6f 20 77 6f  hello wo\n                  \
                   0008: 72 6c 64 00              rld.    \n";
        assert_eq!(text(b"hello world\0"), format!("{two}      BPF string: \"hello world\"\n"));
        assert!(!text(b"hello \xffworld\0").contains("string"));
        assert!(!text(b"hello\0world\0").contains("string"));
        assert!(!text(b"hello").contains("string"));
        assert_eq!(text(b""), "\n");
    }

    #[test]
    fn page_sizes_are_short() {
        assert_eq!(
            [0, 512, 4096, 2 << 20, 1 << 30].map(page_size),
            ["N/A", "512B", "4K", "2M", "1G"]
        );
    }
}
