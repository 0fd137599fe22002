//! `rep modules` explains each reason for samples without a function.

use super::*;

#[track_caller]
fn reason(module: &Value, code: &str) {
    assert_eq!(module["reason"]["code"], code, "{module:#}");
    assert!(module["reason"]["help"].as_str().is_some_and(|help| !help.is_empty()));
    assert_eq!(module["resolved"], 0);
}

#[test]
fn stripped_missing_and_different_files_are_explained() {
    let Some(place) = Place::with("gcc strip") else { return };
    let program = place.program("program", "");
    let (offset, _) = function(&program, "inner");
    let whole = sampled(stream(), &program, offset);
    let known = module(&place, &[], &whole, "program");
    assert_eq!((&known["resolved"], &known["reason"]), (&1.into(), &Value::Null), "{known:#}");
    let other =
        map_with_id(stream(), &program, &[9; 20]).at(2).sample(SampleSpec::at(BASE + offset));
    reason(&module(&place, &[], &other, "program"), "build-id-mismatch");
    tool("strip", &[&program]);
    let stripped = module(&place, &[], &whole, "program");
    reason(&stripped, "stripped");
    assert!(stripped["symbols"].as_u64().unwrap() > 0, "it has dynamic symbols");
    fs::remove_file(&program).unwrap();
    let missing = module(&place, &[], &whole, "program");
    reason(&missing, "missing");
    assert_eq!(missing["attempts"][0]["path"], program.to_str().unwrap());
}

#[test]
fn a_jit_without_a_map_and_unmapped_memory_are_explained() {
    let place = Place::new();
    let jit = stream().map("//anon", BASE, 0x1000, 0).at(2).sample(SampleSpec::at(BASE));
    // Higher than any process number, so there is no such map.
    let jit = jit
        .task(1 << 30, 1 << 30)
        .map("//anon", BASE, 0x1000, 0)
        .at(3)
        .sample(SampleSpec::at(BASE));
    reason(&module(&place, &[], &jit, "[JIT] tid 1073741824"), "jit-without-map");
    let nowhere = stream().at(2).sample(SampleSpec::at(BASE));
    reason(&module(&place, &[], &nowhere, "[unknown]"), "unmapped");
}

#[test]
fn a_kernel_that_hides_its_addresses_is_explained() {
    let place = Place::new();
    let hidden = place.put("kallsyms", "0000000000000000 T _text\n0000000000000000 t schedule\n");
    let start = 0xffff_ffff_8100_0000;
    let kernel =
        stream().kernel_map(start, 0x100_0000).at(2).sample(SampleSpec::at(start + 0x10).misc(1));
    let words = ["--kallsyms", hidden.to_str().unwrap()];
    reason(&module(&place, &words, &kernel, "[kernel.kallsyms]"), "kernel-restricted");
    let shown = place.put("kallsyms", "ffffffff81000000 T _text\nffffffff81000008 t schedule\n");
    let known =
        module(&place, &["--kallsyms", shown.to_str().unwrap()], &kernel, "[kernel.kallsyms]");
    assert_eq!(known["resolved"], 1, "{known:#}");
}

/// Entry code is labels of assembly, which have no sizes: each goes on to the next line of the list,
/// and none beyond the marks of its section.
#[test]
fn entry_code_of_the_kernel_is_named_by_its_own_labels() {
    let place = Place::new();
    let list = "ffffffff81000000 T _text\nffffffff81000000 T srso_untrain\n\
                ffffffff81000010 T __entry_text_start\nffffffff81000080 T entry_SYSCALL_64\n\
                ffffffff810000ba T entry_after_hwframe\nffffffff81000138 T __entry_text_end\n\
                ffffffff81000200 t start_text\n";
    let list = place.put("kallsyms", list);
    let words = ["--kallsyms", list.to_str().unwrap(), "--no-inferred"];
    let start = 0xffff_ffff_8100_0000;
    for (offset, name) in [
        (0x18, "0xffffffff81000018"),
        (0x80, "entry_SYSCALL_64"),
        (0xb9, "entry_SYSCALL_64"),
        (0xba, "entry_after_hwframe"),
        (0x137, "entry_after_hwframe"),
        (0x138, "0xffffffff81000138"),
        (0x200, "start_text"),
    ] {
        let kernel = stream().kernel_map(start, 0x100_0000);
        let kernel = kernel.at(2).sample(SampleSpec::at(start + offset).misc(1));
        assert_eq!(symbols(&place, &words, &kernel), [name], "{offset:#x}");
    }
}

#[test]
fn truncated_stacks_are_reported() {
    let place = Place::new();
    let event = Event::new("cycles:u").sampling(SampleType::STACK_USER | SampleType::CALLCHAIN);
    let spec = |used| SampleSpec::at(BASE).callchain(&[BASE]).stack(&[0; 64], used);
    let stream = Stream::new(Endian::NATIVE)
        .event(event.with(|attr| attr.sample_stack_user = 64))
        .task(7, 7)
        .at(1);
    let stream = stream.sample(spec(64)).sample(spec(40));
    let answer = parsed(rep(&place, &["modules", "--json"], &stream));
    assert_eq!(answer["stacks"]["copies"], 2);
    assert_eq!(answer["stacks"]["copies_truncated"], 1);
    assert_eq!(answer["truncated_stacks"]["code"], "truncated-stack");
    assert!(
        rep(&place, &["modules"], &stream)
            .contains("1 of 2 copied stacks (50.00%) are truncated at 64 bytes")
    );
}

#[test]
fn the_footer_names_modules_without_functions() {
    let place = Place::new();
    let missing = stream()
        .map("/no/such/lib.so", BASE, 0x1000, 0x5000)
        .at(2)
        .sample(SampleSpec::at(BASE + 0x10));
    let text = rep(&place, &["-s", "sym"], &missing);
    assert!(text.contains("[.] lib.so+0x5010"), "{text}");
    let footer = "# 100.0% of the samples have no function name: lib.so 100.0% (missing); why, and \
                  what helps: rep modules";
    assert!(text.contains(footer), "{text}");
}
