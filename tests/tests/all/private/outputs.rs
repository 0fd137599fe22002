//! All outputs that are shared, unpacked.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::{DeflateDecoder, GzDecoder};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use recrep_format::feature::Bundle;
use recrep_format::read::File;
use recrep_tests::programs::rep;
use recrep_tests::run::{Outcome, run};

/// An output, with nothing packed in it.
pub(crate) struct SharedOutput {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) shape: FileShape,
}

/// Whether an output has names of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileShape {
    Names,
    /// Such as numbers of records.
    Other,
}

/// Questions to a shared recording, besides those in each format of a report.
const VIEWS: [(&str, FileShape); 8] = [
    ("script --format FORMAT", FileShape::Names),
    ("report --format FORMAT", FileShape::Names),
    ("-s srcline,symbol", FileShape::Names),
    ("-s cgroup,comm,tid", FileShape::Other),
    ("dump", FileShape::Other),
    ("info --json", FileShape::Other),
    ("--tasks", FileShape::Other),
    ("modules", FileShape::Other),
];

/// Makes all of them below a directory.
#[track_caller]
pub(crate) fn outputs(recording: &Path, dir: &Path) -> Vec<SharedOutput> {
    let mut all = Vec::new();
    for command in sharing_commands() {
        let formats = formats(&command);
        for format in formats.iter().map(Some).chain(formats.is_empty().then_some(None)) {
            let name = format!("{command}-{}", format.map_or("", String::as_str));
            let folder = dir.join(&name).join("");
            fs::create_dir(&folder).unwrap();
            let mut rep = rep();
            rep.arg(&command).arg("--share");
            // Where one file is written, a folder is none.
            match format {
                Some(format) => rep.args(["--format", format, "-o"]).arg(&folder),
                None => rep.arg("-o").arg(folder.join("out")),
            };
            run(rep.arg(recording)).expect(0);
            all.extend(files(&folder).iter().map(|file| {
                let inside = file.strip_prefix(&folder).unwrap().display().to_string();
                let bytes = [inside.as_bytes(), b"\n", &unpacked(&fs::read(file).unwrap())];
                let shape = match inside.contains("stacks") || inside.contains("recordings") {
                    true => FileShape::Other,
                    false => FileShape::Names,
                };
                SharedOutput { name: format!("{name}: {inside}"), bytes: bytes.concat(), shape }
            }));
        }
    }
    let bundle = dir.join("bundle-/out");
    for (view, shape) in VIEWS {
        let command = view.split(' ').next().unwrap_or_default();
        let formats = if view.contains("FORMAT") { formats(command) } else { vec![String::new()] };
        for format in formats {
            let view = view.replace("FORMAT", &format);
            let outcome = run(rep().args(view.split(' ')).arg(&bundle).current_dir(dir));
            // Some formats are of rules, which are not given here.
            if outcome.code() == 2 && outcome.stderr.contains("rules") {
                continue;
            }
            let Outcome { stdout, .. } = outcome.expect(0);
            let text = String::from_utf8_lossy(&stdout).replace(dir.to_str().unwrap(), "");
            all.push(SharedOutput { name: view, bytes: text.into_bytes(), shape });
        }
    }
    all
}

/// Returns the commands that have `--share`.
#[track_caller]
fn sharing_commands() -> Vec<String> {
    let help = run(rep().arg("--help")).expect(0);
    let help = help.text();
    let (_, listed) = help.split_once("Commands (").unwrap();
    let commands = listed.lines().skip(1).map_while(|line| line.split_whitespace().next());
    let is_sharing = |command: &&str| {
        let help = run(rep().args([command, "--help"]));
        help.text().contains(" --share ")
    };
    let sharing: Vec<String> = commands.filter(is_sharing).map(str::to_owned).collect();
    assert!(sharing.len() > 3, "{sharing:?}");
    sharing
}

/// Returns the formats of a command.
fn formats(command: &str) -> Vec<String> {
    let refusal = run(rep().args([command, "--format", "none of them"]));
    let listed = refusal.stderr.split_once("[possible values: ").map(|(_, listed)| listed);
    let listed = listed.and_then(|listed| listed.split_once(']')).map(|(listed, _)| listed);
    listed.into_iter().flat_map(|listed| listed.split(", ")).map(str::to_owned).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => all.push(path),
        }
    }
    all.sort();
    all
}

/// Returns the bytes of a file, and behind them what is packed in it.
#[track_caller]
pub(crate) fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut all = bytes.to_vec();
    if bytes.starts_with(b"\x1f\x8b") {
        GzDecoder::new(bytes).read_to_end(&mut all).unwrap();
    } else if bytes.starts_with(b"PERFILE2") {
        let file = File::parse(bytes).unwrap();
        let bundle: Bundle<'_> = file.feature().unwrap().unwrap();
        all.extend_from_slice(&bundle.unpack().unwrap());
    } else if bytes.starts_with(b"PAR1") {
        let reader = SerializedFileReader::new(bytes::Bytes::copy_from_slice(bytes)).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        rows.for_each(|row| all.extend(format!("{}\n", row.unwrap()).into_bytes()));
    } else if bytes.starts_with(b"<!") {
        let page = str::from_utf8(bytes).unwrap();
        for block in page.split("<script type=\"application/octet-stream\"").skip(1) {
            let (_, block) = block.split_once('>').unwrap();
            let (packed, _) = block.split_once('<').unwrap();
            let packed = STANDARD.decode(packed).unwrap();
            DeflateDecoder::new(&*packed).read_to_end(&mut all).unwrap();
        }
    }
    all
}
