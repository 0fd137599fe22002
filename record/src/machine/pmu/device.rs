//! One PMU.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::format::Format;
use super::glob;
use crate::target;

/// A PMU.
#[derive(Clone, Debug)]
pub struct Pmu {
    /// Its name.
    pub name: String,
    /// Its number.
    pub kind: u32,
    /// The CPUs it wants its events opened on; none: all.
    pub cpus: Option<Vec<u32>>,
    /// Whether it is one of the cores.
    pub core: bool,
    /// Another name of it (`alias`).
    other_name: Option<String>,
    /// Named events that tables have, by their names in small letters.
    table: BTreeMap<String, Alias>,
    dir: PathBuf,
}

/// A name for some terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The terms.
    pub terms: String,
    /// The unit of the counts.
    pub unit: Option<String>,
    /// What the counts are multiplied with to be in that unit.
    pub scale: Option<String>,
    /// What it counts, where a table says so.
    pub description: Option<String>,
}

/// All PMUs below the root of a sysfs, by name.
#[must_use]
pub fn all(sys: &Path) -> Vec<Pmu> {
    let dir = sys.join("bus/event_source/devices");
    let mut pmus: Vec<_> = names(&dir).into_iter().filter_map(|name| Pmu::read(&dir, name)).collect();
    // uncore_imc_2 is before uncore_imc_10.
    pmus.sort_by(|a, b| {
        let ((a_stem, a_number), (b_stem, b_number)) = (a.numbered(), b.numbered());
        (a_stem, a_number, &a.name).cmp(&(b_stem, b_number, &b.name))
    });
    pmus
}

/// The names in a directory, sorted.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
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
        let cpus = |file: &str| target::parse_cpus(&text(&dir.join(file))?).ok();
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

    /// The name without its number at the end, and the number.
    #[must_use]
    pub fn numbered(&self) -> (&str, Option<u64>) {
        let stem = self.name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = self.name.get(stem.len()..).and_then(|digits| digits.parse().ok());
        match stem.strip_suffix('_').filter(|stem| !stem.is_empty()) {
            Some(stem) if number.is_some() => (stem, number),
            _ => (&self.name, None),
        }
    }

    /// Whether this is its name.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.other_name.as_deref() == Some(name)
    }

    /// Whether a name means this PMU among others: a pattern, or a name without the number (`uncore_imc`), both also
    /// without `uncore_`.
    #[must_use]
    pub fn is_meant_by(&self, name: &str) -> bool {
        let means = |name: &str| {
            name == self.numbered().0 || glob::matches(name, &self.name) || glob::matches(name, self.numbered().0)
        };
        means(name) || (!name.starts_with("uncore_") && means(&format!("uncore_{name}")))
    }

    /// Whether its events count for whole CPUs, whatever thread runs there. Arm SPE is part of a core, and says in `cpumask` which
    /// cores have it.
    #[must_use]
    pub fn uncore(&self) -> bool {
        !self.core && self.cpus.is_some() && !self.name.starts_with("arm_spe_")
    }

    /// Whether its events write to an AUX area. Nothing in sysfs says so: these are the drivers that set one up.
    #[must_use]
    pub fn has_aux(&self) -> bool {
        matches!(&self.name[..], "intel_pt" | "intel_bts" | "cs_etm")
            || ["arm_spe_", "hisi_ptt", "cs_etm_", "cpum_cf_diag"].iter().any(|stem| self.name.starts_with(stem))
    }

    /// Where a term's value goes.
    ///
    /// # Errors
    /// What the kernel says of it, where that makes no sense.
    pub fn format(&self, term: &str) -> Result<Option<Format>, String> {
        if term.contains('/') || term.starts_with('.') {
            return Ok(None);
        }
        let path = self.dir.join("format").join(term);
        let Some(said) = text(&path) else { return Ok(None) };
        Format::parse(&said).map(Some).ok_or_else(|| format!("{} says '{said}'", path.display()))
    }

    /// The terms it has.
    #[must_use]
    pub fn formats(&self) -> Vec<String> {
        names(&self.dir.join("format"))
    }

    /// Gives it a named event, in the place of the kernel's with that name. `name`: in small letters.
    pub fn name(&mut self, name: String, event: Alias) {
        self.table.insert(name, event);
    }

    /// Its named events that tables have, by name.
    pub fn table(&self) -> impl Iterator<Item = (&str, &Alias)> {
        self.table.iter().map(|(name, event)| (&name[..], event))
    }

    /// Whether a table has this named event.
    #[must_use]
    pub fn is_in_table(&self, name: &str) -> bool {
        self.table.contains_key(&name.to_lowercase())
    }

    /// Which of several devices with the same driver it is.
    #[must_use]
    pub fn identifier(&self) -> Option<String> {
        text(&self.dir.join("identifier"))
    }

    /// What one of its named events stands for.
    #[must_use]
    pub fn alias(&self, name: &str) -> Option<Alias> {
        self.table.get(&name.to_lowercase()).cloned().or_else(|| self.kernel_alias(name))
    }

    fn kernel_alias(&self, name: &str) -> Option<Alias> {
        if name.contains('/') || name.starts_with('.') || is_attribute(name) {
            return None;
        }
        let events = self.dir.join("events");
        let attribute = |of: &str| text(&events.join(format!("{name}.{of}"))).filter(|text| !text.is_empty());
        let terms = text(&events.join(name))?;
        Some(Alias { terms, unit: attribute("unit"), scale: attribute("scale"), description: None })
    }

    /// Its named events that the kernel has.
    #[must_use]
    pub fn aliases(&self) -> Vec<String> {
        names(&self.dir.join("events")).into_iter().filter(|name| !is_attribute(name)).collect()
    }

    /// The number of a place where AUX data can go (`sinks/NAME`).
    #[must_use]
    pub fn sink(&self, name: &str) -> Option<u32> {
        if name.contains('/') || name.starts_with('.') {
            return None;
        }
        let said = text(&self.dir.join("sinks").join(name))?;
        u32::from_str_radix(said.strip_prefix("0x").unwrap_or(&said), 16).ok()
    }

    /// The places where AUX data can go.
    #[must_use]
    pub fn sinks(&self) -> Vec<String> {
        names(&self.dir.join("sinks"))
    }

    /// A number that the PMU says of itself: in `caps`, or how many address filters it has.
    #[must_use]
    pub fn number(&self, file: &str, radix: u32) -> Option<u64> {
        let said = text(&self.dir.join(file))?;
        u64::from_str_radix(said.strip_prefix("0x").unwrap_or(&said), radix).ok()
    }
}

/// Whether a file in `events` tells of an event and is none.
fn is_attribute(name: &str) -> bool {
    [".unit", ".scale", ".per-pkg", ".snapshot"].iter().any(|end| name.ends_with(end))
}
