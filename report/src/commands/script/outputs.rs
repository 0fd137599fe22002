//! Where lines go: all to one place, or the samples of each event to a file of its own.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use recrep_format::attrs::AttrIndex;

/// The places.
pub(super) struct Outputs<'o, W> {
    main: &'o mut W,
    files: Vec<EventFile>,
}

struct EventFile {
    path: PathBuf,
    file: BufWriter<File>,
    bytes: u64,
    samples: u64,
}

impl<'o, W: Write> Outputs<'o, W> {
    pub(super) fn one(main: &'o mut W) -> Self {
        Self { main, files: Vec::new() }
    }

    /// One for each event: `PATH.EVENT.dump`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn per_event(main: &'o mut W, path: &Path, events: &[String]) -> io::Result<Self> {
        let file = |event: &String| {
            // A name may hold what would lead to another directory.
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{}.dump", event.replace('/', "_")));
            let path = PathBuf::from(name);
            let created = File::create(&path);
            let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
            let file = BufWriter::new(created.map_err(named)?);
            Ok(EventFile { path: path.clone(), file, bytes: 0, samples: 0 })
        };
        Ok(Self { main, files: events.iter().map(file).collect::<io::Result<_>>()? })
    }

    /// What belongs to no event.
    pub(super) fn main(&mut self) -> &mut W {
        self.main
    }

    /// A sample of an event.
    pub(super) fn sample(&mut self, event: AttrIndex, text: &[u8]) -> io::Result<()> {
        match self.files.get_mut(event.0) {
            Some(file) => {
                file.samples += 1;
                file.bytes += text.len() as u64;
                file.file.write_all(text)
            }
            None => self.main.write_all(text),
        }
    }

    /// Ends the files, and says which there are.
    pub(super) fn finish(self) -> io::Result<()> {
        for EventFile { path, mut file, bytes, samples } in self.files {
            file.flush()?;
            writeln!(
                self.main,
                "{}: {samples} samples, {bytes} bytes",
                crate::terminal::escape::escape(&path.to_string_lossy())
            )?;
        }
        Ok(())
    }
}
