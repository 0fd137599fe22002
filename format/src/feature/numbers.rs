//! Features that are a few numbers: CPUs, memory, sample times, PMU numbers.

use super::{Feature, FeatureId, HeaderString};
use crate::bytes::{Cursor, Encoder};
use crate::error::Result;
use crate::wire;
use crate::wire::Wire;

wire! {
    /// How many CPUs there are (`NRCPUS`).
    pub struct NrCpus {
        /// How many the machine can have.
        pub available: u32,
        /// How many were online.
        pub online: u32,
    }

    /// The machine's memory (`TOTAL_MEM`).
    pub struct TotalMem {
        /// In KiB.
        pub kib: u64,
    }

    /// When the first and the last sample were taken (`SAMPLE_TIME`), in nanoseconds of the perf clock.
    pub struct SampleTime {
        /// The first sample.
        pub first: u64,
        /// The last sample.
        pub last: u64,
    }

    /// A PMU's number and name.
    pub struct PmuMapping<'a> {
        /// The number that attrs have as their type.
        pub kind: u32,
        /// Its name in sysfs.
        pub name: HeaderString<'a>,
    }
}

macro_rules! wire_features {
    ($($name:ident = $id:ident;)*) => {$(
        impl<'a> Feature<'a> for $name {
            const ID: FeatureId = FeatureId::$id;
            fn decode(c: &mut Cursor<'a>) -> Result<Self> {
                Wire::decode(c, stringify!($id))
            }
            fn encode(&self, e: &mut Encoder) {
                Wire::encode(self, e);
            }
        }
    )*};
}

wire_features! {
    NrCpus = NRCPUS;
    TotalMem = TOTAL_MEM;
    SampleTime = SAMPLE_TIME;
}

/// The numbers and names of the PMUs (`PMU_MAPPINGS`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PmuMappings<'a> {
    /// The PMUs.
    pub pmus: Vec<PmuMapping<'a>>,
}

impl<'a> Feature<'a> for PmuMappings<'a> {
    const ID: FeatureId = FeatureId::PMU_MAPPINGS;

    fn decode(c: &mut Cursor<'a>) -> Result<Self> {
        let nr = c.u32("PMU_MAPPINGS")?;
        let pmus = (0..nr).map(|_| PmuMapping::decode(c, "PMU_MAPPINGS")).collect::<Result<_>>()?;
        Ok(Self { pmus })
    }

    fn encode(&self, e: &mut Encoder) {
        e.u32(u32::try_from(self.pmus.len()).unwrap_or(u32::MAX));
        self.pmus.iter().for_each(|pmu| Wire::encode(pmu, e));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endian::Endian;

    #[test]
    fn pmus_come_back() {
        let pmu = |kind, name| PmuMapping { kind, name: HeaderString::new(name) };
        let all = PmuMappings { pmus: vec![pmu(1, "software"), pmu(5, "breakpoint")] };
        let mut e = Encoder::new(Endian::Little);
        all.encode(&mut e);
        let back = PmuMappings::decode(&mut Cursor::new(e.as_bytes(), 0, Endian::Little)).unwrap();
        let names: Vec<_> = back.pmus.iter().map(|p| (p.kind, p.name.to_text())).collect();
        assert_eq!(names, [(1, "software".into()), (5, "breakpoint".into())]);
    }
}
