//! `rep mem`, `c2c`, `branches` and `timeline` on streams of which the whole answer is known; these
//! and `modules` as CSV.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_format::abi::{BranchEntry, BranchFlags, BranchSampleType, SampleType};
use recrep_format::endian::Endian;
use recrep_tests::programs::rep;
use recrep_tests::run::run;
use serde_json::{Value, json};

const TEXT: u64 = 0x40_0000;
const LIB: u64 = 0x7f00_0000;
/// A load, a store.
const LOAD: u64 = 2;
const STORE: u64 = 4;
/// Hits: L1, L3, a cache of another node.
const L1: u64 = (8 | 2) << 5;
const L3: u64 = (0x40 | 2) << 5;
const REMOTE: u64 = (0x400 | 2) << 5;
/// Modified in another cache.
const HITM: u64 = 0x10 << 19;

fn written(dir: &Path, stream: &Stream) -> PathBuf {
    let path = dir.join("known.data");
    std::fs::write(&path, stream.file()).unwrap();
    path
}

fn json_of(command: &[&str], path: &Path) -> Value {
    serde_json::from_slice(&run(rep().args(command).arg("--json").arg(path)).expect(0).stdout)
        .unwrap()
}

fn text_of(command: &[&str], path: &Path) -> String {
    run(rep().args(command).arg(path)).expect(0).text().to_owned()
}

fn accesses(endian: Endian) -> Stream {
    let fields = SampleType::ADDR | SampleType::WEIGHT | SampleType::DATA_SRC;
    let stream =
        Stream::new(endian).event(Event::new("mem:u").sampling(fields)).task(10, 10).comm("known");
    stream.map("/nowhere/known", TEXT, 0x4000, 0)
}

#[test]
fn latencies_are_exact() {
    let dir = tempfile::tempdir().unwrap();
    for endian in [Endian::Little, Endian::Big] {
        let mut stream = accesses(endian);
        // Every weight from 1 to 200 once, in an order that is not theirs.
        for turn in 0..200u64 {
            stream =
                stream.sample(SampleSpec::at(TEXT).data_src(LOAD | L1).weight(turn * 73 % 200 + 1));
        }
        for weight in [7, 9] {
            stream = stream.sample(SampleSpec::at(TEXT + 16).data_src(STORE | L3).weight(weight));
        }
        let path = written(dir.path(), &stream);
        let answer = json_of(&["mem"], &path);
        let rows = &answer["events"][0]["rows"];
        assert_eq!(rows[0]["key"], json!({ "op": "LOAD", "mem": "L1 hit" }));
        assert_eq!(
            rows[0]["latency"],
            json!({ "min": 1, "p50": 100, "p90": 180, "p99": 198, "max": 200 })
        );
        assert_eq!([&rows[0]["samples"], &rows[0]["weight"]], [200, 20_100]);
        assert_eq!(rows[1]["latency"], json!({ "min": 7, "p50": 7, "p90": 9, "p99": 9, "max": 9 }));
        let by_function = json_of(&["mem", "-s", "symbol"], &path);
        assert_eq!(by_function["events"][0]["sort"], json!(["symbol"]));
        let key = &by_function["events"][0]["rows"][0]["key"];
        assert_eq!(*key, json!({ "symbol": "known+0x0", "cpumode": "user" }));
        let by_thread = json_of(&["mem", "-s", "comm"], &path);
        assert_eq!(by_thread["events"][0]["rows"][0]["samples"], 202);
        assert!(
            text_of(&["mem"], &path).contains(
                "       200   99.01%      100      180      198      200  LOAD  L1 hit\n"
            )
        );
    }
    let outcome = run(rep().args(["mem", "--stats"])).expect(2);
    assert!(outcome.stderr.contains("--stats"), "{}", outcome.stderr);
}

/// Every level that a data source can name, as a bit or as a number, with its own count of samples
/// and its own weights.
#[test]
fn each_level_is_told_apart() {
    let hit = |bit: u64| (1 << bit | 2) << 5;
    let number =
        |number: u64, remote: u64, hops: u64| number << 33 | remote << 37 | hops << 43 | 2 << 5;
    let levels = [
        (hit(3), "L1 hit"),
        (hit(4), "LFB/MAB hit"),
        (hit(5), "L2 hit"),
        (hit(6), "L3 hit"),
        (hit(7), "Local RAM hit"),
        (hit(8), "Remote RAM (1 hop) hit"),
        (hit(9), "Remote RAM (2 hops) hit"),
        (hit(10), "Remote Cache (1 hop) hit"),
        (hit(11), "Remote Cache (2 hops) hit"),
        (hit(12), "I/O hit"),
        (hit(13), "Uncached hit"),
        ((8 | 4) << 5, "L1 miss"),
        (1 << 5, "N/A"),
        (number(4, 0, 0), "L4 hit"),
        (number(5, 0, 0), "L2 MHB hit"),
        (number(6, 0, 0), "Memory-side Cache hit"),
        (number(9, 0, 0), "CXL hit"),
        (number(11, 1, 0), "Remote Any cache hit"),
        (number(2, 0, 1), "core, same node L2 hit"),
        (number(3, 1, 2), "Remote node, same socket L3 hit"),
        (number(13, 1, 3), "Remote socket, same board RAM hit"),
        (number(14, 1, 4), "Remote board PMEM hit"),
    ];
    let dir = tempfile::tempdir().unwrap();
    for endian in [Endian::Little, Endian::Big] {
        let mut stream = accesses(endian);
        for (place, (level, _)) in (1..).zip(&levels) {
            for turn in 1..=place {
                stream = stream.sample(
                    SampleSpec::at(TEXT).data_src(LOAD | level).weight(place * 1000 + turn),
                );
            }
        }
        let answer = json_of(&["mem", "-s", "mem"], &written(dir.path(), &stream));
        let rows = answer["events"][0]["rows"].as_array().unwrap();
        assert_eq!(rows.len(), levels.len());
        for (place, (_, name)) in (1u64..).zip(&levels) {
            let row = rows
                .iter()
                .find(|row| row["key"]["mem"] == *name)
                .unwrap_or_else(|| panic!("{name}: {rows:?}"));
            let at = |percent: u64| place * 1000 + (place * percent).div_ceil(100);
            assert_eq!(row["samples"], place, "{name}");
            let latency = json!({ "min": place * 1000 + 1, "p50": at(50), "p90": at(90), "p99": at(99), "max": at(100) });
            assert_eq!(row["latency"], latency, "{name}");
        }
    }
}

#[test]
fn cache_lines_are_exact() {
    let dir = tempfile::tempdir().unwrap();
    let mut stream = accesses(Endian::NATIVE).map("/nowhere/shared.so", LIB, 0x1000, 0);
    let touch = |ip: u64, at: u64, src: u64| {
        SampleSpec::at(TEXT + ip).addr(LIB + at).data_src(src).weight(1)
    };
    // Thread 10 reads at 8 of line 0x40 what thread 11 writes at 16; line 0x80 is only read.
    stream = stream.sample(touch(0x10, 0x48, LOAD | L3 | HITM)).sample(touch(
        0x10,
        0x48,
        LOAD | L3 | HITM,
    ));
    stream =
        stream.sample(touch(0x10, 0x48, LOAD | REMOTE | HITM)).sample(touch(0x10, 0x80, LOAD | L1));
    stream = stream.task(10, 11).comm("writer").sample(touch(0x20, 0x50, STORE | L1));
    let path = written(dir.path(), &stream);
    assert_eq!(
        json_of(&["c2c"], &path)["lines"].as_array().unwrap().len(),
        1,
        "only what is taken from others"
    );
    let answer = json_of(&["c2c", "--show-all"], &path);
    let total = json!({ "samples": 5, "loads": 4, "stores": 1, "local_hitm": 2, "remote_hitm": 1,
        "local_peer": 0, "remote_peer": 0 });
    assert_eq!(answer["total"], total);
    let line = &answer["lines"][0];
    assert_eq!(line["line"], "0x0000000000000040");
    assert_eq!([&line["cpumode"], &line["mapping"]], ["user", "private"]);
    assert_eq!(
        [&line["local_hitm"], &line["remote_hitm"], &line["loads"], &line["stores"]],
        [2, 1, 3, 1]
    );
    assert_eq!(line["readers"], json!(["10:known"]));
    assert_eq!(line["writers"], json!(["11:writer"]));
    let offsets = line["offsets"].as_array().unwrap();
    let touched = |at: usize| {
        (offsets[at]["offset"].as_str().unwrap(), offsets[at]["samples"].as_u64().unwrap())
    };
    assert_eq!([&offsets[0]["symbol"], &offsets[0]["cpumode"]], ["known+0x10", "user"]);
    assert!(
        text_of(&["c2c"], &path).contains("      0x8 [.] known+0x10\n"),
        "{}",
        text_of(&["c2c"], &path)
    );
    assert_eq!((offsets.len(), touched(0), touched(1)), (2, ("0x8", 3), ("0x10", 1)));
    assert_eq!(answer["lines"][1]["samples"], 1);
    assert_eq!(answer["lines"].as_array().unwrap().len(), 2);
}

/// Two turns of a loop, entered from a library; the newest branch stands first.
fn looping(endian: Endian) -> Stream {
    let branch = |from, to, flags| BranchEntry { from, to, flags: BranchFlags(flags) };
    let stack = [
        branch(TEXT + 0x40, TEXT + 0x10, 2 | 5 << 4),
        branch(TEXT + 0x40, TEXT + 0x10, 1 | 8 << 4),
        branch(LIB + 0x20, TEXT + 0x30, 0),
    ];
    let event = Event::new("branches:u").branches(BranchSampleType::USER | BranchSampleType::ANY);
    let stream = Stream::new(endian).event(event).task(10, 10).comm("loops").map(
        "/nowhere/loops",
        TEXT,
        0x4000,
        0,
    );
    stream
        .map("/nowhere/lib.so", LIB, 0x1000, 0)
        .sample(SampleSpec::at(TEXT + 0x20).branches(&stack))
}

#[test]
fn edges_and_loops_are_exact() {
    let dir = tempfile::tempdir().unwrap();
    for endian in [Endian::Little, Endian::Big] {
        let answer = json_of(&["branches"], &written(dir.path(), &looping(endian)));
        assert_eq!(answer["branches"], 3);
        let edge = &answer["edges"][0];
        assert_eq!([&edge["from"]["address"], &edge["to"]["address"]], ["0x400040", "0x400010"]);
        let from = json!({ "address": "0x400040", "dso": "loops", "symbol": "loops+0x40", "cpumode": "user" });
        assert_eq!(edge["from"], from);
        assert_eq!([&edge["count"], &edge["mispredicted"], &edge["predicted"]], [2, 1, 1]);
        assert_eq!([&edge["mispredict_percent"], &edge["mean_cycles"]], [50.0, 6.5]);
        assert_eq!(answer["edges"][1]["mispredict_percent"], Value::Null);
        assert_eq!((answer["loops"].as_array().unwrap().len(), &answer["loops"][0]), (1, edge));
        let ranges = answer["ranges"].as_array().unwrap();
        let range = |at: usize| {
            let text = |end: &str| ranges[at][end]["address"].as_str().unwrap().to_owned();
            (text("start"), text("end"), ranges[at]["count"].as_u64().unwrap())
        };
        assert_eq!(range(0), ("0x400010".into(), "0x400040".into(), 1));
        assert_eq!(range(1), ("0x400030".into(), "0x400040".into(), 1));
        assert_eq!(ranges.len(), 2);
    }
}

#[test]
fn the_profile_for_bolt_is_exact() {
    let dir = tempfile::tempdir().unwrap();
    for flags in [&["branches", "--format", "bolt"][..], &["branches", "--format=bolt"]] {
        let profile = text_of(flags, &written(dir.path(), &looping(Endian::NATIVE)));
        assert_eq!(profile, "B X:20 30 1 0\nB 40 10 2 1\nF 10 40 1\nf 30 40 1\n");
    }
}

#[test]
fn slices_are_exact() {
    let dir = tempfile::tempdir().unwrap();
    let mut stream =
        Stream::new(Endian::NATIVE).event(Event::new("clock:u")).task(10, 10).comm("known");
    for time in [1_000_000_000, 1_050_000_000, 1_310_000_000] {
        stream = stream.at(time).sample(SampleSpec::at(TEXT).period(10));
    }
    let path = written(
        dir.path(),
        &stream.task(10, 11).comm("other").at(1_199_999_999).sample(SampleSpec::at(TEXT)),
    );
    let answer = json_of(&["timeline"], &path);
    let threads = &answer["events"][0]["threads"];
    assert_eq!([&threads[0]["thread"], &threads[1]["thread"]], ["10:known", "11:other"]);
    let slice = |time: &str, samples: u64, period: u64| json!({ "time": time, "samples": samples, "period": period });
    assert_eq!(
        threads[0]["slices"],
        json!([slice("1.000000000", 2, 20), slice("1.300000000", 1, 10)])
    );
    assert_eq!(threads[1]["slices"], json!([slice("1.100000000", 1, 1)]));
    let text = text_of(&["timeline"], &path);
    assert!(text.contains("        3  9..5  10:known\n        1  .5..  11:other\n"), "{text}");
    let fine = json_of(&["timeline", "--time-quantum", "50ms"], &path);
    assert_eq!(fine["events"][0]["threads"][0]["slices"].as_array().unwrap().len(), 3);
}

/// A row of CSV, or what JSON has of the same thing.
type Fields = BTreeMap<String, Value>;

/// Returns the heading of a command's CSV, and its rows. Cells that are numbers in JSON are numbers;
/// empty ones are missing.
fn csv_of(command: &[&str], path: &Path) -> (String, Vec<Fields>) {
    let text = text_of(&[command, &["--format", "csv"]].concat(), path);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let heading = reader.headers().unwrap().iter().collect::<Vec<_>>().join(",");
    let value = |name: &str, cell: &str| match cell.parse::<f64>() {
        Ok(number) if !["time", "thread"].contains(&name) => number.into(),
        _ => cell.into(),
    };
    let row = |row: csv::Result<BTreeMap<String, String>>| {
        let cells = row.unwrap().into_iter().filter(|(_, cell)| !cell.is_empty());
        cells.map(|(name, cell)| (name.clone(), value(&name, &cell))).collect()
    };
    (heading, reader.deserialize().map(row).collect())
}

/// Adds the fields of an object that have one value, with `prefix` before their names. All numbers
/// become floating-point ones.
fn flatten(into: &mut Fields, prefix: &str, object: &Value) {
    for (name, value) in object.as_object().unwrap() {
        let value = value.as_f64().map_or_else(|| value.clone(), Value::from);
        if value.is_string() || value.is_number() {
            into.insert(format!("{prefix}{name}"), value);
        }
    }
}

fn flat(parts: &[(&str, &Value)]) -> Fields {
    let mut fields = Fields::new();
    for (prefix, object) in parts {
        flatten(&mut fields, prefix, object);
    }
    fields
}

fn items(list: &Value) -> &[Value] {
    list.as_array().unwrap()
}

/// Checks that CSV has this heading and these rows, but for fields without a column.
#[track_caller]
fn check_csv(command: &[&str], path: &Path, heading: &str, mut rows: Vec<Fields>) {
    let (named, found) = csv_of(command, path);
    assert_eq!(named, heading);
    let columns: Vec<&str> = heading.split(',').collect();
    for row in &mut rows {
        row.retain(|name, _| columns.contains(&name.as_str()));
    }
    assert!(rows.len() > 1, "{rows:?}");
    assert_eq!(found, rows);
}

#[test]
fn csv_of_accesses_has_the_values_of_json() {
    let dir = tempfile::tempdir().unwrap();
    let mut stream = accesses(Endian::NATIVE);
    for turn in 0..30u64 {
        let (op, level) = if turn % 3 == 0 { (STORE, L3) } else { (LOAD, L1) };
        stream = stream.sample(
            SampleSpec::at(TEXT + turn % 2).addr(LIB + turn).data_src(op | level).weight(turn + 1),
        );
    }
    let path = written(dir.path(), &stream);
    for (keys, names) in [("op,mem", "op,mem"), ("symbol", "symbol,cpumode")] {
        let command = ["mem", "-s", keys];
        let answer = json_of(&command, &path);
        let mut rows = Vec::new();
        for event in items(&answer["events"]) {
            for row in items(&event["rows"]) {
                let name = json!({ "event": event["name"] });
                let parts = [("", &name), ("", row), ("", &row["key"]), ("", &row["latency"])];
                rows.push(flat(&parts));
            }
        }
        let heading = format!("event,samples,percent,weight,min,p50,p90,p99,max,{names}");
        check_csv(&command, &path, &heading, rows);
    }
}

#[test]
fn csv_of_cache_lines_has_the_values_of_json() {
    let dir = tempfile::tempdir().unwrap();
    let mut stream = accesses(Endian::NATIVE).map("/nowhere/shared.so", LIB, 0x1000, 0);
    let sources = [LOAD | L3 | HITM, LOAD | REMOTE | HITM, STORE | L1];
    for (turn, src) in (0..12u64).zip(sources.into_iter().cycle()) {
        let touch = SampleSpec::at(TEXT + turn % 2 * 16).addr(LIB + turn * 16).data_src(src);
        stream = stream.sample(touch.weight(1));
    }
    let path = written(dir.path(), &stream);
    let answer = json_of(&["c2c"], &path);
    let mut rows = Vec::new();
    for line in items(&answer["lines"]) {
        for offset in items(&line["offsets"]) {
            let mut fields = flat(&[("", line), ("", offset)]);
            fields.insert("cpumode".into(), line["cpumode"].clone());
            fields.insert("code_cpumode".into(), offset["cpumode"].clone());
            rows.push(fields);
        }
    }
    let heading = "line,dso,cpumode,mapping,offset,code_cpumode,symbol,samples,loads,stores,\
                   local_hitm,remote_hitm,local_peer,remote_peer";
    check_csv(&["c2c"], &path, heading, rows);
}

#[test]
fn csv_of_branches_has_the_values_of_json() {
    let dir = tempfile::tempdir().unwrap();
    let path = written(dir.path(), &looping(Endian::NATIVE));
    let answer = json_of(&["branches"], &path);
    let all = answer["branches"].as_f64().unwrap();
    let mut rows = Vec::new();
    for table in ["edges", "loops"] {
        for edge in items(&answer[table]) {
            let percent = edge["count"].as_f64().unwrap() * 10_000.0 / all;
            let computed = json!({ "table": table, "percent": percent.round() / 100.0 });
            rows.push(flat(&[
                ("", &computed),
                ("", edge),
                ("from_", &edge["from"]),
                ("to_", &edge["to"]),
            ]));
        }
    }
    let table = json!({ "table": "fall_throughs" });
    for range in items(&answer["ranges"]) {
        let (start, end) = (&range["start"], &range["end"]);
        rows.push(flat(&[("", &table), ("", range), ("from_", start), ("to_", end)]));
    }
    let heading = "table,count,percent,mispredict_percent,mean_cycles,from_address,from_dso,\
                   from_symbol,from_cpumode,to_address,to_dso,to_symbol,to_cpumode";
    check_csv(&["branches"], &path, heading, rows);
}

#[test]
fn csv_of_slices_has_the_values_of_json() {
    let dir = tempfile::tempdir().unwrap();
    let mut stream =
        Stream::new(Endian::NATIVE).event(Event::new("clock:u")).task(10, 10).comm("known, \"a\"");
    for time in [1_000_000_000, 1_050_000_000, 1_310_000_000] {
        stream = stream.at(time).sample(SampleSpec::at(TEXT).period(10));
    }
    let stream = stream.task(10, 11).comm("other").at(1_199_999_999).sample(SampleSpec::at(TEXT));
    let path = written(dir.path(), &stream);
    let answer = json_of(&["timeline"], &path);
    let mut rows = Vec::new();
    for event in items(&answer["events"]) {
        for thread in items(&event["threads"]) {
            let of = json!({ "event": event["name"], "thread": thread["thread"] });
            rows.extend(
                items(&thread["slices"]).iter().map(|slice| flat(&[("", &of), ("", slice)])),
            );
        }
    }
    check_csv(&["timeline"], &path, "event,thread,time,samples,period", rows);
}

#[test]
fn modules_are_one_answer_in_each_format() {
    let dir = tempfile::tempdir().unwrap();
    let mut stream =
        Stream::new(Endian::NATIVE).event(Event::new("clock:u")).task(10, 10).comm("known");
    for (place, path) in (0..).zip(["/nowhere/known", "/nowhere/lib, \"b\".so"]) {
        let at = TEXT + place * 0x10_0000;
        stream = stream.map(path, at, 0x1000, 0);
        for _ in 0..=place {
            stream = stream.sample(SampleSpec::at(at).period(10));
        }
    }
    // Nothing is mapped there.
    let path = written(dir.path(), &stream.sample(SampleSpec::at(LIB).period(7)));
    let answer = json_of(&["modules"], &path);
    let mut rows = Vec::new();
    for module in items(&answer["modules"]) {
        let reason = json!({ "reason": module["reason"]["code"] });
        rows.push(flat(&[("", module), ("", &reason)]));
    }
    let heading =
        "samples,percent,resolved_percent,name,path,build_id,period,symbols,reason,inferred";
    check_csv(&["modules"], &path, heading, rows);
    let format = |format: &str| text_of(&["modules", "--format", format], &path);
    assert_eq!(format("json"), text_of(&["modules", "--json"], &path));
    let text = format("text");
    assert_eq!(text, text_of(&["modules"], &path));
    for line in [
        "# 4 samples, 0.00% of them with a function\n",
        "          2    50.00%     0.00%  /nowhere/lib, \"b\".so\n",
        "missing: ",
        "tried /nowhere/known (recorded path): ",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}
