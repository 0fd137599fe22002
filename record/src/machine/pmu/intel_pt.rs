//! Default terms of Intel PT: branches with timing, as precise as possible at low cost.

use super::device::Pmu;

/// Returns the default terms of an `intel_pt` event; the user's terms override them one by one. The
/// periods are exponents: 3 if the CPU supports it (`caps/mtc_periods` and `caps/psb_periods` are
/// masks of the supported ones), otherwise the next smaller one, otherwise the next larger one.
pub(crate) fn defaults(pmu: &Pmu) -> Vec<(&'static str, u64)> {
    let mut terms = vec![("tsc", 1)];
    let has = |file| pmu.number(file, 10).unwrap_or(1) != 0;
    let mtc_periods =
        if has("caps/mtc") { pmu.number("caps/mtc_periods", 16).unwrap_or(0) } else { 0 };
    if mtc_periods != 0 {
        terms.extend([("mtc", 1), ("mtc_period", nearest(mtc_periods))]);
        let psb_periods =
            if has("caps/psb_cyc") { pmu.number("caps/psb_periods", 16).unwrap_or(0) } else { 0 };
        if psb_periods != 0 {
            terms.push(("psb_period", nearest(psb_periods)));
        }
    }
    if ["pt", "branch"].iter().all(|term| matches!(pmu.format(term), Ok(Some(_)))) {
        terms.extend([("pt", 1), ("branch", 1)]);
    }
    terms
}

/// Returns the bit of a mask that is nearest to bit 3, preferring lower ones.
fn nearest(mask: u64) -> u64 {
    const WANTED: u32 = 3;
    let low = mask & (u64::MAX >> (63 - WANTED));
    u64::from(if low == 0 { mask.trailing_zeros() } else { 63 - low.leading_zeros() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_period() {
        assert_eq!(nearest(0x3fff), 3);
        assert_eq!(nearest(0b0101), 2);
        assert_eq!(nearest(0b1110_0000), 5);
        assert_eq!(nearest(0x249), 3);
    }
}
