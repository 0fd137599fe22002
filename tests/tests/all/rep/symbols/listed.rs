//! Source lines, their text, inlined functions and cgroups in `rep script`.

use super::*;

const NESTED: &str = "int x;
static inline __attribute__((always_inline)) int innermost(int a) { return a / x; }
static inline __attribute__((always_inline)) int middle(int a) { return innermost(a) + 1; }
__attribute__((noinline)) int outermost(int a) { return middle(a); }
int main(int argc, char **argv) { x = argc; return outermost(7); }
";

#[test]
fn source_lines_and_their_text_follow_samples() {
    let Some(place) = Place::with("gcc") else { return };
    let program = place.program("program", "");
    let (offset, _) = function(&program, "main");
    let sampled = sampled(stream(), &program, offset)
        .sample(SampleSpec::at(1))
        .sample(SampleSpec::at(BASE + offset));
    let listed = |words: &[&str]| rep(&place, &[&["script"], words].concat(), &sampled);
    let address = format!("{:>17x}", BASE + offset);
    assert!(listed(&["-F", "ip,sym,srcline"]).starts_with(&format!("{address} main\n  p.c:3\n")));
    let whole = listed(&["-F", "ip,srcline", "--full-source-path"]);
    assert!(
        whole.starts_with(&format!("{address}\n  {}:3\n", place.at("p.c").display())),
        "{whole}"
    );
    let text = listed(&["-F", "ip,srccode"]);
    let code = "|3        int main(void) { return outer(1); }\n";
    assert_eq!(
        text,
        format!("{address}\n{code}{:>17x}\n{address}\n", 1),
        "the same line is not printed twice"
    );
}

#[test]
fn inlined_functions_are_frames_of_their_own() {
    let Some(place) = Place::with("gcc addr2line objdump") else { return };
    let program = place.compiled("gcc -O2 -g", ("n.c", NESTED), "nested");
    let (offset, linked) = function(&program, "outermost");
    // The division is in the innermost function.
    let code = tool("objdump -d --disassemble=outermost", &[&program]);
    let division = code.lines().find(|line| line.contains("div")).unwrap();
    let address = u64::from_str_radix(division.trim().split(':').next().unwrap(), 16).unwrap();
    let at = BASE + offset + (address - linked);
    let event = Event::new("cycles:u").sampling(SampleType::CALLCHAIN);
    let stream = mapped(stream_with(event), &program).at(2);
    // Once as the sampled instruction, once as the instruction before a return address.
    let chain = [context::USER, at, at + 1];
    let stream = stream.sample(SampleSpec::at(at).callchain(&chain));
    let listed = |words: &[&str]| {
        rep(&place, &[&["script", "-F", "ip,sym,srcline"], words].concat(), &stream)
    };
    let frames = |ip: u64| {
        format!(
            "\t{ip:>16x} innermost\n  n.c:2 (inlined)\n\t{ip:>16x} middle\n  n.c:3 \
             (inlined)\n\t{ip:>16x} outermost\n  n.c:4\n"
        )
    };
    assert_eq!(listed(&["--inline"]), format!("\n{}{}\n", frames(at), frames(at + 1)));
    let without = listed(&[]);
    assert!(without.contains("outermost\n  n.c:2\n") && !without.contains("inlined"), "{without}");
    let stopped = listed(&["--inline", "--stop-bt", "middle"]);
    assert!(stopped.ends_with("middle\n  n.c:3 (inlined)\n\n"), "{stopped}");
}

#[test]
fn cgroups_are_shown_by_path() {
    let place = Place::new();
    let event = Event::new("cycles:u").sampling(SampleType::CGROUP);
    let stream = Stream::new(Endian::NATIVE)
        .event(event)
        .task(7, 7)
        .at(1)
        .comm("test")
        .cgroup(5, "/some/group");
    let stream =
        stream.at(2).sample(SampleSpec::at(1).cgroup(5)).sample(SampleSpec::at(1).cgroup(6));
    assert_eq!(
        rep(&place, &["script", "-F", "tid,cgroup"], &stream),
        "      7  /some/group\n      7  unknown\n"
    );
    let listed = rep(&place, &["script", "-F", "tid", "--show-cgroup-events"], &stream);
    assert!(listed.starts_with("      7 PERF_RECORD_CGROUP cgroup: 5 /some/group\n"), "{listed}");
}
