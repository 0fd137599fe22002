//! Places of the files of a data set.
//!
//! ```text
//!   DIR/samples/host=a/event=cycles%3Au/part-run1.parquet      a folder for each key of --partition
//!   DIR/stacks/host=a/part-run1.parquet
//!   app.parquet, app.stacks.parquet, …                         of one input, where a file is named
//! ```

use std::fs;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, bail};
use parquet::file::writer::SerializedFileWriter;
use rustc_hash::FxHashMap;
use tempfile::NamedTempFile;

use super::cells::EncodedColumn;
use super::columns::FileSchema;
use crate::query::Source;

/// Value of a partition whose rows lack the key, as readers of such folders know it.
const NO_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// Greatest length of a partition's value, in bytes: names of folders may have 255.
const MOST_VALUE: usize = 200;

/// End of the names of files.
const EXTENSION: &str = "parquet";

/// Where a data set is written.
#[derive(Debug)]
pub(super) enum DataSetPlace {
    Folder(PathBuf),
    /// File of samples; the other tables are beside it.
    File(PathBuf),
}

/// Paths of the files, each of which one input writes.
#[derive(Debug)]
pub(super) struct PartPaths {
    place: DataSetPlace,
    /// The inputs that write them.
    taken: Mutex<FxHashMap<PathBuf, String>>,
}

/// A key of a partition, with its value for some rows.
pub(super) struct PartitionValue<'v> {
    pub(super) key: &'v str,
    pub(super) value: Option<&'v str>,
}

impl PartPaths {
    /// Returns the paths below `output`: a folder, or for one input without partitions a file.
    pub(super) fn new(output: &Path, inputs: usize, is_partitioned: bool) -> anyhow::Result<Self> {
        let is_folder = output.is_dir() || output.as_os_str().as_encoded_bytes().ends_with(b"/");
        let is_file = output.extension().is_some_and(|end| end == EXTENSION);
        let place = match is_file && !is_folder {
            true if inputs > 1 || is_partitioned => bail!(
                "{} is one file, but several inputs or partitions are several: name a directory, \
                 such as -o profiles/",
                output.display()
            ),
            true => DataSetPlace::File(output.to_owned()),
            false => DataSetPlace::Folder(output.to_owned()),
        };
        Ok(Self { place, taken: Mutex::default() })
    }

    /// Returns the path of a table's part with the rows of an input that have these values, and the
    /// name of the part.
    ///
    /// # Errors
    /// Returns an error if the file exists, or if another input writes it.
    pub(super) fn take(
        &self,
        table: &str,
        values: &[PartitionValue<'_>],
        source: &Source,
        part: &str,
    ) -> anyhow::Result<PathBuf> {
        let path = match &self.place {
            DataSetPlace::File(path) if table == "samples" => path.clone(),
            DataSetPlace::File(path) => path.with_extension(format!("{table}.{EXTENSION}")),
            DataSetPlace::Folder(folder) => {
                let mut path = folder.join(table);
                for one in values {
                    path.push(format!("{}={}", one.key, folder_value(one)?));
                }
                path.join(format!("part-{}.{EXTENSION}", escaped(part)))
            }
        };
        let name = source.name();
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        // An input that changed meanwhile is read again.
        let other = taken.insert(path.clone(), name.clone()).filter(|other| *other != name);
        if let Some(other) = other {
            bail!(
                "{other} and {name} would both be {}: name the files differently, or tell them \
                 apart by --partition host",
                path.display()
            );
        }
        if path.symlink_metadata().is_ok() {
            bail!(
                "{} exists: remove it, name another place, or tell this export apart by --label \
                 NAME=VALUE --partition NAME",
                path.display()
            );
        }
        Ok(path)
    }
}

/// Returns the value of a partition as a part of a folder's name.
fn folder_value(one: &PartitionValue<'_>) -> anyhow::Result<String> {
    let value = match one.value {
        None | Some("") => NO_VALUE.to_owned(),
        Some(value) => escaped(value),
    };
    if value.len() > MOST_VALUE {
        bail!("the {} is too long for the name of a folder: partition by another key", one.key);
    }
    Ok(value)
}

/// Escapes what has a meaning in names of files and folders as readers of partitions expect it, and
/// replaces what may not be shown.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' | '.' | ',' | '+' | '@' => safe.push(c),
            c if c.is_ascii() => safe.push_str(&format!("%{:02X}", u32::from(c))),
            c if c.is_alphanumeric() => safe.push(c),
            _ => safe.push('_'),
        }
    }
    safe
}

/// Writes a file, which has its name when it is complete.
pub(super) struct PartWriter {
    path: PathBuf,
    writer: SerializedFileWriter<BufWriter<NamedTempFile>>,
}

/// A file that is complete but for its name.
pub(super) struct FinishedPart {
    path: PathBuf,
    file: NamedTempFile,
}

impl PartWriter {
    pub(super) fn create(path: PathBuf, schema: &FileSchema) -> anyhow::Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create the directory {}", folder.display()))?;
        // Readers take no file for a part whose name begins with a dot.
        let file = tempfile::Builder::new().prefix(".part").tempfile_in(folder);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        let (root, properties) = (schema.root.clone(), schema.properties.clone());
        let writer = SerializedFileWriter::new(BufWriter::new(file), root, properties)?;
        Ok(Self { path, writer })
    }

    /// Appends a row group.
    pub(super) fn append(&mut self, columns: Vec<EncodedColumn>) -> anyhow::Result<()> {
        let mut group = self.writer.next_row_group()?;
        for EncodedColumn { bytes, closed } in columns {
            group.append_column(&bytes, closed)?;
        }
        group.close().with_context(|| format!("cannot write {}", self.path.display()))?;
        Ok(())
    }

    /// Writes the end of the file.
    pub(super) fn finish(self) -> anyhow::Result<FinishedPart> {
        let Self { path, writer } = self;
        let file = writer.into_inner()?.into_inner();
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(FinishedPart { path, file })
    }
}

impl FinishedPart {
    /// Gives the file its name.
    pub(super) fn publish(self) -> anyhow::Result<()> {
        let Self { path, file } = self;
        file.persist_noclobber(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped_for_folders() {
        let value = |value| folder_value(&PartitionValue { key: "host", value }).unwrap();
        assert_eq!(value(Some("node-1.example")), "node-1.example");
        assert_eq!(value(Some("cycles:u")), "cycles%3Au");
        assert_eq!(value(Some("../a b=%")), "..%2Fa%20b%3D%25");
        assert_eq!(value(Some("é\u{1b}\u{202e}\u{85}")), "é%1B__");
        assert_eq!(value(None), NO_VALUE);
        let long = "x".repeat(MOST_VALUE + 1);
        assert!(folder_value(&PartitionValue { key: "host", value: Some(&long) }).is_err());
    }

    #[test]
    fn a_part_belongs_to_one_input() {
        let dir = tempfile::tempdir().unwrap();
        let paths = PartPaths::new(dir.path(), 2, false).unwrap();
        let take = |name: &str| {
            let source = Source::Path(name.into());
            paths.take("samples", &[], &source, &source.stem())
        };
        assert!(take("a/x.data").unwrap().ends_with("samples/part-x.parquet"));
        assert!(take("b/x.data").unwrap_err().to_string().contains("--partition host"));
        fs::create_dir(dir.path().join("samples")).unwrap();
        fs::write(dir.path().join("samples/part-y.parquet"), "").unwrap();
        assert!(take("y.data").unwrap_err().to_string().contains("exists"));
        let file = dir.path().join("x.parquet");
        assert!(PartPaths::new(&file, 2, false).is_err());
        let one = PartPaths::new(&file, 1, false).unwrap();
        let path = one.take("stacks", &[], &Source::Stdin, "stdin").unwrap();
        assert!(path.ends_with("x.stacks.parquet"));
    }
}
