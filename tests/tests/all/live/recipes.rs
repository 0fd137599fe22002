//! The recipes of `report/docs/ci.md`, run as they are written.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use recrep_tests::needs;
use recrep_tests::programs::{programs, workspace};
use tempfile::TempDir;

/// A program with a function that takes as many turns as `TURNS`, and others.
const APP: &str = "
volatile unsigned long sum;
__attribute__((noinline)) void work(void) { for (long i = 0; i < TURNS; i++) sum += i; }
__attribute__((noinline)) void rest(void) { for (long i = 0; i < 300; i++) sum ^= i; }
__attribute__((noinline)) void more(void) { for (long i = 0; i < 200; i++) sum *= 3; }
int main(void) { for (int i = 0; i < 150000; i++) { work(); rest(); more(); } }
";

/// A repository with the program, a branch `fast` and a branch `slow` that is two commits ahead.
struct Repository {
    dir: TempDir,
}

impl Repository {
    fn new() -> Self {
        let repository = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(repository.path()).unwrap();
        let write = |name: &str, text: &str| fs::write(repository.path().join(name), text).unwrap();
        write("Makefile", "app: app.c\n\tcc -O1 -o app app.c\n");
        write("app.c", &APP.replace("TURNS", "500"));
        write("gate.toml", &block("gate.toml", 0));
        write(".gitignore", "app\n*.data\nbase\n");
        repository.shell("git init -q -b fast && git add -A && git commit -q -m fast");
        repository.shell("git checkout -q -b slow && touch note && git add -A && git commit -qm n");
        write("app.c", &APP.replace("TURNS", "1500"));
        repository.shell("git commit -qam slow && touch more && git add -A && git commit -qm m");
        repository
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("repository")
    }

    /// Runs lines of the shell in the repository, with `rec` and `rep` in `$PATH`.
    fn run(&self, lines: &str, args: &[&str]) -> Output {
        let tools = self.dir.path().join("tools");
        if !tools.exists() {
            fs::create_dir(&tools).unwrap();
            std::os::unix::fs::symlink(&programs().rec, tools.join("rec")).unwrap();
            std::os::unix::fs::symlink(&programs().rep, tools.join("rep")).unwrap();
            // The machine's settings stay as they are.
            fs::write(tools.join("sudo"), "#!/bin/sh\nexit 0\n").unwrap();
            let all = fs::Permissions::from_mode(0o755);
            fs::set_permissions(tools.join("sudo"), all).unwrap();
        }
        let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("sh");
        command.args(["-c", lines, "step"]).args(args).current_dir(self.path()).env("PATH", path);
        for of in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{of}_NAME"), "a")
                .env(format!("GIT_{of}_EMAIL"), "a@b.example");
        }
        command.env("GITHUB_BASE_REF", "fast").env("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "fast");
        command.env("GITHUB_STEP_SUMMARY", self.dir.path().join("summary"));
        command.env("XDG_CACHE_HOME", self.dir.path().join("cache"));
        command.output().unwrap()
    }

    #[track_caller]
    fn shell(&self, lines: &str) {
        let output = self.run(lines, &[]);
        assert!(output.status.success(), "{lines}: {}", said(&output));
    }

    /// Makes a clone's names of the branches.
    fn clone_itself(&self) {
        self.shell("git remote add origin . && git fetch -q origin");
    }
}

fn said(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}\n{}", output.status, text(&output.stdout), text(&output.stderr))
}

fn recipes() -> String {
    fs::read_to_string(workspace().join("report/docs/ci.md")).unwrap()
}

/// Returns the code block after a word of the recipes, and so many others.
fn block(after: &str, skipped: usize) -> String {
    let text = recipes();
    let (_, rest) = text.split_once(&format!("{after}`, ")).unwrap_or_else(|| {
        text.split_once(&format!("## {after}\n")).unwrap_or_else(|| panic!("no {after}"))
    });
    rest.split("```").nth(1 + 2 * skipped).unwrap().split_once('\n').unwrap().1.to_owned()
}

/// Returns the lines of a job's steps: what stands behind `run: |` or `- ` below `script:`.
fn steps(job: &str) -> String {
    let mut lines = Vec::new();
    let (mut depth, mut is_script) = (None, false);
    for line in job.lines() {
        let indent = line.len() - line.trim_start().len();
        let text = line.trim();
        match depth {
            Some(of_step) if indent > of_step && !text.is_empty() => {
                lines.push(text.strip_prefix("- ").filter(|_| is_script).unwrap_or(text));
                continue;
            }
            _ => depth = None,
        }
        is_script = text == "script:";
        if is_script || text.ends_with("run: |") {
            depth = Some(indent);
        }
    }
    assert!(lines.len() > 4, "{job}");
    format!("set -e\n{}", lines.join("\n"))
}

/// Returns whether recipes can be run here.
fn can_run() -> bool {
    needs::perf_events() && needs::commands("cc make git")
}

#[track_caller]
fn assert_broken(output: &Output) {
    assert_eq!(output.status.code(), Some(3), "{}", said(output));
    assert!(said(output).contains("work"), "{}", said(output));
}

#[test]
fn a_step_of_the_shell() {
    if !can_run() {
        return;
    }
    let repository = Repository::new();
    assert_broken(&repository.run(&block("A step of the shell", 0), &["fast"]));
}

#[test]
fn a_job_of_github() {
    if !can_run() {
        return;
    }
    let repository = Repository::new();
    repository.clone_itself();
    let output = repository.run(&steps(&block("GitHub Actions", 0)), &[]);
    assert_broken(&output);
    let annotations = String::from_utf8(output.stdout).unwrap();
    assert!(annotations.lines().any(|line| line.starts_with("::error ")), "{annotations}");
    let summary = fs::read_to_string(repository.dir.path().join("summary")).unwrap();
    assert!(summary.contains("| `work`"), "{summary}");
}

#[test]
fn a_job_of_gitlab() {
    if !can_run() {
        return;
    }
    let repository = Repository::new();
    repository.clone_itself();
    let output = repository.run(&steps(&block("GitLab", 0)), &[]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let report = fs::read_to_string(repository.path().join("gate.xml")).unwrap();
    assert!(report.starts_with("<?xml") && report.contains("<failure"), "{report}");
}

#[test]
fn a_nightly_baseline() {
    if !can_run() {
        return;
    }
    let repository = Repository::new();
    repository.shell("git checkout -q fast");
    repository.shell(&block("A nightly baseline", 0));
    repository.shell("rm *.data app && git checkout -q slow");
    assert_broken(&repository.run(&block("A nightly baseline", 1), &[]));
}

#[test]
fn a_bisection() {
    if !can_run() {
        return;
    }
    let repository = Repository::new();
    repository.shell("git checkout -q fast && make -s && mkdir ../good && mv app ../good/");
    fs::write(repository.dir.path().join("bisect.sh"), block("bisect.sh", 0)).unwrap();
    repository.shell("git bisect start slow fast");
    let output = repository.run("git bisect run sh ../bisect.sh", &[]);
    let text = said(&output);
    assert!(output.status.success() && text.contains("is the first bad commit"), "{text}");
    assert!(first_bad(&repository.path()).contains("slow"), "{text}");
}

/// Returns the commit that a bisection found.
fn first_bad(repository: &Path) -> String {
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%s", "refs/bisect/bad"]).current_dir(repository);
    String::from_utf8(git.output().unwrap().stdout).unwrap()
}

/// What `rep diff` advises where it cannot tell.
#[test]
fn the_printed_loop() {
    if !can_run() {
        return;
    }
    let repository = Repository::new();
    repository.shell(
        "make -s && mkdir new base && mv app new/ && git checkout -q fast && make -s && mv app base/
        for side in base new; do rec -q -e cpu-clock -o $side.data -- ./$side/app; done",
    );
    let output = repository.run("rep diff base.data new.data", &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("TOO FEW SAMPLES"), "{text}");
    let (_, advice) = text.split_once("To record in turn:\n").unwrap();
    let advice: Vec<&str> = advice.lines().take(2).collect();
    let output = repository.run(&advice.join("\n"), &[]);
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("recorded in turn") && text.contains("CHANGED"), "{text}");
}
