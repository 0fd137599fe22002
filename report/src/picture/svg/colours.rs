//! Colours of boxes, the same as in the page: hue says which module, shades tell neighbours apart.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex_lite::Regex;

use super::layout::BoxKind;

/// Number of hues for modules of programs.
const HUES: u32 = 16;
/// Steps of a change's strength on each side of "no change".
pub(super) const CHANGE_STEPS: u32 = 8;

/// A colour of a fill, in light and in dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Fill {
    /// Slot of the module's hue, and shade.
    Module {
        slot: u32,
        shade: u32,
    },
    Kernel {
        shade: u32,
    },
    NoName {
        shade: u32,
    },
    Group,
    Cut,
    /// Step from much less (0) over no change ([`CHANGE_STEPS`]) to much more.
    Change(u32),
}

impl Fill {
    /// Returns the class of the style sheet.
    pub(super) fn class(self) -> String {
        match self {
            Self::Module { slot, shade } => format!("m{slot}s{shade}"),
            Self::Kernel { shade } => format!("k{shade}"),
            Self::NoName { shade } => format!("n{shade}"),
            Self::Group => "g".into(),
            Self::Cut => "u".into(),
            Self::Change(step) => format!("d{step}"),
        }
    }

    /// Returns the colour in one scheme, as `#rrggbb`.
    pub(super) fn colour(self, is_dark: bool) -> String {
        let pick = |dark: f64, light: f64| if is_dark { dark } else { light };
        let level = |shade: u32| {
            let (dark, light) = ([0.38, 0.42, 0.46], [0.81, 0.85, 0.89]);
            let levels = if is_dark { dark } else { light };
            levels.get(shade as usize).copied().unwrap_or(0.5)
        };
        match self {
            Self::Module { slot, shade } => {
                let hue = (80.0 + (f64::from(slot) + 0.5) * 324.0 / f64::from(HUES)) % 360.0;
                oklch(level(shade), pick(0.075, 0.09), hue)
            }
            Self::Kernel { shade } => oklch(level(shade) - pick(0.0, 0.01), pick(0.1, 0.125), 62.0),
            Self::NoName { shade } => oklch(level(shade) - pick(0.04, 0.03), 0.004, 260.0),
            Self::Group => oklch(pick(0.33, 0.88), pick(0.03, 0.025), 262.0),
            Self::Cut => oklch(pick(0.31, 0.86), 0.01, 30.0),
            Self::Change(step) => {
                let strength = f64::from(step.abs_diff(CHANGE_STEPS)) / f64::from(CHANGE_STEPS);
                let (neutral, full) = (pick(0.35, 0.9), pick(0.51, 0.73));
                let chroma = if step == CHANGE_STEPS { 0.0 } else { 0.03 + 0.13 * strength };
                let hue = if step < CHANGE_STEPS { 250.0 } else { 50.0 };
                oklch(neutral + (full - neutral) * strength, chroma, hue)
            }
        }
    }
}

/// Returns the RGB of an OKLCH colour, with less chroma where screens cannot show it.
pub(super) fn oklch(lightness: f64, chroma: f64, hue: f64) -> String {
    let mut chroma = chroma;
    loop {
        let linear = linear_rgb(lightness, chroma.max(0.0), hue);
        if chroma <= 0.0 || linear.iter().all(|part| (-0.0005..=1.0005).contains(part)) {
            let [r, g, b] = linear.map(gamma);
            return format!("#{r:02x}{g:02x}{b:02x}");
        }
        chroma -= 0.005;
    }
}

/// Returns linear red, green and blue, from 0 to 1 where they can be shown. The factors are those
/// of the OKLab colour space.
fn linear_rgb(lightness: f64, chroma: f64, hue: f64) -> [f64; 3] {
    let (sin, cos) = hue.to_radians().sin_cos();
    let (a, b) = (chroma * cos, chroma * sin);
    let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548 * b).powi(3);
    [
        4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
        -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
        -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701 * s,
    ]
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 255")]
fn gamma(linear: f64) -> u8 {
    let part = linear.clamp(0.0, 1.0);
    let part =
        if part <= 0.003_130_8 { 12.92 * part } else { 1.055 * part.powf(1.0 / 2.4) - 0.055 };
    (255.0 * part).round() as u8
}

/// Returns a hash of a text: FNV-1a of its UTF-16 units, as in the page.
fn hash(text: &str) -> u32 {
    let hash = text
        .encode_utf16()
        .fold(0x811c_9dc5_u32, |hash, unit| (hash ^ u32::from(unit)).wrapping_mul(0x0100_0193));
    hash ^ (hash >> 15)
}

/// Returns a module's name without version and hash, so that a new build keeps its colour.
fn family(name: &str) -> String {
    static ENDS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
        let ends = [r"\.so(\.|$).*$", "-[0-9a-f]{8,}$", r"[-._][0-9]+(\.[0-9]+)*$"];
        ends.iter().filter_map(|end| Regex::new(end).ok()).collect()
    });
    let file = name.rsplit('/').next().unwrap_or(name);
    let family = ENDS.iter().fold(file.to_owned(), |name, end| end.replace(&name, "").into_owned());
    if family.is_empty() { file.to_owned() } else { family }
}

/// Slots of modules: by the hash of the family, heavier ones choose first.
#[derive(Debug, Default)]
pub(super) struct Slots(BTreeMap<String, u32>);

impl Slots {
    /// Chooses the slots of modules, given with their weights.
    pub(super) fn of<'m>(modules: impl Iterator<Item = (&'m str, u64)>) -> Self {
        let mut families = BTreeMap::<String, u64>::new();
        for (module, weight) in modules {
            let sum = families.entry(family(module)).or_default();
            *sum = sum.saturating_add(weight);
        }
        let mut order: Vec<(String, u64)> = families.into_iter().collect();
        order.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
        let (mut taken, mut slots) = (0_u32, BTreeMap::new());
        for (family, _) in order {
            let mut slot = hash(&family) % HUES;
            let number = taken.count_ones();
            // The heaviest keep off each other's neighbours, too.
            let near: &[u32] = if number < 5 { &[0, 1, HUES - 1] } else { &[0] };
            for _ in 0..if number < HUES { HUES } else { 0 } {
                if near.iter().all(|by| taken & (1 << ((slot + by) % HUES)) == 0) {
                    break;
                }
                slot = (slot + 5) % HUES;
            }
            taken |= 1 << slot;
            slots.insert(family, slot);
        }
        Self(slots)
    }

    /// Returns the fill of a frame.
    pub(super) fn fill(&self, kind: BoxKind, module: &str, name: &str) -> Fill {
        let shade = hash(name) % 3;
        match kind {
            BoxKind::Group => Fill::Group,
            BoxKind::Cut => Fill::Cut,
            BoxKind::Kernel => Fill::Kernel { shade },
            BoxKind::NoName => Fill::NoName { shade },
            BoxKind::User => {
                Fill::Module { slot: self.0.get(&family(module)).copied().unwrap_or(0), shade }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_the_page() {
        // Known colours of OKLCH: red, and white.
        assert_eq!(oklch(0.628, 0.2577, 29.234), "#ff0000");
        assert_eq!(oklch(1.0, 0.0, 0.0), "#ffffff");
        // FNV-1a of "a" and of nothing, folded.
        assert_eq!(hash(""), 0x811c_9dc5 ^ (0x811c_9dc5 >> 15));
        assert_eq!(hash("a"), 0xe40c_292c ^ (0xe40c_292c >> 15));
    }

    #[test]
    fn a_new_build_keeps_its_colour() {
        for (name, of) in [
            ("libLLVM.so.22.1-rust", "libLLVM"),
            ("librustc_driver-6108105cd.so", "librustc_driver"),
            ("/usr/bin/python3.11", "python3"),
            ("libc.so.6", "libc"),
            ("app-1.2", "app"),
            ("7z", "7z"),
            ("rep-new4", "rep-new4"),
            ("123", "123"),
        ] {
            assert_eq!(family(name), of, "{name}");
        }
        let slots = Slots::of([("a", 1), ("b", 2)].into_iter());
        assert_ne!(slots.0["a"], slots.0["b"]);
    }
}
