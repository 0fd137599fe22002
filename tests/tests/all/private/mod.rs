//! What is private in a recording, and all outputs that are shared: nothing of the first may be in the others.
//!
//! Neither formats nor fields are listed here: outputs are those that `rep` offers with `--share`, and
//! secrets those that records and header have, besides what a test knows of its own recording.

pub(crate) mod outputs;
mod secrets;

use std::path::Path;

pub(crate) use outputs::{FileShape, outputs};
pub(crate) use secrets::Secrets;

/// Holds that no shared output of a recording has anything of what is private, and that each has a
/// text that is not.
#[track_caller]
pub(crate) fn nothing_private(recording: &Path, texts: &[&str], public: &str) {
    let secrets = Secrets::of(recording, texts);
    assert!(secrets.len() > 10, "{} secrets in {}", secrets.len(), recording.display());
    let dir = tempfile::tempdir().unwrap();
    let outputs = outputs(recording, dir.path());
    assert!(outputs.len() > 20, "{} outputs", outputs.len());
    let mut wrong = Vec::new();
    for output in outputs {
        let found = secrets.found_in(&output.bytes);
        wrong.extend(found.map(|found| format!("{}: {found}", output.name)));
        let has_public = output.bytes.windows(public.len()).any(|bytes| bytes == public.as_bytes());
        if output.shape == FileShape::Names && !has_public {
            wrong.push(format!("{}: not read, it lacks {public}", output.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
