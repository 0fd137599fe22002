//! The control page: offsets in `struct perf_event_mmap_page`, fixed by the ABI
//! (`include/uapi/linux/perf_event.h`).

/// `lock` and `index`.
pub(super) const LOCK: usize = 8;
/// `capabilities`.
pub(super) const CAPABILITIES: usize = 40;
/// `pmc_width`, `time_shift` and `time_mult`.
pub(super) const TIME_SHIFT_MULT: usize = 48;
/// `time_zero`.
pub(super) const TIME_ZERO: usize = 64;
/// `time_cycles`.
pub(super) const TIME_CYCLES: usize = 80;
/// `time_mask`.
pub(super) const TIME_MASK: usize = 88;
/// Moved by the kernel.
pub(super) const DATA_HEAD: usize = 1024;
/// Moved by rec.
pub(super) const DATA_TAIL: usize = 1032;
/// Moved by the kernel.
pub(super) const AUX_HEAD: usize = 1056;
/// Moved by rec.
pub(super) const AUX_TAIL: usize = 1064;
/// Offset for the mapping of the AUX area: set by rec.
pub(super) const AUX_OFFSET: usize = 1072;
/// Size of the AUX area: set by rec.
pub(super) const AUX_SIZE: usize = 1080;
