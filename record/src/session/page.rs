//! The page of a recording (`--html`): `rep html` makes it of the file.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::hottest::beside;
use crate::messages::error::{Error, Result};
use crate::plan::config::Config;

/// Maker of the page (`--html`).
#[derive(Debug)]
pub struct PageMaker<'c> {
    rep: PathBuf,
    recording: &'c Path,
    page: &'c Path,
}

impl<'c> PageMaker<'c> {
    /// Finds `rep`, beside rec or where commands are; `None` if no page was asked for.
    ///
    /// # Errors
    /// Returns an error if there is no `rep`: better before the recording than after it.
    pub fn of(config: &'c Config) -> Result<Option<Self>> {
        let Some(page) = &config.output.html else { return Ok(None) };
        let Some(rep) = beside().or_else(in_path) else {
            let message =
                "--html: the page is made by rep, which is neither beside rec nor in PATH";
            return Err(Error::Failed(message.into()));
        };
        Ok(Some(Self { rep, recording: &config.output.path, page }))
    }

    /// Makes the page of the recording; rep says where it is.
    ///
    /// # Errors
    /// Returns an error if rep fails; it has said why.
    pub fn make(&self) -> Result<()> {
        let Self { rep, recording, page } = self;
        let mut command = Command::new(rep);
        command.args(["html", "-o"]).arg(page).arg("-i").arg(recording).stdin(Stdio::null());
        let ended = command.status();
        let ended = ended.map_err(|error| Error::io("--html: cannot run rep", error))?;
        match ended.success() {
            true => Ok(()),
            false => Err(Error::Failed(format!(
                "--html: there is no page; the recording is in {}",
                recording.display()
            ))),
        }
    }
}

/// Returns the `rep` in PATH.
fn in_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join("rep")).find(|rep| rep.is_file())
}
