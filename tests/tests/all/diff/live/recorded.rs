//! A program of which one function takes twice as long in one build, recorded by `rec`.

use std::path::{Path, PathBuf};
use std::process::Command;

use recrep_tests::needs;
use recrep_tests::programs::rep;
use recrep_tests::record::record;
use recrep_tests::run::run;
use serde_json::Value;

const PROGRAM: &str = r#"
#define WORK(name, turns) \
    __attribute__((noinline)) static unsigned name(unsigned x) { \
        for (volatile int i = 0; i < (turns); i++) x = x * 1664525u + 1013904223u; \
        return x; \
    }
WORK(steady, 600000)
WORK(changed, 300000 * TIMES)
WORK(small, 100000)
WORK(smaller, 80000)
WORK(third, 90000)
WORK(fourth, 70000)
int main(void) {
    unsigned x = 1;
    for (int i = 0; i < 60; i++)
        x = small(smaller(third(fourth(steady(changed(x))))));
    return x == 7;
}
"#;

/// Builds the program, whose function does so many times the work.
fn built(dir: &Path, times: u32) -> PathBuf {
    let (source, program) = (dir.join("app.c"), dir.join(times.to_string()).join("app"));
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::write(&source, PROGRAM).unwrap();
    let define = format!("-DTIMES={times}");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-g0", &define, "-o"]).arg(&program).arg(&source);
    run(&mut compiler).expect(0);
    program
}

#[test]
fn a_function_that_takes_twice_as_long_is_found() {
    if !needs::perf_events() || !needs::commands("cc") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let programs = [1, 2].map(|times| built(dir.path(), times));
    let mut files = [Vec::new(), Vec::new()];
    for turn in 0..5 {
        for (side, program) in programs.iter().enumerate() {
            let file = dir.path().join(format!("{side}.{turn}.data"));
            let command = [program.to_str().unwrap().to_owned()];
            record(&file, "-e cpu-clock -F 2000", &command);
            files[side].push(file);
        }
    }
    let [base, new] = &files;
    let diff = |options: &[&str], code: i32| {
        let mut command = rep();
        command.arg("diff").args(options).args(base).arg("--").args(new);
        run(&mut command).expect(code)
    };
    let json: Value = serde_json::from_slice(&diff(&["--json"], 0).stdout).unwrap();
    assert_eq!(json["in_turn"], true, "{json}");
    assert_eq!(json["verdict"], "changed", "{json}");
    let rows = json["events"][0]["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["key"]["symbol"] == "changed").unwrap();
    let change = &row["change"];
    assert_eq!(change["significant"], true, "{row}");
    let (low, high) = (change["low"].as_f64().unwrap(), change["high"].as_f64().unwrap());
    assert!(low > 0.3 && high < 3.0, "{row}");
    diff(&["--fail-if", "delta(self, changed) > 10%"], 3);
    diff(&["--fail-if", "delta(self, changed) > 900%"], 0);
}
