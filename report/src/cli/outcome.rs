//! Ends a command: messages on standard error, and the exit status.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use recrep_console::pager::Output;
use rustix::process::geteuid;
use tempfile::NamedTempFile;

use super::{Asked, Refusal};
use crate::compare::rules::NoSecondSide;
use crate::query::{KeyError, Source, Warning};
use crate::terminal::escape::escape;
use crate::terminal::parts::CANNOT_WRITE;
use crate::terminal::when::{ago, date};

/// Exit status if there is no answer, for instance because no input can be read.
const FAILED: u8 = 1;
/// Exit status of usage errors.
const USAGE: u8 = 2;
/// Exit status if a gate fails.
pub(crate) const GATE: u8 = 3;

/// Standard output of a command that prints while it runs, or its pager.
pub(crate) type Out = BufWriter<Output>;

/// Returns standard output, with a pager where that is a terminal. A pipe gets room for a megabyte,
/// if the system allows it: with the usual 64 KiB, `rep` and the reader wait for each other for a
/// quarter of the time of `rep script`.
pub(crate) fn output(no_pager: bool) -> Out {
    let _size = rustix::pipe::fcntl_setpipe_size(io::stdout(), 1 << 20);
    BufWriter::with_capacity(1 << 16, Output::new("REP_PAGER", !no_pager))
}

/// Writes the rest of the output, and waits for the pager to end.
pub(crate) fn end(out: Out) -> io::Result<()> {
    match out.into_inner() {
        Ok(output) => output.finish(),
        Err(error) => {
            let (error, out) = error.into_parts();
            out.into_parts().0.finish().and(Err(error))
        }
    }
}

/// Runs a command that prints while it runs, and returns its exit status.
pub(crate) fn stream<Q>(
    asked: Result<Asked<Q>, Refusal>,
    run: impl FnOnce(&Q, &mut Out) -> anyhow::Result<Vec<Warning>>,
) -> ExitCode {
    let asked = match asked {
        Ok(asked) => asked,
        Err(refusal) => return refused(&refusal),
    };
    if asked.is_default_input {
        say_default_input();
    }
    let mut out = output(asked.no_pager);
    let outcome = run(&asked.query, &mut out);
    let ended = end(out);
    match outcome {
        Ok(warnings) => {
            let answered = warn(&warnings);
            let status = written(ended);
            if status == ExitCode::SUCCESS { answered } else { status }
        }
        Err(error) => failed(&error),
    }
}

/// Prints a usage error or the requested help, and returns the exit status.
pub(crate) fn refused(refusal: &Refusal) -> ExitCode {
    match refusal {
        Refusal::Usage(message) => {
            say(&format!("rep: {message}"));
            ExitCode::from(USAGE)
        }
        Refusal::Text(text) => {
            let mut out = output(false);
            let printed = out.write_all(text.as_bytes());
            written(printed.and(end(out)))
        }
    }
}

/// Prints an error, and returns the exit status. A broken pipe is success: the reader wanted no
/// more output.
pub(crate) fn failed(error: &anyhow::Error) -> ExitCode {
    if error
        .chain()
        .filter_map(|e| e.downcast_ref::<io::Error>())
        .any(|e| e.kind() == io::ErrorKind::BrokenPipe)
    {
        return ExitCode::SUCCESS;
    }
    say(&format!("rep: {}", escape(&format!("{error:#}"))));
    // Some sort keys (tracepoint fields) can be checked only after the file was read: still a usage
    // error.
    ExitCode::from(if error.is::<KeyError>() || error.is::<NoSecondSide>() {
        USAGE
    } else {
        FAILED
    })
}

/// Returns the exit status for the result of writing the output.
pub(crate) fn written(result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&anyhow::Error::new(error).context(CANNOT_WRITE)),
    }
}

/// Writes a file, which takes its name when it is complete, and returns its size in bytes. What a
/// link names is written, and a device or a pipe is written to: it stays what it is, and has no
/// size. Those of others than the user and root may be planted, and are replaced.
pub(crate) fn replace_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
) -> io::Result<u64> {
    let own = [0, geteuid().as_raw()];
    let is_own = path.symlink_metadata().is_ok_and(|known| own.contains(&known.uid()));
    let named = is_own.then(|| path.canonicalize().ok()).flatten();
    let path = named.as_deref().unwrap_or(path);
    if is_own && path.metadata().is_ok_and(|known| !known.is_file() && !known.is_dir()) {
        let mut file = File::options().write(true).open(path)?;
        let mut out = BufWriter::new(&mut file);
        write(&mut out)?;
        return out.flush().map(|()| 0);
    }
    let directory = path
        .parent()
        .filter(|directory| !directory.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    if !directory.is_dir() {
        let missing = format!("there is no directory {}", directory.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, missing));
    }
    let mut file = NamedTempFile::new_in(directory)?;
    let mut out = BufWriter::new(file.as_file_mut());
    write(&mut out)?;
    out.flush()?;
    drop(out);
    let size = file.as_file().metadata()?.len();
    file.persist(path)?;
    Ok(size)
}

/// Prints warnings to standard error, and returns the exit status: a failure if one says that there
/// is no answer.
pub(crate) fn warn(warnings: &[Warning]) -> ExitCode {
    for warning in warnings.iter().filter(|warning| !warning.is_failure()) {
        let at = warning.offset.map(|offset| format!(" (at byte {offset})")).unwrap_or_default();
        let kind = if warning.is_hint() { "hint" } else { "warning" };
        say(&format!("rep: {kind}: {}{at}", escape(&warning.message)));
    }
    let mut status = ExitCode::SUCCESS;
    for failure in warnings.iter().filter(|warning| warning.is_failure()) {
        say(&format!("rep: {}", escape(&failure.message)));
        status = ExitCode::from(FAILED);
    }
    status
}

/// Says which input is read because none was named, and when it was written.
pub(crate) fn say_default_input() {
    let Source::Path(path) = Source::or_default(None) else { return };
    if let Ok(time) = path.metadata().and_then(|file| file.modified()) {
        let date = date(time).unwrap_or_default();
        say(&format!(
            "rep: reading {}, written {date} ({})",
            path.display(),
            ago(time, SystemTime::now())
        ));
    }
}

/// Prints a line to standard error, and ignores write errors.
pub(crate) fn say(line: &str) {
    let _unwritten = writeln!(io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{FileTypeExt as _, lchown, symlink};
    use std::thread;

    use rustix::fs::{CWD, Mode, mkfifoat};

    use super::*;

    #[test]
    fn links_and_pipes_stay_what_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let write = |name: &str| replace_file(&path(name), |out| out.write_all(b"page"));
        fs::write(path("file"), "before").unwrap();
        symlink("file", path("link")).unwrap();
        assert_eq!(write("link").unwrap(), 4);
        assert!(path("link").is_symlink());
        assert_eq!(fs::read(path("file")).unwrap(), b"page");
        mkfifoat(CWD, path("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
        let pipe = path("pipe");
        let reader = thread::spawn(move || fs::read(pipe).unwrap());
        assert_eq!(write("pipe").unwrap(), 0);
        assert_eq!(reader.join().unwrap(), b"page");
        assert!(path("pipe").metadata().unwrap().file_type().is_fifo());
        // What somebody else may have planted: only root can make it here.
        fs::write(path("precious"), "before").unwrap();
        symlink("precious", path("planted")).unwrap();
        if lchown(path("planted"), Some(65534), None).is_ok() {
            assert_eq!(write("planted").unwrap(), 4);
            assert!(!path("planted").is_symlink());
            assert_eq!(fs::read(path("precious")).unwrap(), b"before");
        }
        let missing = write("none/file").unwrap_err().to_string();
        assert!(missing.starts_with("there is no directory /"), "{missing}");
    }
}
