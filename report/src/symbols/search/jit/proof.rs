//! Proof that a JIT's map (`/tmp/perf-PID.map`) is of the recorded process: pids are used again,
//! and maps stay.
//!
//! ```text
//!   process that had the pid before │ began      recorded process      ended │ process that has the pid now
//!   ────────────────────────────────┼────────────────────────────────────────┼───────────────────────────► time
//!                          refused  │  last written to: the process's own    │ refused
//! ```
//!
//! When the process began and ended is taken from its records (FORK, or the exec of its program;
//! EXIT), or from `/proc` if it still lives. If its end is not recorded and it does not live, the
//! recording's end counts. If its beginning is not known, all that shows is that the map is of this
//! boot: it is used, and a note says so. A map that is another user's than the process's (or, if
//! that does not live, this one's) is refused, since everybody may write to `/tmp`.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;

use crate::symbols::file::Refusal;
use crate::symbols::module::jit_life::{JitLife, TICK};
use crate::symbols::search::processes::LivingProcess;
use crate::symbols::search::proof;

/// Note on a map of a process whose beginning is not known.
pub(crate) const UNKNOWN_START: &str = "nothing shows when the process began, so the JIT's map may \
                                        be that of an earlier process with this pid; rec keeps the \
                                        maps that are proven (perf does not), and rep proves them \
                                        while the process lives";

impl JitLife {
    /// Checks that a map is the process's own; `living` is the process if it still lives. Returns a
    /// note on what the proof lacks, if anything.
    pub(crate) fn check_map(
        &self,
        map: &Metadata,
        living: Option<&LivingProcess>,
    ) -> Result<Option<&'static str>, Refusal> {
        if self.is_reused {
            return Err(Refusal::ReusedPid);
        }
        self.check_owner(map.uid(), living)?;
        let modified = map.modified()?;
        let until = if living.is_some() { None } else { self.ended.or(self.recorded_until) };
        if until.is_some_and(|until| modified > until + TICK) {
            return Err(Refusal::MapAfterProcess);
        }
        let began = living.map(|process| process.started).or(self.began);
        if modified + TICK < began.unwrap_or_else(proof::booted) {
            return Err(Refusal::MapBeforeProcess);
        }
        Ok(began.is_none().then_some(UNKNOWN_START))
    }

    /// Checks that a file with a recorded inode was not created after the process had ended:
    /// numbers of inodes are used again. Not all file systems know when a file was created.
    pub(crate) fn check_created(&self, dump: &Metadata) -> Result<(), Refusal> {
        match (dump.created(), self.ended.or(self.recorded_until)) {
            (Ok(created), Some(until)) if created > until => Err(Refusal::OtherInode),
            _ => Ok(()),
        }
    }

    fn check_owner(&self, owner: u32, living: Option<&LivingProcess>) -> Result<(), Refusal> {
        const ROOT: u32 = 0;
        let is_own = match living {
            Some(process) => process.users.contains(&owner),
            None => {
                let me = fs::metadata("/proc/self").map(|process| process.uid())?;
                me == ROOT || me == owner
            }
        };
        if is_own || owner == ROOT { Ok(()) } else { Err(Refusal::OtherUser { owner }) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn checked(
        map: &Metadata,
        life: &JitLife,
        living: Option<SystemTime>,
    ) -> Result<Option<&'static str>, Refusal> {
        let living = living.map(|started| LivingProcess {
            started,
            users: vec![map.uid()],
            inner: 7,
            mounts: None,
            is_elsewhere: false,
        });
        life.check_map(map, living.as_ref())
    }

    #[test]
    fn a_map_is_of_the_process_that_lived_when_it_was_written() {
        let file = tempfile::tempfile().unwrap();
        let map = file.metadata().unwrap();
        let [before, after] =
            [map.modified().unwrap() - 10 * TICK, map.modified().unwrap() + 10 * TICK];
        let whole = JitLife { began: Some(before), ended: Some(after), ..JitLife::default() };
        assert!(matches!(checked(&map, &whole, None), Ok(None)));
        let later = JitLife { began: Some(after), ..whole.clone() };
        assert!(matches!(checked(&map, &later, None), Err(Refusal::MapBeforeProcess)));
        let earlier = JitLife { ended: Some(before), ..whole.clone() };
        assert!(matches!(checked(&map, &earlier, None), Err(Refusal::MapAfterProcess)));
        let attached = JitLife { recorded_until: Some(after), ..JitLife::default() };
        assert!(matches!(checked(&map, &attached, None), Ok(Some(UNKNOWN_START))));
        let old = JitLife { recorded_until: Some(before), ..JitLife::default() };
        assert!(matches!(checked(&map, &old, None), Err(Refusal::MapAfterProcess)));
        // It lives, and goes on writing.
        assert!(old.is_living(before) && matches!(checked(&map, &old, Some(before)), Ok(None)));
        assert!(!old.is_living(after), "another process has the pid");
        assert!(!JitLife { ended: Some(after), ..old.clone() }.is_living(before));
        assert!(matches!(checked(&map, &old, Some(after)), Err(Refusal::MapBeforeProcess)));
        let reused = JitLife { is_reused: true, ..whole };
        assert!(matches!(checked(&map, &reused, None), Err(Refusal::ReusedPid)));
    }

    #[test]
    fn a_dump_that_was_created_after_the_process_is_another_one() {
        let dump = tempfile::tempfile().unwrap().metadata().unwrap();
        let Ok(created) = dump.created() else { return };
        let of = |until| JitLife { recorded_until: Some(until), ..JitLife::default() };
        assert!(of(created).check_created(&dump).is_ok());
        let before = of(created - 10 * TICK);
        assert!(matches!(before.check_created(&dump), Err(Refusal::OtherInode)));
        let ended = JitLife { ended: Some(created), ..before };
        assert!(ended.check_created(&dump).is_ok());
    }

    #[test]
    fn a_map_of_the_last_boot_is_of_no_process() {
        let file = tempfile::tempfile().unwrap();
        file.set_modified(proof::booted() - Duration::from_secs(60)).unwrap();
        let checked = checked(&file.metadata().unwrap(), &JitLife::default(), None);
        assert!(matches!(checked, Err(Refusal::MapBeforeProcess)));
    }

    #[test]
    fn a_map_is_of_the_user_of_its_process() {
        let process = LivingProcess {
            started: proof::booted(),
            users: vec![1000, 1001],
            inner: 7,
            mounts: None,
            is_elsewhere: false,
        };
        let of = |owner| JitLife::default().check_owner(owner, Some(&process)).is_ok();
        assert!(of(0) && of(1000) && of(1001) && !of(1002));
    }

    #[test]
    fn kept_maps_are_named_after_their_recording() {
        let life = JitLife { sampled: Some((0x1f, 0x20)), ..JitLife::default() };
        assert_eq!(life.kept_name(7, "map").as_deref(), Some("1f-20-7.map"));
        assert_eq!(JitLife { is_reused: true, ..life }.kept_name(7, "map"), None);
    }
}
