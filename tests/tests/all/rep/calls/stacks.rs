//! Samples of events that copy stacks, of which the recorder may have unwound some: whole chains,
//! chains that it cut short, stacks that it left to the reader, and what only a kernel writes: a
//! chain and a stack in one sample.

use recrep_format::feature::{ChainCause, CutChains, HeaderString, UnwoundChains};
use recrep_format::wire::List;

use super::*;

/// Registers as a sample has them: frame pointer, stack pointer, instruction pointer.
const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
const STACK: u64 = 0x7000;

fn copying() -> Event {
    let fields = SampleType::CALLCHAIN | SampleType::REGS_USER | SampleType::STACK_USER;
    Event::new("cycles").sampling(fields).with(|attr| {
        attr.sample_regs_user = REGISTERS;
        attr.sample_stack_user = 64;
    })
}

/// Returns a stack of which nothing is known but these words.
fn stack(words: &[(u64, u64)]) -> Vec<u8> {
    let mut all = [0_u64; 8];
    for (address, word) in words {
        all[usize::try_from((address - STACK) / 8).unwrap()] = *word;
    }
    all.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn warnings(place: &Place) -> Vec<(String, String)> {
    let answer = parsed(place.rep("--json --children"));
    let text = |of: &Value| of.as_str().unwrap().to_owned();
    let of = |warning: &Value| (text(&warning["code"]), text(&warning["message"]));
    list(&answer["warnings"]).iter().map(of).collect()
}

#[test]
fn chains_that_the_recorder_made_are_believed() {
    let whole = [context::USER, PARSE, WORK + 4, MAIN + 4];
    let cut = [context::USER, PARSE + 1, WORK + 4];
    let kernel = [context::KERNEL, KERNEL, context::USER, WORK + 1, MAIN + 4];
    let place = Place::of(
        &stream(copying())
            .sample(SampleSpec::at(PARSE).callchain(&whole))
            .sample(SampleSpec::at(PARSE + 1).callchain(&cut).regs_user(&[0, STACK, PARSE + 1]))
            .sample(SampleSpec::at(KERNEL).misc(1).callchain(&kernel)),
    );
    let folded = "app;[callers unknown];work;parse 1\napp;main;work;entry 1\n\
                  app;main;work;parse 1\n";
    assert_eq!(place.rep("--format folded"), folded);
    let recorded = "app;main;work;entry 1\napp;main;work;parse 1\napp;work;parse 1\n";
    assert_eq!(place.rep("--format folded --no-check-callchains"), recorded);
    assert_eq!(place.listed(""), ["main|work|parse|", "work|parse|", "main|work|entry|"]);
    let message = "1 of 3 callchains (33.3%) lack outer frames: their recorder does not say why";
    assert_eq!(warnings(&place), [("incomplete-callchain".to_owned(), message.to_owned())]);
    // In tables, they are a row.
    let rows = place.children("", "sym");
    assert!(rows.contains(&("[.] [callers unknown]".to_owned(), 1, 0)), "{rows:?}");
}

#[test]
fn a_recording_says_why_its_callchains_are_broken() {
    let cut = [context::USER, PARSE + 1, WORK + 4];
    let cause = CutChains {
        cause: ChainCause::NO_RULES,
        module: HeaderString::new("jit"),
        limit: 0,
        count: 1,
    };
    let mut all = stream(copying()).feature(&UnwoundChains { whole: 3, cut: List(vec![cause]) });
    for _ in 0..30 {
        let spec = SampleSpec::at(PARSE + 1).callchain(&cut).regs_user(&[0, STACK, PARSE + 1]);
        all = all.sample(spec);
    }
    let place = Place::of(&all);
    let reason = "no unwind rules (jit 25.0%; code of JITs needs frame pointers, or a jitdump)";
    let told = warnings(&place);
    let texts: Vec<&str> = told.iter().map(|(_, message)| message.as_str()).collect();
    let expected = format!("30 of 30 callchains (100.0%) lack outer frames: {reason}");
    assert!(texts.contains(&expected.as_str()), "{texts:?}");
    // The hint at stacks that do not reach the start of their program has the same remedy.
    let hint = texts.iter().find(|text| text.contains("do not reach the start"));
    assert!(hint.is_some_and(|hint| hint.ends_with(reason)), "{texts:?}");
    assert!(texts.iter().all(|text| !text.contains("copies")), "{texts:?}");
}

/// A function that does not return has no code after its call: there begins the next function.
#[test]
fn callers_of_such_chains_are_those_whose_calls_are_before_the_address() {
    let place = Place::of(&stream(copying()).sample(SampleSpec::at(MAIN).callchain(&[
        context::USER,
        MAIN,
        PARSE,
        WORK + 4,
    ])));
    assert_eq!(place.rep("--format folded"), "app;work;work;main 1\n");
    assert_eq!(place.rep("--format folded --no-check-callchains"), "app;work;parse;main 1\n");
}

#[test]
fn a_sample_with_registers_and_no_stack_has_its_own_frame_once() {
    let sample = || SampleSpec::at(PARSE).regs_user(&[0, STACK, PARSE]);
    let place = Place::of(
        &stream(copying())
            .sample(sample().callchain(&[context::USER, PARSE]))
            .sample(sample().callchain(&[])),
    );
    assert_eq!(place.rep("--format folded"), "app;[callers unknown];parse 2\n");
    assert_eq!(place.rep("--format folded --no-check-callchains"), "app;parse 2\n");
    assert_eq!(place.listed(""), ["parse|"]);
}

/// The kernel followed frame pointers further than the copy reaches.
#[test]
fn a_chain_and_a_stack_are_joined() {
    let chain = [context::USER, PARSE, WORK + 4, MAIN + 4];
    let copied = stack(&[(STACK + 16, STACK + 4096), (STACK + 24, WORK + 4)]);
    let stopped = stack(&[(STACK + 16, 0), (STACK + 24, WORK + 4)]);
    let sample = || SampleSpec::at(PARSE).regs_user(&[STACK + 16, STACK, PARSE]).callchain(&chain);
    let place = Place::of(&stream(copying()).sample(sample().stack(&copied, 64)));
    // What calls main is beyond both, and of no interest.
    assert_eq!(place.rep("--format folded"), "app;main;work;parse 1\n");
    assert_eq!(place.listed(""), ["main|work|parse|"]);
    // What the copy says is right where the chain says something else.
    let place = Place::of(&stream(copying()).sample(sample().stack(&stopped, 64)));
    let folded = place.rep("--format folded");
    assert!(folded.contains("work;parse 1") && !folded.contains("main"), "{folded}");
}

/// Such a file may have all kinds of samples.
#[test]
fn stacks_that_the_recorder_left_are_unwound() {
    let copied = stack(&[
        (STACK + 16, STACK + 40),
        (STACK + 24, WORK + 4),
        (STACK + 40, 0),
        (STACK + 48, MAIN + 4),
    ]);
    let left = SampleSpec::at(KERNEL)
        .misc(1)
        .callchain(&[context::KERNEL, KERNEL])
        .regs_user(&[STACK + 16, STACK, PARSE])
        .stack(&copied, 64);
    let whole = SampleSpec::at(PARSE).callchain(&[context::USER, PARSE, WORK + 4, MAIN + 4]);
    let place = Place::of(&stream(copying()).sample(left).sample(whole));
    let folded = place.rep("--format folded");
    assert!(folded.contains("main;work;parse;entry 1\n"), "{folded}");
    assert!(folded.contains("app;main;work;parse 1\n"), "{folded}");
}
