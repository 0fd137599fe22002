//! Probes on code, through the PMUs `uprobe` and `kprobe`: `uprobe/path=…,func=…/`,
//! `kprobe/func=…,offset=…/`.
//!
//! ```text
//!  PMU      config1                   config2                     config
//!  uprobe   path of the file          offset in the file          bit 0: at the return; from bit 32: a reference counter
//!  kprobe   name of the function      offset in the function      bit 0: at the return
//!  kprobe   0                         address
//! ```

use std::ffi::CString;
use std::path::Path;

use super::error::Problem;
use super::spec::{EventSpec, Probe};
use super::terms::{Term, number};
use super::text::Wrong;
use crate::machine::pmu::symbol;

/// Terms of each PMU, besides those in its `format` directory.
const UPROBE: &[&str] = &["path", "offset", "func", "ret"];
const KPROBE: &[&str] = &["func", "offset", "addr", "ret"];

/// Returns the terms for probes that a PMU has.
pub(crate) fn own_terms(pmu: &str) -> &'static [&'static str] {
    match pmu {
        "uprobe" => UPROBE,
        "kprobe" => KPROBE,
        _ => &[],
    }
}

/// Contents of a probe's own terms.
#[derive(Debug, Default)]
pub(super) struct Draft<'a> {
    target: Option<Term<'a>>,
    offset: Option<u64>,
    symbol: Option<Term<'a>>,
    at_return: bool,
    address: Option<u64>,
}

/// Text that the attr will point to, and its term.
type ProbeTarget<'a> = Option<(Term<'a>, Vec<u8>)>;

impl<'a> Draft<'a> {
    /// Applies a term; returns `false` if it is not a probe's own.
    pub(super) fn take(&mut self, pmu: &str, term: &Term<'a>) -> Result<bool, Wrong> {
        match (pmu, term.key) {
            ("uprobe", "path") | ("kprobe", "func") => {
                term.text(if pmu == "uprobe" { "FILE" } else { "FUNCTION" })?;
                self.target = Some(*term);
            }
            ("uprobe" | "kprobe", "offset") => self.offset = Some(term.number()?),
            ("uprobe", "func" | "symbol") => self.symbol = Some(*term),
            ("uprobe" | "kprobe", "ret") => self.at_return = term.flag()?,
            ("kprobe", "addr") => self.address = Some(term.number()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Sets up the event. `at` is its position in the list.
    pub(super) fn finish(&self, pmu: &str, at: usize, spec: &mut EventSpec) -> Result<(), Wrong> {
        spec.default_period = Some(1);
        let (target, place) = if pmu == "uprobe" { self.uprobe(at)? } else { self.kprobe(at)? };
        spec.config2 = place;
        spec.config |= u64::from(self.at_return);
        spec.probe = Some(Probe {
            target: target
                .map(|(term, text)| {
                    CString::new(text).map_err(|_| term.bad_value("a text without zero bytes"))
                })
                .transpose()?,
            ..Probe::default()
        });
        Ok(())
    }

    fn uprobe(&self, at: usize) -> Result<(ProbeTarget<'a>, u64), Wrong> {
        let path = self.target.ok_or_else(|| {
            wrong(
                at,
                "a uprobe needs a file: uprobe/path=FILE,func=FUNCTION/ or \
                 uprobe/path=FILE,offset=NUMBER/"
                    .to_owned(),
            )
        })?;
        let file = symbol::file(path.text("FILE")?).map_err(|why| wrong(path.at, why))?;
        let place = match (self.symbol, self.offset) {
            (None, Some(offset)) => offset,
            (Some(term), offset) => {
                let (name, within) = function(&term)?;
                let found = symbol::functions(&file, name).map_err(|why| wrong(path.at, why))?;
                let [function] = found[..] else {
                    let why = if found.is_empty() {
                        missing(name, &file)
                    } else {
                        ambiguous(name, &file)
                    };
                    return Err(wrong(term.at, why.unwrap_or_else(|why| why)));
                };
                function.offset + within + offset.unwrap_or(0)
            }
            (None, None) => {
                let why = "a uprobe needs a location in the file; add func=FUNCTION or \
                           offset=NUMBER (in bytes)";
                return Err(wrong(at, why.to_owned()));
            }
        };
        Ok((Some((path, std::os::unix::ffi::OsStringExt::into_vec(file.into_os_string()))), place))
    }

    fn kprobe(&self, at: usize) -> Result<(ProbeTarget<'a>, u64), Wrong> {
        match (self.target, self.address) {
            (Some(func), None) => {
                Ok((Some((func, func.text("FUNCTION")?.into())), self.offset.unwrap_or(0)))
            }
            (None, Some(address)) => Ok((None, address + self.offset.unwrap_or(0))),
            _ => {
                let why = "a kprobe needs a function or an address; use kprobe/func=NAME/ or \
                           kprobe/addr=NUMBER/";
                Err((at, Problem::Probe(why.to_owned())))
            }
        }
    }
}

fn wrong(at: usize, why: String) -> Wrong {
    (at, Problem::Probe(why))
}

/// Parses `main` or `main+0x10`.
fn function<'a>(term: &Term<'a>) -> Result<(&'a str, u64), Wrong> {
    term.text("FUNCTION")?;
    let text = term.value.unwrap_or("");
    match text.rsplit_once('+') {
        Some((name, offset)) if !name.ends_with("operator") && !name.ends_with('+') => {
            number(offset)
                .map(|offset| (name, offset))
                .ok_or_else(|| term.bad_value("FUNCTION or FUNCTION+OFFSET"))
        }
        _ => Ok((text, 0)),
    }
}

fn missing(name: &str, file: &Path) -> Result<String, String> {
    let near = symbol::near(file, name)?;
    let near: Vec<_> = near.iter().map(ToString::to_string).collect();
    let advice = if near.is_empty() {
        String::new()
    } else {
        format!("did you mean {}? Or ", near.join(" or "))
    };
    let file = file.display();
    Ok(format!(
        "{file} has no function '{name}' in its symbol tables; {advice}use offset=NUMBER (in \
         bytes of the file)"
    ))
}

fn ambiguous(name: &str, file: &Path) -> Result<String, String> {
    let all: Vec<_> = symbol::named(file, name)?.iter().map(ToString::to_string).collect();
    let file = file.display();
    Ok(format!(
        "{file} has several functions '{name}'; choose one with func= or offset=, of {}",
        all.join(", ")
    ))
}
