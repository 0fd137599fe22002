//! The line of tracefs that defines a probe: `p:GROUP/NAME FILE:OFFSET`, `r:GROUP/NAME FUNCTION`
//! (`Documentation/trace/uprobetracer.rst` and `kprobetrace.rst` of the kernel).

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;

use rustix::io::Errno;

use crate::messages::error::why_words;
use crate::plan::PlannedEvent;

/// Group of the tracepoints.
pub(super) const GROUP: &str = "recrep";
/// Bit of the config for a probe at the return of the function.
const AT_RETURN: u64 = 1;
/// Position of the offset of a reference counter in the config of a uprobe.
const REFERENCE_SHIFT: u32 = 32;

/// A probe, as tracefs takes it.
#[derive(Debug)]
pub(super) struct Definition {
    is_kernel: bool,
    at_return: bool,
    /// File and offset, or function and offset, or address.
    place: String,
    /// Keeps the descriptor open that the place names, if any.
    _file: Option<File>,
}

impl Definition {
    pub(super) fn of(event: &PlannedEvent) -> Result<Self, String> {
        let target = event.probe.as_ref().and_then(|probe| probe.target.as_deref());
        let (config, offset) = (event.attr.config, event.attr.config2);
        let is_kernel = event.pmu.as_deref() == Some("kprobe");
        let (mut place, mut file) = (format!("{offset:#x}"), None);
        if let Some(function) = target.filter(|_| is_kernel) {
            place = format!("{}+{offset:#x}", function.to_string_lossy());
        } else if let Some(path) = target {
            let named = if is_plain(path) {
                path.to_string_lossy().into_owned()
            } else {
                let opened = File::open(OsStr::from_bytes(path.to_bytes())).map_err(|why| {
                    format!("cannot open {}: {}", path.to_string_lossy(), why_words(&why))
                })?;
                let named = format!("/proc/self/fd/{}", opened.as_raw_fd());
                file = Some(opened);
                named
            };
            let reference = config >> REFERENCE_SHIFT;
            let reference =
                if reference == 0 { String::new() } else { format!("({reference:#x})") };
            place = format!("{named}:{offset:#x}{reference}");
        }
        Ok(Self { is_kernel, at_return: config & AT_RETURN != 0, place, _file: file })
    }

    /// Returns the file of tracefs that lists probes of this kind.
    pub(super) fn list(&self) -> &'static str {
        if self.is_kernel { "kprobe_events" } else { "uprobe_events" }
    }

    pub(super) fn line(&self, group: &str, name: &str) -> String {
        format!("{}:{group}/{name} {}\n", if self.at_return { 'r' } else { 'p' }, self.place)
    }

    /// Returns why the kernel refuses the line, in words.
    pub(super) fn why(&self, error: &io::Error) -> String {
        let place = &self.place;
        let why = match Errno::from_io_error(error) {
            Some(Errno::NOENT | Errno::ADDRNOTAVAIL) if self.is_kernel => {
                "the kernel has no such function, or several; name one of /proc/kallsyms, or its \
                 address with addr="
            }
            Some(Errno::INVAL) if self.is_kernel => "the kernel allows no probe there",
            Some(Errno::INVAL) => {
                "the kernel allows no probe there: it must be an instruction of a regular file"
            }
            _ => return format!("cannot register a probe at {place}: {}", why_words(error)),
        };
        format!("cannot register a probe at {place}: {why}")
    }
}

/// Returns the line that removes a probe.
pub(super) fn removal(group: &str, name: &str) -> String {
    format!("-:{group}/{name}\n")
}

/// Returns whether the kernel reads a path whole: it splits lines at white space, ends them at `#`,
/// and takes the last colon and a parenthesis for parts of its own. The path must be absolute, too:
/// a relative one would be listed as it is.
fn is_plain(path: &CStr) -> bool {
    let bytes = path.to_bytes();
    bytes.first() == Some(&b'/')
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+,=@~".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Probe;
    use recrep_format::attr::Attr;

    fn event(pmu: &str, target: Option<&CStr>, config: u64, config2: u64) -> PlannedEvent {
        PlannedEvent {
            pmu: Some(pmu.to_owned()),
            attr: Attr { config, config2, ..Attr::default() },
            probe: Some(Probe { target: target.map(CStr::to_owned), ..Probe::default() }),
            ..PlannedEvent::default()
        }
    }

    #[test]
    fn lines_of_each_kind() {
        let line = |pmu, target, config, config2| {
            let definition = Definition::of(&event(pmu, target, config, config2)).unwrap();
            (definition.list(), definition.line("recrep", "a_1"))
        };
        let (uprobes, kprobes) = ("uprobe_events", "kprobe_events");
        let at = |list, line: &str| (list, line.to_owned());
        assert_eq!(
            line("uprobe", Some(c"/bin/x"), 0, 0x1139),
            at(uprobes, "p:recrep/a_1 /bin/x:0x1139\n")
        );
        assert_eq!(
            line("uprobe", Some(c"/bin/x"), 1, 16),
            at(uprobes, "r:recrep/a_1 /bin/x:0x10\n")
        );
        assert_eq!(
            line("uprobe", Some(c"/bin/x"), 0x20 << 32, 16),
            at(uprobes, "p:recrep/a_1 /bin/x:0x10(0x20)\n")
        );
        assert_eq!(
            line("kprobe", Some(c"do_exit"), 0, 4),
            at(kprobes, "p:recrep/a_1 do_exit+0x4\n")
        );
        assert_eq!(
            line("kprobe", Some(c"do_exit"), 1, 0),
            at(kprobes, "r:recrep/a_1 do_exit+0x0\n")
        );
        let address = 0xffff_ffff_8100_0000;
        assert_eq!(
            line("kprobe", None, 0, address),
            at(kprobes, "p:recrep/a_1 0xffffffff81000000\n")
        );
        assert_eq!(removal("recrep", "a_1"), "-:recrep/a_1\n");
    }

    #[test]
    fn a_path_that_the_kernel_would_take_apart_is_a_descriptor() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a b", "a:0x1", "a#b", "a(0x1)", "é", "a\tb"] {
            let path = dir.path().join(name);
            std::fs::write(&path, "").unwrap();
            let target = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
            let definition = Definition::of(&event("uprobe", Some(&target), 0, 1)).unwrap();
            let line = definition.line("g", "n");
            let file = definition._file.unwrap();
            assert_eq!(line, format!("p:g/n /proc/self/fd/{}:0x1\n", file.as_raw_fd()), "{name}");
        }
        let gone = Definition::of(&event("uprobe", Some(c"/no/such file"), 0, 1)).unwrap_err();
        assert!(gone.contains("/no/such file"), "{gone}");
        assert!(!is_plain(c"bin/x"));
    }
}
