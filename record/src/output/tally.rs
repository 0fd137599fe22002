//! Counts of the stream, taken while it passes: from headers only, at a few nanoseconds a record.
//!
//! Of a sample, the header and the time are read, which lie in its first cache line; of the rare
//! records that say that a file was mapped, the file. So the last line's numbers are exact, the
//! file knows when its first and last sample were, and build IDs are known at the end without
//! reading the recording back.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use recrep_console::units;
use recrep_format::abi::{AuxFlags, CpuMode, RecordType, misc};
use recrep_format::attr::Attr;
use recrep_format::record::{Body, MmapIdentity, RawRecord, RecordHeader};

use crate::output::build_ids::{FileId, MappedFile, Modules};
use crate::output::layouts::Layouts;
use crate::output::silenced::Executions;
use crate::output::unwind::{self, Chains, Unwinding};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub samples: u64,
    /// Lost events, as reported by LOST records.
    pub lost_events: u64,
    /// Lost samples, as reported by LOST_SAMPLES records.
    pub lost_samples: u64,
    /// Number of times that the kernel throttled an event.
    pub throttled: u64,
    /// Counts of AUX records.
    pub aux: AuxCounts,
    /// Invalid records, with a size below that of a header.
    pub damaged: u64,
    /// Time of the first sample.
    pub first: Option<u64>,
    /// Time of the last sample.
    pub last: u64,
}

impl Counts {
    /// Adds the counts of another part of the same stream.
    pub fn add(&mut self, other: &Self) {
        self.samples += other.samples;
        self.lost_events += other.lost_events;
        self.lost_samples += other.lost_samples;
        self.throttled += other.throttled;
        self.aux.records += other.aux.records;
        self.aux.truncated += other.aux.truncated;
        self.aux.overwritten += other.aux.overwritten;
        self.aux.partial += other.aux.partial;
        self.aux.collisions += other.aux.collisions;
        self.damaged += other.damaged;
        self.first = [self.first, other.first].into_iter().flatten().min();
        self.last = self.last.max(other.last);
    }

    /// Returns the summary line: contents of the file, and losses. `used`: what rec itself used;
    /// `view`: the command of rep that
    /// shows it, empty for the report; `None` if there is nothing to show.
    pub(crate) fn summary(
        &self,
        chains: &Chains,
        used: &str,
        bytes: u64,
        name: &str,
        view: Option<&str>,
    ) -> String {
        let samples = count(self.samples, "sample");
        // The time span of a single sample says nothing.
        let time = self.first.filter(|first| *first < self.last).map(|first| self.last - first);
        let time =
            time.map(|nanos| format!(" in {}", units::rough_time(nanos))).unwrap_or_default();
        let lost = match (self.lost_events, self.lost_samples) {
            (0, 0) => "none lost".to_owned(),
            (events, samples) => {
                format!("{}, {}", count(events, "lost event"), count(samples, "lost sample"))
            }
        };
        let command = match view {
            None | Some("") => "rep".to_owned(),
            Some(view) => format!("rep {view}"),
        };
        let view = match (view, name) {
            (None, _) | (_, "-") => String::new(),
            (_, "out.data") => format!("; view: {command}"),
            (_, name) => format!("; view: {command} {}", units::quoted(name)),
        };
        let chains = chains.summary().map(|chains| format!("{chains}, ")).unwrap_or_default();
        let bytes = units::bytes(bytes);
        format!("recorded {samples}{time} ({bytes}), {chains}{used}, {lost}: {name}{view}")
    }

    /// Returns whether anything was lost.
    pub fn is_lossy(&self) -> bool {
        self.lost_events + self.lost_samples > 0
    }
}

fn count(n: u64, what: &str) -> String {
    format!("{} {what}{}", units::grouped(n), if n == 1 { "" } else { "s" })
}

/// Number of AUX records, and of those with each flag about a problem with the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuxCounts {
    /// Number of AUX records.
    pub records: u64,
    /// Truncated because the area was full.
    pub truncated: u64,
    /// From an overwritten area, which is not a problem.
    pub overwritten: u64,
    /// With gaps.
    pub partial: u64,
    /// With samples that collided with another sample in progress.
    pub collisions: u64,
}

impl AuxCounts {
    /// Counts an AUX record's flags.
    fn count(&mut self, flags: AuxFlags) {
        self.records += 1;
        self.truncated += u64::from(flags.contains(AuxFlags::TRUNCATED));
        self.overwritten += u64::from(flags.contains(AuxFlags::OVERWRITE));
        self.partial += u64::from(flags.contains(AuxFlags::PARTIAL));
        self.collisions += u64::from(flags.contains(AuxFlags::COLLISION));
    }

    /// Returns warnings with advice for the user.
    pub fn warnings(&self) -> Vec<String> {
        let of = format!("of {} pieces of AUX trace", self.records);
        let wrong = [
            (
                self.truncated,
                "were cut short, because the AUX area was full; make it larger with -m ,SIZE",
            ),
            (
                self.partial,
                "have gaps: the hardware could not write all of it; trace less, or fewer CPUs",
            ),
            (
                self.collisions,
                "lack samples that occurred while another was in progress; sample less often",
            ),
        ];
        wrong
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {of} {what}"))
            .collect()
    }
}

/// Summary of the drained records: counts, mapped files, living processes.
#[derive(Debug)]
pub struct Tally {
    pub counts: Counts,
    /// The files mapped as code; nothing is kept by default.
    pub modules: Modules,
    /// Processes that were forked and have not exited. All drain threads share one set, as one may
    /// drain a process's FORK record and another its EXIT record.
    alive: Arc<Mutex<BTreeSet<u32>>>,
    /// Shared, too.
    executions: Executions,
    /// State for unwinding copied stacks; shared, too.
    pub(crate) unwinding: Option<Arc<Unwinding>>,
    layouts: Layouts,
}

impl Tally {
    /// Creates an empty tally. `attr` can be any attr of the stream, as all attrs of rec have the
    /// fields that are read here.
    pub fn new(attr: &Attr) -> Self {
        Self {
            counts: Counts::default(),
            modules: Modules::default(),
            alive: Arc::default(),
            executions: Executions::default(),
            unwinding: None,
            layouts: Layouts::of(attr),
        }
    }

    /// Returns a tally for another drain thread, with counts of its own.
    pub fn renewed(&self) -> Self {
        Self {
            counts: Counts::default(),
            modules: self.modules.renewed(),
            alive: Arc::clone(&self.alive),
            executions: self.executions.clone(),
            unwinding: self.unwinding.clone(),
            layouts: self.layouts.clone(),
        }
    }

    /// Returns the processes that were forked and have not exited.
    pub fn alive(&self) -> Vec<u32> {
        self.processes().iter().copied().collect()
    }

    /// Returns the names of programs that the kernel stopped recording when they were executed,
    /// each once.
    pub fn silenced(&self) -> Vec<String> {
        self.executions.silenced()
    }

    /// Returns how often rings are to be drained, for what is gone when a process has ended.
    pub fn round(&self) -> Option<Duration> {
        self.unwinding.as_ref().map(|_| unwind::ROUND).or_else(|| self.modules.round())
    }

    fn processes(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        // A poisoned lock is harmless, as a panicked thread ends the recording.
        self.alive.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the contents of another tally.
    pub fn absorb(&mut self, other: Self) {
        self.counts.add(&other.counts);
        self.modules.absorb(other.modules);
    }

    #[inline]
    pub fn count(&mut self, record: &RawRecord<'_>) {
        match record.header.kind {
            RecordType::SAMPLE => {
                self.counts.samples += 1;
                if let Some(time) = self.layouts.sample(record).and_then(|sample| sample.time()) {
                    self.sampled_at(time);
                }
            }
            RecordType::LOST
            | RecordType::LOST_SAMPLES
            | RecordType::MMAP
            | RecordType::MMAP2
            | RecordType::FORK
            | RecordType::EXIT
            | RecordType::AUX => self.rare(record),
            RecordType::COMM if record.header.misc & misc::COMM_EXEC != 0 => self.rare(record),
            RecordType::THROTTLE => self.counts.throttled += 1,
            _ => {}
        }
    }

    #[inline]
    fn sampled_at(&mut self, time: u64) {
        let counts = &mut self.counts;
        counts.first = Some(counts.first.map_or(time, |first| first.min(time)));
        counts.last = counts.last.max(time);
    }

    /// Decodes a rare record that needs more than its header.
    #[cold]
    fn rare(&mut self, record: &RawRecord<'_>) {
        let header = record.header;
        let decoded = self.layouts.decode(record);
        if let (Some(unwinding), Ok(record)) = (&self.unwinding, &decoded) {
            unwinding.spaces.gather(record);
        }
        let time = decoded.as_ref().map_or(0, |record| record.trailer.time.unwrap_or(0));
        match decoded.map(|record| record.body) {
            Ok(Body::Comm(comm)) => self.executions.executed(comm.pid, comm.comm.as_bytes(), time),
            Ok(Body::Lost(lost)) => self.counts.lost_events += lost.lost,
            Ok(Body::LostSamples(lost)) => self.counts.lost_samples += lost.lost,
            Ok(Body::Mmap(m)) if is_user_code(header) => {
                let range = m.addr..m.addr.saturating_add(m.len);
                let mapped = MappedFile { pid: m.pid, range, file: FileId::default() };
                self.modules.add_file(m.filename.as_bytes(), mapped);
            }
            Ok(Body::Mmap2(m)) if is_user_code(header) => {
                self.executions.mapped(m.pid, time);
                let (path, range) = (m.filename.as_bytes(), m.addr..m.addr.saturating_add(m.len));
                match m.identity {
                    MmapIdentity::Inode(inode) => {
                        self.modules
                            .add_file(path, MappedFile { pid: m.pid, range, file: inode.into() });
                    }
                    MmapIdentity::BuildId(_) => {
                        if let Some(id) = m.identity.build_id() {
                            let mapped = MappedFile { pid: m.pid, range, file: FileId::default() };
                            self.modules.add_identified(path, id, Some(mapped));
                        }
                    }
                }
            }
            Ok(Body::Aux(aux)) => self.counts.aux.count(aux.flags),
            Ok(Body::Fork(task)) if task.pid == task.tid => drop(self.processes().insert(task.pid)),
            Ok(Body::Exit(task)) if task.pid == task.tid => {
                self.processes().remove(&task.pid);
                self.executions.ended(task.pid, time);
                self.modules.end_process(task.pid);
            }
            Ok(_) => {}
            Err(_) => self.counts.damaged += 1,
        }
    }
}

fn is_user_code(header: RecordHeader) -> bool {
    header.misc & misc::MMAP_DATA == 0 && header.cpu_mode() == CpuMode::User
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::fake_ring::fake_record;
    use recrep_format::abi::{AttrFlags, SampleType};
    use recrep_format::endian::Endian;
    use recrep_format::read::Frames;

    fn tally() -> Tally {
        let sample_type = SampleType::IDENTIFIER
            | SampleType::IP
            | SampleType::TID
            | SampleType::TIME
            | SampleType::CPU;
        Tally::new(&Attr {
            size: 128,
            sample_type,
            flags: AttrFlags::SAMPLE_ID_ALL,
            ..Attr::default()
        })
    }

    fn sample(time: u64) -> Vec<u8> {
        fake_record(9, &[1, 0x1000, 2, time, 0])
    }

    fn count_all(tally: &mut Tally, records: &[u8]) {
        Frames::new(records, 0, Endian::NATIVE).for_each(|record| tally.count(&record.unwrap()));
    }

    fn stream() -> Vec<u8> {
        let trailer = [0, 0, 0, 0];
        let lost = fake_record(2, &[&[1, 7][..], &trailer].concat());
        let lost_samples = fake_record(13, &[&[5][..], &trailer].concat());
        [
            sample(30),
            lost,
            fake_record(68, &[]),
            sample(10),
            lost_samples,
            sample(20),
            fake_record(5, &[0, 0, 0, 0, 0, 0, 0]),
        ]
        .concat()
    }

    #[test]
    fn the_summary_says_what_is_in_the_file_and_what_was_lost() {
        let counts = Counts { samples: 12, lost_events: 1, lost_samples: 3, ..Counts::default() };
        assert_eq!(
            counts.summary(&Chains::default(), "rec used nothing", 4096, "out.data", Some("")),
            "recorded 12 samples (4.0 KiB), rec used nothing, 1 lost event, 3 lost samples: \
             out.data; view: rep"
        );
        let all =
            Counts { samples: 6992, first: Some(5), last: 2_000_000_005, ..Counts::default() };
        assert_eq!(
            all.summary(&Chains::default(), "rec used nothing", 397_348, "-", Some("syscalls")),
            "recorded 6,992 samples in 2.0 s (388 KiB), rec used nothing, none lost: -"
        );
        assert!(
            all.summary(&Chains::default(), "rec used nothing", 1, "a b.data", Some(""))
                .ends_with("(1 byte), rec used nothing, none lost: a b.data; view: rep 'a b.data'")
        );
        assert_eq!(
            Counts::default().summary(
                &Chains::default(),
                "rec used nothing",
                4096,
                "out.data",
                None
            ),
            "recorded 0 samples (4.0 KiB), rec used nothing, none lost: out.data"
        );
        assert!(counts.is_lossy());
    }

    #[test]
    fn counts_by_type() {
        let mut tally = tally();
        count_all(&mut tally, &stream());
        let tally = tally.counts;
        assert_eq!((tally.samples, tally.lost_events, tally.lost_samples), (3, 7, 5));
        assert_eq!((tally.first, tally.last, tally.throttled, tally.damaged), (Some(10), 30, 1, 0));
    }

    #[test]
    fn what_several_count_is_what_one_counts() {
        let parts = [stream(), sample(7), fake_record(11, &[0, 64, 0xf, 0, 0, 0, 0])];
        let mut one = tally();
        let mut sum = tally();
        for part in parts {
            count_all(&mut one, &part);
            let mut other = sum.renewed();
            count_all(&mut other, &part);
            sum.absorb(other);
        }
        assert_eq!(sum.counts, one.counts);
        assert_eq!((sum.counts.first, sum.counts.aux.collisions), (Some(7), 1));
    }

    #[test]
    fn a_record_that_is_too_short_for_its_fields_is_damaged() {
        let mut tally = tally();
        count_all(&mut tally, &fake_record(2, &[1, 7, 0, 0]));
        assert_eq!((tally.counts.lost_events, tally.counts.damaged), (0, 1));
    }

    #[test]
    fn flags_of_aux_records_are_counted_and_told() {
        let mut tally = tally();
        for flags in [0, 1, 1, 2, 4, 0xd, 0x100] {
            count_all(&mut tally, &fake_record(11, &[0, 64, flags, 0, 0, 0, 0]));
        }
        let aux = tally.counts.aux;
        assert_eq!(
            (aux.records, aux.truncated, aux.overwritten, aux.partial, aux.collisions),
            (7, 3, 1, 2, 1)
        );
        let warnings = aux.warnings();
        assert_eq!(warnings.len(), 3);
        assert!(
            warnings[0].starts_with("3 of 7 pieces of AUX trace were cut short"),
            "{warnings:?}"
        );
        assert!(
            AuxCounts { records: 5, overwritten: 5, ..AuxCounts::default() }.warnings().is_empty()
        );
    }
}
