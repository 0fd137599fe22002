//! `rep annotate`: where the code comes from, and what is told where there is none.

use recrep_format::abi::{BranchEntry, BranchFlags, BranchSampleType};

use super::*;

/// Annotates a recording, and returns the functions of its only event.
#[track_caller]
fn annotated(place: &Place, words: &[&str], stream: &Stream) -> Vec<Value> {
    let words = [&["annotate", "--json"], words].concat();
    let answer = parsed(rep_of(place, &words, &stream.file()));
    list(&answer["events"][0]["functions"]).to_vec()
}

/// Returns the texts of the instructions, each with its samples.
fn texts(function: &Value) -> Vec<(String, u64)> {
    let rows = list(&function["rows"]).iter();
    let text = |row: &Value| row["text"].as_str().unwrap().to_owned();
    rows.map(|row| (text(row), row["samples"].as_u64().unwrap())).collect()
}

#[test]
fn code_of_a_file_is_shown_only_if_it_is_the_recorded_one() {
    let Some(place) = Place::with("gcc") else { return };
    let program = place.program("program", "");
    let (offset, address) = function(&program, "inner");
    let recorded = sampled(stream(), &program, offset);
    let functions = annotated(&place, &["inner"], &recorded);
    assert_eq!(functions[0]["rows"][0]["address"], format!("{address:#x}"));
    assert_eq!(functions[0]["code"], program.to_str().unwrap());
    let instructions = texts(&functions[0]);
    assert!(instructions.len() > 2 && instructions[0].1 == 1, "{instructions:?}");
    assert_eq!(instructions.last().unwrap().0, "ret");
    // A file of another build at the same path.
    let other = place.put("other", fs::read(&program).unwrap());
    fs::rename(other, &program).unwrap();
    let mut command = rep_command(&place, &["annotate", "inner"], &recorded.file());
    let outcome = recrep_tests::run::run(&mut command).expect(1);
    // The name comes from the file, too.
    assert!(outcome.stderr.contains("no sample has function 'inner'"), "{}", outcome.stderr);
}

#[test]
fn code_of_the_kernel_is_in_its_image() {
    let Some(place) = Place::with("gcc") else { return };
    let source = ("k.c", "int _text(void) { return 1; } int schedule(void) { return 2; }\n");
    let gcc = "gcc -O1 -fcf-protection=none -nostdlib -static -no-pie -Wl,--build-id=none \
               -Wl,-e,_text";
    let image = place.compiled(gcc, source, "vmlinux");
    let ((_, text), (_, schedule)) = (function(&image, "_text"), function(&image, "schedule"));
    let start = 0xffff_ffff_9200_0000;
    let spec = SampleSpec::at(start + (schedule - text)).misc(1);
    let kernel = stream().kernel_map(start, 0x100_0000).at(2).sample(spec);
    let words = ["schedule", "--vmlinux", image.to_str().unwrap()];
    let functions = annotated(&place, &words, &kernel);
    assert_eq!(functions[0]["cpumode"], "kernel");
    assert_eq!(functions[0]["rows"][0]["address"], format!("{schedule:#x}"));
    if cfg!(target_arch = "x86_64") {
        let expected = [("mov $0x2,%eax".to_owned(), 1), ("ret".to_owned(), 0)];
        assert_eq!(texts(&functions[0]), expected);
    }
    // A list of symbols has no code: samples are shown by address, with the reason.
    let list = format!("{start:x} T _text\n{:x} T schedule\n", start + (schedule - text));
    let list = place.put("kallsyms", list);
    let words = ["schedule", "--kallsyms", list.to_str().unwrap()];
    let functions = annotated(&place, &words, &kernel);
    assert!(functions[0]["code"].is_null() && functions[0]["samples"] == 1, "{functions:?}");
    assert!(functions[0]["reason"].as_str().unwrap().contains("--vmlinux"), "{functions:?}");
    assert_eq!(texts(&functions[0]), [(String::new(), 1)]);
}

#[test]
fn code_of_a_jit_is_in_its_dump() {
    let place = Place::new();
    let code = [0x31, 0xc0, 0xff, 0xc0, 0xeb, 0xfc];
    let mut dump: Vec<u8> = [0x4a69_5444_u32, 1, 40, 62, 0, 9, 0, 0, 0, 0]
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    let name = b"compiled\0";
    let size = u32::try_from(16 + 16 + 24 + name.len() + code.len()).unwrap();
    dump.extend([0, size, 0, 0, 9, 9, 0, 0].iter().flat_map(|word| word.to_ne_bytes()));
    dump.extend([BASE, code.len() as u64, 0].iter().flat_map(|word| word.to_ne_bytes()));
    dump.extend(name);
    dump.extend(code);
    let path = place.put("jit-9.dump", dump);
    let jit = stream().map("//anon", BASE, 0x1000, 0).at(2).sample(SampleSpec::at(BASE + 2));
    let functions = annotated(&place, &["compiled"], &mapped_at(jit, &path, 0x50_0000));
    let texts = texts(&functions[0]);
    let jump = format!("jmp {:x} <compiled+0x2>", BASE + 2);
    let expected = [("xor %eax,%eax", 0), ("inc %eax", 1), (&jump, 0)];
    assert_eq!(texts, expected.map(|(text, samples)| (text.to_owned(), samples)));
    assert_eq!(functions[0]["rows"][2]["jump"], 1);
}

#[test]
fn branches_have_mispredictions_and_cycles() {
    let Some(place) = Place::with("gcc") else { return };
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let text = "int loop(int n) { int s = 0; for (int i = 0; i < n; i++) s ^= s * 3 + i; return s; }\n\
                int main(void) { return loop(9); }\n";
    let gcc = "gcc -O1 -fno-tree-vectorize -Wl,--build-id";
    let program = place.compiled(gcc, ("l.c", text), "loops");
    let (offset, _) = function(&program, "loop");
    let plain = sampled(stream(), &program, offset);
    let functions = annotated(&place, &["loop"], &plain);
    let rows = list(&functions[0]["rows"]);
    let jump = rows.iter().find(|row| {
        row["jump"].is_u64() && row["text"].as_str().is_some_and(|text| text.starts_with("jne"))
    });
    let hex =
        |row: &Value| u64::from_str_radix(&row["address"].as_str().unwrap()[2..], 16).unwrap();
    let from = BASE + offset + hex(jump.unwrap()) - hex(&rows[0]);
    // Bit 0: mispredicted, bit 1: predicted; cycles from bit 4 on.
    let branch = |flags| BranchEntry { from, to: BASE + offset, flags: BranchFlags(flags) };
    let stack = [branch(1 | 30 << 4), branch(2 | 10 << 4), branch(2), branch(2)];
    let event = Event::new("branches:u").branches(BranchSampleType::USER | BranchSampleType::ANY);
    let recorded = mapped(stream_with(event), &program);
    let recorded = recorded.at(2).sample(SampleSpec::at(BASE + offset).branches(&stack));
    let functions = annotated(&place, &["loop"], &recorded);
    let rows = list(&functions[0]["rows"]);
    let branches: Vec<&Value> =
        rows.iter().map(|row| &row["branches"]).filter(|all| !all.is_null()).collect();
    let expected = serde_json::json!({
        "count": 4, "mispredicted": 1, "mispredict_percent": 25.0, "mean_cycles": 20.0
    });
    assert_eq!(branches, [&expected]);
    let text = rep_of(&place, &["annotate", "loop"], &recorded.file());
    assert!(text.contains("25.00%     20.0"), "{text}");
}

#[test]
fn functions_that_share_a_name_are_apart() {
    let Some(place) = Place::with("gcc") else { return };
    let one = "__attribute__((noinline)) static int same(int a) { return a * 3; }\n\
               int one(int a) { return same(a) + 1; }\n";
    place.put("two.c", one.replace("one", "two").replace("* 3", "* 5"));
    let both = format!("{one}int two(int); int main(void) {{ return one(1) + two(2); }}\n");
    let gcc = format!("gcc -O1 -Wl,--build-id {}", place.at("two.c").display());
    let program = place.compiled(&gcc, ("one.c", &both), "twins");
    let bytes = fs::read(&program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let twins: Vec<u64> = file
        .symbols()
        .filter(|symbol| symbol.name() == Ok("same"))
        .map(|symbol| symbol.address())
        .collect();
    let (offset, address) = function(&program, "same");
    let mut recorded = mapped(stream(), &program);
    for (time, twin) in (2..).zip(&twins) {
        let ip = BASE + offset.wrapping_add(twin.wrapping_sub(address));
        recorded = recorded.at(time).sample(SampleSpec::at(ip));
    }
    let functions = annotated(&place, &["same"], &recorded);
    assert_eq!((twins.len(), functions.len()), (2, 2), "{functions:?}");
    assert_ne!(texts(&functions[0]), texts(&functions[1]));
}

#[test]
fn damaged_images_are_annotated_as_far_as_they_go() {
    let Some(place) = Place::with("gcc") else { return };
    let program = place.program("program", "");
    let (offset, _) = function(&program, "inner");
    let recorded = sampled(stream(), &program, offset);
    let whole = fs::read(&program).unwrap();
    let words = ["annotate", "--json", "--trust-paths", "--limit", "3"];
    for number in 0..120_usize {
        let mut damaged = whole.clone();
        if number % 3 == 0 {
            damaged.truncate(whole.len() * number / 120);
        } else {
            for turn in 0..8_usize {
                let at =
                    (number * 7919 + turn * 104_729) % if turn < 4 { 1024 } else { whole.len() };
                damaged[at] ^= u8::try_from(number).unwrap() | 1;
            }
        }
        fs::write(&program, damaged).unwrap();
        let outcome = recrep_tests::run::run(&mut rep_command(&place, &words, &recorded.file()));
        assert!(
            outcome.code() <= 1 && !outcome.stderr.contains("panicked"),
            "{number}: {}",
            outcome.stderr
        );
    }
}
