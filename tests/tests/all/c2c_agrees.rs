//! `rep c2c --stats` and `rep mem -D` against perf, on accesses of every kind that a data source
//! can tell of.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_format::abi::SampleType;
use recrep_format::endian::Endian;
use recrep_format::feature::{HeaderString, NrCpus, NumaNode, NumaTopology};
use recrep_format::wire::List;
use recrep_tests::needs;
use recrep_tests::perf::perf;
use recrep_tests::programs::rep;
use recrep_tests::run::run;

const TEXT: u64 = 0x40_0000;
const DATA: u64 = 0x7f00_0000;

/// Each bit of the level alone and with hit or miss, with each answer of other caches, near and
/// far, for loads and stores, with and without addresses, with and without mappings.
fn stream(endian: Endian) -> (Stream, usize) {
    let fields = SampleType::ADDR
        | SampleType::WEIGHT
        | SampleType::DATA_SRC
        | SampleType::CPU
        | SampleType::PHYS_ADDR
        | SampleType::DATA_PAGE_SIZE;
    let cpus = HeaderString::new("0-3");
    let node = NumaNode { node: 0, mem_total: 1 << 20, mem_free: 1, cpus };
    let mut stream = Stream::new(endian)
        .feature(&NrCpus { available: 4, online: 4 })
        .feature(&NumaTopology { nodes: List(vec![node]) })
        .event(Event::new("mem:u").sampling(fields))
        .task(10, 10)
        .comm("accesses")
        .map("/nowhere/code", TEXT, 0x4000, 0)
        .map("/nowhere/data", DATA, 0x4000, 0);
    let mut samples = 0;
    let levels = (0..14).map(|bit| 1u64 << bit).flat_map(|level| [level, level | 2, level | 4]);
    for (turn, level) in (0u64..).zip(levels) {
        for snoop in [1u64, 2, 4, 8, 0x10] {
            // Not remote; remote; remote within a node; a peer.
            for (remote, hops, snoopx) in
                [(0u64, 0u64, 0u64), (1, 0, 0), (1, 2, 0), (0, 0, 2), (1, 0, 2)]
            {
                for op in [2u64, 4, 8] {
                    let (lock, blk) = (turn % 3, turn % 5);
                    let src =
                        op | level << 5 | snoop << 19 | lock << 24 | remote << 37 | snoopx << 38;
                    let src = src | blk << 40 | hops << 43;
                    let addr = [DATA + 64 * (turn % 32) + snoop, DATA + 8 * snoop, 0, 0x1234]
                        [samples / 3 % 4];
                    let ip = if samples % 7 == 0 { 0x9999 } else { TEXT + 16 * turn };
                    let spec = SampleSpec::at(ip)
                        .addr(addr)
                        .data_src(src)
                        .weight(turn + 1)
                        .phys_addr(addr << 4);
                    stream = stream.on_cpu(u32::try_from(turn % 4).unwrap()).sample(spec);
                    samples += 1;
                }
            }
        }
    }
    (stream, samples)
}

fn written(dir: &Path, endian: Endian) -> (PathBuf, usize) {
    let (stream, samples) = stream(endian);
    let path = dir.join("accesses.data");
    std::fs::write(&path, stream.file()).unwrap();
    (path, samples)
}

/// The numbers of the tables, by the table and their names.
fn numbers(text: &str) -> BTreeMap<(usize, String), String> {
    let mut table = 0;
    let mut numbers = BTreeMap::new();
    // perf goes on with what it was asked.
    for line in text.lines().take_while(|line| !line.contains("c2c details")) {
        table += usize::from(line.contains("Information"));
        if let Some((name, number)) = line.split_once(": ") {
            numbers.insert((table, name.trim().to_owned()), number.trim().to_owned());
        }
    }
    numbers
}

#[test]
fn every_number_of_c2c_is_perfs() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for endian in [Endian::Little, Endian::Big] {
        let (path, samples) = written(dir.path(), endian);
        let perfs = run(perf().args(["c2c", "report", "--stats", "--no-source", "-i"]).arg(&path))
            .expect(0);
        let ours = run(rep().args(["c2c", "--stats"]).arg(&path)).expect(0);
        let (ours, perfs) = (numbers(ours.text()), numbers(perfs.text()));
        assert_eq!(ours, perfs);
        assert_eq!(ours.get(&(1, "Total records".to_owned())), Some(&samples.to_string()));
        let is_there = |number: &&String| !matches!(number.as_str(), "0" | "0.0%");
        let there = ours.values().filter(is_there).count();
        println!("{there} of {} numbers are not 0, of {samples} accesses", ours.len());
        assert!(there >= 46, "{ours:?}");
    }
}

#[test]
fn every_access_is_listed_as_perf_lists_it() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (path, samples) = written(dir.path(), Endian::NATIVE);
    for more in [&["-D"][..], &["-D", "-p"], &["-D", "-U"]] {
        let perfs = run(perf().arg("mem").args(more).args(["-x", ",", "report", "-i"]).arg(&path))
            .expect(0);
        let is_empty = more.contains(&"-U");
        let ours =
            run(rep().arg("mem").args(more).args(["-x", ","]).arg(&path)).expect(is_empty.into());
        assert_eq!(ours.text(), perfs.text(), "{more:?}");
        if !is_empty {
            assert_eq!(ours.text().lines().count(), samples + 1);
        }
    }
    let loads = run(rep().args(["mem", "-D", "-t", "load"]).arg(&path)).expect(0);
    assert_eq!(loads.text().lines().count(), samples / 3 + 1);
}

#[test]
fn pairs_of_lines_are_one_where_that_is_asked() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = written(dir.path(), Endian::NATIVE);
    let lines = |more: &[&str]| -> Vec<String> {
        let outcome =
            run(rep().args(["c2c", "--json", "--show-all"]).args(more).arg(&path)).expect(0);
        let answer: serde_json::Value = serde_json::from_slice(&outcome.stdout).unwrap();
        let lines = answer["lines"].as_array().unwrap().iter();
        lines
            .filter(|line| line["mapping"] == "private")
            .map(|line| line["line"].as_str().unwrap().to_owned())
            .filter(|line| line.starts_with("0x00000000000"))
            .collect()
    };
    let (single, double) = (lines(&[]), lines(&["--double-cl"]));
    assert!(
        single.len() > 20 && double.len() < single.len() * 6 / 10,
        "{} {}",
        single.len(),
        double.len()
    );
    assert!(double.iter().all(|line| line.ends_with("00") || line.ends_with("80")), "{double:?}");
}

#[test]
fn offsets_are_told_apart_as_asked() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = written(dir.path(), Endian::NATIVE);
    let answer = |more: &[&str]| -> serde_json::Value {
        let outcome = run(rep().args(["c2c", "--json"]).args(more).arg(&path)).expect(0);
        serde_json::from_slice(&outcome.stdout).unwrap()
    };
    let by_all = answer(&["-c", "pid,tid,iaddr,dso", "-N"]);
    let offset = &by_all["lines"][0]["offsets"][0];
    assert_eq!([&offset["process"], &offset["thread"]], ["10:accesses", "10:accesses"]);
    assert!(offset["code"].as_str().unwrap().starts_with("0x"), "{offset}");
    assert!(offset["nodes"]["0"].as_array().is_some_and(|cpus| !cpus.is_empty()), "{offset}");
    for (display, field) in [("lcl", "local_hitm"), ("rmt", "remote_hitm"), ("peer", "local_peer")]
    {
        let lines = answer(&["-d", display]);
        let counts: Vec<_> = lines["lines"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line[field].as_u64().unwrap())
            .collect();
        assert!(!counts.is_empty(), "{display}");
        if display != "peer" {
            assert!(
                counts.is_sorted_by(|a, b| a >= b) && counts.last() > Some(&0),
                "{display}: {counts:?}"
            );
        }
    }
}
