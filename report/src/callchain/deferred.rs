//! User parts of callchains that were recorded after their samples (`PERF_RECORD_CALLCHAIN_DEFERRED`): a thread's user
//! stack does not change while the thread is in the kernel, so one record, written at the return to user space, serves
//! all samples until then.

use recrep_format::abi::RecordType;
use recrep_format::bytes::U64s;
use recrep_format::read::File;
use recrep_format::record::{Body, RawRecord};
use rustc_hash::FxHashMap;

/// User parts of callchains by thread and cookie.
#[derive(Debug, Default)]
pub struct Deferred<'a> {
    chains: FxHashMap<(u32, u64), U64s<'a>>,
}

impl<'a> Deferred<'a> {
    /// Collects the deferred callchains among these records.
    pub fn read(file: &File<'_>, records: &[RawRecord<'a>]) -> Self {
        let mut deferred = Self::default();
        for raw in records.iter().filter(|raw| raw.header.kind == RecordType::CALLCHAIN_DEFERRED) {
            let Ok(record) = file.attrs.decode(raw) else { continue };
            if let (Body::CallchainDeferred(chain), Some([_, tid])) = (record.body, record.trailer.tid) {
                deferred.chains.insert((tid, chain.cookie), chain.ips);
            }
        }
        deferred
    }

    /// Returns the user part for a thread's chains with this cookie.
    pub fn chain(&self, tid: u32, cookie: u64) -> Option<U64s<'a>> {
        self.chains.get(&(tid, cookie)).copied()
    }
}
