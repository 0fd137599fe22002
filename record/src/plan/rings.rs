//! The rings: how large, and when the kernel wakes rec.

use recrep_format::abi::AttrFlags;

use super::event::PlannedEvent;
use super::notes::Notes;
use crate::machine::Machine;
use crate::messages::error::{Error, Result};
use crate::plan::config::{Config, RingSize, Switch};

/// The size of a ring's data area, where the kernel's budget allows it.
const DEFAULT_RING: u64 = 512 << 10;
/// The same beside an AUX area, which a user without privileges has to fit into the same budget.
const RING_BESIDE_AUX: u64 = 256 << 10;
/// Records stay well below this; `size` is 16 bits wide.
const MOST_RING: u64 = 1 << 30;
/// Rings up to this size fill up while rec is still being woken, so that the kernel must wake it earlier than at half.
const SMALL_RING: u64 = 128 << 10;

/// Pages in each ring's data area.
pub(super) fn data_pages(
    asked: Option<RingSize>,
    beside_aux: bool,
    machine: &Machine,
    notes: &mut Notes,
) -> Result<usize> {
    let page = machine.page_size as u64;
    match asked {
        Some(size) => rounded(size, "-m", page, notes),
        // One page of the budget is for the control page.
        None => {
            let most = if beside_aux { RING_BESIDE_AUX } else { DEFAULT_RING };
            Ok(previous_power_of_two((machine.mlock_kb << 10).min(most + page).saturating_sub(page) / page))
        }
    }
}

/// A size that was asked for, in pages: a power of two.
pub(super) fn rounded(size: RingSize, flag: &str, page: u64, notes: &mut Notes) -> Result<usize> {
    let pages = size.pages(page);
    let rounded = pages.checked_next_power_of_two().filter(|p| p.saturating_mul(page) <= MOST_RING);
    let rounded = rounded
        .ok_or_else(|| Error::Usage(format!("{flag}: rings of {pages} pages are larger than a ring may be (1G)")))?;
    if rounded != pages {
        notes.add(format!("rings of {rounded} pages instead of {pages}: the size must be a power of two"));
    }
    usize::try_from(rounded).map_err(|_| Error::Usage(format!("{flag}: {pages} pages are too many")))
}

/// The largest power of two up to `n`, at least 1.
pub(super) fn previous_power_of_two(n: u64) -> usize {
    usize::try_from(n).ok().and_then(usize::checked_ilog2).map_or(1, |log| 1 << log)
}

/// When the kernel wakes rec: by default when half a ring is filled (0), with `--no-buffering` at every record; small rings at a
/// quarter, and all so early that a file does not grow much beyond the size that it was given.
pub(super) fn wake(events: &mut [PlannedEvent], pages: usize, config: &Config, machine: &Machine) {
    let page = machine.page_size as u64;
    let bytes = (pages as u64).saturating_mul(page);
    let small = (bytes <= SMALL_RING).then_some(bytes / 4);
    let switch = match config.output.switch {
        Some(Switch::Size(size)) => Some(size),
        _ => None,
    };
    let limited = [config.output.max_size, switch].into_iter().flatten().map(|size| (size / 4).max(page));
    let early = limited.chain(small).min().filter(|early| *early < bytes / 2);
    for event in events {
        if config.rings.no_buffering {
            event.attr.wakeup = 1;
        } else if let Some(early) = early.filter(|_| !event.attr.flags.contains(AttrFlags::WRITE_BACKWARD)) {
            event.attr.flags |= AttrFlags::WATERMARK;
            event.attr.wakeup = u32::try_from(early).unwrap_or(u32::MAX);
        }
    }
}

/// Has the kernel wake rec at a quarter of what it wakes at too late; whether it would have. `pages`: of rings and of areas.
pub(super) fn wake_earlier(event: &mut PlannedEvent, pages: (usize, usize), page_size: usize) -> bool {
    let attr = &mut event.attr;
    let earlier = |watermark: &mut u32, pages: usize| {
        let bytes = pages.saturating_mul(page_size);
        let late = pages > 0 && *watermark as usize > bytes / 2;
        if late {
            *watermark = u32::try_from(bytes / 4).unwrap_or(u32::MAX);
        }
        late
    };
    let ring = attr.flags.contains(AttrFlags::WATERMARK) && earlier(&mut attr.wakeup, pages.0);
    earlier(&mut attr.aux_watermark, pages.1) | ring
}
