//! tracefs, the file system that describes tracepoints.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tracefs {
    root: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub name: String,
    /// C type.
    pub kind: String,
    /// Place in the raw data, in bytes.
    pub offset: usize,
}

/// Reason why a file of tracefs cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The file does not exist.
    Absent,
    /// This user may not read it.
    Forbidden,
}

impl Tracefs {
    pub(crate) fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// Finds a mounted tracefs: in the table of mounts, or at its usual path.
    pub(crate) fn find(mounts: &Path) -> Option<Self> {
        let table = fs::read_to_string(mounts).unwrap_or_default();
        let mounted = |kind: &str| {
            let lines =
                table.lines().map(|line| line.split(' ').skip(1).take(2).collect::<Vec<_>>());
            lines
                .filter_map(|words| if let [at, of] = words[..] { Some((at, of)) } else { None })
                .filter(|(_, of)| *of == kind)
                .map(|(at, _)| unescaped(at))
                .collect::<Vec<_>>()
        };
        // debugfs mounts tracefs automatically on the first access.
        let below_debugfs = mounted("debugfs").into_iter().map(|root| root.join("tracing"));
        let usual = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].map(PathBuf::from);
        let mut roots = mounted("tracefs").into_iter().chain(below_debugfs).chain(usual);
        // A directory that this user may not read is used, too; the error will explain that.
        roots.find(|root| exists(&root.join("events"))).map(Self::at)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn id(&self, system: &str, name: &str) -> Result<u64, Unreadable> {
        if [system, name].iter().any(|part| part.contains('/') || part.starts_with('.')) {
            return Err(Unreadable::Absent);
        }
        let text = fs::read_to_string(self.events().join(system).join(name).join("id"))
            .map_err(|e| why(&e))?;
        text.trim().parse().map_err(|_| Unreadable::Absent)
    }

    /// Returns the groups of tracepoints, sorted.
    pub(crate) fn systems(&self) -> Result<Vec<String>, Unreadable> {
        directories(&self.events())
    }

    /// Returns the tracepoints of a group, sorted. ftrace's own events are included, but have no
    /// `id` and cannot be counted.
    pub(crate) fn names(&self, system: &str) -> Result<Vec<String>, Unreadable> {
        directories(&self.events().join(system))
    }

    /// Returns the fields of a tracepoint, in order.
    pub(crate) fn fields(&self, system: &str, name: &str) -> Result<Vec<Field>, Unreadable> {
        let format = fs::read_to_string(self.events().join(system).join(name).join("format"))
            .map_err(|e| why(&e))?;
        Ok(format.lines().filter_map(field).collect())
    }

    fn events(&self) -> PathBuf {
        self.root.join("events")
    }
}

/// Parses `field:char prev_comm[16]; offset:8; …`. An array's length becomes part of its type.
fn field(line: &str) -> Option<Field> {
    let declared = line.trim_start().strip_prefix("field:")?.split(';').next()?;
    let (kind, name) = declared.rsplit_once(' ')?;
    let offset = line.split("offset:").nth(1)?.split(';').next()?.trim().parse().ok()?;
    let (name, length) = name.split_at(name.find('[').unwrap_or(name.len()));
    Some(Field { name: name.to_owned(), kind: format!("{kind}{length}"), offset })
}

fn exists(path: &Path) -> bool {
    path.try_exists().unwrap_or(true)
}

fn why(error: &std::io::Error) -> Unreadable {
    if error.kind() == ErrorKind::PermissionDenied {
        Unreadable::Forbidden
    } else {
        Unreadable::Absent
    }
}

fn directories(path: &Path) -> Result<Vec<String>, Unreadable> {
    let entries = fs::read_dir(path).map_err(|e| why(&e))?.flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut names: Vec<_> =
        directories.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    Ok(names)
}

/// Decodes a path of `/proc/mounts`, where space, tab, newline and backslash are octal escapes.
fn unescaped(path: &str) -> PathBuf {
    let plain = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    PathBuf::from(plain.iter().fold(path.to_owned(), |path, (from, to)| path.replace(from, to)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_found_where_it_is_mounted() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("my tracing");
        fs::create_dir_all(root.join("events/sched/sched_switch")).unwrap();
        fs::write(root.join("events/sched/sched_switch/id"), "372\n").unwrap();
        fs::write(root.join("events/sched/enable"), "0\n").unwrap();
        let mounts = dir.path().join("mounts");
        let escaped = root.to_str().unwrap().replace(' ', "\\040");
        fs::write(
            &mounts,
            format!("proc /proc proc rw 0 0\nnodev {escaped} tracefs rw,relatime 0 0\n"),
        )
        .unwrap();
        let tracefs = Tracefs::find(&mounts).unwrap();
        assert_eq!(tracefs.root(), root);
        assert_eq!(tracefs.id("sched", "sched_switch"), Ok(372));
        assert_eq!(tracefs.id("sched", "sched_swich"), Err(Unreadable::Absent));
        assert_eq!(tracefs.id("..", "sched_switch"), Err(Unreadable::Absent));
        assert_eq!(tracefs.systems(), Ok(vec!["sched".to_owned()]));
        let format = "name: x\n\tfield:unsigned short \
                      common_type;\toffset:0;\tsize:2;\n\tfield:char comm[16];\toffset:8;\n";
        fs::write(root.join("events/sched/sched_switch/format"), format).unwrap();
        let fields = tracefs.fields("sched", "sched_switch").unwrap();
        let shown: Vec<_> =
            fields.iter().map(|field| (&field.kind[..], &field.name[..], field.offset)).collect();
        assert_eq!(shown, [("unsigned short", "common_type", 0), ("char[16]", "comm", 8)]);
        assert_eq!(tracefs.names("sched"), Ok(vec!["sched_switch".to_owned()]));
    }
}
