//! The one table of the features: their numbers, names and types, which reading, writing and tests
//! share.

use super::{
    Arch, AuxtraceIndex, BpfBtf, BpfProgInfo, BranchStackMark, BuildIds, Bundle, CacheLineSize,
    Caches, ClockData, ClockId, Cmdline, Compression, CpuDesc, CpuDomainInfo, CpuId, CpuPmuCaps,
    CpuTopology, DirFormat, EMachine, EventDesc, Feature, FeatureId, GoBuildIds, GroupDesc,
    Hostname, HybridTopology, MemTopology, NrCpus, NumaTopology, OsRelease, PmuCaps, PmuMappings,
    SampleTime, SimpleperfDebugUnwind, SimpleperfDebugUnwindFiles, SimpleperfEtmBranchList,
    SimpleperfFiles, SimpleperfFiles2, SimpleperfInitMap, SimpleperfMetaInfo, StatMark, TotalMem,
    TracingData, UnwoundChains, Version,
};
use crate::bytes::{Cursor, Encoder};
use crate::error::Result;
use crate::fields::{Field, Value};
use crate::wire::Wire;

macro_rules! features {
    ($($(#[$meta:meta])* $id:ident = $number:literal: $type:ident $(<$life:lifetime>)?;)*) => {
        impl FeatureId {
            $( $(#[$meta])* pub const $id: Self = Self($number); )*

            /// The features that have a name, in the order of their numbers.
            pub const NAMED: &'static [Self] = &[$(Self::$id),*];

            /// Returns the feature's name, or `None` if it is not known here.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $( $number => Some(stringify!($id)), )*
                    _ => None,
                }
            }
        }

        $(
            impl<'a> Feature<'a> for $type $(<$life>)? {
                const ID: FeatureId = FeatureId::$id;
            }
        )*

        /// A feature by its number, decoded.
        ///
        /// ```
        /// use recrep_format::bytes::Cursor;
        /// use recrep_format::endian::Endian;
        /// use recrep_format::feature::{FeatureBody, FeatureId, NrCpus};
        ///
        /// let section = [4, 0, 0, 0, 2, 0, 0, 0];
        /// let mut c = Cursor::new(&section, 0, Endian::Little);
        /// let cpus = NrCpus { available: 4, online: 2 };
        /// assert_eq!(FeatureBody::decode(FeatureId::NRCPUS, &mut c)?, FeatureBody::NrCpus(cpus));
        /// # Ok::<(), recrep_format::error::Error>(())
        /// ```
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum FeatureBody<'a> {
            $( $(#[$meta])* $type($type $(<$life>)?), )*
            /// Section of a feature that is not known here, as found.
            Other(FeatureId, &'a [u8]),
        }

        impl Field for FeatureBody<'_> {
            fn value(&self) -> Value<'_> {
                match self {
                    $( Self::$type(feature) => feature.value(), )*
                    Self::Other(_, bytes) => Value::Bytes(bytes),
                }
            }
        }

        impl<'a> FeatureBody<'a> {
            /// Returns the feature's number.
            pub fn id(&self) -> FeatureId {
                match self {
                    $( Self::$type(_) => FeatureId::$id, )*
                    Self::Other(id, _) => *id,
                }
            }

            /// Decodes the section of the feature with this number, which is at `c`; what its
            /// layout does not use is left.
            ///
            /// # Errors
            /// Returns an error if the section is malformed.
            pub fn decode(id: FeatureId, c: &mut Cursor<'a>) -> Result<Self> {
                Ok(match id {
                    $( FeatureId::$id => Self::$type(Wire::decode(c, stringify!($id))?), )*
                    _ => Self::Other(id, c.rest()),
                })
            }

            /// Appends the section of the feature.
            ///
            /// # Errors
            /// Returns an error if the format cannot represent the feature; what was written before
            /// it stays in `e`.
            pub fn encode(&self, e: &mut Encoder) -> Result<()> {
                match self {
                    $( Self::$type(feature) => feature.encode(e), )*
                    Self::Other(_, bytes) => bytes.encode(e),
                }
            }
        }
    };
}

features! {
    /// Formats of tracepoints.
    TRACING_DATA = 1: TracingData<'a>;
    /// Build IDs of the files that samples hit.
    BUILD_ID = 2: BuildIds<'a>;
    /// Name of the machine.
    HOSTNAME = 3: Hostname<'a>;
    /// Release of the kernel.
    OSRELEASE = 4: OsRelease<'a>;
    /// Version of the recorder.
    VERSION = 5: Version<'a>;
    /// Architecture of the machine.
    ARCH = 6: Arch<'a>;
    /// Number of CPUs.
    NRCPUS = 7: NrCpus;
    /// Description of the CPU.
    CPUDESC = 8: CpuDesc<'a>;
    /// Exact type of the CPU.
    CPUID = 9: CpuId<'a>;
    /// Memory of the machine.
    TOTAL_MEM = 10: TotalMem;
    /// Command line of the recorder.
    CMDLINE = 11: Cmdline<'a>;
    /// Events with their names and ids.
    EVENT_DESC = 12: EventDesc<'a>;
    /// Cores, threads, dies.
    CPU_TOPOLOGY = 13: CpuTopology<'a>;
    /// Memory nodes.
    NUMA_TOPOLOGY = 14: NumaTopology<'a>;
    /// Mark of a file with branch stacks.
    BRANCH_STACK = 15: BranchStackMark<'a>;
    /// PMU numbers and names.
    PMU_MAPPINGS = 16: PmuMappings<'a>;
    /// Groups of events.
    GROUP_DESC = 17: GroupDesc<'a>;
    /// Index of the AUXTRACE records.
    AUXTRACE = 18: AuxtraceIndex<'a>;
    /// Mark of `perf stat record`.
    STAT = 19: StatMark<'a>;
    /// Caches of the CPUs.
    CACHE = 20: Caches<'a>;
    /// Times of the first and the last sample.
    SAMPLE_TIME = 21: SampleTime;
    /// Memory blocks and their nodes.
    MEM_TOPOLOGY = 22: MemTopology<'a>;
    /// Resolution of the clock.
    CLOCKID = 23: ClockId;
    /// Mark of a directory whose files hold the records.
    DIR_FORMAT = 24: DirFormat;
    /// BPF programs.
    BPF_PROG_INFO = 25: BpfProgInfo<'a>;
    /// BPF types.
    BPF_BTF = 26: BpfBtf<'a>;
    /// Compression of the records.
    COMPRESSED = 27: Compression;
    /// Capabilities of the CPU's PMU.
    CPU_PMU_CAPS = 28: CpuPmuCaps<'a>;
    /// Clock of the records beside wall-clock time.
    CLOCK_DATA = 29: ClockData;
    /// Kinds of cores.
    HYBRID_TOPOLOGY = 30: HybridTopology<'a>;
    /// Capabilities of the PMUs.
    PMU_CAPS = 31: PmuCaps<'a>;
    /// Scheduling domains of the CPUs.
    CPU_DOMAIN_INFO = 32: CpuDomainInfo<'a>;
    /// Instruction set of the recorded programs.
    E_MACHINE = 33: EMachine;
    /// Length of a cache line.
    CLN_SIZE = 34: CacheLineSize;
    /// Android's simpleperf: files with their symbols.
    SIMPLEPERF_FILE = 128: SimpleperfFiles<'a>;
    /// Android's simpleperf: facts about the recording, such as the names of events.
    SIMPLEPERF_META_INFO = 129: SimpleperfMetaInfo<'a>;
    /// Android's simpleperf: files with copied stacks, to debug its unwinder.
    SIMPLEPERF_DEBUG_UNWIND = 130: SimpleperfDebugUnwind<'a>;
    /// Android's simpleperf: the contents of these files.
    SIMPLEPERF_DEBUG_UNWIND_FILE = 131: SimpleperfDebugUnwindFiles<'a>;
    /// Android's simpleperf: files with their symbols, as protocol buffers.
    SIMPLEPERF_FILE2 = 132: SimpleperfFiles2<'a>;
    /// Android's simpleperf: branches decoded from an ETM trace.
    SIMPLEPERF_ETM_BRANCH_LIST = 133: SimpleperfEtmBranchList<'a>;
    /// Android's simpleperf: records of what was mapped before the recording.
    SIMPLEPERF_INIT_MAP = 134: SimpleperfInitMap<'a>;
    /// Build IDs of Go programs (not perf's).
    GO_BUILD_ID = 248: GoBuildIds<'a>;
    /// Ends of callchains that the recorder unwound (not perf's).
    CHAIN_ENDS = 249: UnwoundChains<'a>;
    /// Names of the recorded addresses, in a bundle (not perf's).
    BUNDLE = 250: Bundle<'a>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endian::Endian;

    #[test]
    fn every_named_feature_has_its_own_decoder() {
        for id in (0..=u8::MAX).map(FeatureId) {
            // A section of zeroes is a list without items, an empty string, or numbers.
            let body = FeatureBody::decode(id, &mut Cursor::new(&[0; 64], 0, Endian::Little));
            let is_other = matches!(body, Ok(FeatureBody::Other(..)));
            assert_eq!(is_other, id.name().is_none(), "{id}: {body:?}");
            assert!(body.is_err() || body.is_ok_and(|body| body.id() == id), "{id}");
            assert_eq!(FeatureId::NAMED.contains(&id), id.name().is_some(), "{id}");
        }
    }

    #[test]
    fn an_unknown_feature_comes_back() {
        let body =
            FeatureBody::decode(FeatureId(200), &mut Cursor::new(b"any", 0, Endian::Big)).unwrap();
        let mut e = Encoder::new(Endian::Big);
        body.encode(&mut e).unwrap();
        assert_eq!((body, e.as_bytes()), (FeatureBody::Other(FeatureId(200), b"any"), &b"any"[..]));
    }
}
