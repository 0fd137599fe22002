//! Intel BTS against perf: every branch.

use std::path::Path;

use recrep_fixtures::build::{Event, Stream};
use recrep_fixtures::trace::{Image, Logged, Settings, Walk};
use recrep_format::abi::{AuxFlags, Cpu, EventType, Tid, misc};
use recrep_format::endian::Endian;
use recrep_format::record::{Aux, Auxtrace, Body, Mmap2, MmapBuildId, MmapIdentity};
use recrep_format::wire::Text;
use recrep_tests::needs;
use recrep_tests::perf::{version, versions};
use recrep_tests::programs::rep;
use recrep_tests::run::run;
use recrep_trace::bts::Branch;

use super::pt::{ADDRESS, LIBC};
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

/// Returns a recording without records of processes.
fn begun() -> Stream {
    Stream::new(Endian::Little)
        .event(Event::new("intel_bts//u").counting(EventType(PMU), 0))
        .event(Event::new("dummy:u").counting(EventType::SOFTWARE, 9))
        .auxtrace_info(2, &[PMU.into(), 0, 1, 0, 1, 0])
        .task(70, 70)
}

fn recording(branches: u64) -> Stream {
    begun()
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
    let told = warnings(&calls, "trace-gaps");
    assert!(told[0].contains("1000 stretches of code that are in no file"), "{told:?}");
}

/// Returns a recording of branches through the C library, and of one whose code nobody has.
fn walked(image: &Image) -> Stream {
    let mut bytes = Vec::new();
    let settings = Settings { fault_every: 100, ..Settings::default() };
    Walk::through(image, settings, 3, 5_000, |Logged { from, to, .. }| {
        // Some of what interrupts it is the kernel.
        let to = if from % 11 == 3 { u64::MAX << 32 | to } else { to };
        bytes.extend(Branch { from, to, flags: 0 }.to_bytes());
    });
    bytes.extend(Branch { from: 1, to: image.address, flags: 0 }.to_bytes());
    let mapping = Body::Mmap2(Mmap2 {
        pid: 70,
        tid: 70,
        addr: image.address,
        len: (image.code.len() as u64).next_multiple_of(4096),
        pgoff: image.offset,
        identity: MmapIdentity::BuildId(MmapBuildId {
            size: 20,
            reserved: [0; 3],
            bytes: image.build_id,
        }),
        prot: 5,
        flags: 2,
        filename: Text::new(image.path.as_os_str().as_encoded_bytes()),
    });
    let size = bytes.len() as u64;
    // perf reads it behind the records up to this time.
    let (reference, tid, cpu) = (4000, Tid(70), Cpu(0));
    let trace = Auxtrace { size, offset: 0, reference, idx: 0, tid, cpu, reserved: 0 };
    let aux = Aux { aux_offset: 0, aux_size: size, flags: AuxFlags::empty() };
    begun()
        .at(1)
        .exec("traced")
        .record(misc::MMAP_BUILD_ID | 2, mapping)
        .at(5000)
        .record(0, Body::Aux(aux))
        .record(0, Body::Auxtrace(trace))
        .payload(&bytes)
        .round()
}

#[test]
fn calls_and_returns_are_those_of_the_code() {
    let Ok(image) = &Image::read(Path::new(LIBC), ADDRESS) else { return };
    let (_dir, file) = &written(&walked(image));
    let mut counts = Vec::new();
    for letters in ["--itrace=c", "--itrace=r", "--itrace=cr"] {
        let args = ["script", letters, "-F", "ip,addr"];
        let ours = lines(rep().args(args).arg(file));
        counts.push(ours.len());
        assert!(ours.len() > 300, "{letters}: {}", ours.len());
        if needs::commands("perf") {
            for perf in versions() {
                let mut perf = version(&perf);
                let perfs = lines(perf.args(args).arg("--no-inline").arg("-i").arg(file));
                assert_equal(&ours, &perfs);
            }
        }
    }
    assert_eq!(counts[0] + counts[1], counts[2]);
    let told = warnings(&json(&["--itrace=c"], file), "trace-gaps");
    assert!(
        told[0].ends_with(": 1 stretch of code that is in no file of this machine"),
        "{told:?}"
    );
}

#[test]
fn the_first_branches_are_left_out() {
    // In several parts.
    let (_dir, file) = written(&recording(30_000));
    let listed = |letters: &str| {
        run(rep().args(["script", letters, "-F", "ip"]).arg(&file)).expect(0).text().to_owned()
    };
    let (all, ours) = (listed("--itrace=b"), listed("--itrace=bs12345"));
    assert!(all.lines().skip(12_345).eq(ours.lines()));
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
