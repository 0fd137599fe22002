//! The remaining records of the kernel: AUX, switches, namespaces, symbols, BPF, cgroups, text, counters.

use crate::abi::ReadFormat;
use crate::bytes::{Cursor, Encoder};
use crate::error::Result;
use crate::wire;
use crate::wire::Text;

use super::ReadValues;

wire! {
    /// New data in the AUX area (`PERF_RECORD_AUX`).
    pub struct Aux {
        /// Where it begins, in bytes since the area was mapped.
        pub aux_offset: u64,
        /// How much it is, in bytes.
        pub aux_size: u64,
        /// `PERF_AUX_FLAG_*`: truncated 1, overwrite 2, partial 4, collision 8; format in bits 8–15.
        pub flags: u64,
    }

    /// Instruction tracing began for a task (`PERF_RECORD_ITRACE_START`).
    pub struct ItraceStart {
        /// The process.
        pub pid: u32,
        /// The thread.
        pub tid: u32,
    }

    /// A context switch seen from the CPU (`PERF_RECORD_SWITCH_CPU_WIDE`).
    pub struct SwitchCpuWide {
        /// The process that comes, or that was there before.
        pub next_prev_pid: u32,
        /// Its thread.
        pub next_prev_tid: u32,
    }

    /// The namespaces of a task (`PERF_RECORD_NAMESPACES`).
    pub struct Namespaces<'a> {
        /// The process.
        pub pid: u32,
        /// The thread.
        pub tid: u32,
        /// How many namespaces follow, by the record's word.
        pub nr_namespaces: u64,
        /// Pairs of device and inode, in the kernel's order: net, uts, ipc, pid, user, mnt, cgroup.
        pub links: crate::bytes::U64s<'a>,
    }

    /// A kernel symbol came or went (`PERF_RECORD_KSYMBOL`).
    pub struct KSymbol<'a> {
        /// Its address.
        pub addr: u64,
        /// Its length in bytes.
        pub len: u32,
        /// 1: BPF, 2: out-of-line code.
        pub ksym_type: u16,
        /// Bit 0: it went.
        pub flags: u16,
        /// Its name.
        pub name: Text<'a>,
    }

    /// A BPF program came or went (`PERF_RECORD_BPF_EVENT`).
    pub struct BpfEvent {
        /// 1: loaded, 2: unloaded.
        pub event_type: u16,
        /// Flags.
        pub flags: u16,
        /// The program's id.
        pub id: u32,
        /// Its tag.
        pub tag: [u8; 8],
    }

    /// A cgroup (`PERF_RECORD_CGROUP`).
    pub struct Cgroup<'a> {
        /// Its id.
        pub id: u64,
        /// Its path.
        pub path: Text<'a>,
    }

    /// The kernel changed its own text (`PERF_RECORD_TEXT_POKE`).
    pub struct TextPoke<'a> {
        /// Where.
        pub addr: u64,
        /// How many old bytes.
        pub old_len: u16,
        /// How many new bytes.
        pub new_len: u16,
        /// The old bytes, the new bytes, padding.
        pub bytes: &'a [u8],
    }

    /// Which hardware id stands for an event in AUX output (`PERF_RECORD_AUX_OUTPUT_HW_ID`).
    pub struct AuxOutputHwId {
        /// The id.
        pub hw_id: u64,
    }

    /// The user part of an earlier sample's callchain (`PERF_RECORD_CALLCHAIN_DEFERRED`).
    pub struct CallchainDeferred<'a> {
        /// What the sample's `PERF_CONTEXT_USER_DEFERRED` was followed by.
        pub cookie: u64,
        /// How many addresses follow, by the record's word.
        pub nr: u64,
        /// The addresses and context marks.
        pub ips: crate::bytes::U64s<'a>,
    }

    /// One namespace.
    pub struct Namespace {
        /// The device of its file.
        pub dev: u64,
        /// The inode of its file.
        pub inode: u64,
    }
}

impl Namespaces<'_> {
    /// The namespaces, as many as the record says and holds.
    pub fn iter(&self) -> impl Iterator<Item = Namespace> {
        let count = usize::try_from(self.nr_namespaces).unwrap_or(usize::MAX);
        let links = self.links;
        (0..links.len() / 2)
            .take(count)
            .filter_map(move |i| Some(Namespace { dev: links.get(2 * i)?, inode: links.get(2 * i + 1)? }))
    }
}

/// The value of a counter, or of its group (`PERF_RECORD_READ`): what `inherit_stat` leaves when a task ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRecord<'a> {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The value, laid out by the attr's `read_format`.
    pub values: ReadValues<'a>,
}

impl<'a> ReadRecord<'a> {
    pub(super) fn decode(c: &mut Cursor<'a>, format: ReadFormat) -> Result<Self> {
        Ok(Self { pid: c.u32("Read.pid")?, tid: c.u32("Read.tid")?, values: ReadValues::decode(c, format)? })
    }

    pub(super) fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.u32(self.pid);
        e.u32(self.tid);
        self.values.encode(e)
    }
}
