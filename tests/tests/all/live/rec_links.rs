//! Root records into a directory where others plant links, as /tmp is: nothing but the recording's
//! own files is written to.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use recrep_tests::needs;
use recrep_tests::programs::{rec, workload};
use recrep_tests::run::{Outcome, run};

/// Whoever is neither root nor anybody here.
const OTHER: Option<u32> = Some(65534);

/// A directory that all may write to, and a file of root's elsewhere.
struct Trap {
    dir: tempfile::TempDir,
    elsewhere: tempfile::TempDir,
}

impl Trap {
    #[track_caller]
    fn new() -> Option<Trap> {
        if !needs::perf_events() || !needs::root() {
            return None;
        }
        let [dir, elsewhere] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        fs::set_permissions(dir.path(), Permissions::from_mode(0o1777)).unwrap();
        fs::write(elsewhere.path().join("victim"), "precious").unwrap();
        Some(Trap { dir, elsewhere })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn victim(&self) -> PathBuf {
        self.elsewhere.path().join("victim")
    }

    /// Somebody else's link to `to`.
    fn plant(&self, name: &str, to: &Path) {
        symlink(to, self.path(name)).unwrap();
        lchown(self.path(name), OTHER, OTHER).unwrap();
    }

    fn record(&self, args: &str) -> Outcome {
        let mut rec = rec();
        rec.args(["-e", "cpu-clock", "-F", "5000", "-m", "8"])
            .args(args.split_whitespace())
            .arg("--");
        run(rec.args(workload("hot --ms 200")).current_dir(self.dir.path()))
    }

    #[track_caller]
    fn assert_untouched(&self) {
        assert_eq!(fs::read_to_string(self.victim()).unwrap(), "precious");
        let names: Vec<_> = fs::read_dir(self.elsewhere.path())
            .unwrap()
            .map(|found| found.unwrap().file_name())
            .collect();
        assert_eq!(names, ["victim"]);
    }

    /// Root's own file, which nobody else may read.
    #[track_caller]
    fn assert_ours(&self, name: &str) {
        let found = fs::symlink_metadata(self.path(name)).unwrap();
        assert!(
            found.is_file() && found.uid() == 0 && found.mode() & 0o777 == 0o600,
            "{name}: {found:?}"
        );
    }
}

#[test]
fn a_planted_link_is_not_followed() {
    let Some(trap) = Trap::new() else { return };
    trap.plant("out.data", &trap.victim());
    trap.record("").expect(0);
    trap.assert_ours("out.data");
    trap.assert_untouched();
    trap.plant("dangling.data", &trap.elsewhere.path().join("made"));
    trap.record("-o dangling.data -z").expect(0);
    trap.assert_ours("dangling.data");
    trap.assert_untouched();
}

/// A link to a device that root may write to, a disk, say: not followed either, unless it is root's
/// own.
#[test]
fn a_planted_link_to_a_device_is_not_followed() {
    let Some(trap) = Trap::new() else { return };
    trap.plant("out.data", Path::new("/dev/null"));
    trap.record("").expect(0);
    trap.assert_ours("out.data");
    symlink("/dev/null", trap.path("mine")).unwrap();
    trap.record("-o mine").expect(0);
    assert!(fs::symlink_metadata(trap.path("mine")).unwrap().is_symlink());
    trap.record("-o /dev/null").expect(0);
}

/// The name that the file before gets is taken.
#[test]
fn a_planted_old_file_is_replaced_or_told() {
    let Some(trap) = Trap::new() else { return };
    fs::write(trap.path("out.data"), "before").unwrap();
    trap.plant("out.data.old", &trap.victim());
    trap.record("").expect(0);
    trap.assert_ours("out.data");
    assert_eq!(fs::read_to_string(trap.path("out.data.old")).unwrap(), "before");
    assert!(fs::symlink_metadata(trap.path("out.data.old")).unwrap().is_file());
    trap.assert_untouched();
    // A directory cannot be replaced; a link to one can.
    fs::create_dir(trap.path("x.data.old")).unwrap();
    chown(trap.path("x.data.old"), OTHER, OTHER).unwrap();
    fs::write(trap.path("x.data"), "before").unwrap();
    let outcome = trap.record("-o x.data").expect(125);
    assert!(
        outcome.stderr.contains("x.data.old") && outcome.stderr.contains("irectory"),
        "{}",
        outcome.stderr
    );
    assert_eq!(fs::read_to_string(trap.path("x.data")).unwrap(), "before");
    fs::write(trap.path("y.data"), "before").unwrap();
    trap.plant("y.data.old", trap.elsewhere.path());
    trap.record("-o y.data").expect(0);
    trap.assert_ours("y.data");
    trap.assert_untouched();
}

/// Each piece is made under the plain name first.
#[test]
fn pieces_follow_no_link() {
    let Some(trap) = Trap::new() else { return };
    trap.plant("out.data", &trap.victim());
    let outcome = trap.record("--switch-output=10K").expect(0);
    trap.assert_untouched();
    let lines = outcome.stderr.lines().filter(|line| line.contains(": recorded "));
    let names: Vec<_> =
        lines.map(|line| line.rsplit("; view: rep ").next().unwrap().to_owned()).collect();
    assert!(names.len() > 1, "{}", outcome.stderr);
    names.iter().for_each(|name| trap.assert_ours(name));
    trap.plant("t.data", &trap.elsewhere.path().join("made"));
    trap.record("--timestamp-filename -o t.data").expect(0);
    trap.assert_untouched();
}

/// A pipe of somebody else's would keep root waiting, or hear what is recorded.
#[test]
fn a_planted_pipe_is_refused() {
    let Some(trap) = Trap::new() else { return };
    run(std::process::Command::new("mkfifo").arg(trap.path("out.data"))).expect(0);
    chown(trap.path("out.data"), OTHER, OTHER).unwrap();
    let outcome = trap.record("").expect(125);
    assert!(outcome.stderr.contains("a pipe"), "{}", outcome.stderr);
}
