//! Instructions read as in `objdump -d`: those of whole libraries.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSection};
use recrep_report::testing::InstructionSet;
use recrep_tests::needs;
use recrep_tests::programs::rep;
use recrep_tests::run::run;

/// Size of the code of a file that is compared: of all of it, a build without optimization takes long.
const SIZE: u64 = 0x5_0000;

/// Size of the longest instruction of x86-64.
const LONGEST: u64 = 15;

/// An instruction as objdump prints it.
struct Printed {
    address: u64,
    bytes: Vec<u8>,
    text: String,
}

/// The first instructions of a file's section of code.
#[track_caller]
fn objdump(program: &str, file: &Path) -> Vec<Printed> {
    let bytes = fs::read(file).unwrap();
    let image = object::File::parse(&*bytes).unwrap();
    let start = image.section_by_name(".text").unwrap().address();
    let mut command = Command::new(program);
    command.args(["-d", "-w", &format!("--start-address={start}")]);
    command.arg(format!("--stop-address={}", start + SIZE)).arg(file);
    let outcome = run(&mut command).expect(0);
    let printed = outcome.text().lines().filter_map(|line| {
        let mut cells = line.splitn(3, '\t');
        let address = u64::from_str_radix(cells.next()?.trim().strip_suffix(':')?, 16).ok()?;
        let words = cells.next()?;
        let mut bytes = Vec::new();
        for word in words.split_whitespace() {
            let value = u32::from_str_radix(word, 16).ok()?;
            // Words of aarch64 are printed as numbers.
            let little = value.to_le_bytes();
            bytes.extend_from_slice(&little[..word.len() / 2]);
        }
        Some(Printed { address, bytes, text: plain(cells.next()?) })
    });
    let mut printed: Vec<Printed> = printed.collect();
    // An instruction that is cut at the end is printed as several.
    let end = start + SIZE - LONGEST;
    printed.retain(|one| one.address < end);
    printed
}

/// A text without the names of what it refers to, comments on immediate operands, and padding.
fn plain(text: &str) -> String {
    let text = text.split("//").next().unwrap();
    let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace(", ", ",");
    while let Some(start) = text.find(" <") {
        let end = text[start..].find('>').map_or(text.len(), |end| start + end + 1);
        text.replace_range(start..end, "");
    }
    text
}

/// Instructions that read otherwise, by their first words in objdump's text and in rep's: their
/// number, and the texts of one.
type Differences = BTreeMap<[String; 2], (usize, [String; 2])>;

/// Compares the instructions of a file, and returns their number and those that read otherwise.
#[track_caller]
fn differences(set: InstructionSet, program: &str, file: &Path) -> (usize, Differences) {
    let printed = objdump(program, file);
    assert!(printed.len() >= 10_000, "{}: {} instructions", file.display(), printed.len());
    let mut found = Differences::new();
    for Printed { address, bytes, text } in &printed {
        let read = set.decode(bytes, *address);
        let texts: Vec<String> = read.iter().map(|one| plain(&one.text)).collect();
        let ours = texts.join(" ; ");
        if ours != *text {
            let words =
                [text, &ours].map(|text| text.split(' ').next().unwrap_or_default().to_owned());
            found.entry(words).or_insert_with(|| (0, [text.clone(), ours])).0 += 1;
        }
    }
    println!("{}: {} instructions, {found:?}", file.display(), printed.len());
    (printed.len(), found)
}

/// A library that this process has mapped.
fn mapped(name: &str) -> PathBuf {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    paths.map(PathBuf::from).find(|path| path.file_name().is_some_and(|file| file == name)).unwrap()
}

#[test]
fn of_x86_64_reads_as_objdump_prints() {
    if !needs::commands("objdump") || !cfg!(target_arch = "x86_64") {
        return;
    }
    for file in [mapped("libc.so.6"), rep().get_program().into()] {
        let (_, found) = differences(InstructionSet::X86_64, "objdump", &file);
        assert!(found.is_empty(), "{}: {found:#?}", file.display());
    }
}

#[test]
fn of_aarch64_reads_as_objdump_prints() {
    let file = Path::new("/usr/aarch64-linux-gnu/lib/libc.so.6");
    if !needs::commands("aarch64-linux-gnu-objdump") || !needs::file(file, "libc6-arm64-cross") {
        return;
    }
    let program = "aarch64-linux-gnu-objdump";
    let (all, mut found) = differences(InstructionSet::Aarch64, program, file);
    // Instructions of SVE, in a few functions of libc.
    let sve: usize =
        found.extract_if(.., |[_, ours], _| ours == ".inst").map(|(_, (number, _))| number).sum();
    assert!(sve * 500 < all, "{sve} of {all} are not known");
    assert!(found.is_empty(), "{found:#?}");
}
