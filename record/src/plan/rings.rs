//! Sizes of rings, and watermarks at which the kernel wakes rec.

use recrep_format::abi::AttrFlags;

use super::context::Context;
use super::event::PlannedEvent;
use super::notes::Notes;
use crate::machine::Machine;
use crate::messages::error::{Error, Result};
use crate::plan::config::{Config, RingSize, Switch};

/// Default size of a ring's data area, if the limit on locked memory allows it.
const DEFAULT_RING: u64 = 512 << 10;
/// Default size for copies of stacks.
pub(super) const RING_OF_STACKS: u64 = 2 << 20;
/// Default size in recordings with an AUX area, which shares an unprivileged user's limit on locked
/// memory.
const RING_BESIDE_AUX: u64 = 256 << 10;
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

/// Returns the number of pages in each ring's data area.
pub(super) fn data_pages(
    asked: Option<RingSize>,
    default: u64,
    machine: &Machine,
    notes: &mut Notes,
) -> Result<usize> {
    let page = machine.page_size as u64;
    match asked {
        Some(size) => rounded(size, "-m", page, notes),
        None => Ok(previous_power_of_two(default / page)),
    }
}

/// Returns the default size of a ring's data area, if the limit on locked memory allows it.
/// `unwinds`: samples have copies of stacks, which rec unwinds.
pub(super) fn default_size(beside_aux: bool, unwinds: bool, context: &Context<'_>) -> u64 {
    let (machine, page) = (context.machine, context.machine.page_size as u64);
    if unwinds && !beside_aux && !context.config.per_thread {
        let cpus = machine.online.len() as u64;
        let limit = (machine.mlock_kb << 10).saturating_mul(cpus);
        let limit = limit.saturating_add(machine.memlock_kb.saturating_mul(1 << 10));
        let fits = |ring: &u64| machine.privileged || (ring + page).saturating_mul(cpus) <= limit;
        if let Some(ring) = [RING_OF_STACKS, RING_OF_STACKS / 2].into_iter().find(fits) {
            return ring;
        }
    }
    let most = if beside_aux { RING_BESIDE_AUX } else { DEFAULT_RING };
    // The control page takes one page of the limit.
    (machine.mlock_kb << 10).min(most + page).saturating_sub(page)
}

/// Rounds a requested size to a power of two, in pages.
pub(super) fn rounded(size: RingSize, flag: &str, page: u64, notes: &mut Notes) -> Result<usize> {
    let pages = size.pages(page);
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
pub(super) fn previous_power_of_two(n: u64) -> usize {
    usize::try_from(n).ok().and_then(usize::checked_ilog2).map_or(1, |log| 1 << log)
}

/// Sets the watermarks: by default at half of a ring (0), with `--no-buffering` at every record, with
/// `--max-samples` at so many if half of a ring holds them, for small rings at a quarter; low enough
/// that files do not grow far beyond a size limit, and that rec keeps up if it `unwinds`.
pub(super) fn wake(
    events: &mut [PlannedEvent],
    pages: usize,
    unwinds: bool,
    config: &Config,
    machine: &Machine,
) {
    let page = machine.page_size as u64;
    let bytes = (pages as u64).saturating_mul(page);
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
    let earlier = |watermark: &mut u32, pages: usize| {
        let bytes = pages.saturating_mul(page_size);
        let late = pages > 0 && *watermark as usize > bytes / 2;
        if late {
            *watermark = u32::try_from(bytes / 4).unwrap_or(u32::MAX);
        }
        late
    };
    let ring = attr.flags.contains(AttrFlags::WATERMARK) && earlier(&mut attr.wakeup, ring_pages);
    earlier(&mut attr.aux_watermark, area_pages) | ring
}
