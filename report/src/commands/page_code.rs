//! Instructions of the hottest functions, for the page.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::picture::PictureSide;
use crate::analyses::annotate::{AnnotatedFunction, Limits, annotated_answer};
use crate::code::ListingExtent;
use crate::picture::Picture;
use crate::picture::page::{PageCode, PageInstruction};

/// Functions whose instructions a page has: as many as are on its first screen.
const HOTTEST: Limits =
    Limits { most: 14, least: 0.5, extent: ListingExtent::NearSamples { most: 2000, around: 8 } };

/// Returns the instructions of the hottest functions of each event of a side, and sentences that say
/// why there are none of some.
pub(super) fn page_code(side: &PictureSide, picture: &Picture) -> (Vec<PageCode>, Vec<String>) {
    let Some((counted, query)) = &side.by_instruction else { return Default::default() };
    let mut of_names = FxHashMap::default();
    for (frame, number) in picture.frames.iter().zip(0_u32..) {
        let module = (frame.module as usize).checked_sub(1);
        let module = module.and_then(|module| picture.modules.get(module));
        let module = module.map_or("", |module| module.name.as_str());
        of_names.entry((module, frame.name.as_str())).or_insert(number);
    }
    let (mut all, mut reasons) = (Vec::new(), BTreeMap::<String, Vec<String>>::new());
    for event in annotated_answer(counted, query, HOTTEST) {
        let Some(place) = picture.events.iter().position(|known| known.name == event.name) else {
            continue;
        };
        for function in event.functions {
            let name = (function.dso.as_str(), function.symbol.as_str());
            let Some(frame) = of_names.get(&name) else { continue };
            match &function.code {
                Ok(_) => all.push(PageCode { frame: *frame, event: place, rows: rows(&function) }),
                Err(reason) => {
                    reasons
                        .entry(reason.to_string())
                        .or_default()
                        .push(format!("{} ({})", name.1, name.0));
                }
            }
        }
    }
    (
        all,
        reasons.into_iter().map(|(reason, functions)| without_code(&functions, &reason)).collect(),
    )
}

/// Returns a sentence that says why functions have no instructions.
fn without_code(functions: &[String], reason: &str) -> String {
    const SHOWN: usize = 3;
    let shown = functions.get(..SHOWN).unwrap_or(functions).join(", ");
    let others = match functions.len().saturating_sub(SHOWN) {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    format!("No instructions of {shown}{others}: {reason}")
}

/// Returns the instructions of a function.
fn rows(function: &AnnotatedFunction) -> Vec<PageInstruction> {
    let (mut rows, mut source) = (Vec::with_capacity(function.rows.len()), None);
    for one in &function.rows {
        let row = &one.row;
        let is_new = row.source.is_some() && row.source != source;
        rows.push(PageInstruction {
            address: format!("{:x}", row.address),
            text: row.text.clone(),
            samples: row.count.samples,
            source: row.source.as_ref().filter(|_| is_new).map(|(file, line)| {
                let name = file.rsplit('/').next().unwrap_or(file);
                let text = one.source_text.as_deref().unwrap_or_default();
                format!("{name}:{line} {text}").trim_end().to_owned()
            }),
            jump: row.jump,
            function: row.inlined.first().cloned(),
        });
        if is_new {
            source.clone_from(&row.source);
        }
    }
    rows
}
