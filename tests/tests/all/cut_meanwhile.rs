//! A small part of what the program `recrep-cut` does with a file of hundreds of megabytes.

use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_format::endian::Endian;
use recrep_tests::cutting::Cutting;
use recrep_tests::programs::programs;

#[test]
fn a_file_that_is_cut_while_it_is_read_kills_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let original = dir.path().join("original.data");
    let mut stream =
        Stream::new(Endian::NATIVE).event(Event::new("cycles:u")).task(7, 7).at(1).comm("cut");
    stream = stream.map("/no/such/file", 0x1000, 0x10_0000, 0);
    for number in 0..50_000 {
        stream = stream.at(100 + number).sample(SampleSpec::at(0x1000 + number % 4096));
    }
    std::fs::write(&original, stream.round().file()).unwrap();
    assert!(std::fs::metadata(&original).unwrap().len() > 5 << 19, "so long that rep maps it");
    let cutting =
        Cutting { rep: programs().rep.clone(), original, folder: dir.path().to_owned(), times: 80 };
    let outcome = cutting.run(|_| {});
    println!("{outcome}");
    assert!(outcome.broken.is_empty(), "{outcome}");
    // The moments spread over the runs, so some come while the file is read.
    let missed: u64 = outcome.ended.values().map(|[_, warned, _, refused]| warned + refused).sum();
    assert!(missed > 0, "{outcome}");
}
