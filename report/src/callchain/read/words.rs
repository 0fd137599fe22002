//! The words of a chain: addresses, and the context markers before those of each kind.

use recrep_format::abi::{CpuMode, context};

use crate::callchain::tree::stacks::{CallSite, MISSING};

/// A word of a chain that stands for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameWord {
    pub mode: CpuMode,
    /// The address, or [`MISSING`].
    pub ip: u64,
    pub site: CallSite,
    /// `true` if it was unwound here.
    pub is_unwound: bool,
}

/// Marker before user frames whose return addresses are looked up at the call.
pub(crate) const RETURNS: u64 = context::USER - 1;

/// Marker before such frames of which the innermost was removed.
const CALLERS: u64 = context::USER - 2;

/// Marker before frames that were unwound here.
pub(crate) const UNWOUND: u64 = context::USER - 3;

/// Meaning of a marker: CPU mode of the frames behind it, and how the first and the others are
/// looked up.
type Meaning = (CpuMode, CallSite, CallSite);

/// Context markers of the kernel that are known.
const MARKERS: [(u64, Meaning); 3] = [
    (context::KERNEL, (CpuMode::Kernel, CallSite::At, CallSite::Inlined)),
    (context::USER, (CpuMode::User, CallSite::At, CallSite::Inlined)),
    (context::HV, (CpuMode::Hypervisor, CallSite::At, CallSite::Inlined)),
];

/// Marker before frames of a chain that is checked.
pub(crate) const CHECKED: u64 = context::USER - 4;

/// Marker before such frames of which the innermost was removed.
const CHECKED_CALLERS: u64 = context::USER - 5;

/// Markers that are not the kernel's.
const OWN_MARKERS: [(u64, Meaning); 5] = [
    (RETURNS, (CpuMode::User, CallSite::At, CallSite::Before)),
    (CALLERS, (CpuMode::User, CallSite::Before, CallSite::Before)),
    (UNWOUND, (CpuMode::User, CallSite::At, CallSite::At)),
    (CHECKED, (CpuMode::User, CallSite::At, CallSite::Checked)),
    (CHECKED_CALLERS, (CpuMode::User, CallSite::Checked, CallSite::Checked)),
];

/// Calls `frame` for each word of a chain that stands for a frame, innermost first; `mode` is the
/// CPU mode of those before the first marker.
pub(crate) fn for_each_frame(mode: CpuMode, words: &[u64], mut frame: impl FnMut(FrameWord)) {
    let (mut meaning, mut is_first) = ((mode, CallSite::At, CallSite::Inlined), true);
    let mut is_unwound = false;
    for word in words {
        if let Some(known) = meaning_of(*word) {
            (meaning, is_first, is_unwound) = (known, true, *word == UNWOUND);
            continue;
        }
        let (mode, first, others) = meaning;
        let site = match *word {
            MISSING => CallSite::Nowhere,
            _ if is_first => first,
            _ => others,
        };
        frame(FrameWord { mode, ip: *word, site, is_unwound });
        is_first = false;
    }
}

/// Returns whether all context markers in a recorded chain are known. perf treats a chain with any
/// other marker as damaged and discards it whole: without frame pointers, callchains contain
/// arbitrary values, which can look like markers.
#[inline]
pub(crate) fn is_sound(words: &[u64]) -> bool {
    words
        .iter()
        .all(|word| *word < context::MAX || MARKERS.iter().any(|(marker, _)| marker == word))
}

/// Removes the sampled instruction, of this CPU mode, from a chain whose innermost frame it is, and
/// returns the number of words left, at the end of `words`; `None` if the chain starts elsewhere.
/// Many instructions share their callers, so these are kept alone.
#[inline]
pub(crate) fn callers(mode: CpuMode, ip: Option<u64>, words: &mut [u64]) -> Option<usize> {
    match words {
        [first, second, rest @ ..] if Some(*second) == ip && mode_of(*first) == Some(mode) => {
            match rest.first() {
                None => Some(0),
                // No frame of this CPU mode is left.
                Some(next) if *next >= context::MAX => Some(rest.len()),
                Some(_) => {
                    *second = match *first {
                        RETURNS => CALLERS,
                        CHECKED => CHECKED_CALLERS,
                        marker => marker,
                    };
                    Some(rest.len() + 1)
                }
            }
        }
        _ => None,
    }
}

/// Returns what a context marker means; `None` for any other word.
#[inline]
fn meaning_of(word: u64) -> Option<Meaning> {
    // Nearly all words are addresses.
    if word < context::MAX {
        return None;
    }
    let mut markers = MARKERS.iter().chain(&OWN_MARKERS);
    markers.find(|(marker, _)| *marker == word).map(|(_, meaning)| *meaning)
}

/// Returns the CPU mode of the frames behind a marker.
fn mode_of(marker: u64) -> Option<CpuMode> {
    meaning_of(marker).map(|(mode, ..)| mode)
}

/// Returns whether user frames follow a word.
pub(crate) fn is_user_marker(word: u64) -> bool {
    mode_of(word) == Some(CpuMode::User)
}

/// Returns the context marker before frames of this CPU mode.
pub(crate) fn context_marker(mode: CpuMode) -> u64 {
    MARKERS.iter().find(|(_, of)| of.0 == mode).map_or(context::HV, |(marker, _)| *marker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_set_the_cpu_mode_and_the_lookup_of_later_addresses() {
        let of = |words: &[u64]| {
            let mut all = Vec::new();
            for_each_frame(CpuMode::User, words, |FrameWord { mode, ip, site, is_unwound }| {
                assert_eq!(is_unwound, ip > 100);
                all.push((mode, ip, site));
            });
            all
        };
        let (kernel, user) = (CpuMode::Kernel, CpuMode::User);
        assert_eq!(
            of(&[context::KERNEL, 1, 2, context::USER, 3]),
            [(kernel, 1, CallSite::At), (kernel, 2, CallSite::Inlined), (user, 3, CallSite::At)]
        );
        assert_eq!(
            of(&[7, context::HV, 8]),
            [(user, 7, CallSite::At), (CpuMode::Hypervisor, 8, CallSite::At)]
        );
        assert_eq!(of(&[RETURNS, 1, 2]), [(user, 1, CallSite::At), (user, 2, CallSite::Before)]);
        assert_eq!(
            of(&[CALLERS, 1, 2]),
            [(user, 1, CallSite::Before), (user, 2, CallSite::Before)]
        );
        assert_eq!(
            of(&[UNWOUND, 101, 102]),
            [(user, 101, CallSite::At), (user, 102, CallSite::At)]
        );
    }

    #[test]
    fn the_sampled_address_is_removed_from_its_chain() {
        let of = |mode, words: &[u64]| {
            let mut words = words.to_vec();
            let left = callers(mode, Some(1), &mut words)?;
            Some(words.split_off(words.len() - left))
        };
        assert_eq!(of(CpuMode::User, &[context::USER, 1, 2]), Some(vec![context::USER, 2]));
        assert_eq!(of(CpuMode::User, &[RETURNS, 1, 2]), Some(vec![CALLERS, 2]));
        assert_eq!(of(CpuMode::User, &[UNWOUND, 1, MISSING]), Some(vec![UNWOUND, MISSING]));
        let kernel = [context::KERNEL, 1, RETURNS, 5];
        assert_eq!(of(CpuMode::Kernel, &kernel), Some(vec![RETURNS, 5]));
        assert_eq!(of(CpuMode::User, &kernel), None);
        assert_eq!(of(CpuMode::User, &[context::USER, 1]), Some(vec![]));
        assert_eq!(of(CpuMode::User, &[context::USER, 2]), None);
    }
}
