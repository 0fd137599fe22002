//! Tests: command lines and the configurations that they give.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::event::sampling::{Callchain, Rate};
use crate::plan::config::{BuildIds, Control, Delay, Only, RingSize, Rings, Snapshots, Switch};
use crate::tasks::Target;

fn parsed(line: &str) -> Config {
    parse(["rec"].into_iter().chain(line.split_whitespace()).map(OsString::from))
        .unwrap_or_else(|refusal| panic!("{line}: {refusal}"))
}

fn refused(line: &str) -> String {
    let refusal =
        parse(["rec"].into_iter().chain(line.split_whitespace()).map(OsString::from)).unwrap_err();
    assert_eq!(refusal.exit_status(), 2, "{line}");
    refusal.to_string()
}

#[test]
fn the_flags_are_internally_consistent() {
    Flags::command().debug_assert();
    words::with_negations(Flags::command()).debug_assert();
}

#[test]
fn attached_and_separate_values() {
    for line in ["-F 999 -- x", "-F999 x", "--freq 999 x", "--freq=999 x", "-F 1 -F 999 x"] {
        assert_eq!(parsed(line).rate, Rate::Hz(999), "{line}");
    }
    assert_eq!(parsed("-F max x").rate, Rate::Max);
    assert_eq!(parsed("-c 1 x").rate, Rate::Period(1));
    assert_eq!(parsed("-c1 x").rate, Rate::Period(1));
    assert_eq!(parsed("-m 2 x").rings.data, Some(RingSize::Pages(2)));
    assert_eq!(parsed("-m1M,8 x").rings.data, Some(RingSize::Bytes(1 << 20)));
    assert_eq!(parsed("-m1M,8 x").rings.aux, Some(RingSize::Pages(8)));
    assert_eq!(parsed("-ag").target, Target::System);
    assert_eq!(parsed("-ag").sample.callchain, Some(Callchain::Best));
    assert_eq!(parsed("--call-graph fp x").sample.callchain, Some(Callchain::Fp));
    assert!(parsed("-d x").sample.data);
}

#[test]
fn values_that_may_be_left_out() {
    assert_eq!(parsed("x").output.compression, None);
    assert_eq!(parsed("-z x").output.compression, Some(1));
    assert_eq!(parsed("-z5 x").output.compression, Some(5));
    assert_eq!(parsed("--compression-level=7 x").output.compression, Some(7));
    assert_eq!(parsed("--switch-output x").output.switch, Some(Switch::Signal));
    assert_eq!(
        parsed("--switch-output=2s x").output.switch,
        Some(Switch::Time(Duration::from_secs(2)))
    );
    assert_eq!(parsed("-S x").aux.snapshots, Some(Snapshots::default()));
    let newest = Snapshots { size: 0x1000, at_end: true };
    assert_eq!(parsed("-Se0x1000 x").aux.snapshots, Some(newest));
    assert_eq!(parsed("--aux-sample x").aux.sample, Some(4096));
    assert_eq!(parsed("-z x").command, ["x"]);
    assert_eq!(parsed("--threads x").rings.threads.split, Some(crate::plan::config::Split::Cpu));
    assert_eq!(
        parsed("--threads=numa x").rings.threads.split,
        Some(crate::plan::config::Split::Numa)
    );
}

#[test]
fn copied_stacks_are_compressed_unless_that_is_refused() {
    for (line, level) in [
        ("--call-graph dwarf x", Some(1)),
        ("--call-graph=dwarf,4096 -z6 x", Some(6)),
        ("-z6 --call-graph dwarf x", Some(6)),
        ("--call-graph dwarf -o - x", Some(1)),
        ("-e cs/call-graph=dwarf/ x", Some(1)),
        ("--call-graph dwarf --no-compression-level x", None),
        ("-z --call-graph dwarf --no-compression-level x", None),
        ("--call-graph dwarf --no-compression-level -z2 x", Some(2)),
        ("--call-graph dwarf --no-call-graph x", None),
        ("--call-graph lbr x", None),
        ("-e cs/call-graph=no/ -d x", None),
    ] {
        assert_eq!(parsed(line).output.compression, level, "{line}");
    }
}

#[test]
fn the_last_of_a_flag_and_its_negation_counts() {
    assert!(!parsed("-d --no-data x").sample.data);
    assert!(parsed("--no-data -d x").sample.data);
    assert_eq!(parsed("--no-period x").sample.period, Some(false));
    assert_eq!(parsed("--no-period -P x").sample.period, Some(true));
    assert_eq!(parsed("x").sample.period, None);
    assert_eq!(parsed("--no-switch-events x").side_band.switch, Some(false));
    assert_eq!(parsed("-z --no-compression-level x").output.compression, None);
    assert_eq!(parsed("--overwrite --no-overwrite x").rings, Rings::default());
    assert!(parsed("-t 1").no_inherit);
    assert!(!parsed("-t 1 --inherit").no_inherit);
    assert!(!parsed("-t 1 --no-no-inherit").no_inherit);
    assert!(!parsed("-i --inherit x").no_inherit);
    assert!(!parsed("-p 1").no_inherit);
    for line in ["--no-timestamp x", "--no-sample-cpu x", "--no-sample-identifier x"] {
        assert!(refused(line).contains("samples of rec always"), "{line}");
    }
}

#[test]
fn events_add_up() {
    let names = |line| parsed(line).events.into_iter().map(|e| e.name).collect::<Vec<_>>();
    assert_eq!(names("-e cs,faults x"), ["cs", "faults"]);
    assert_eq!(names("-e cs -e faults x"), ["cs", "faults"]);
    assert!(names("x").is_empty());
}

#[test]
fn cgroups_go_to_the_events_before_them() {
    let cgroups = |line| parsed(line).cgroups;
    let some = |name: &str| Some(name.to_owned());
    assert_eq!(cgroups("-a -e cs -e faults -G a,b"), [some("a"), some("b")]);
    assert_eq!(cgroups("-a -e cs,faults -G a"), [some("a"), some("a")]);
    assert_eq!(cgroups("-a -e cs,faults -G a -e dummy"), [some("a"), some("a"), None]);
    assert_eq!(cgroups("-a -e cs,faults -G ,b"), [None, some("b")]);
    assert_eq!(cgroups("-a -e cs -G a -e faults -G b"), [some("a"), some("b")]);
    assert!(refused("-a -e cs -G a,b").contains("cgroup 'b'"));
    assert!(refused("-a -G a -e cs").contains("-e"));
    assert!(refused("-e cs -G a x").contains("-a"));
}

#[test]
fn filters_are_for_what_can_be_filtered() {
    assert!(refused("--filter x -e cs y").contains("-e"));
    assert!(refused("-e cs --filter x y").contains("has no fields to filter by"));
    assert!(refused("-e cs --exclude-perf y").contains("tracepoints"));
}

#[test]
fn the_command_keeps_its_own_flags() {
    assert_eq!(parsed("-F 99 ls -la -F").command, ["ls", "-la", "-F"]);
    assert_eq!(parsed("-- ls -- -g").command, ["ls", "--", "-g"]);
    assert_eq!(parsed("ls -g").sample.callchain, None);
    assert_eq!(parsed("ls -z5").command, ["ls", "-z5"]);
}

#[test]
fn targets() {
    assert_eq!(parsed("-p 1,2").target, Target::Processes(vec![1, 2]));
    assert_eq!(parsed("-t 7 -C 0").target, Target::Threads(vec![7]));
    assert_eq!(parsed("-C 0-1").target, Target::System);
    assert_eq!(parsed("-C 0-1").cpus, Some(vec![0, 1]));
    assert_eq!(parsed("-u 1000").target, Target::User(1000));
    assert_eq!(parsed("--uid=root").target, Target::User(0));
    assert!(parsed("--per-thread -p 1").per_thread);
    assert!(
        refused("").contains("nothing to record")
            && refused("-g").contains("-a to record everything")
    );
    assert!(refused("-a -p 1").contains("cannot be used with"));
    assert!(refused("-a -u root").contains("cannot be used with"));
    assert!(refused("-u nobody-of-that-name x").contains("no user"));
    assert!(refused("-p x--y").contains("'x--y' is no process ID"));
}

#[test]
fn what_samples_carry() {
    let sample = |line| parsed(line).sample;
    assert_eq!(
        sample("--call-graph dwarf,4000 x").callchain,
        Some(Callchain::Dwarf { stack_size: 4000 })
    );
    assert_eq!(sample("-g --call-graph lbr x").callchain, Some(Callchain::Lbr));
    assert_eq!(
        sample("--call-graph unwind,4000 x").callchain,
        Some(Callchain::Unwind { stack_size: Some(4000) })
    );
    assert_eq!(sample("--off-cpu x").callchain, Some(Callchain::Fp));
    assert_eq!(sample("--off-cpu -g x").callchain, Some(Callchain::Best));
    assert_eq!(sample("--call-graph fp,20 x").max_stack, Some(20));
    assert_eq!(sample("-g --user-callchains x").callchain_only, Some(Only::User));
    assert_eq!(sample("-b x").branches.map(|b| b.bits()), Some(8));
    assert_eq!(sample("-j any_call,u x").branches.map(|b| b.bits()), Some(17));
    let all = sample(
        "-d --phys-data --data-page-size --code-page-size -W --transaction -R -n -s \
         --running-time x",
    );
    assert!(
        all.data
            && all.phys_data
            && all.data_page_size
            && all.code_page_size
            && all.weight
            && all.transaction
    );
    assert!(all.raw && all.none && all.stat && all.running_time);
    assert!(refused("-j nothing x").contains("unknown branch filter 'nothing'"));
    assert!(refused("-b -j any x").contains("cannot be used with"));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn registers() {
    assert_eq!(parsed("-I x").sample.regs_intr, Some(0xff_0fff));
    assert_eq!(parsed("-Iax,bx x").sample.regs_intr, Some(3));
    assert_eq!(parsed("--intr-regs=ip x").sample.regs_intr, Some(0x100));
    assert_eq!(parsed("--user-regs x").sample.regs_user, Some(0xff_0fff));
    assert!(refused("-I? x").contains("AX BX"));
    assert!(refused("--user-regs=? x").contains("R15"));
    assert!(refused("--user-regs=zz x").contains("no register 'zz'"));
}

#[test]
fn who_steers_and_when() {
    assert_eq!(parsed("-D -1 x").delay, Delay::Off);
    assert_eq!(parsed("-D-1 x").delay, Delay::Off);
    assert_eq!(parsed("--delay=100 x").delay, Delay::After(Duration::from_millis(100)));
    assert_eq!(
        parsed("--control fd:5,6 x").control,
        Some(Control::Fd { commands: 5, acks: Some(6) })
    );
}

#[test]
fn where_it_goes() {
    assert!(parsed("-o - x").output.is_stdout());
    assert_eq!(parsed("x").output.path, Path::new("out.data"));
    assert_eq!(parsed("--max-size 1M x").output.max_size, Some(1 << 20));
    assert_eq!(parsed("--switch-output --switch-max-files 3 x").output.max_files, Some(3));
    assert_eq!(parsed("--max-samples 9 x").output.max_samples, Some(9));
    assert!(refused("--max-samples 0 x").contains("not a number of samples"));
    assert!(refused("--max-samples 9 --overwrite x").contains("cannot be used with"));
    assert!(refused("--switch-max-files 3 x").contains("--switch-output"));
    assert!(refused("--switch-output -o - x").contains("no name"));
    assert!(parsed("--overwrite x").rings.tail_synthesize);
    for (line, ids) in [
        ("x", BuildIds::InMmap),
        ("-B x", BuildIds::None),
        ("-N x", BuildIds::InMmap),
        ("--buildid-all x", BuildIds::InMmap),
        ("--no-buildid-mmap x", BuildIds::Table),
        ("--no-buildid-mmap -B x", BuildIds::None),
        ("--no-buildid-mmap --buildid-mmap x", BuildIds::InMmap),
        ("--buildid-mmap x", BuildIds::InMmap),
        ("--buildid-mmap -B x", BuildIds::InMmap),
        ("--switch-output x", BuildIds::InMmap),
        ("--switch-output --buildid x", BuildIds::InMmap),
        ("--switch-output --no-no-buildid x", BuildIds::InMmap),
    ] {
        assert_eq!(parsed(line).build_ids, ids, "{line}");
    }
}

#[test]
fn how_urgently_it_drains() {
    let urgency = |line| (parsed(line).rings.nice, parsed(line).rings.realtime);
    assert_eq!(urgency("x"), (None, None));
    assert_eq!(urgency("--nice=-20 x"), (Some(-20), None));
    assert_eq!(urgency("--nice -5 x"), (Some(-5), None));
    assert_eq!(urgency("--nice 5 --no-nice x"), (None, None));
    assert_eq!(urgency("-r 1 x"), (None, Some(1)));
    for line in ["--nice 20 x", "--nice=-21 x", "--nice low x", "--nice 1 -r 1 x"] {
        assert!(refused(line).contains("--nice"), "{line}");
    }
}

#[test]
fn perfs_own_flags_are_named() {
    for (flag, advice) in PERFS_OWN {
        let message = refused(&format!("{flag} x"));
        assert!(message.contains(&format!("{flag} is a flag of perf record")), "{flag}: {message}");
        assert!(message.contains(advice), "{flag}: {message}");
        assert!(refused(&format!("{flag}=1 x")).contains(advice), "{flag}");
    }
    assert!(refused("--nonsense x").contains("--nonsense"));
}

#[test]
fn impossible_values() {
    for line in [
        "-F 0 x",
        "-F fast x",
        "-c 0 x",
        "-m 0 x",
        "-m big x",
        "-F 1 -c 1 x",
        "-e nope x",
        "-c -1 x",
        "--json x",
        "--machine /no/such --dry-run x",
        "--machine x y",
        "--affinity socket x",
        "--all-kernel --all-user x",
    ] {
        refused(line);
    }
}

#[test]
fn the_short_help_is_one_screen_of_options_that_exist() {
    assert!(help::SHORT.lines().count() <= 30 && help::SHORT.lines().all(|line| line.len() <= 100));
    assert!(
        matches!(parse(["rec", "-h"].map(OsString::from)), Err(Refusal::List(text)) if text == help::SHORT)
    );
    let whole = parse(["rec", "--help"].map(OsString::from)).unwrap_err().to_string();
    for text in [help::SHORT, &whole] {
        let place =
            |heading: &str| text.find(heading).unwrap_or_else(|| panic!("no {heading} in {text}"));
        assert!(
            place("rec list") < place("--off-cpu") && place("--off-cpu") < place("Examples:"),
            "{text}"
        );
    }
    assert!(whole.contains("\nArguments:\n  [COMMAND]..."), "{whole}");
    let words = help::SHORT
        .split([' ', ',', '\n'])
        .filter(|word| word.starts_with('-') && word.len() > 1 && *word != "--");
    let command = Flags::command();
    for word in words.filter(|word| *word != "--help" && *word != "--wall") {
        let known = command.get_arguments().any(|arg| match word.strip_prefix("--") {
            Some(long) => arg.get_long() == Some(long),
            None => arg.get_short() == word.chars().nth(1),
        });
        assert!(known, "rec has no {word}");
    }
}

#[test]
fn usage_errors_are_one_sentence() {
    for (line, told) in [
        (
            "--cal-graph dwarf x",
            "there is no option '--cal-graph'; did you mean '--call-graph'? (see rec --help)",
        ),
        ("--no-such x", "there is no option '--no-such' (see rec --help)"),
        (
            "--duration 10 x",
            "there is no option '--duration'; what ends after a time is the command: rec [OPTIONS] \
             -- sleep 10, or rec -p PID -- sleep 10 (see rec --help)",
        ),
        ("-g fp x", "-g has no value 'fp'; with one it is: --call-graph fp (see rec --help)"),
        (
            "-ag lbr -- x",
            "-g has no value 'lbr'; with one it is: --call-graph lbr (see rec --help)",
        ),
        (
            "-g dwarf,8192 x",
            "-g has no value 'dwarf,8192'; with one it is: --call-graph dwarf,8192 (see rec --help)",
        ),
        (
            "-g 8192 x",
            "-g has no value '8192'; with one it is: --call-graph unwind,8192 (see rec --help)",
        ),
        ("-gfp x", "-g has no value 'fp'; with one it is: --call-graph fp (see rec --help)"),
        ("-F -5 x", "-F: '-5' is not a number of samples per second, or 'max' (see rec --help)"),
        (
            "--no-inherti x",
            "there is no option '--no-inherti'; did you mean '--no-inherit'? (see rec --help)",
        ),
        ("-Q x", "there is no option '-Q' (see rec --help)"),
    ] {
        assert_eq!(refused(line), told);
    }
    for line in ["", "-a -p 1", "-F", "-e nope x", "-F never x", "-o"] {
        let message = refused(line);
        assert!(
            !message.contains('\n') && !message.contains("Usage:") && !message.contains("tip:"),
            "{message}"
        );
    }
}

#[test]
fn commands_of_rep_and_perf_are_told() {
    assert!(refused("report").contains("that is rep: rep out.data"));
    assert!(refused("-g record ./app").contains("rec records without a command word"));
    assert_eq!(parsed("-- ./report").command, ["./report"]);
}
