//! Options that change the style of the output, but not its contents.

use super::*;

#[test]
fn percentages_are_coloured_on_request_only() {
    let (_place, file) = recorded(&two_events(Endian::Little, 4));
    let plain = text(&["--sort", "comm,dso"], &file);
    assert!(!plain.contains('\u{1b}'));
    let painted = text(&["--sort", "comm,dso", "--stdio-color=always"], &file);
    assert!(painted.contains("    \u{1b}[31m52.63%\u{1b}[0m  first "), "{painted}");
    assert_eq!(painted.replace("\u{1b}[31m", "").replace("\u{1b}[0m", ""), plain);
    assert_eq!(text(&["--sort", "comm,dso", "--stdio-color", "never"], &file), plain);
}

#[test]
fn quiet_output_has_only_rows() {
    let stream = two_events(Endian::Little, 4).of(0).lost_samples(5);
    let (_place, file) = recorded(&stream);
    let said = run(&["-q", "--sort", "comm,dso"], &file);
    assert!(said.stderr.is_empty());
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.starts_with("    52.63%  first") && !said.contains('#'), "{said}");
    for more in [&["-H"][..], &["--group"], &["-t", ";"]] {
        let said = text(&[&["-q", "--sort", "comm,dso"], more].concat(), &file);
        assert!(said.contains("first") && !said.contains('#'), "{said}");
    }
}

#[test]
fn groups_are_limited_by_the_shares_of_their_first_event() {
    let (_place, file) = recorded(&two_events(Endian::Little, 4));
    let rows = |limit: &str| {
        let said = text(&["-q", "--group", "--sort", "comm,dso", "--percent-limit", limit], &file);
        said.lines()
            .filter(|line| !line.is_empty())
            .map(|line| line.trim().to_owned())
            .collect::<Vec<_>>()
    };
    let all = rows("0");
    let share = |row: &String| row.split('%').next().unwrap().parse::<f64>().unwrap();
    let (first, second) = (share(&all[0]), share(&all[1]));
    assert!(first > second, "{all:?}");
    assert_eq!(rows(&((first + second) / 2.0).to_string()), all[..1]);
    assert!(rows("100").is_empty());
}

#[test]
fn column_widths_are_applied() {
    let (_place, file) = recorded(&two_events(Endian::Little, 4));
    let said = text(&["-q", "--sort", "comm,dso,cpu", "-w", "0,3,9"], &file);
    assert!(said.starts_with("    52.63%  fir  lib.so     "), "{said}");
}

#[test]
fn the_heading_describes_the_recording_and_the_footer_lost_samples() {
    let (_place, file) = recorded(&two_events(Endian::Little, 4).of(0).lost_samples(5));
    let said = text(&["--sort", "comm"], &file);
    assert!(said.starts_with("#\n# On: fixture, Linux 6.1.0, 4 CPUs\n"), "{said}");
    assert!(said.contains("% of the samples were lost: larger rings"), "{said}");
    let whole = text(&["--header", "--sort", "comm"], &file);
    assert!(
        whole.contains(&format!("# file: {}", file.display())) && whole.ends_with(&said),
        "{whole}"
    );
    let only = text(&["--header-only"], &file);
    assert!(only.starts_with("file: ") && !only.contains("Samples:"), "{only}");
    assert_eq!(only.lines().count(), whole.lines().count() - said.lines().count());
}

#[test]
fn dump_raw_trace_prints_the_same_as_rep_dump() {
    let (_place, file) = recorded(&two_events(Endian::Little, 4));
    assert_eq!(text(&["-D"], &file), text(&["dump"], &file));
}

#[test]
fn csv_has_the_same_values_as_json() {
    let (_place, file) = recorded(&two_events(Endian::Little, 4));
    let said = text(&["--format", "csv", "--sort", "comm,dso"], &file);
    let mut lines = said.lines();
    assert_eq!(lines.next(), Some("event,comm,dso,samples,period,percent"));
    let answer = json(&["--sort", "comm,dso"], &file);
    for event in list(&answer["events"]) {
        for row in list(&event["rows"]) {
            let word = |of: &Value| of.as_str().map_or(of.to_string(), str::to_owned);
            let cells = [
                &event["name"],
                &row["key"]["comm"],
                &row["key"]["dso"],
                &row["samples"],
                &row["period"],
            ];
            let line =
                cells.map(word).join(",") + &format!(",{:.2}", row["percent"].as_f64().unwrap());
            assert_eq!(lines.next(), Some(line.as_str()));
        }
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn hide_unresolved_removes_rows_and_their_share_of_the_total() {
    let (_place, file) = recorded(&two_events(Endian::Little, 4));
    let event = &json(&["-U", "--sort", "comm"], &file)["events"][0];
    assert_eq!(
        (event["samples"].as_u64(), event["rows"].as_array().map(Vec::len)),
        (Some(0), Some(0))
    );
    let all = list(&json(&["--sort", "comm"], &file)["events"]).len();
    let full = list(&json(&["-U", "--skip-empty", "--sort", "comm"], &file)["events"]).len();
    assert!(full < all, "{full} of {all}");
}

#[test]
fn percentages_can_be_relative_to_the_filtered_total() {
    let (_place, file) = recorded(&two_events(Endian::Little, 4));
    let event = |more: &[&str]| {
        json(&[&["--sort", "comm", "--comm", "second"], more].concat(), &file)["events"][0].clone()
    };
    let (all, left) = (event(&["--percentage", "absolute"]), event(&["--percentage", "relative"]));
    assert_eq!((&all["rows"][0]["percent"], &all["period"]), (&21.05.into(), &19.into()));
    assert_eq!((&left["rows"][0]["percent"], &left["period"]), (&100.0.into(), &4.into()));
}

#[test]
fn text_options_are_refused_for_other_formats() {
    let (_place, file) = recorded(&two_events(Endian::Little, 4));
    for flag in ["--header", "-w9", "--stdio-color=always", "-t,"] {
        for format in ["json", "csv"] {
            assert_eq!(
                run(&[flag, "--format", format], &file).status.code(),
                Some(2),
                "{flag} {format}"
            );
        }
    }
    assert_eq!(run(&["--format", "csv", "-H"], &file).status.code(), Some(2));
}
