//! The page: one HTML file with a picture, what shows it, and nothing that it would have to fetch.
//!
//! ```text
//!   Picture ─► fit: steps and stacks ─► columns ─► deflate, base64 ──┐
//!   PageFacts ─► JSON, packed the same ──────────────────────────────┼─► page.html
//!   web/*.js, joined ─► hash ─► policy ──────────────────────────────┘
//! ```
//!
//! `docs/page.md` has the layout of the data. The scripts are modules for the checks in
//! `tests/page`; here they are joined into one script, without `import` and `export`.

mod columns;
mod facts;
mod fit;

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use self::columns::{PackedColumn, PageColumn, packed};
use self::facts::PageMeta;
pub(crate) use self::facts::{
    PageBroken, PageChange, PageCode, PageFacts, PageInstruction, PageVerdict, PageView,
    PageWarning, SideFacts, SideFile,
};
use self::fit::{Fitted, fitted};
use super::Picture;
use super::text::xml;

const TEMPLATE: &str = include_str!("web/page.html");
const STYLE: &str = include_str!("web/page.css");
/// The modules, in an order in which constants come before what uses them.
const MODULES: [&str; 33] = [
    include_str!("web/format.js"),
    include_str!("web/names.js"),
    include_str!("web/colours.js"),
    include_str!("web/decode.js"),
    include_str!("web/extents.js"),
    include_str!("web/path.js"),
    include_str!("web/waits.js"),
    include_str!("web/model.js"),
    include_str!("web/group.js"),
    include_str!("web/filter.js"),
    include_str!("web/merge.js"),
    include_str!("web/layout.js"),
    include_str!("web/state.js"),
    include_str!("web/series.js"),
    include_str!("web/moments.js"),
    include_str!("web/classes.js"),
    include_str!("web/finder.js"),
    include_str!("web/view.js"),
    include_str!("web/numbers.js"),
    include_str!("web/dom.js"),
    include_str!("web/address.js"),
    include_str!("web/tip.js"),
    include_str!("web/keys.js"),
    include_str!("web/flame.js"),
    include_str!("web/brush.js"),
    include_str!("web/timeline.js"),
    include_str!("web/chart.js"),
    include_str!("web/table.js"),
    include_str!("web/panel.js"),
    include_str!("web/recording.js"),
    include_str!("web/bar.js"),
    include_str!("web/app.js"),
    include_str!("web/start.js"),
];

/// Writes the page that shows a picture.
pub(crate) fn write(picture: Picture, facts: &PageFacts, out: &mut dyn Write) -> io::Result<()> {
    let mut code = Vec::new();
    if !facts.code.is_empty() {
        let bytes = serde_json::to_vec(&facts.code)?;
        code = packed(&[PageColumn { name: "code".into(), bytes }])?;
    }
    let taken = code.iter().map(|column| column.text.len()).sum();
    let Fitted { picture, mut columns, cut } = fitted(picture, taken)?;
    let meta = serde_json::to_vec(&PageMeta::of(&picture, facts, cut))?;
    columns.extend(packed(&[PageColumn { name: "meta".into(), bytes: meta }])?);
    columns.extend(code);
    let blocks = columns.iter().map(|PackedColumn { name, text }| {
        format!("<script type=\"application/octet-stream\" id=\"d-{name}\">{text}</script>\n")
    });
    let (script, data) = (script(), blocks.collect::<String>());
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; \
         form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        hash(&script),
        hash(STYLE)
    );
    let title = html_text(&facts.title);
    let values = [
        ("policy", policy.as_str()),
        ("title", &title),
        ("style", STYLE),
        ("data", &data),
        ("script", &script),
    ];
    fill(TEMPLATE, &values, out)
}

/// Returns the modules as one script, in a block of its own: its names are not those of the page.
fn script() -> String {
    let mut script = String::from("\"use strict\";\n{\n");
    MODULES.iter().for_each(|module| join(module, &mut script));
    script.push_str("}\n");
    script
}

/// Adds a module without comments, `import` and `export`: no text in the modules spans lines, and
/// comments have lines of their own.
fn join(module: &str, script: &mut String) {
    let mut is_comment = false;
    for line in module.lines() {
        let text = line.trim();
        if is_comment || text.starts_with("/**") {
            is_comment = !text.ends_with("*/");
            continue;
        }
        if !text.is_empty() && !text.starts_with("//") && !line.starts_with("import ") {
            script.push_str(text.strip_prefix("export ").unwrap_or(text));
            script.push('\n');
        }
    }
}

fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

/// Returns a text as HTML shows it, with a mark in place of controls.
fn html_text(text: &str) -> String {
    xml(&text.replace(char::is_control, "\u{fffd}"))
}

/// Writes a template with values in the places of their names, in one pass: values may contain
/// what looks like a place.
fn fill(template: &str, values: &[(&str, &str)], out: &mut dyn Write) -> io::Result<()> {
    let mut rest = template;
    while let Some((before, (name, after))) =
        rest.split_once("{{").and_then(|(before, after)| Some((before, after.split_once("}}")?)))
    {
        out.write_all(before.as_bytes())?;
        match values.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => out.write_all(value.as_bytes())?,
            None => write!(out, "{{{{{name}}}}}")?,
        }
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_not_searched_for_places() {
        let mut out = Vec::new();
        let values = [("a", "{{b}} }}"), ("b", "<{{a}}")];
        fill("x{{a}}{{b}}y{{other}}{{", &values, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "x{{b}} }}<{{a}}y{{other}}{{");
    }

    #[test]
    fn the_script_is_one_of_modules() {
        let script = script();
        assert!(script.starts_with("\"use strict\";\n{\n"));
        for line in script.lines() {
            let is_left =
                ["import ", "export ", "//", "/*", "* "].map(|start| line.starts_with(start));
            assert_eq!(is_left, [false; 5], "{line}");
        }
        let mut joined = String::new();
        join(
            "import a from \"b\";\n// c\n/** d\n * e\n */\nexport const f = 1;\n\n  g();",
            &mut joined,
        );
        assert_eq!(joined, "const f = 1;\ng();\n");
        assert!(!script.contains("</script") && !script.contains("<!--"));
        assert!(!STYLE.contains("</style"));
    }

    #[test]
    fn titles_are_text() {
        assert_eq!(html_text("<b a=\"'&\x1b"), "&lt;b a=&quot;&#39;&amp;\u{fffd}");
    }
}
