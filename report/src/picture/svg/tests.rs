use super::*;
use crate::count::Count;
use crate::picture::{
    Cell, FrameKind, PictureEntry, PictureFrame, PictureModule, PictureNode, PictureThread,
};

/// Stacks of the command `a`, `main -> f -> hostile` and `main -> f`, and `f` of `b`; of the
/// base the last one, and `main -> gone`.
fn picture(hostile: &str) -> Picture {
    let frame = |name: &str, module, kind| PictureFrame { module, kind, name: name.into() };
    let node = |frame, depth| PictureNode { frame, depth };
    let entry = |node, cell, samples| {
        let count = Count { samples, period: 10 * samples };
        PictureEntry { node, cell, count }
    };
    let thread = |command, side| PictureThread { command, side, pid: 1, tid: 1 };
    let cell = |thread| Cell { thread, ..Cell::default() };
    let total = |samples| Count { samples, period: 10 * samples };
    Picture {
        modules: vec![PictureModule { name: "app-1.2".into(), path: "/app-1.2".into() }],
        frames: vec![
            frame("f", 1, FrameKind::User),
            frame("gone", 1, FrameKind::User),
            frame(hostile, 1, FrameKind::Kernel),
            frame("main", 1, FrameKind::User),
        ],
        nodes: vec![node(0, 1), node(3, 1), node(0, 2), node(2, 3), node(1, 2)],
        commands: vec!["a".into(), "b".into()],
        threads: vec![thread(0, 0), thread(1, 0), thread(0, 1), thread(1, 1)],
        events: vec![PictureEvent {
            name: "cycles".into(),
            cells: (0..4).map(cell).collect(),
            entries: vec![
                entry(0, 1, 1000),
                entry(0, 3, 1000),
                entry(2, 0, 2000),
                entry(3, 0, 1000),
                entry(4, 2, 500),
            ],
            totals: [total(4000), total(1500)],
            ..PictureEvent::default()
        }],
        sides: 2,
        ..Picture::default()
    }
}

fn without_base(mut picture: Picture) -> Picture {
    picture.sides = 1;
    picture.events[0].totals[1] = Count::default();
    picture.events[0].entries.pop();
    picture.events[0].entries.remove(1);
    picture
}

fn drawn(picture: &Picture, inverted: bool) -> String {
    let graph = FlameGraph {
        picture,
        event: &picture.events[0],
        title: "a </title> \u{1b} & ]]>".into(),
        about: "4000 samples".into(),
        inverted,
        interactive: true,
        width: 1200,
        min_width: 0.5,
    };
    let mut out = Vec::new();
    graph.write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Returns the texts of the titles of boxes, and that XML reads them.
fn tips(svg: &str) -> Vec<String> {
    let mut reader = quick_xml::Reader::from_str(svg);
    reader.config_mut().check_end_names = true;
    let (mut tips, mut is_title, mut text) = (Vec::new(), false, String::new());
    loop {
        use quick_xml::events::Event;
        match reader.read_event().unwrap() {
            Event::Eof => return tips,
            Event::Start(tag) => is_title = tag.name().as_ref() == b"title",
            Event::Text(part) if is_title => text += &part.decode().unwrap(),
            Event::GeneralRef(part) if is_title => {
                text += &format!("&{};", part.decode().unwrap());
            }
            Event::End(_) if is_title => {
                is_title = false;
                tips.push(std::mem::take(&mut text));
            }
            _ => {}
        }
    }
}

#[test]
fn callers_are_below_what_they_call() {
    let picture = without_base(picture("read"));
    let svg = drawn(&picture, false);
    assert_eq!(
        tips(&svg),
        [
            "a &lt;/title&gt; ␛ &amp; ]]&gt;",
            "all: 100.00%, 4000 samples",
            "a: 75.00%, 3000 samples",
            "main (app-1.2): 75.00%, 3000 samples",
            "f (app-1.2): 75.00%, 3000 samples",
            "read (app-1.2): 25.00%, 1000 samples",
            "b: 25.00%, 1000 samples",
            "f (app-1.2): 25.00%, 1000 samples",
        ]
    );
    assert!(svg.contains("app-1.2 75.0%") && svg.contains("kernel 25.0%"), "{svg}");
    // Shares are in the boxes, too, and the picture is not wider than its place.
    assert!(svg.contains(">main 75.0%</text>") && svg.contains(">read 25.0%</text>"), "{svg}");
    assert!(svg.contains("max-width:100%"), "{svg}");
}

#[test]
fn inverted_graphs_begin_with_the_sampled_functions() {
    let picture = without_base(picture("read"));
    assert_eq!(
        tips(&drawn(&picture, true))[1..],
        [
            "all: 100.00%, 4000 samples",
            "f (app-1.2): 75.00%, 3000 samples",
            "main (app-1.2): 50.00%, 2000 samples",
            "a: 50.00%, 2000 samples",
            "b: 25.00%, 1000 samples",
            "read (app-1.2): 25.00%, 1000 samples",
            "f (app-1.2): 25.00%, 1000 samples",
            "main (app-1.2): 25.00%, 1000 samples",
            "a: 25.00%, 1000 samples",
        ]
    );
}

#[test]
fn a_comparison_shows_what_vanished() {
    let picture = picture("read");
    let svg = drawn(&picture, false);
    let tips = tips(&svg);
    assert_eq!(tips[2], "a: 75.00%, 3000 samples; 33.33%, 500 samples in the base");
    assert!(svg.contains("Only in the base: 33.3% of its samples"));
    assert_eq!(
        tips.last().unwrap(),
        "gone (app-1.2): 0.00%, 0 samples; 33.33%, 500 samples in the base"
    );
    // More, and less: neither grey.
    assert!(svg.contains("class=\"d12\"") && svg.contains("class=\"d0\""), "{svg}");
}

#[test]
fn hostile_names_stay_text() {
    for name in [
        "</title><script>alert(1)</script>",
        "]]>",
        "\u{1b}[31m\u{0}\u{b}\u{ffff}\u{202e}",
        "&#0;&lt;\"'",
        &"<".repeat(4000),
    ] {
        let svg = drawn(&picture(name), false);
        assert_eq!(svg.matches("<script").count(), 1, "its own");
        let bad = svg.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!((tips(&svg).len() > 5, bad), (true, None));
    }
}

#[test]
fn shares_stand_behind_whole_names() {
    assert_eq!(label("main", 12.34, 10), "main 12.3%");
    assert_eq!(label("main", 12.34, 9), "main");
    assert_eq!(label("a_long_name_of_it", 100.0, 16), "a_long_name_of_…");
}
