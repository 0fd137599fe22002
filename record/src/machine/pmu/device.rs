//! A PMU in sysfs: type, CPUs, formats, named events.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use recrep_console::glob;

use super::format::Format;
use crate::tasks;

/// A PMU.
#[derive(Clone, Debug)]
pub(crate) struct Pmu {
    pub name: String,
    /// Number (`perf_event_attr.type`).
    pub kind: u32,
    /// CPUs to open its events on; `None` for all.
    pub cpus: Option<Vec<u32>>,
    /// `true` if it is a PMU of CPU cores.
    pub core: bool,
    /// Alternative name (`alias`).
    other_name: Option<String>,
    /// Named events that tables have, by their names in small letters.
    table: BTreeMap<String, Alias>,
    dir: PathBuf,
}

/// A named event, which stands for terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alias {
    /// Terms that it stands for.
    pub terms: String,
    /// Unit of its counts.
    pub unit: Option<String>,
    /// Factor from its counts to that unit.
    pub scale: Option<String>,
    /// Description of what it counts, from a table.
    pub description: Option<String>,
}

/// Returns all PMUs of a sysfs, sorted by name.
pub(crate) fn all(sys: &Path) -> Vec<Pmu> {
    let dir = sys.join("bus/event_source/devices");
    let mut pmus: Vec<_> =
        names(&dir).into_iter().filter_map(|name| Pmu::read(&dir, name)).collect();
    // By number at the end, so that uncore_imc_2 precedes uncore_imc_10.
    pmus.sort_by(|a, b| {
        let ((a_stem, a_number), (b_stem, b_number)) = (a.numbered(), b.numbered());
        (a_stem, a_number, &a.name).cmp(&(b_stem, b_number, &b.name))
    });
    pmus
}

/// Returns the names in a directory, sorted.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<_> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

fn text(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

impl Pmu {
    fn read(devices: &Path, name: String) -> Option<Self> {
        let dir = devices.join(&name);
        let kind = text(&dir.join("type"))?.parse().ok()?;
        let cpus = |file: &str| tasks::parse_cpus(&text(&dir.join(file))?).ok();
        let of_cores = cpus("cpus");
        let core = name == "cpu" || of_cores.is_some();
        Some(Self {
            cpus: of_cores.or_else(|| cpus("cpumask")),
            core,
            other_name: text(&dir.join("alias")),
            table: BTreeMap::new(),
            name,
            kind,
            dir,
        })
    }

    /// Returns the name without the number at its end, and that number.
    pub(crate) fn numbered(&self) -> (&str, Option<u64>) {
        let stem = self.name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = self.name.get(stem.len()..).and_then(|digits| digits.parse().ok());
        match stem.strip_suffix('_').filter(|stem| !stem.is_empty()) {
            Some(stem) if number.is_some() => (stem, number),
            _ => (&self.name, None),
        }
    }

    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.other_name.as_deref() == Some(name)
    }

    /// Returns whether a name selects this PMU among others: a pattern, or a name without the
    /// number (`uncore_imc`), both with or without `uncore_`.
    pub(crate) fn is_meant_by(&self, name: &str) -> bool {
        let means = |name: &str| {
            name == self.numbered().0
                || glob::matches(name, &self.name)
                || glob::matches(name, self.numbered().0)
        };
        means(name) || (!name.starts_with("uncore_") && means(&format!("uncore_{name}")))
    }

    /// Returns whether its events count whole CPUs, regardless of threads. Arm SPE is part of a
    /// core, and says in `cpumask` which cores have it.
    pub(crate) fn uncore(&self) -> bool {
        !self.core && self.cpus.is_some() && !self.name.starts_with("arm_spe_")
    }

    /// Returns whether its events write to an AUX area. sysfs does not show this, so it is a list
    /// of the drivers that have one.
    pub(crate) fn has_aux(&self) -> bool {
        matches!(&self.name[..], "intel_pt" | "intel_bts" | "cs_etm")
            || ["arm_spe_", "hisi_ptt", "cs_etm_", "cpum_cf_diag"]
                .iter()
                .any(|stem| self.name.starts_with(stem))
    }

    /// Returns the format of a term.
    ///
    /// # Errors
    /// Returns the contents of the format file, if they are invalid.
    pub(crate) fn format(&self, term: &str) -> Result<Option<Format>, String> {
        if term.contains('/') || term.starts_with('.') {
            return Ok(None);
        }
        let path = self.dir.join("format").join(term);
        let Some(said) = text(&path) else { return Ok(None) };
        Format::parse(&said).map(Some).ok_or_else(|| format!("{} says '{said}'", path.display()))
    }

    /// Returns the names of its terms.
    pub(crate) fn formats(&self) -> Vec<String> {
        names(&self.dir.join("format"))
    }

    /// Gives it a named event, instead of the kernel's with that name. `name`: in small
    /// letters.
    pub(crate) fn name(&mut self, name: String, event: Alias) {
        self.table.insert(name, event);
    }

    /// Its named events that tables have, by name.
    pub(crate) fn table(&self) -> impl Iterator<Item = (&str, &Alias)> {
        self.table.iter().map(|(name, event)| (&name[..], event))
    }

    pub(crate) fn is_in_table(&self, name: &str) -> bool {
        self.table.contains_key(&name.to_lowercase())
    }

    /// Returns the identifier that distinguishes it from other devices with the same driver.
    pub(crate) fn identifier(&self) -> Option<String> {
        text(&self.dir.join("identifier"))
    }

    pub(crate) fn alias(&self, name: &str) -> Option<Alias> {
        let small = name.to_lowercase();
        let of_kernel = || {
            let same = self.kernel_alias(name);
            // Formulas of metrics call `tsc` TSC.
            same.or_else(|| if small == name { None } else { self.kernel_alias(&small) })
        };
        self.table.get(&small).cloned().or_else(of_kernel)
    }

    fn kernel_alias(&self, name: &str) -> Option<Alias> {
        if name.contains('/') || name.starts_with('.') || is_attribute(name) {
            return None;
        }
        let events = self.dir.join("events");
        let attribute =
            |of: &str| text(&events.join(format!("{name}.{of}"))).filter(|text| !text.is_empty());
        let terms = text(&events.join(name))?;
        Some(Alias { terms, unit: attribute("unit"), scale: attribute("scale"), description: None })
    }

    /// Its named events that the kernel has.
    pub(crate) fn aliases(&self) -> Vec<String> {
        names(&self.dir.join("events")).into_iter().filter(|name| !is_attribute(name)).collect()
    }

    /// Returns the number of a sink for AUX data (`sinks/NAME`).
    pub(crate) fn sink(&self, name: &str) -> Option<u32> {
        if name.contains('/') || name.starts_with('.') {
            return None;
        }
        let said = text(&self.dir.join("sinks").join(name))?;
        u32::from_str_radix(said.strip_prefix("0x").unwrap_or(&said), 16).ok()
    }

    /// Returns the names of its sinks for AUX data.
    pub(crate) fn sinks(&self) -> Vec<String> {
        names(&self.dir.join("sinks"))
    }

    /// Returns a number from a file of the PMU: in `caps`, or the number of address filters.
    pub(crate) fn number(&self, file: &str, radix: u32) -> Option<u64> {
        let said = text(&self.dir.join(file))?;
        u64::from_str_radix(said.strip_prefix("0x").unwrap_or(&said), radix).ok()
    }
}

/// Returns whether a file in `events` is an attribute of an event, not an event.
fn is_attribute(name: &str) -> bool {
    [".unit", ".scale", ".per-pkg", ".snapshot"].iter().any(|end| name.ends_with(end))
}
