//! Damaged traces: an answer, whatever the bytes are, and the same on any number of cores.

use recrep_fixtures::build::Stream;
use recrep_fixtures::trace::spe::SpeTraces;
use recrep_tests::programs::rep;
use recrep_tests::run::run;

use super::{json, samples, warnings, written};

/// Numbers that are random enough, and the same each time.
fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        state >> 33
    }
}

/// Returns the file of a recording with some bytes changed, behind its first records.
fn damaged(stream: &Stream, seed: u64, most: u64) -> Vec<u8> {
    let (mut bytes, mut next) = (stream.file(), random(seed));
    let from = bytes.len() / 4;
    for _ in 0..1 + next() % most {
        let at = from + usize::try_from(next()).unwrap() % (bytes.len() / 2);
        bytes[at] = (next() & 0xff) as u8;
    }
    bytes
}

#[test]
fn damage_of_traces_is_survived_and_counted() {
    let stream = SpeTraces { records: 300, ..SpeTraces::default() }.stream();
    let (dir, file) = written(&stream);
    let whole = samples(&json(&["--itrace=i1i"], &file))["instructions"];
    let mut with_gaps = 0;
    for seed in 0..12 {
        let file = dir.path().join(format!("{seed}.data"));
        std::fs::write(&file, damaged(&stream, seed, 200)).unwrap();
        let answer = json(&["--itrace=i1i"], &file);
        let found = samples(&answer).get("instructions").copied().unwrap_or(0);
        assert!(found > whole / 2, "{seed}: {found} of {whole}");
        with_gaps += warnings(&answer, "trace-gaps").len();
        let dumped = run(rep().args(["dump", "--packets"]).arg(&file)).expect(0);
        assert!(dumped.text().contains("Bad packet!") || found == whole, "{seed}");
    }
    assert!(with_gaps > 6, "{with_gaps}");
}

#[test]
fn threads_change_nothing() {
    let stream = SpeTraces { records: 20_000, ..SpeTraces::default() }.stream();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    std::fs::write(&file, damaged(&stream, 7, 50)).unwrap();
    let with = |threads: &str| {
        let mut rep = rep();
        rep.env("RAYON_NUM_THREADS", threads).args(["-s", "comm,sym,mem", "--json"]);
        run(rep.arg("--itrace=i7iM").arg(&file)).stdout
    };
    assert!(with("1") == with("3"));
}
