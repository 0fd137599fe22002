//! Builds of one program that differ in names alone, recorded by `rec`.

use std::path::{Path, PathBuf};
use std::process::Command;

use recrep_tests::needs;
use recrep_tests::programs::rep;
use recrep_tests::record::record;
use recrep_tests::run::run;
use serde_json::{Value, json};

const PROGRAM: &str = r#"
#define APART __attribute__((noinline)) static
static volatile unsigned sum;
#define WORK(turns) for (unsigned i = 0; i < (turns) * 1000u; i++) sum = sum * 5 + i
#ifdef INLINED
static inline __attribute__((always_inline)) void escape(void) { WORK(200); }
#else
APART void escape(void) { WORK(200); }
#endif
APART void render(void) { WORK(100); escape(); }
APART void PARSE(void) { WORK(300); }
APART void scan(void) { WORK(150); }
APART void copy(void) { WORK(130); }
APART void fill(void) { WORK(120); }
int main(void) { for (int i = 0; i < 60; i++) { render(); PARSE(); scan(); copy(); fill(); } }
"#;

fn built(dir: &Path, name: &str, defines: &[&str]) -> PathBuf {
    let (source, program) = (dir.join("app.c"), dir.join(name).join("app"));
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::write(&source, PROGRAM).unwrap();
    run(Command::new("cc").args(["-O1", "-g0"]).args(defines).arg("-o").arg(&program).arg(&source))
        .expect(0);
    program
}

/// Returns the rows of a comparison of two builds, recorded in turn.
fn compared(defines: [&[&str]; 2], options: &str) -> Vec<Value> {
    let dir = tempfile::tempdir().unwrap();
    let programs =
        [("0", defines[0]), ("1", defines[1])].map(|(name, of)| built(dir.path(), name, of));
    let mut files = [Vec::new(), Vec::new()];
    for turn in 0..3 {
        for (side, program) in programs.iter().enumerate() {
            let file = dir.path().join(format!("{side}.{turn}.data"));
            record(&file, options, &[program.to_str().unwrap().to_owned()]);
            files[side].push(file);
        }
    }
    let mut command = rep();
    command.args(["diff", "--json"]).args(&files[0]).arg("--").args(&files[1]);
    let answer: Value = serde_json::from_slice(&run(&mut command).expect(0).stdout).unwrap();
    answer["events"][0]["rows"].as_array().unwrap().clone()
}

/// Returns the row of a function.
#[track_caller]
fn row<'r>(rows: &'r [Value], function: &str) -> &'r Value {
    let row = rows.iter().find(|row| row["key"]["symbol"] == function);
    row.unwrap_or_else(|| panic!("no row {function}: {rows:?}"))
}

#[test]
fn a_renamed_function_is_one_row() {
    if !needs::perf_events() || !needs::commands("cc") {
        return;
    }
    for options in ["-e cpu-clock:u -F 4000", "-e cpu-clock:u -F 4000 -g"] {
        let rows = compared([&["-DPARSE=parse"], &["-DPARSE=parse_input"]], options);
        let renamed = row(&rows, "parse_input");
        assert_eq!(renamed["names"], json!(["parse", "parse_input"]), "{renamed}");
        assert_eq!(renamed["joined"][0]["symbol"], "parse", "{renamed}");
        let change = renamed["change"]["relative"].as_f64().unwrap();
        assert!(change.abs() < 0.5, "{renamed}");
        assert!(rows.iter().all(|row| row["key"]["symbol"] != "parse"), "{rows:?}");
    }
}

#[test]
fn an_inlined_function_is_one_row_with_its_caller() {
    if !needs::perf_events() || !needs::commands("cc") {
        return;
    }
    let of = ["-DPARSE=parse", "-DINLINED"];
    for (sides, only) in [([&of[..1], &of[..]], "inlined"), ([&of[..], &of[..1]], "extracted")] {
        let rows = compared(sides, "-e cpu-clock:u -F 4000 -g");
        let render = row(&rows, "render");
        assert_eq!(render["joined"][0]["symbol"], "escape", "{only}: {render}");
        assert!(rows.iter().all(|row| row["key"]["symbol"] != "escape"), "{only}: {rows:?}");
    }
}
