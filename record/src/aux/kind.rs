//! Kinds of AUX trace, by the PMU that writes it.

use recrep_format::abi::AuxtraceKind;

/// A kind of AUX trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceKind {
    IntelPt,
    /// Intel Branch Trace Store.
    IntelBts,
    /// Arm CoreSight ETM and ETE.
    CoreSight,
    /// Arm Statistical Profiling Extension.
    ArmSpe,
    /// The sampling facility of s390.
    S390,
    /// HiSilicon PCIe Tune and Trace.
    HisiPtt,
}

impl TraceKind {
    /// Returns the kind that a PMU of this name writes.
    pub(crate) fn of(pmu: &str) -> Option<Self> {
        match pmu {
            "intel_pt" => Some(Self::IntelPt),
            "intel_bts" => Some(Self::IntelBts),
            "cpum_sf" | "cpum_cf_diag" => Some(Self::S390),
            _ if pmu.starts_with("cs_etm") => Some(Self::CoreSight),
            _ if pmu.starts_with("arm_spe_") => Some(Self::ArmSpe),
            _ if pmu.starts_with("hisi_ptt") => Some(Self::HisiPtt),
            _ => None,
        }
    }

    /// Returns its number in AUXTRACE_INFO.
    pub(crate) fn number(self) -> AuxtraceKind {
        match self {
            Self::IntelPt => AuxtraceKind::INTEL_PT,
            Self::IntelBts => AuxtraceKind::INTEL_BTS,
            Self::CoreSight => AuxtraceKind::CS_ETM,
            Self::ArmSpe => AuxtraceKind::ARM_SPE,
            Self::S390 => AuxtraceKind::S390_CPUMSF,
            Self::HisiPtt => AuxtraceKind::HISI_PTT,
        }
    }

    /// Returns the size of an indivisible unit of trace. Pieces of trace are shortened to a
    /// multiple of it. A branch of BTS is three words.
    pub(crate) fn unit(self) -> usize {
        if self == Self::IntelBts { 24 } else { 1 }
    }

    /// Returns whether decoders need more information in AUXTRACE_INFO than rec writes.
    pub(crate) fn is_bare(self) -> bool {
        self == Self::CoreSight
    }
}
