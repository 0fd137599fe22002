//! Each source of symbols, on real files.

use recrep_format::build_id::BuildId;

use super::*;

#[test]
fn a_debuglink_is_followed_if_its_checksum_is_right() {
    let Some(place) = Place::with("gcc objcopy strip") else { return };
    for kind in ["-pie", "-no-pie"] {
        // Without a build ID only the checksum proves that the file is the right one.
        let program = place.program("program", "-Wl,--build-id=none");
        let (offset, _) = function(&program, "inner");
        let debug = place.at("program.debug");
        tool("objcopy --only-keep-debug", &[&program, &debug]);
        tool("strip", &[&program]);
        let was_sampled = sampled(stream(), &program, offset);
        assert_ne!(symbols(&place, &[], &was_sampled), ["inner"]);
        tool(&format!("objcopy --add-gnu-debuglink={}", debug.display()), &[&program]);
        assert_eq!(symbols(&place, &[], &was_sampled), ["inner"], "{kind}");
        let mut bytes = fs::read(&debug).unwrap();
        bytes.push(0);
        fs::write(&debug, bytes).unwrap();
        assert_ne!(symbols(&place, &[], &was_sampled), ["inner"]);
    }
}

#[test]
fn mini_debug_information_adds_to_the_dynamic_symbols() {
    let Some(place) = Place::with("gcc objcopy strip xz") else { return };
    let program = place.program("program", "");
    let ((inner, _), (outer, _)) = (function(&program, "inner"), function(&program, "outer"));
    let mini = place.at("mini");
    tool("objcopy -S --remove-section .comment --keep-symbol=inner", &[&program, &mini]);
    tool("xz -k", &[&mini]);
    tool("strip", &[&program]);
    let both = |stream| sampled(sampled(stream, &program, inner), &program, outer);
    assert_ne!(symbols(&place, &[], &sampled(stream(), &program, inner)), ["inner"]);
    let section = place.at("mini.xz");
    tool(&format!("objcopy --add-section .gnu_debugdata={}", section.display()), &[&program]);
    assert_eq!(symbols(&place, &[], &both(stream())), ["inner", "outer"]);
}

#[test]
fn files_are_found_by_build_id_and_below_symfs() {
    let Some(place) = Place::with("gcc") else { return };
    let program = place.program("program", "");
    let (offset, _) = function(&program, "inner");
    let recorded = sampled(stream(), "/nowhere/program".as_ref(), offset);
    assert_ne!(symbols(&place, &[], &recorded), ["inner"]);
    place.put("root/nowhere/program", fs::read(&program).unwrap());
    let root = place.at("root");
    assert_eq!(symbols(&place, &["--symfs", root.to_str().unwrap()], &recorded), ["inner"]);

    // As `perf archive` unpacks: in the user's directory, and in one given by --buildid-dir.
    let bytes = build_id_in(&fs::read(&program).unwrap());
    let id = BuildId::new(&bytes).unwrap().to_string();
    let known = map_with_id(stream(), "/nowhere/program".as_ref(), &bytes)
        .at(2)
        .sample(SampleSpec::at(BASE + offset));
    assert_ne!(symbols(&place, &[], &known), ["inner"]);
    let entry = format!(".build-id/{}/{}/elf", &id[..2], &id[2..]);
    place.put(&format!("named/{entry}"), fs::read(&program).unwrap());
    assert_eq!(
        symbols(&place, &["--buildid-dir", place.at("named").to_str().unwrap()], &known),
        ["inner"]
    );
    let fetched = format!("home/.cache/debuginfod_client/{id}/debuginfo");
    place.put(&fetched, fs::read(&program).unwrap());
    assert_eq!(symbols(&place, &[], &known), ["inner"]);
    fs::remove_file(place.at(&fetched)).unwrap();
    place.put(&format!("home/.debug/{entry}"), fs::read(&program).unwrap());
    assert_eq!(symbols(&place, &[], &known), ["inner"]);
}

#[test]
fn a_kernel_image_and_a_compressed_kernel_module_are_read() {
    let Some(place) = Place::with("gcc xz") else { return };
    let source = ("k.c", "int _text(void) { return 1; } int schedule(void) { return 2; }\n");
    let gcc = "gcc -nostdlib -static -no-pie -Wl,--build-id=none -Wl,-e,_text";
    let image = place.compiled(gcc, source, "vmlinux");
    let ((_, text), (_, schedule)) = (function(&image, "_text"), function(&image, "schedule"));
    // The kernel was relocated at boot.
    let start = 0xffff_ffff_9200_0000;
    let spec = SampleSpec::at(start + (schedule - text)).misc(1);
    let kernel = stream().kernel_map(start, 0x100_0000).at(2).sample(spec);
    assert_eq!(symbols(&place, &["--vmlinux", image.to_str().unwrap()], &kernel), ["schedule"]);

    let module = place.compiled("gcc -c -ffunction-sections", source, "some-driver.ko");
    tool("xz", &[&module]);
    let path = place.at("some-driver.ko.xz");
    let loaded = 0xffff_ffff_c010_0000;
    let driver = kernel_mapping(stream(), path.to_str().unwrap(), loaded, 0);
    let driver = driver.at(2).sample(SampleSpec::at(loaded).misc(1));
    assert_eq!(symbols(&place, &["--symfs", "/"], &driver), ["_text"]);
}

#[test]
fn bpf_code_is_named_by_its_ksymbol_record() {
    let place = Place::new();
    let start = 0xffff_ffff_c000_1000;
    let bpf = stream()
        .ksymbol(start, 0x80, 1, 0, "bpf_prog_abcd_count")
        .at(2)
        .sample(SampleSpec::at(start + 8).misc(1));
    assert_eq!(symbols(&place, &[], &bpf), ["bpf_prog_abcd_count"]);
    let mangled = stream().ksymbol(start, 0x80, 1, 0, "_ZN3net4poll17h0123456789abcdefE");
    let mangled = mangled.at(2).sample(SampleSpec::at(start + 8).misc(1));
    assert_eq!(
        symbols(&place, &[], &mangled),
        ["_ZN3net4poll17h0123456789abcdefE"],
        "it need not be a mangled name"
    );
    assert_eq!(symbols(&place, &["--demangle-kernel"], &mangled), ["net::poll"]);
}

#[test]
fn jit_code_is_named_by_a_map_or_a_dump() {
    let place = Place::new();
    let anon = |stream: Stream| {
        stream.map("//anon", BASE, 0x1000, 0).at(2).sample(SampleSpec::at(BASE + 0x20))
    };
    place.put("root/tmp/perf-7.map", format!("{BASE:x} 40 Interpreter\n"));
    let words = ["--symfs", &place.at("root").display().to_string()];
    assert_eq!(symbols(&place, &words, &anon(stream())), ["Interpreter"]);

    let mut dump: Vec<u8> = [0x4a69_5444_u32, 1, 40, 62, 0, 7, 0, 0, 0, 0]
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    let name = b"LazyCompile:f\0";
    let size = 16 + 16 + 24 + u32::try_from(name.len()).unwrap();
    dump.extend([0, size, 0, 0, 7, 7, 0, 0].iter().flat_map(|word| word.to_ne_bytes()));
    dump.extend([BASE, 0x40, 0].iter().flat_map(|word| word.to_ne_bytes()));
    dump.extend(name);
    let path = place.put("jit-7.dump", dump);
    // The mapping of the dump comes after the samples in its code.
    let jit = mapped_at(anon(stream()), &path, 0x50_0000);
    let names = symbols(&place, &[], &jit);
    assert!(names == ["LazyCompile:f"] || fs::exists("/tmp/perf-7.map").unwrap(), "{names:?}");
}

#[test]
fn only_names_at_addresses_of_replaced_code_are_a_judgement() {
    let place = Place::new();
    let mut dump: Vec<u8> = [0x4a69_5444_u32, 1, 40, 62, 0, 8, 0, 0, 0, 0]
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    for (start, name) in [(BASE, "first\0"), (BASE + 0x200, "alone\0"), (BASE, "second\0")] {
        let size = 16 + 16 + 24 + u32::try_from(name.len()).unwrap();
        dump.extend([0, size, 0, 0, 8, 8, 0, 0].iter().flat_map(|word| word.to_ne_bytes()));
        dump.extend([start, 0x40, 0].iter().flat_map(|word| word.to_ne_bytes()));
        dump.extend(name.as_bytes());
    }
    let path = place.put("jit-8.dump", dump);
    let mut recorded = mapped_at(stream().map("//anon", BASE, 0x1000, 0), &path, 0x50_0000);
    for (time, address) in (2..).zip([BASE, BASE + 8, BASE + 0x200, BASE + 0x208, BASE + 0x210]) {
        recorded = recorded.at(time).sample(SampleSpec::at(address));
    }
    let warnings = |keys: &str| {
        let answer = parsed(rep_of(&place, &["--json", "-s", keys], &recorded.file()));
        let judged =
            list(&answer["warnings"]).iter().filter(|warning| warning["code"] == "judged-names");
        judged.map(|warning| warning["message"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = warnings("sym");
    assert!(
        all.len() == 1 && all[0].starts_with("the functions of 2 of 5 samples are a judgement"),
        "{all:?}"
    );
    assert_eq!(warnings("dso"), [""; 0], "no name is shown");
}

#[test]
fn names_are_demangled_as_far_as_asked() {
    let Some(place) = Place::with("g++") else { return };
    let text = "namespace a { __attribute__((noinline)) int f(int x) { return x; } } int main() { \
                return a::f(1); }";
    let program = place.compiled("g++ -O1", ("p.cc", text), "cc");
    let (offset, _) = function(&program, "_ZN1a1fEi");
    let recorded = sampled(stream(), &program, offset);
    for (words, name) in [
        (&["--no-demangle"][..], "_ZN1a1fEi"),
        (&["--demangle=no"], "_ZN1a1fEi"),
        (&[], "a::f"),
        (&["--demangle"], "a::f"),
        (&["--demangle", "normal"], "a::f"),
        (&["--demangle", "full"], "a::f(int)"),
        (&["--demangle=full"], "a::f(int)"),
    ] {
        assert_eq!(symbols(&place, words, &recorded), [name], "{words:?}");
    }
}
