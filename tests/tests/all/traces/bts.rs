//! Intel BTS against perf: every branch.

use recrep_fixtures::build::{Event, Stream};
use recrep_format::abi::EventType;
use recrep_format::endian::Endian;
use recrep_tests::needs;
use recrep_tests::perf::{version, versions};
use recrep_tests::programs::rep;
use recrep_trace::bts::Branch;

use super::{assert_equal, json, lines, samples, warnings, written};

/// Number of the PMU.
const PMU: u32 = 10;

/// Returns the bytes of branches, with an unused entry among them.
fn trace(branches: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in 0..branches {
        let flags = number % 2 * Branch::PREDICTED;
        let branch = Branch { from: 0x40_0000 + number, to: 0x40_1000 + number * 7 % 4096, flags };
        bytes.extend(branch.to_bytes());
        if number == 5 {
            bytes.extend(Branch::default().to_bytes());
        }
    }
    bytes
}

fn recording(branches: u64) -> Stream {
    Stream::new(Endian::Little)
        .event(Event::new("intel_bts//u").counting(EventType(PMU), 0))
        .event(Event::new("dummy:u").counting(EventType::SOFTWARE, 9))
        .auxtrace_info(2, &[PMU.into(), 0, 1, 0, 1, 0])
        .task(70, 70)
        .at(1)
        .comm("traced")
        .map("/bin/traced", 0x40_0000, 0x10_0000, 0)
        .at(5000)
        .aux_data(0, 0, &trace(branches))
        .round()
}

#[test]
fn every_branch_that_perf_gives() {
    if !needs::commands("perf") {
        return;
    }
    let (_dir, file) = written(&recording(30_000));
    // perf does not know the process.
    let fields = "tid,event,ip,addr,period";
    let ours = lines(rep().args(["script", "--itrace=b", "-F", fields]).arg(&file));
    assert_eq!(ours.len(), 30_000);
    for perf in versions() {
        let args = ["script", "--no-inline", "--itrace=b", "-F", fields, "-i"];
        let lines = lines(version(&perf).args(args).arg(&file));
        // perf adds modifiers that nobody asked for.
        let bare = lines.into_iter().map(|line| line.replace("branches:HG:", "branches:"));
        let mut perfs: Vec<String> = bare.collect();
        // perf leaves out the last branch of each piece.
        assert_eq!(perfs.len(), 29_999);
        perfs.extend(ours.iter().filter(|line| line.contains(" 40752f ")).cloned());
        perfs.sort();
        assert_equal(&ours, &perfs);
    }
}

#[test]
fn views_of_branches_have_them() {
    let (_dir, file) = written(&recording(1000));
    let answer = json(&["-s", "comm,dso"], &file);
    assert_eq!(samples(&answer), [("branches".to_owned(), 1000)].into());
    let calls = json(&["--itrace=c"], &file);
    assert!(samples(&calls).is_empty(), "all branches would be more than was asked for");
    assert_eq!(warnings(&calls, "itrace-letter").len(), 1);
}

#[test]
fn a_cut_branch_is_a_gap() {
    let mut bytes = trace(10);
    bytes.truncate(bytes.len() - 8);
    let (_dir, file) = written(&recording(3).at(6000).aux_data(72, 0, &bytes));
    let answer = json(&[], &file);
    assert_eq!(samples(&answer)["branches"], 12);
    let told = warnings(&answer, "trace-gaps");
    assert_eq!(told, ["not all of the trace is decoded: 1 record that is cut short"]);
}
