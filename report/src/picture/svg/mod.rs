//! A flame graph as SVG: one picture for READMEs, tickets and papers.
//!
//! Sites show pictures without scripts and tips, so what is wide is readable as it is: boxes from
//! half a pixel on, names that fit, a legend, the totals. With `interactive` the file also has a
//! script of its own, which zooms and searches where the file is opened by itself.

mod colours;
mod layout;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use recrep_console::units;

use self::colours::{CHANGE_STEPS, Fill, Slots};
use self::layout::{BoxKind, BoxSubject, BoxSums, FlameBox, FlameLayout, kind};
use super::text::{clean, fitting, xml};
use super::{Picture, PictureEvent};
use crate::count::Count;
use crate::count::metrics::share;

/// What a picture shows.
#[derive(Clone, Debug)]
pub(crate) struct FlameGraph<'p> {
    pub(crate) picture: &'p Picture,
    pub(crate) event: &'p PictureEvent,
    pub(crate) title: String,
    /// Line below the title: machine, date, duration.
    pub(crate) about: String,
    pub(crate) inverted: bool,
    pub(crate) interactive: bool,
    /// Width of the picture, and of the narrowest box, in pixels.
    pub(crate) width: u32,
    pub(crate) min_width: f64,
}

/// Height of a box with the line below it, in pixels.
const ROW: u32 = 18;
/// Width of a character of box texts, of 11 pixels: monospace fonts have 0.6.
const CHARACTER: f64 = 6.65;
/// Space around the graph.
const MARGIN: u32 = 12;
/// Height of the title and the lines below it.
const HEAD: u32 = 66;
/// Greatest number of modules in the legend.
const LEGEND: usize = 8;

const SCRIPT: &str = include_str!("flame.js");

/// A graph in the picture: its boxes, and where they are.
struct FlamePart<'b> {
    boxes: &'b [FlameBox],
    top: u32,
    side: usize,
}

impl FlameGraph<'_> {
    /// Writes the picture.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let has_base = self.picture.sides > 1;
        let layout = FlameLayout {
            picture: self.picture,
            event: self.event,
            side: 0,
            inverted: self.inverted,
            only_here: false,
            least: self.min_width / f64::from(self.inner_width()),
        };
        let boxes = layout.boxes();
        let gone = match has_base {
            true => FlameLayout { side: 1, only_here: true, ..layout }.boxes(),
            false => Vec::new(),
        };
        let height = |boxes: &[FlameBox]| {
            let depth = boxes.iter().map(|one| one.depth + 1).max().unwrap_or(0);
            depth.saturating_mul(ROW)
        };
        let first = FlamePart { boxes: &boxes, top: HEAD, side: 0 };
        let below = HEAD + height(&boxes) + MARGIN;
        let second = FlamePart { boxes: &gone, top: below + ROW, side: 1 };
        let end = if gone.is_empty() { below } else { second.top + height(&gone) + MARGIN };
        let slots = self.slots();
        let (mut drawn, mut fills) = (String::new(), Fills::new());
        self.draw(&first, &slots, &mut drawn, &mut fills);
        if let Some(all) = gone.first() {
            let total = self.event.totals.get(1).map_or(0, |total| total.samples);
            let samples = all.sums.samples.get(1).copied().unwrap_or(0);
            let percent = share(samples, total);
            let text = format!("Only in the base: {percent:.1}% of its samples");
            let _ = writeln!(
                drawn,
                "<text class=\"h\" x=\"{MARGIN}\" y=\"{}\">{text}</text>",
                below + ROW - 5
            );
            self.draw(&second, &slots, &mut drawn, &mut fills);
        }
        let legend = self.legend(&slots, &mut fills);
        out.write_all(self.head(end, &fills).as_bytes())?;
        out.write_all(legend.as_bytes())?;
        out.write_all(drawn.as_bytes())?;
        if self.interactive {
            // In CDATA nothing is escaped; the script has no end of it.
            write!(out, "<script><![CDATA[\n{SCRIPT}]]></script>\n")?;
        }
        out.write_all(b"</svg>\n")
    }

    /// Returns the begin of the picture, which is so high: styles, title, and the line below it.
    fn head(&self, height: u32, fills: &Fills) -> String {
        let width = self.width;
        let mut head = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" \
             width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             style=\"max-width:100%;height:auto\" aria-labelledby=\"title about\">\n"
        );
        let (title, about) = (xml(&clean(&self.title, 400)), xml(&clean(&self.about, 400)));
        let shown = xml(&fitting(&self.title, (width as usize).saturating_sub(24) / 8));
        let _ = writeln!(
            head,
            "<title id=\"title\">{title}</title>\n<desc id=\"about\">{about}</desc>"
        );
        head.push_str(&style(fills));
        let _ = writeln!(
            head,
            "<rect class=\"p\" width=\"100%\" height=\"100%\"/>\n<text class=\"t\" x=\"{MARGIN}\" \
             y=\"22\">{shown}</text>\n<text class=\"a\" x=\"{MARGIN}\" y=\"39\">{about}</text>"
        );
        head
    }

    fn inner_width(&self) -> u32 {
        self.width.saturating_sub(2 * MARGIN).max(1)
    }

    /// Returns the hues of the modules, the heaviest of which choose first.
    fn slots(&self) -> Slots {
        let weights: BTreeMap<LegendEntry, u64> = self.legend_entries().into_iter().collect();
        let modules = self.picture.modules.iter().zip(1..).map(|(module, number)| {
            let weight = weights.get(&LegendEntry::Module(number)).copied().unwrap_or(0);
            (module.name.as_str(), weight)
        });
        Slots::of(modules)
    }

    /// Returns the weights of modules themselves: by the number in frames, but all of the kernel's
    /// and all without names together.
    fn legend_entries(&self) -> Vec<(LegendEntry, u64)> {
        let mut weights = BTreeMap::<LegendEntry, u64>::new();
        for entry in &self.event.entries {
            let node = self.picture.nodes.get(entry.node as usize);
            let subject = node.map_or(BoxSubject::All, |node| BoxSubject::Frame(node.frame));
            let of = match kind(self.picture, subject) {
                BoxKind::Kernel => LegendEntry::Kernel,
                BoxKind::NoName | BoxKind::Cut | BoxKind::Group => LegendEntry::NoName,
                BoxKind::User => LegendEntry::Module(self.module(subject)),
            };
            let sum = weights.entry(of).or_default();
            *sum = sum.saturating_add(Picture::weight(self.event, entry.count));
        }
        let mut weights: Vec<(LegendEntry, u64)> = weights.into_iter().collect();
        weights.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
        weights
    }

    /// Returns the number of a frame's module plus one; 0 for none.
    fn module(&self, subject: BoxSubject) -> u32 {
        let BoxSubject::Frame(frame) = subject else { return 0 };
        self.picture.frames.get(frame as usize).map_or(0, |frame| frame.module)
    }

    fn module_name(&self, module: u32) -> &str {
        let module = (module as usize).checked_sub(1);
        module.and_then(|module| self.picture.modules.get(module)).map_or("", |module| &module.name)
    }

    fn name(&self, subject: BoxSubject) -> &str {
        match subject {
            BoxSubject::All => "all",
            BoxSubject::Command(command) => {
                self.picture.commands.get(command as usize).map_or("", String::as_str)
            }
            BoxSubject::Frame(frame) => {
                self.picture.frames.get(frame as usize).map_or("", |frame| frame.name.as_str())
            }
        }
    }

    /// Draws the boxes of a graph.
    fn draw(&self, part: &FlamePart<'_>, slots: &Slots, out: &mut String, fills: &mut Fills) {
        let Some(root) = part.boxes.first() else { return };
        let value = |sums: BoxSums| sums.values.get(part.side).copied().unwrap_or(0);
        let whole = value(root.sums);
        let depth = part.boxes.iter().map(|one| one.depth).max().unwrap_or(0);
        for one in part.boxes {
            let row = if self.inverted { one.depth } else { depth - one.depth };
            let y = part.top + row * ROW;
            let scale = f64::from(self.inner_width()) / 100.0;
            let x = f64::from(MARGIN) + share(one.start, whole) * scale;
            let width = share(value(one.sums), whole) * scale;
            let fill = self.fill(one, slots);
            fills.insert(fill.class(), fill);
            let name = self.name(one.subject);
            // A line of the background separates neighbours, unless they are lines themselves.
            let inner = if width > 2.0 { width - 0.6 } else { width.max(0.1) };
            let _ = write!(
                out,
                "<g><title>{}</title><rect class=\"{}\" x=\"{x:.1}\" y=\"{y}\" \
                 width=\"{inner:.1}\" height=\"{}\"/>",
                xml(&self.tip(one, name)),
                fill.class(),
                ROW - 1
            );
            let characters = characters((inner - 6.0) / CHARACTER);
            if characters >= 3 {
                let total = self.total(part.side);
                let percent = share(value(one.sums), total);
                let text = xml(&label(name, percent, characters));
                let _ = write!(out, "<text x=\"{:.1}\" y=\"{}\">{text}</text>", x + 3.0, y + 12);
            }
            out.push_str("</g>\n");
        }
    }

    /// Returns the whole name of a box, its module and its numbers.
    fn tip(&self, one: &FlameBox, name: &str) -> String {
        let mut tip = clean(name, 4000);
        let module = self.module_name(self.module(one.subject));
        if !module.is_empty() {
            let _ = write!(tip, " ({})", clean(module, 400));
        }
        for (side, place) in [(0, ""), (1, " in the base")].into_iter().take(self.picture.sides) {
            let value = one.sums.values.get(side).copied().unwrap_or(0);
            let samples = one.sums.samples.get(side).copied().unwrap_or(0);
            let of_time = match self.event.counts_time {
                true => format!(", {}", units::time(value)),
                false => String::new(),
            };
            let separator = if side == 0 { ":" } else { ";" };
            let percent = share(value, self.total(side));
            let _ = write!(tip, "{separator} {percent:.2}%{of_time}, {samples} samples{place}");
        }
        tip
    }

    /// Returns the weight of all samples of a side.
    fn total(&self, side: usize) -> u64 {
        let total = self.event.totals.get(side).copied().unwrap_or_default();
        Picture::weight(self.event, total)
    }

    fn fill(&self, one: &FlameBox, slots: &Slots) -> Fill {
        if self.picture.sides > 1 {
            return Fill::Change(self.change(one.sums));
        }
        let module = self.module_name(self.module(one.subject));
        slots.fill(kind(self.picture, one.subject), module, self.name(one.subject))
    }

    /// Returns the step of a change of the share: none if chance explains it, that is if it is at
    /// most three standard errors of the numbers of samples.
    #[expect(clippy::cast_precision_loss, reason = "colours need no exact numbers")]
    fn change(&self, sums: BoxSums) -> u32 {
        let mut shares = [0.0; 2];
        let mut variance = 0.0;
        for (side, share) in shares.iter_mut().enumerate() {
            let of = |sums: [u64; 2]| sums.get(side).copied().unwrap_or(0) as f64;
            let all = self.total(side);
            if all == 0 {
                return CHANGE_STEPS;
            }
            *share = of(sums.values) / all as f64;
            variance += share.powi(2) / of(sums.samples).max(1.0);
        }
        let [new, base] = shares;
        if (new - base).abs() <= 3.0 * variance.sqrt() {
            return CHANGE_STEPS;
        }
        let strength = match (new > 0.0, base > 0.0) {
            (true, true) => ((new / base).log2().abs() / f64::log2(5.7)).min(1.0),
            _ => 1.0,
        };
        let is_step = |step: &u32| strength * f64::from(CHANGE_STEPS) < f64::from(*step) + 0.5;
        let step = (1..CHANGE_STEPS).find(is_step).unwrap_or(CHANGE_STEPS);
        if new > base { CHANGE_STEPS + step } else { CHANGE_STEPS - step }
    }

    /// Draws what the colours mean.
    fn legend(&self, slots: &Slots, fills: &mut Fills) -> String {
        let mut entries = Vec::new();
        if self.picture.sides > 1 {
            for (step, text) in
                [(0, "less"), (CHANGE_STEPS, "no more than chance"), (2 * CHANGE_STEPS, "more")]
            {
                entries.push((Fill::Change(step), text.to_owned()));
            }
        } else {
            let weight = |total: &Count| Picture::weight(self.event, *total);
            let all = self.event.totals.iter().map(weight).sum();
            for (entry, weight) in self.legend_entries().into_iter().take(LEGEND) {
                let shade = 1;
                let (fill, name) = match entry {
                    LegendEntry::Kernel => (Fill::Kernel { shade }, "kernel"),
                    LegendEntry::NoName => (Fill::NoName { shade }, "no name"),
                    LegendEntry::Module(module) => {
                        let name = self.module_name(module);
                        let fill = slots.fill(BoxKind::User, name, name);
                        let fill = match fill {
                            Fill::Module { slot, .. } => Fill::Module { slot, shade },
                            fill => fill,
                        };
                        (fill, name)
                    }
                };
                entries.push((fill, format!("{} {:.1}%", fitting(name, 24), share(weight, all))));
            }
        }
        let (mut out, mut x) = (String::new(), f64::from(MARGIN));
        for (fill, text) in entries {
            let width =
                22.0 + CHARACTER * f64::from(u32::try_from(text.chars().count()).unwrap_or(0));
            if x + width > f64::from(self.width - MARGIN) {
                break;
            }
            fills.insert(fill.class(), fill);
            let _ = writeln!(
                out,
                "<rect class=\"{}\" x=\"{x:.1}\" y=\"47\" width=\"11\" height=\"11\"/><text class=\"l\" \
                 x=\"{:.1}\" y=\"56\">{}</text>",
                fill.class(),
                x + 15.0,
                xml(&text)
            );
            x += width + 10.0;
        }
        out
    }
}

/// Returns the text in a box: as much of the name as fits, and the share if the whole name leaves
/// room for it.
fn label(name: &str, percent: f64, characters: usize) -> String {
    let share = format!(" {percent:.1}%");
    let text = fitting(name, characters);
    match text.chars().count() + share.len() <= characters && !text.contains('…') {
        true => text + &share,
        false => text,
    }
}

/// What an entry of the legend stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LegendEntry {
    Kernel,
    NoName,
    /// Number of the module plus one.
    Module(u32),
}

/// Fills that are used, by their classes.
type Fills = BTreeMap<String, Fill>;

/// Returns a number of characters.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded down")]
fn characters(number: f64) -> usize {
    number.max(0.0) as usize
}

/// Returns the style sheet: the fills that are used, in light and in dark.
fn style(fills: &Fills) -> String {
    let colours = |is_dark: bool| {
        let pick = |dark: (f64, f64, f64), light: (f64, f64, f64)| {
            let (lightness, chroma, hue) = if is_dark { dark } else { light };
            colours::oklch(lightness, chroma, hue)
        };
        let mut text = format!(
            ".p{{fill:{}}}text{{fill:{}}}.t,.h{{fill:{}}}.a,.l{{fill:{}}}",
            pick((0.215, 0.008, 260.0), (1.0, 0.0, 0.0)),
            pick((0.96, 0.005, 260.0), (0.2, 0.01, 260.0)),
            pick((0.92, 0.005, 260.0), (0.24, 0.01, 260.0)),
            pick((0.74, 0.012, 260.0), (0.47, 0.018, 260.0)),
        );
        for (class, fill) in fills {
            let _ = write!(text, ".{class}{{fill:{}}}", fill.colour(is_dark));
        }
        text
    };
    format!(
        "<style>text{{font:11px ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans \
         Mono\",monospace;white-space:pre}}.t{{font:600 15px system-ui,sans-serif}}\
         .h{{font:600 12px system-ui,sans-serif}}.a{{font:12px system-ui,sans-serif}}\n{}\n\
         @media (prefers-color-scheme:dark){{{}}}</style>\n",
        colours(false),
        colours(true)
    )
}

#[cfg(test)]
mod tests;
