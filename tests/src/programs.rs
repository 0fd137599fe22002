//! The programs under test, built by cargo itself.
//!
//! A test of one package cannot name the binaries of another (`CARGO_BIN_EXE_…` is for one's own),
//! so each test process asks cargo once to build the workspace's binaries and examples, into the
//! target directory and in the profile that it runs from itself, and reads from cargo's messages
//! where they are. After `cargo test --workspace` there is nothing left to build: the question
//! costs a fraction of a second.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde::Deserialize;

/// Paths of the programs.
#[derive(Debug)]
pub struct Programs {
    /// The recorder.
    pub rec: PathBuf,
    /// The reporter.
    pub rep: PathBuf,
    /// `fixtures/src/bin/workload`.
    pub workload: PathBuf,
    /// The directory that holds them, in the target directory.
    pub dir: PathBuf,
}

/// Paths of the examples of `recrep-format`.
#[derive(Debug)]
pub struct Examples {
    /// `format/examples/firefox.rs`.
    pub firefox: PathBuf,
    /// `format/examples/synthesize.rs`.
    pub synthesize: PathBuf,
    /// `format/examples/cut.rs`.
    pub cut: PathBuf,
}

const PROGRAMS: [&str; 3] = ["rec", "rep", "workload"];
const EXAMPLES: [&str; 3] = ["firefox", "synthesize", "cut"];

/// The programs, built at the first call of this process.
pub fn programs() -> &'static Programs {
    static BUILT: OnceLock<Programs> = OnceLock::new();
    BUILT.get_or_init(|| {
        let [rec, rep, workload] = built(PROGRAMS);
        Programs { rec, rep, workload, dir: profile_dir() }
    })
}

/// The examples, built at the first call of this process, which is a test.
pub fn examples() -> &'static Examples {
    static BUILT: OnceLock<Examples> = OnceLock::new();
    BUILT.get_or_init(|| {
        let [firefox, synthesize, cut] = built(EXAMPLES);
        Examples { firefox, synthesize, cut }
    })
}

/// `rec`, about to be given arguments.
pub fn rec() -> Command {
    let mut command = Command::new(&programs().rec);
    // What is kept is kept where no report looks: tests replace programs.
    command.env("XDG_CACHE_HOME", workspace().join("target/kept-by-tests"));
    command
}

/// `rep`, about to be given arguments.
pub fn rep() -> Command {
    Command::new(&programs().rep)
}

/// The command line of the workload: the program, then `args` split at spaces.
pub fn workload(args: &str) -> Vec<String> {
    let program = programs().workload.to_str().expect("the target directory's path is UTF-8");
    std::iter::once(program).chain(args.split_whitespace()).map(str::to_owned).collect()
}

/// The root of the workspace.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this package is in a workspace")
}

/// The parts of cargo's `compiler-artifact` message that are read here.
#[derive(Deserialize)]
struct Artifact {
    target: Target,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

/// Packages that the program that asks was built with, unless it is a test.
const PACKAGES: [&str; 4] = ["recrep-tests", "recrep-record", "recrep-report", "recrep-fixtures"];

/// What cargo is asked to build: always the same of all that `cargo test --workspace`, or
/// `cargo demo`, builds. Of another choice, the packages that it depends on have other features,
/// and are compiled again.
fn chosen() -> Vec<&'static str> {
    let exe = std::env::current_exe().expect("this process has a path");
    let is_test = exe.parent().is_some_and(|dir| dir.ends_with("deps"));
    let programs = PROGRAMS.iter().flat_map(|name| ["--bin", name]);
    if is_test {
        let examples = EXAMPLES.iter().flat_map(|name| ["--example", name]);
        ["--workspace"].into_iter().chain(programs).chain(examples).collect()
    } else {
        PACKAGES.iter().flat_map(|name| ["--package", name]).chain(programs).collect()
    }
}

/// The directory of this process's profile, in the target directory.
fn profile_dir() -> PathBuf {
    let exe = std::env::current_exe().expect("this process has a path");
    let dir = exe.parent().expect("an executable is in a directory");
    if dir.ends_with("deps") || dir.ends_with("examples") {
        dir.parent().expect("both are in a profile's directory").to_owned()
    } else {
        dir.to_owned()
    }
}

/// Builds, and returns where the executables with these names are.
fn built<const N: usize>(names: [&str; N]) -> [PathBuf; N] {
    let dir = profile_dir();
    let profile = match dir.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "build",
            "--quiet",
            "--message-format=json-render-diagnostics",
            "--profile",
            profile,
        ])
        .args(chosen())
        .arg("--target-dir")
        .arg(dir.parent().expect("a profile's directory is in the target directory"))
        .current_dir(workspace())
        .output()
        .expect("cargo can be run");
    assert!(
        output.status.success(),
        "cargo build failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let messages = String::from_utf8(output.stdout).expect("cargo's messages are UTF-8");
    names.map(|name| {
        let artifacts =
            messages.lines().filter_map(|line| serde_json::from_str::<Artifact>(line).ok());
        artifacts
            .filter(|artifact| artifact.target.name == name)
            .find_map(|artifact| artifact.executable)
            .unwrap_or_else(|| panic!("cargo built no executable {name:?}"))
    })
}
