//! Destinations of the output: one for all lines, or a file for the samples of each event.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use recrep_format::attr::AttrIndex;

use crate::terminal::escape::escape;

pub(super) struct Outputs<'o, W> {
    main: &'o mut W,
    files: Vec<EventFile>,
}

/// The lines of a chunk of records.
#[derive(Default)]
pub(super) struct OutputLines {
    /// Text for the main output.
    pub(super) main: Vec<u8>,
    /// For each event that has a file of its own: its text, and the number of its samples.
    pub(super) events: Vec<(Vec<u8>, u64)>,
}

impl OutputLines {
    /// Removes all lines; leaves room for this many events that have files of their own.
    pub(super) fn clear(&mut self, events: usize) {
        self.main.clear();
        self.events.clear();
        self.events.resize(events, Default::default());
    }

    /// Counts a sample of an event, and returns the text that it is added to.
    pub(super) fn of_sample(&mut self, event: AttrIndex) -> &mut Vec<u8> {
        let Some((text, samples)) = self.events.get_mut(event.0) else { return &mut self.main };
        *samples += 1;
        text
    }
}

struct EventFile {
    path: PathBuf,
    file: BufWriter<File>,
    bytes: u64,
    samples: u64,
}

impl<'o, W: Write> Outputs<'o, W> {
    /// Creates a file for each event if a path is given: `PATH.EVENT.dump`.
    pub(super) fn new(main: &'o mut W, path: Option<&Path>, events: &[String]) -> io::Result<Self> {
        let Some(path) = path else { return Ok(Self { main, files: Vec::new() }) };
        let mut files = Vec::with_capacity(events.len());
        for event in events {
            // A `/` in an event's name would lead to another directory.
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{}.dump", event.replace('/', "_")));
            let path = PathBuf::from(name);
            let created = File::create(&path).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            })?;
            files.push(EventFile { path, file: BufWriter::new(created), bytes: 0, samples: 0 });
        }
        Ok(Self { main, files })
    }

    pub(super) fn write(&mut self, lines: &OutputLines) -> io::Result<()> {
        self.main.write_all(&lines.main)?;
        for (file, (text, samples)) in self.files.iter_mut().zip(&lines.events) {
            file.samples += samples;
            file.bytes += text.len() as u64;
            file.file.write_all(text)?;
        }
        Ok(())
    }

    /// Flushes the files, and prints their paths and sizes.
    pub(super) fn finish(self) -> io::Result<()> {
        for EventFile { path, mut file, bytes, samples } in self.files {
            file.flush()?;
            writeln!(
                self.main,
                "{}: {samples} samples, {bytes} bytes",
                escape(&path.to_string_lossy())
            )?;
        }
        Ok(())
    }
}
