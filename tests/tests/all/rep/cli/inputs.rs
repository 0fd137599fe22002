//! Bad inputs and unusual environments: a clear message, the right exit status, never a panic. Of
//! compressed recordings, all commands have the same size limit and treat malformed records alike.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;

use recrep_fixtures::build::Packing;
use recrep_format::record::Compressed;

use super::*;

#[test]
fn files_that_are_not_perf_data_are_refused_with_a_reason() {
    let place = Place::new();
    let refusal = |file: &Path| refusal(run(&["--json"], file));
    assert!(
        refusal(&place.put("text", b"hello, I am not what you think I am"))
            .contains("not a perf.data file")
    );
    assert!(refusal(&place.put("empty", b"")).contains("it is empty"));
    assert!(refusal(Path::new("/dev/null")).contains("it is empty"));
    assert!(refusal(place.dir.path()).contains("no file in this directory"));
    assert!(refusal(&place.at("none")).contains("no such file"));
    assert!(
        refusal(&place.put("short", b"PERFILE2")).contains("short"),
        "the message names the file"
    );
    let info = run(&["info"], place.dir.path());
    assert!(String::from_utf8_lossy(&info.stderr).contains("a directory without a recording"));
}

#[test]
fn files_of_other_formats_are_named_with_what_to_do() {
    let place = Place::new();
    let said = |bytes: &[u8]| refusal(run(&["--json"], &place.put("given", bytes)));
    assert!(
        said(b"prog  7 1.000: cycles: 401000 main (/x)\n").contains("a text, such as perf script")
    );
    assert!(said(b"PK\x03\x04....").contains("unzip"));
    let mut header = two_events(Endian::Little, 1).file();
    header.truncate(104);
    header[16..].fill(0);
    assert!(said(&header).contains("its header is all zeros"));
    let mut piped = rep()
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    piped.stdin.take().unwrap().write_all(b"no recording\n").unwrap();
    assert!(
        refusal(piped.wait_with_output().unwrap())
            .contains("standard input: not a perf.data file: it is a text")
    );
}

#[test]
fn files_that_were_compressed_are_read_as_they_were() {
    let Some(place) = needs::commands("gzip xz zstd").then(Place::new) else { return };
    let bytes = two_events(Endian::Little, 50).file();
    let plain = place.put("x.data", &bytes);
    let answer = |output: Output| {
        let mut answer = parsed(output.stdout);
        answer["inputs"].take();
        answer
    };
    let expected = answer(run(&["--json"], &plain));
    for (command, suffix) in [("gzip -k", "gz"), ("xz -k", "xz"), ("zstd -q", "zst")] {
        tool(command, &[&plain]);
        let packed = place.at(&format!("x.data.{suffix}"));
        assert_eq!(answer(run(&["--json"], &packed)), expected, "{command}");
        let input = fs::File::open(&packed).unwrap();
        assert_eq!(
            answer(rep().args(["--json", "-"]).stdin(input).output().unwrap()),
            expected,
            "{command}, piped"
        );
    }
    // What can be unpacked of a file that was cut is reported, and that it was cut.
    let packed = fs::read(place.at("x.data.gz")).unwrap();
    let cut = parsed(run(&["--json"], &place.put("cut.gz", &packed[..packed.len() - 20])).stdout);
    assert!(codes(&cut).contains(&"truncated") && cut["inputs"][0]["complete"] == false, "{cut}");
    assert!(
        refusal(run(&["--json"], &place.put("cut.gz", &packed[..9])))
            .contains("its gzip data cannot be unpacked")
    );
}

#[test]
fn missing_read_permission_is_reported() {
    // The superuser may read everything: the command runs as nobody.
    if !is_superuser() {
        eprintln!("skipped: only the superuser can become nobody");
        return;
    }
    let place = Place::new();
    let file = place.put("x.data", two_events(Endian::Little, 1).file());
    fs::set_permissions(place.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    // Copied by another process: a child that another test forks meanwhile would keep our
    // descriptor open for writing, and a file that is open for writing cannot be executed.
    let program = place.at("rep");
    tool("cp", &[&programs().rep, &program]);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new(&program).arg(&file).uid(65534).gid(65534).output().unwrap();
    let said = refusal(output);
    assert!(said.contains("permission denied"), "{said}");
}

fn is_superuser() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

#[test]
fn a_file_truncated_anywhere_is_reported_up_to_there() {
    let place = Place::new();
    let whole = two_events(Endian::Little, 6).file();
    let (mut answered, mut last) = (0, 0);
    for cut in (0..whole.len()).step_by(7) {
        let file = place.put("cut.data", &whole[..cut]);
        let output = run(&["--json", "--sort", "comm,dso,sym"], &file);
        match output.status.code() {
            Some(1) => assert!(!output.stderr.is_empty()),
            Some(0) => {
                let answer = parsed(&output.stdout);
                assert_eq!(answer["inputs"][0]["complete"], false);
                assert!(!list(&answer["warnings"]).is_empty());
                assert!(!output.stderr.is_empty(), "the warning is on standard error too");
                let samples = answer["inputs"][0]["records"]["SAMPLE"].as_u64().unwrap_or(0);
                assert!(samples >= last, "a longer file has no fewer samples");
                (answered, last) = (answered + 1, samples);
            }
            status => panic!("cut at {cut}: {status:?}"),
        }
    }
    assert!(answered > 20 && last == 14, "{answered} answered, {last} samples in the longest");
}

#[test]
fn an_empty_recording_is_complete_and_a_killed_one_is_not() {
    let place = Place::new();
    let nothing = Stream::new(Endian::Little).event(Event::new("cycles"));
    let complete =
        |bytes: &[u8]| json(&[], &place.put("x.data", bytes))["inputs"][0]["complete"].clone();
    assert_eq!(complete(&nothing.file()), true);
    let mut killed = two_events(Endian::Little, 2).file();
    // The size of the data, in the header.
    killed[48..56].fill(0);
    assert_eq!(complete(&killed), false);
}

#[test]
fn a_record_of_size_0_ends_the_walk_and_its_offset_is_reported() {
    let good = two_events(Endian::Little, 3);
    let end = good.file().len();
    let (_place, file) = recorded(&good.bytes(&[9, 0, 0, 0, 0, 0, 0, 0]));
    let answer = json(&["--sort", "comm"], &file);
    assert_eq!(answer["inputs"][0]["records"]["SAMPLE"], 8);
    let warning = &answer["warnings"][0];
    assert_eq!(warning["code"], "bad-record-size");
    let offset = warning["offset"].as_u64().unwrap();
    assert!(offset > 0 && offset <= end as u64, "{offset} of {end}");
}

#[test]
fn standard_input_is_read_and_a_closed_output_is_not_a_failure() {
    let place = Place::new();
    let bytes = two_events(Endian::Little, 20_000).file();
    let file = place.put("x.data", &bytes);
    let mut child = rep()
        .args(["--json", "--sort", "ip", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    let answer = parsed(&output.stdout);
    assert_eq!(answer["events"], json(&["--sort", "ip"], &file)["events"]);
    assert_eq!(answer["inputs"][0]["path"], "-");

    let mut child = rep().arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
}

#[test]
fn out_data_is_the_default_input_then_perf_data() {
    let place = Place::new();
    let run =
        || rep().args(["--json", "--sort", "comm"]).current_dir(place.dir.path()).output().unwrap();
    assert_eq!(run().status.code(), Some(1));
    place.put("perf.data", two_events(Endian::Little, 1).file());
    assert!(String::from_utf8_lossy(&run().stdout).contains(r#""path":"perf.data""#));
    place.put("out.data", two_events(Endian::Little, 1).file());
    assert!(String::from_utf8_lossy(&run().stdout).contains(r#""path":"out.data""#));
}

/// Returns a file with 21 MB of records of an unknown type, mostly zeros, which compress to about a
/// three-hundredth, and their number.
fn far_expanding() -> (Vec<u8>, usize) {
    const LEN: usize = 65_520;
    let mut state = 1u32;
    let noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    let noise: Vec<u8> = std::iter::repeat_with(noise).take(LEN).collect();
    let record =
        |fields: &[u8]| Stream::new(Endian::Little).unknown(900, fields).records()[0].clone();
    let records: Vec<_> =
        std::iter::once(record(&noise)).chain((1..320).map(|_| record(&[0; LEN]))).collect();
    let packed = zstd::bulk::compress(&records.concat(), 3).unwrap();
    let mut stream = Stream::new(Endian::Little).event(Event::new("cycles:u"));
    for data in packed.chunks(60_000) {
        stream = stream.record(0, Body::Compressed(Compressed { data }));
    }
    (stream.file(), records.len())
}

#[test]
fn a_dump_unpacks_as_much_as_a_report() {
    let (bytes, records) = far_expanding();
    let place = Place::new();
    let file = place.put("far.data", &bytes);
    assert!(bytes.len() * 40 < 16 << 20 && bytes.len() * 1000 > 32 << 20, "{} bytes", bytes.len());
    let answer = json(&[], &file);
    assert_eq!(answer["inputs"][0]["records"]["UNKNOWN_900"], records);
    assert_eq!(codes(&answer), ["no-samples"]);
    let output = run(&["dump", "--no-raw"], &file);
    let text = String::from_utf8(output.stdout).unwrap();
    let shown =
        text.lines().filter(|line| line.starts_with("unpacked:") && line.contains("type 900"));
    assert_eq!((shown.count(), output.stderr.as_slice()), (records, &b""[..]));
}

#[test]
fn a_malformed_record_is_counted_and_skipped_in_any_container() {
    let place = Place::new();
    // A BUILD_ID is never packed, and longer than four bytes.
    let stream = two_events(Endian::Little, 2).unknown(67, &[1, 2, 3, 4]);
    let stream =
        stream.of(0).task(7, 7).at(6000).sample(SampleSpec::at(0x1010).period(1000)).round();
    let mut answers = Vec::new();
    for packing in [Packing::None, Packing::Compressed, Packing::Compressed2] {
        for bytes in [stream.packed_file(packing), stream.packed_pipe(packing)] {
            let file = place.put("x.data", &bytes);
            let answer = json(&["--sort", "comm,dso,cpu"], &file);
            assert_eq!(codes(&answer), ["bad-record"], "{packing:?}");
            answers
                .push((answer["events"].clone(), answer["inputs"][0]["records"]["SAMPLE"].clone()));
            let dump = text(&["dump", "--no-raw"], &file);
            let shown = dump.lines().filter(|line| line.contains("PERF_RECORD_SAMPLE"));
            assert_eq!(shown.count(), 7, "{packing:?}");
        }
    }
    assert_eq!(answers[0].1, 7);
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:#?}");
}
