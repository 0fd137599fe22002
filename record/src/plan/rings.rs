//! Sizes of rings and AUX areas, and watermarks at which the kernel wakes rec.

use recrep_format::abi::AttrFlags;

use super::aux::AuxPlan;
use super::context::Context;
use super::event::PlannedEvent;
use super::notes::Notes;
use crate::messages::error::{Error, Result};
use crate::plan::config::{RingSize, Switch};

/// Default size of a ring's data area, if the limit on locked memory allows it.
const DEFAULT_RING: u64 = 512 << 10;
/// Default size for copies of stacks.
const RING_OF_COPIES: u64 = 2 << 20;
/// Default size for copies of stacks that come at an unknown rate, as with each call of a probed
/// function: a burst is to fit until it is unwound.
const RING_OF_BURSTS: u64 = 16 << 20;
/// Size of the rings of all CPUs together for bursts.
const MOST_FOR_BURSTS: u64 = 256 << 20;
/// Default size in recordings with an AUX area, which shares an unprivileged user's limit on locked
/// memory.
const RING_BESIDE_AUX: u64 = 256 << 10;
/// Default sizes of an AUX area, without and with a limit on locked memory.
const DEFAULT_AREA: u64 = 4 << 20;
const SMALL_AREA: u64 = 128 << 10;
/// Maximum size of a ring.
const MOST_RING: u64 = 1 << 30;
/// Number of bytes of samples with copied stacks for which rec is woken: it takes longer to unwind
/// them than the kernel to write them.
const UNWOUND_AT_ONCE: u64 = 1 << 20;
/// Maximum size of a sample without a copy of the stack, roughly.
const MOST_OF_SAMPLE: u64 = 2048;
/// Rings up to this size can overflow between the wakeup and rec's running, so they wake it before
/// they are half full.
const SMALL_RING: u64 = 128 << 10;

/// Sizes of the buffers.
#[derive(Clone, Copy, Debug)]
pub(super) struct BufferSizes {
    /// Pages in each ring's data area.
    pub(super) ring_pages: usize,
    /// Pages in each AUX area; 0 without areas.
    pub(super) area_pages: usize,
    /// Bytes in a snapshot of an area; 0 without snapshots.
    pub(super) snapshot: u64,
}

/// Size of a ring for samples with copies of stacks.
#[derive(Clone, Copy, Debug)]
pub(super) struct RingOfCopies {
    pub(super) bytes: u64,
    /// `true` if the limit on locked memory makes it smaller than the default.
    pub(super) is_limited: bool,
}

/// Returns the size of a ring, if samples have copies of stacks that rec unwinds.
pub(super) fn for_copies(beside_aux: bool, context: &Context<'_>) -> RingOfCopies {
    match context.config.rings.data {
        Some(size) => RingOfCopies { bytes: bytes(size, context), is_limited: false },
        None => {
            let bytes = default_size(beside_aux, true, context);
            RingOfCopies { bytes, is_limited: bytes < RING_OF_COPIES }
        }
    }
}

/// Returns the sizes of all buffers; `unwinds` if samples have copies of stacks that rec unwinds,
/// `has_bursts` if some of them come at an unknown rate.
pub(super) fn sizes(
    area: &AuxPlan,
    unwinds: bool,
    has_bursts: bool,
    context: &Context<'_>,
    notes: &mut Notes,
) -> Result<BufferSizes> {
    let page = context.machine.page_size as u64;
    let mut sizes = BufferSizes { ring_pages: 0, area_pages: 0, snapshot: 0 };
    let mut beside_aux = false;
    if area.wants_tracker {
        (sizes.area_pages, sizes.snapshot) = area_sizes(area, context, notes)?;
        beside_aux = context.config.rings.aux.is_none() && !is_unlimited(context);
    }
    sizes.ring_pages = match context.config.rings.data {
        Some(size) => rounded(size, "-m", page, notes)?,
        None => {
            let mut size = default_size(beside_aux, unwinds, context);
            if size == RING_OF_COPIES && has_bursts {
                size = size_for_bursts(context);
            }
            previous_power_of_two(size / page)
        }
    };
    Ok(sizes)
}

/// Returns the pages of each AUX area, and the bytes of a snapshot.
fn area_sizes(area: &AuxPlan, context: &Context<'_>, notes: &mut Notes) -> Result<(usize, u64)> {
    let page = context.machine.page_size as u64;
    let snapshot = context.config.aux.snapshots.map(|snapshots| snapshots.size);
    let size = match (context.config.rings.aux, snapshot) {
        (Some(size), _) => size,
        (None, Some(bytes)) if bytes > 0 => holding(bytes, page),
        (None, _) if area.sampled > 0 => holding(area.sampled.into(), page),
        (None, _) if is_unlimited(context) => RingSize::Bytes(DEFAULT_AREA.max(page)),
        (None, _) => RingSize::Bytes(SMALL_AREA.max(page)),
    };
    let pages = rounded(size, "-m", page, notes)?;
    let bytes = (pages as u64).saturating_mul(page);
    let least = if snapshot.is_some() || area.sampled > 0 { 4 << 10 } else { 8 << 10 };
    if bytes < least {
        return Err(Error::Usage(format!(
            "-m: the AUX area is too small; give it at least {}K",
            least >> 10
        )));
    }
    let snapshot = match snapshot {
        Some(0) => bytes,
        Some(asked) => asked,
        None => 0,
    };
    let needed = snapshot.max(area.sampled.into());
    if needed > bytes {
        return Err(Error::Usage(format!(
            "-S, --aux-sample: {needed} bytes exceed the AUX area ({bytes} bytes); enlarge it with \
             -m ,SIZE"
        )));
    }
    Ok((pages, snapshot))
}

/// Returns the size of an area that holds so many bytes.
fn holding(bytes: u64, page: u64) -> RingSize {
    RingSize::Bytes(bytes.max(page).next_power_of_two())
}

/// Returns whether AUX areas do not count as locked memory.
fn is_unlimited(context: &Context<'_>) -> bool {
    context.machine.privileged || context.machine.paranoid < 0
}

/// Returns the default size of a ring's data area, if the limit on locked memory allows it;
/// `unwinds` if samples have copies of stacks that rec unwinds.
fn default_size(beside_aux: bool, unwinds: bool, context: &Context<'_>) -> u64 {
    let (machine, page) = (context.machine, context.machine.page_size as u64);
    if unwinds && !beside_aux && !context.config.per_thread {
        let cpus = machine.online.len() as u64;
        let limit = (machine.mlock_kb << 10).saturating_mul(cpus);
        let limit = limit.saturating_add(machine.memlock_kb.saturating_mul(1 << 10));
        for ring in [RING_OF_COPIES, RING_OF_COPIES / 2] {
            if machine.privileged || (ring + page).saturating_mul(cpus) <= limit {
                return ring;
            }
        }
    }
    let most = if beside_aux { RING_BESIDE_AUX } else { DEFAULT_RING };
    // The control page takes one page of the limit.
    (machine.mlock_kb << 10).min(most + page).saturating_sub(page)
}

/// Returns the size of a ring for bursts of samples with copies of stacks.
fn size_for_bursts(context: &Context<'_>) -> u64 {
    // What other users may lock is not enough for more.
    if !context.machine.privileged {
        return RING_OF_COPIES;
    }
    let cpus = context.machine.online.len().max(1) as u64;
    (MOST_FOR_BURSTS / cpus).clamp(RING_OF_COPIES, RING_OF_BURSTS)
}

/// Returns a requested size in bytes.
fn bytes(size: RingSize, context: &Context<'_>) -> u64 {
    match size {
        RingSize::Pages(pages) => pages.saturating_mul(context.machine.page_size as u64),
        RingSize::Bytes(bytes) => bytes,
    }
}

/// Rounds a requested size to a power of two, in pages.
fn rounded(size: RingSize, flag: &str, page: u64, notes: &mut Notes) -> Result<usize> {
    let pages = match size {
        RingSize::Pages(pages) => pages,
        RingSize::Bytes(bytes) => bytes.div_ceil(page),
    };
    let rounded = pages.checked_next_power_of_two().filter(|p| p.saturating_mul(page) <= MOST_RING);
    let rounded = rounded.ok_or_else(|| {
        Error::Usage(format!("{flag}: rings of {pages} pages are too large; use at most 1G"))
    })?;
    if rounded != pages {
        notes.add(format!(
            "rings have {rounded} pages instead of {pages}: the size must be a power of two"
        ));
    }
    usize::try_from(rounded)
        .map_err(|_| Error::Usage(format!("{flag}: {pages} pages are too many; use at most 1G")))
}

/// Returns the largest power of two up to `n`, at least 1.
fn previous_power_of_two(n: u64) -> usize {
    usize::try_from(n).ok().and_then(usize::checked_ilog2).map_or(1, |log| 1 << log)
}

/// Sets the watermarks: by default at half of a ring (0), with `--no-buffering` at every record, with
/// `--max-samples` at so many if half of a ring holds them, for small rings at a quarter; low enough
/// that files do not grow far beyond a size limit, and that rec keeps up if it `unwinds`.
pub(super) fn set_watermarks(
    events: &mut [PlannedEvent],
    area: &AuxPlan,
    sizes: BufferSizes,
    unwinds: bool,
    context: &Context<'_>,
) {
    let (config, page) = (context.config, context.machine.page_size as u64);
    let area_bytes = (sizes.area_pages as u64).saturating_mul(page);
    for event in events.iter_mut().filter(|event| event.has_aux && area.wakes) {
        event.attr.aux_watermark = u32::try_from(area_bytes / 4).unwrap_or(u32::MAX);
    }
    let bytes = (sizes.ring_pages as u64).saturating_mul(page);
    let small = (bytes <= SMALL_RING).then_some(bytes / 4);
    let unwound = unwinds.then_some(UNWOUND_AT_ONCE);
    let switch = match config.output.switch {
        Some(Switch::Size(size)) => Some(size),
        _ => None,
    };
    let limited =
        [config.output.max_size, switch].into_iter().flatten().map(|size| (size / 4).max(page));
    let early = limited.chain(small).chain(unwound).min().filter(|early| *early < bytes / 2);
    let copied = events.iter().map(|event| event.attr.sample_stack_user).max().unwrap_or(0);
    let few = config
        .output
        .max_samples
        .filter(|samples| samples.saturating_mul(MOST_OF_SAMPLE + u64::from(copied)) <= bytes / 2);
    for event in events {
        if config.rings.no_buffering {
            event.attr.wakeup = 1;
        } else if let Some(few) = few {
            event.attr.wakeup = u32::try_from(few).unwrap_or(u32::MAX);
        } else if let Some(early) =
            early.filter(|_| !event.attr.flags.contains(AttrFlags::WRITE_BACKWARD))
        {
            event.attr.flags |= AttrFlags::WATERMARK;
            event.attr.wakeup = u32::try_from(early).unwrap_or(u32::MAX);
        }
    }
}

/// Lowers watermarks above half of a ring or area to a quarter. Returns whether any was too high.
pub(super) fn wake_earlier(
    event: &mut PlannedEvent,
    ring_pages: usize,
    area_pages: usize,
    page_size: usize,
) -> bool {
    let attr = &mut event.attr;
    let is_ring_late = attr.flags.contains(AttrFlags::WATERMARK)
        && lower(&mut attr.wakeup, ring_pages.saturating_mul(page_size));
    lower(&mut attr.aux_watermark, area_pages.saturating_mul(page_size)) | is_ring_late
}

/// Lowers a watermark above half of a buffer to a quarter. Returns whether it was too high.
fn lower(watermark: &mut u32, bytes: usize) -> bool {
    let is_late = bytes > 0 && *watermark as usize > bytes / 2;
    if is_late {
        *watermark = u32::try_from(bytes / 4).unwrap_or(u32::MAX);
    }
    is_late
}
