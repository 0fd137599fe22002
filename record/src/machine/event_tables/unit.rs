//! The PMU that counts an event: the `Unit` of a table's entry, in the words of the kernel's PMUs.

use super::cpuid;
use crate::machine::pmu::Pmu;

/// The PMUs that an event is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// The PMU's name, perhaps without a number at its end; parts of it with commas between them;
    /// none: the cores.
    name: Option<String>,
    /// Identifiers that the PMU may have, as a regular expression; none: any.
    identifiers: Option<String>,
}

/// Units whose PMUs have other names than `uncore_` and theirs.
const OTHERS: &[(&str, &str)] = &[
    ("CBO", "uncore_cbox"),
    ("SBO", "uncore_sbox"),
    ("QPI LL", "uncore_qpi"),
    ("UPI LL", "uncore_upi"),
    ("iMPH-U", "uncore_arb"),
    ("L3PMC", "amd_l3"),
    ("DFPMC", "amd_df"),
    ("UMCPMC", "amd_umc"),
    ("CPU-M-CF", "cpum_cf"),
    ("CPU-M-SF", "cpum_sf"),
    ("PAI-CRYPTO", "pai_crypto"),
    ("PAI-EXT", "pai_ext"),
];

/// Units that are called as their PMUs are.
const SAME: &[&str] = &[
    "cpu_core",
    "cpu_atom",
    "hisi_sicl,cpa",
    "hisi_sccl,ddrc",
    "hisi_sccl,hha",
    "hisi_sccl,l3c",
    "imx8_ddr",
    "imx9_ddr",
    "ali_drw",
    "arm_cmn",
];

impl Unit {
    pub(super) fn new(unit: Option<&str>, identifiers: Option<&str>) -> Self {
        let name = unit.map(|unit| match OTHERS.iter().find(|(other, _)| *other == unit) {
            Some((_, pmu)) => (*pmu).to_owned(),
            None if SAME.contains(&unit) => unit.to_owned(),
            None => format!("uncore_{}", unit.to_lowercase()),
        });
        Self { name, identifiers: identifiers.map(str::to_owned) }
    }

    /// Returns whether it means the cores, of whatever kind.
    pub(super) fn is_of_cores(&self) -> bool {
        self.name.is_none()
    }

    pub(super) fn has(&self, pmu: &Pmu) -> bool {
        let is_meant = match &self.name {
            None => pmu.core,
            Some(name) if *name == pmu.name => true,
            Some(name) => !pmu.core && is_called(&pmu.name, name),
        };
        let identifies =
            |pattern: &String| pmu.identifier().is_some_and(|own| cpuid::is_match(pattern, &own));
        is_meant && self.identifiers.as_ref().is_none_or(identifies)
    }
}

/// Returns whether a PMU's name has these parts, in this order, each with a number behind it or
/// none.
fn is_called(name: &str, parts: &str) -> bool {
    let (first, more) =
        parts.split_once(',').map_or((parts, None), |(first, more)| (first, Some(more)));
    match more {
        None => name.strip_prefix(first).is_some_and(is_number),
        // hisi_sccl,l3c is hisi_sccl3_l3c1.
        Some(more) => name.strip_prefix(first).is_some_and(|rest| {
            let next = more.split(',').next().unwrap_or(more);
            rest.find(next).and_then(|at| rest.get(at..)).is_some_and(|rest| is_called(rest, more))
        }),
    }
}

/// Returns whether this is empty or a number behind a name. Letters make a number only of three
/// digits or more, as words have letters too.
fn is_number(suffix: &str) -> bool {
    let digits = suffix.strip_prefix('_').unwrap_or(suffix);
    let decimal = digits.bytes().all(|b| b.is_ascii_digit());
    suffix.is_empty()
        || (decimal && !digits.is_empty())
        || (digits.len() > 2 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pmus_by_parts_of_their_names() {
        for (name, parts, is) in [
            ("uncore_cha_12", "uncore_cha", true),
            ("uncore_cha", "uncore_cha", true),
            ("uncore_chab", "uncore_cha", false),
            ("uncore_imc_free_running_0", "uncore_imc", false),
            ("amd_l3", "amd_l3", true),
            ("arm_cmn_0", "arm_cmn", true),
            ("ali_drw_f10000", "ali_drw", true),
            ("hisi_sccl3_l3c1", "hisi_sccl,l3c", true),
            ("hisi_sccl3_hha1", "hisi_sccl,l3c", false),
            ("uncore_cha_", "uncore_cha", false),
        ] {
            assert_eq!(is_called(name, parts), is, "{name} {parts}");
        }
    }

    #[test]
    fn units_become_pmus() {
        let name = |unit: &str| Unit::new(Some(unit), None).name.unwrap();
        assert_eq!((name("CHA"), name("CBO")), ("uncore_cha".to_owned(), "uncore_cbox".to_owned()));
        assert_eq!((name("cpu_core"), name("L3PMC")), ("cpu_core".to_owned(), "amd_l3".to_owned()));
        assert_eq!(Unit::new(None, None).name, None);
    }
}
