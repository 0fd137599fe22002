//! Signs that a recording shows less than it could: interpreters, and user stacks that end before
//! they begin.

use std::os::unix::fs::PermissionsExt as _;

use recrep_tests::record::record;

use super::*;

/// Samples of a program: `whole` whose stacks begin at main, `broken` whose stacks begin at work.
fn stacks(whole: u64, broken: u64) -> Stream {
    let mut stream = stream(Event::new("cycles"));
    for number in 0..whole + broken {
        let chain: &[u64] = match number < whole {
            true => &[context::KERNEL, KERNEL, context::USER, PARSE, WORK, MAIN],
            false => &[context::USER, PARSE, WORK],
        };
        stream = stream.at(20 + number).sample(SampleSpec::at(chain[1]).callchain(chain));
    }
    // The kernel's own samples say nothing about user stacks.
    let kernel = [context::KERNEL, KERNEL];
    (0..500)
        .fold(stream, |stream, _| stream.sample(SampleSpec::at(KERNEL).misc(1).callchain(&kernel)))
}

/// Returns the hints in the JSON of a report, code and message.
fn hints(place: &Place, words: &str) -> Vec<(String, String)> {
    let answer = parsed(place.rep(&format!("--json {words}")));
    let of = |warning: &Value, name: &str| warning[name].as_str().unwrap().to_owned();
    let warnings = list(&answer["warnings"])
        .iter()
        .map(|warning| (of(warning, "code"), of(warning, "message")));
    warnings.filter(|(code, _)| code == "broken-stacks" || code == "interpreter").collect()
}

#[test]
fn stacks_that_do_not_reach_their_start_are_told_by_program() {
    let place = Place::of(&stacks(60, 40));
    let message = "40.0% of the user stacks do not reach the start of their program (app \
                   40.0%), so callers are missing: code without frame pointers; record with rec \
                   -g (perf: --call-graph dwarf), or build with -fno-omit-frame-pointer (Rust: \
                   -C force-frame-pointers)";
    assert_eq!(hints(&place, "--children"), [("broken-stacks".to_owned(), message.to_owned())]);
    let shown = place.command("").output().unwrap();
    let said = String::from_utf8(shown.stderr).unwrap();
    assert!(said.contains(&format!("rep: hint: {message}\n")), "{said}");
    // Nothing is said where callchains are not counted, or cut by the user.
    assert_eq!(hints(&place, "-s comm"), []);
    assert_eq!(hints(&place, "--children --max-stack 1"), []);
    // The programs are not known where rows do not have them.
    let (_, of_symbols) = hints(&place, "--children -s symbol").remove(0);
    assert!(of_symbols.contains("start of their program, so callers"), "{of_symbols}");
}

/// Returns the programs with broken stacks in the JSON of a report.
fn broken(place: &Place, words: &str) -> Value {
    parsed(place.rep(&format!("--json {words}")))["broken_stacks"].take()
}

#[test]
fn programs_with_broken_stacks_are_listed() {
    let remedy = "code without frame pointers; record with rec -g (perf: --call-graph dwarf), or build \
                  with -fno-omit-frame-pointer (Rust: -C force-frame-pointers)";
    let of = |stacks: u64, broken: u64| serde_json::json!({ "stacks": stacks, "broken": broken, "cut": 0, "remedy": remedy });
    let mut of_program = of(100, 4);
    of_program["program"] = "app".into();
    // A few are no reason for a hint, but counted.
    let place = Place::of(&stacks(96, 4));
    assert_eq!(broken(&place, "--children"), Value::from(vec![of_program.clone()]));
    assert_eq!(hints(&place, "--children"), []);
    assert_eq!(broken(&place, "--children -s tid,symbol"), Value::from(vec![of_program]));
    assert_eq!(broken(&place, "--children -s symbol"), Value::from(vec![of(100, 4)]));
    // None are broken; or nobody looked.
    assert_eq!(broken(&Place::of(&stacks(30, 0)), "--children"), Value::from(vec![0; 0]));
    for words in ["-s comm", "--children --max-stack 1"] {
        assert_eq!(broken(&place, words), Value::from(vec![0; 0]), "{words}");
    }
    // Stacks of two files are those of both.
    place.put("other.data", fs::read(place.at("x.data")).unwrap());
    let both = broken(&place, &format!("--children {}", place.at("other.data").display()));
    assert_eq!([&both[0]["stacks"], &both[0]["broken"]], [&200, &8]);
}

#[test]
fn stacks_are_cut_where_the_recording_says() {
    for limit in [20_u16, 0] {
        let frames = if limit == 0 { 127 } else { usize::from(limit) };
        let long: Vec<u64> =
            std::iter::once(context::USER).chain(std::iter::repeat_n(WORK, frames)).collect();
        let event = Event::new("cycles").with(|attr| attr.sample_max_stack = limit);
        let cut = (0..30)
            .fold(stream(event), |stream, _| stream.sample(SampleSpec::at(WORK).callchain(&long)));
        let broken = broken(&Place::of(&cut), "--children");
        assert_eq!([&broken[0]["broken"], &broken[0]["cut"]], [&30, &30], "{broken}");
        let remedy = broken[0]["remedy"].as_str().unwrap();
        assert!(remedy.contains(&format!("are cut at {frames} frames")), "{remedy}");
    }
}

#[test]
fn a_few_broken_stacks_are_usual() {
    assert_eq!(hints(&Place::of(&stacks(91, 9)), "--children"), []);
    assert_eq!(hints(&Place::of(&stacks(0, 19)), "--children"), [], "too few to mean anything");
    assert_eq!(hints(&Place::of(&stacks(0, 0)), "--children"), []);
}

#[test]
fn the_remedy_depends_on_how_stacks_were_recorded() {
    let long: Vec<u64> =
        std::iter::once(context::USER).chain(std::iter::repeat_n(WORK, 127)).collect();
    let cut = (0..30).fold(stream(Event::new("cycles")), |stream, _| {
        stream.sample(SampleSpec::at(WORK).callchain(&long))
    });
    let (_, message) = hints(&Place::of(&cut), "--children").remove(0);
    assert!(message.contains("100.0% of these are cut at 127 frames"), "{message}");
    let lbr = Event::new("cycles").branches(BranchSampleType::USER | BranchSampleType::CALL_STACK);
    let chain = [context::USER, PARSE, WORK];
    let lbr = (0..30)
        .fold(stream(lbr), |stream, _| stream.sample(SampleSpec::at(PARSE).callchain(&chain)));
    let (_, message) = hints(&Place::of(&lbr), "--children").remove(0);
    assert!(message.contains("the hardware keeps the innermost calls only"), "{message}");
}

/// Samples of a program whose functions a map names: half in the interpreter.
fn interpreted(interpreter: &str, more: &str) -> Place {
    let place = Place::of(&(0..40).fold(stream(Event::new("cycles")), |stream, number| {
        let at = if number % 2 == 0 { PARSE } else { WORK };
        stream.sample(SampleSpec::at(at).callchain(&[context::USER, at, MAIN]))
    }));
    place.put(
        "root/tmp/perf-7.map",
        format!("{MAIN:x} 10 main\n{WORK:x} 10 {more}\n{PARSE:x} 10 {interpreter}\n"),
    );
    place
}

#[test]
fn interpreters_have_a_remedy() {
    for (function, remedy) in [
        ("_PyEval_EvalFrameDefault", "python3 -X perf"),
        ("_PyEval_EvalFrameDefault.cold", "python3 -X perf"),
        (
            "Builtins_InterpreterEntryTrampoline",
            "node --perf-basic-prof --interpreted-frames-native-stack",
        ),
        ("Interpreter", "record after the start"),
        ("vm_exec_core", "--yjit-perf"),
        ("Perl_runops_standard", "Devel::NYTProf"),
        ("execute_ex", "Excimer"),
        ("luaV_execute", "debug.sethook"),
    ] {
        let [(code, message)] = &hints(&interpreted(function, "other"), "")[..] else {
            panic!("{function}")
        };
        assert_eq!(code, "interpreter");
        assert!(
            message.starts_with("50.0% of the samples are in ") && message.contains(remedy),
            "{message}"
        );
    }
    assert_eq!(hints(&interpreted("my_Interpreter", "other"), ""), []);
    // With -X perf, functions have names.
    assert_eq!(
        hints(&interpreted("_PyEval_EvalFrameDefault", "py::run:/app.py"), "--children"),
        []
    );
    // They are not looked for where no functions are shown.
    assert_eq!(hints(&interpreted("_PyEval_EvalFrameDefault", "other"), "-s comm"), []);
}

#[test]
fn code_of_a_jit_without_names_has_a_remedy() {
    let place = interpreted("run", "other");
    let said = || {
        let shown = place.command("").output().unwrap();
        String::from_utf8(shown.stderr).unwrap()
    };
    assert!(!said().contains("without names"), "{}", said());
    // The map lacks a function that has half of the samples.
    place.put("root/tmp/perf-7.map", format!("{MAIN:x} 10 main\n{WORK:x} 10 work\n"));
    let hint = "rep: hint: 50.0% of the samples are in code that a JIT made, without names: ";
    assert!(said().contains(hint), "{}", said());
    fs::remove_file(place.at("root/tmp/perf-7.map")).unwrap();
    assert!(said().contains("100.0% of the samples are in code that a JIT made"), "{}", said());
}

/// Tests that record.
mod live {
    use super::*;

    #[test]
    fn a_program_without_frame_pointers_is_told_of() {
        if !needs::perf_events() || !needs::commands("cc") {
            return;
        }
        let place = Place::new();
        let source = "
            #include <time.h>
            volatile unsigned long sink;
            __attribute__((noinline)) static void leaf(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i * n; }
            __attribute__((noinline)) static void branch(int depth) {
                volatile unsigned long here[4] = {1, 2, 3, 4};
                if (depth > 0) branch(depth - 1); else leaf(20000);
                sink += here[depth & 3];
            }
            int main(void) {
                clock_t end = clock() + CLOCKS_PER_SEC / 2;
                while (clock() < end) branch(8);
                return 0;
            }";
        let source = place.put("app.c", source);
        for (flag, is_told) in [("-fomit-frame-pointer", true), ("-fno-omit-frame-pointer", false)]
        {
            let app = place.at(&format!("app{flag}"));
            tool(&format!("cc -O1 -fno-optimize-sibling-calls {flag} -o"), &[&app, &source]);
            assert!(app.metadata().unwrap().permissions().mode() & 0o100 != 0);
            let file = place.at("app.data");
            record(&file, "-e cpu-clock:u --call-graph fp", &[app.to_str().unwrap().to_owned()]);
            let answer = parsed(run_json(rep().args(["--json", "--children"]).arg(&file)));
            let has = codes(&answer).contains(&"broken-stacks");
            let samples = answer["events"][0]["samples"].as_u64().unwrap();
            assert!(samples < 20 || has == is_told, "{flag}: {answer}");
            let broken = &answer["broken_stacks"][0];
            let number = |name: &str| broken[name].as_u64().unwrap_or(0);
            assert!(!is_told || number("stacks") == samples, "{flag}: {answer}");
            let most = if is_told { samples } else { samples / 10 };
            assert!(
                number("broken") <= most && (!is_told || number("broken") * 2 > most),
                "{answer}"
            );
            assert_eq!(number("cut"), 0, "{flag}: {answer}");
        }
        // Its stack is deeper than the kernel follows it.
        let (app, file) = (place.at("deep"), place.at("deep.data"));
        let flags = "-O1 -fno-optimize-sibling-calls -fno-omit-frame-pointer";
        let deep = fs::read_to_string(&source).unwrap().replace("branch(8)", "branch(400)");
        let source = place.put("deep.c", deep);
        tool(&format!("cc {flags} -o"), &[&app, &source]);
        record(&file, "-e cpu-clock:u --call-graph fp", &[app.to_str().unwrap().to_owned()]);
        let answer = parsed(run_json(rep().args(["--json", "--children"]).arg(&file)));
        let [broken] = list(&answer["broken_stacks"]) else { panic!("{answer}") };
        let number = |name: &str| broken[name].as_u64().unwrap();
        assert_eq!(broken["program"], "deep");
        // Some are taken on the way up or down.
        assert!(number("cut") * 10 > number("stacks") * 8, "{broken}");
        assert!(number("broken") - number("cut") <= number("stacks") / 20, "{broken}");
        assert!(broken["remedy"].as_str().unwrap().contains("cut at 127 frames"), "{answer}");
    }
}
