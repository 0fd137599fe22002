//! The shape of the workspace, kept by a test: who may import whom, who may touch the machine, how
//! large a file may grow.

use std::collections::BTreeSet;

use recrep_tests::programs::workspace;
use recrep_tests::sources::{Source, cycle, floors, imports, rooms, sources};

/// The packages of the workspace.
const PACKAGES: [&str; 10] = [
    "format",
    "format/unwind",
    "format/counts",
    "format/trace",
    "format/console",
    "record",
    "record/testkit",
    "report",
    "fixtures",
    "tests",
];

/// Places where `unsafe` is allowed: files, or folders of them, that face the kernel.
const UNSAFE: [&str; 6] = [
    "record/src/kernel/sys",
    "record/src/kernel/ring",
    "record/testkit/src/kernel_side.rs",
    "record/src/tasks/workload",
    "report/src/input/map.rs",
    "fixtures/src/bin/workload/process.rs",
];

/// The code of all files in `folder`, or of the one file, with its path; without that of tests.
#[track_caller]
pub(crate) fn code_of(crate_src: &str, module: &str) -> Vec<(String, String)> {
    let below = |source: &&Source| {
        source.module.first().is_some_and(|first| first == module)
            && !source.path.ends_with("/tests.rs")
    };
    let found: Vec<_> = sources(crate_src)
        .iter()
        .filter(below)
        .map(|source| (source.path.clone(), source.code()))
        .collect();
    assert!(!found.is_empty(), "there is no module {module} in {crate_src}: this test must follow");
    found
}

#[track_caller]
fn assert_without(files: &[(String, String)], words: &[&str]) {
    for (path, code) in files {
        for word in words {
            let line = code.lines().find(|line| line.contains(word));
            assert!(
                line.is_none(),
                "{path} may not use {word}: {}",
                line.unwrap_or_default().trim()
            );
        }
    }
}

/// Each of the modules named imports the next, the last the first.
#[test]
fn no_cycle_among_the_modules_imports() {
    let cycles = PACKAGES.iter().filter_map(|package| {
        let files = sources(&format!("{package}/src"));
        assert!(!files.is_empty(), "{package} has no sources");
        cycle(&imports(&files)).map(|modules| format!("{package}: {}", modules.join(" -> ")))
    });
    assert_eq!(cycles.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn packages_depend_on_those_below_them_only() {
    const BELOW: &[&str] =
        &["recrep-format", "recrep-unwind", "recrep-counts", "recrep-trace", "recrep-console"];
    const ALL: &[&str] = &[
        "recrep-format",
        "recrep-unwind",
        "recrep-counts",
        "recrep-trace",
        "recrep-console",
        "recrep-fixtures",
        "recrep-record",
        "recrep-report",
    ];
    for package in PACKAGES {
        let allowed: &[&str] = match package {
            "format" | "format/trace" | "format/console" => &[],
            "format/counts" => &["recrep-format", "recrep-console"],
            "format/unwind" => &["recrep-format"],
            "fixtures" => &["recrep-format", "recrep-trace"],
            "record" | "report" => BELOW,
            "record/testkit" => &["recrep-format", "recrep-record"],
            _ => ALL,
        };
        let manifest =
            std::fs::read_to_string(workspace().join(package).join("Cargo.toml")).unwrap();
        let (_, sections) = manifest.split_once("[dependencies]").unwrap();
        let (dependencies, _) = sections.split_once("\n[").unwrap_or((sections, ""));
        for line in dependencies.lines().filter(|line| line.starts_with("recrep-")) {
            let name = line.split(['.', ' ', '=']).next().unwrap();
            assert!(allowed.contains(&name), "{package} may not depend on {name}");
        }
    }
}

/// Crates that `rec` and `rep` would each use in a way of their own.
const OF_THE_CONSOLE: [&str; 5] =
    ["clap_complete", "clap_mangen", "cpp_demangle", "rustc-demangle", "strsim"];

#[test]
fn what_both_programs_show_alike_is_made_in_the_console() {
    for package in ["record", "report"] {
        let manifest =
            std::fs::read_to_string(workspace().join(package).join("Cargo.toml")).unwrap();
        for name in OF_THE_CONSOLE {
            let entry = format!("\n{name}.");
            assert!(!manifest.contains(&entry), "{package} uses {name} beside recrep-console");
        }
    }
}

/// Modules of `format/src`: a part of perf.data each, or what all parts need.
const FORMAT: [&str; 13] = [
    "abi", "attr", "build_id", "bytes", "endian", "error", "feature", "fields", "layout", "read",
    "record", "wire", "write",
];

#[test]
fn the_format_is_perf_data_only() {
    let files = sources("format/src");
    let modules: BTreeSet<_> = files.iter().filter_map(|source| source.module.first()).collect();
    let others: Vec<_> = modules.iter().filter(|name| !FORMAT.contains(&name.as_str())).collect();
    assert!(others.is_empty(), "{others:?}: what is not of perf.data is a package of its own");
}

/// Crates that the project is built on, and a folder of sources that uses each.
const FOUNDATIONS: [(&str, &str); 6] = [
    ("byteorder", "format"),
    ("clap", "record"),
    ("indexmap", "report"),
    ("memmap2", "report"),
    ("rayon", "report"),
    ("zerocopy", "format"),
];

#[test]
fn the_foundations_are_direct_dependencies_in_use() {
    for (name, package) in FOUNDATIONS {
        let manifest =
            std::fs::read_to_string(workspace().join(package).join("Cargo.toml")).unwrap();
        let entry = format!("\n{name}");
        assert!(manifest.contains(&entry), "{package} does not depend on {name}");
        let path = format!("{name}::");
        let is_used = |source: &Source| source.code().contains(&path);
        let folder = format!("{package}/src");
        assert!(sources(&folder).iter().any(is_used), "{package} does not use {name}");
    }
}

/// Byte order is a value in one place, and byteorder's types are the two branches there.
#[test]
fn no_order_of_bytes_is_made_by_hand_in_the_format() {
    let ways = ["from_le_bytes", "from_be_bytes", "to_be_bytes", "swap_bytes"];
    let files: Vec<_> =
        sources("format/src").iter().map(|source| (source.path.clone(), source.code())).collect();
    assert_without(&files, &ways);
}

/// Packages of the folder that know nothing but their input.
#[test]
fn the_format_knows_no_machine() {
    let files: Vec<_> =
        ["format/src", "format/unwind/src", "format/counts/src", "format/trace/src"]
            .iter()
            .flat_map(|folder| sources(folder))
            .map(|source| (source.path.clone(), source.code()))
            .collect();
    let machine = [
        "std::fs",
        "std::thread",
        "std::process",
        "std::env",
        "std::net",
        "std::os",
        "libc",
        "rayon",
        "clap",
        "println!",
    ];
    assert_without(&files, &machine);
}

#[test]
fn what_is_called_pure_is() {
    let machine = ["std::fs", "std::process", "std::thread", "libc::", "rustix", "crate::kernel"];
    assert_without(&code_of("record/src", "plan"), &machine);
    assert_without(&code_of("record/src", "event"), &machine);
    let io = ["std::fs", "std::io", "std::process", "memmap2", "crate::input"];
    assert_without(&code_of("report/src", "count"), &io);
    assert_without(&code_of("report/src", "compare"), &io);
    assert_without(&code_of("report/src", "timeline"), &["object::", "std::fs"]);
    assert_without(
        &code_of("report/src", "exports"),
        &["crate::symbols", "crate::timeline", "crate::input", "std::fs"],
    );
}

#[test]
fn below_the_command_line_of_rep_requests_are_plain_data() {
    let [_, (folder, rooms)] = ROOMS;
    for room in rooms.iter().skip_while(|room| **room != "cli").skip(1) {
        assert_without(&code_of(folder, room), &["clap"]);
    }
}

/// The rooms of a crate, from the top floor down: a room imports from those below it only.
const ROOMS: [(&str, &[&str]); 2] = [
    (
        "record/src",
        &[
            "cli",
            "stat",
            "session",
            "synthesize",
            "drain",
            "aux",
            "output",
            "kernel",
            "plan",
            "event",
            "machine",
            "tasks",
            "messages",
        ],
    ),
    (
        "report/src",
        &[
            "commands",
            "analyses",
            "listings",
            "cli",
            "exports",
            "picture",
            "compare",
            "engine",
            "table",
            "profile",
            "scan",
            "samples",
            "decode",
            "callchain",
            "code",
            "count",
            "tracepoints",
            "timeline",
            "symbols",
            "input",
            "pprof",
            "query",
            "terminal",
        ],
    ),
];

#[test]
fn imports_go_down_from_room_to_room() {
    for (folder, rooms) in ROOMS {
        let floor = |module: &str| {
            let room = module.split("::").next().unwrap_or_default();
            rooms.iter().position(|known| *known == room)
        };
        let files: Vec<_> = sources(folder)
            .into_iter()
            .filter(|source| !source.path.ends_with("/tests.rs"))
            .collect();
        let found = files.iter().filter_map(|source| source.module.first());
        let unknown: Vec<_> = found.filter(|room| floor(room).is_none()).collect();
        assert!(unknown.is_empty(), "{unknown:?}: on which floor of {folder} are they?");
        let edges = imports(&files);
        let among = |(from, to): &(&String, &String)| *from != "crate" && *to != "crate";
        let all = edges
            .iter()
            .flat_map(|(from, targets)| targets.iter().map(move |to| (from, to)))
            .filter(among);
        let up: Vec<_> = all.filter(|(from, to)| floor(from) > floor(to)).collect();
        assert!(up.is_empty(), "{up:?}");
    }
}

/// Greatest number of floors in a folder.
const FLOORS: usize = 6;

/// Folders that still have more, with how many. None may be added, and none may grow.
const HIGH: [(&str, usize); 4] = [
    ("record/src/event", 8),
    ("record/src/output", 8),
    ("report/src/analyses/diff", 8),
    ("report/src/listings/script", 9),
];

#[test]
fn imports_go_down_inside_a_folder_too() {
    let mut high = Vec::new();
    for package in PACKAGES {
        let root = format!("{package}/src");
        let files: Vec<_> = sources(&root)
            .into_iter()
            .filter(|source| !source.path.ends_with("tests.rs"))
            .collect();
        let edges = imports(&files);
        let folders: BTreeSet<&[String]> = files
            .iter()
            .flat_map(|file| (1..file.module.len()).map(|length| &file.module[..length]))
            .collect();
        for folder in folders {
            let path = format!("{root}/{}", folder.join("/"));
            let (height, circling) = floors(&rooms(&edges, &folder.join("::")));
            assert!(circling.is_empty(), "{path}: imports lead up: {circling:?}");
            high.extend((height > FLOORS).then_some((path, height)));
        }
    }
    for (path, height) in &high {
        let most = HIGH.iter().find(|(known, _)| known == path).map_or(FLOORS, |(_, most)| *most);
        assert!(*height <= most, "{path} has {height} floors");
    }
    for (path, _) in HIGH {
        assert!(high.iter().any(|(found, _)| found == path), "{path} is low enough: strike it");
    }
}

#[test]
fn unsafe_code_is_where_the_kernel_is() {
    let mut blocks = 0;
    for package in PACKAGES {
        for source in sources(package) {
            let code = source.code();
            // In two parts each, so that these lines are none of them.
            let signs = [["allow(", "unsafe_code"], ["unsafe", " {"]].map(|parts| parts.concat());
            let used = signs.iter().any(|sign| code.contains(sign));
            let allowed = UNSAFE.iter().any(|place| source.path.starts_with(place));
            assert!(allowed || !used, "{} may not be unsafe", source.path);
            blocks += usize::from(used);
        }
    }
    assert!(blocks > 0, "nothing is unsafe: the list is out of date");
}

/// Places where `report` and `record` take numbers out of bytes themselves: file, number of lines,
/// and the reason. All bytes of the perf.data format are read in `format`.
const BYTES: [(&str, usize, &str); 11] = [
    ("report/src/code/aarch64.rs", 1, "machine code"),
    ("report/src/symbols/elf/plt.rs", 1, "machine code of a PLT entry"),
    ("report/src/symbols/elf/go.rs", 2, "the table of functions in a Go program"),
    (
        "report/src/tracepoints/special.rs",
        2,
        "a socket address, with parts in host and in network byte order",
    ),
    ("report/src/table/cells.rs", 1, "text packed into a number, to sort by"),
    (
        "report/src/listings/info/gather.rs",
        1,
        "each entry of the feature table, also those that repeat a number",
    ),
    ("record/src/tasks/workload.rs", 1, "a process id in the pipe to the command's own process"),
    ("record/src/kernel/ring/clock.rs", 3, "the page that the kernel maps before a ring"),
    (
        "record/src/machine/topology.rs",
        1,
        "the tail of CPU_TOPOLOGY, whose shape depends on another feature",
    ),
    ("record/src/output/build_ids/elf.rs", 1, "the header of an ELF note"),
    ("record/src/kernel/sys.rs", 1, "what read(2) of a counter returns"),
];

#[test]
fn bytes_are_read_in_the_format() {
    let ways = [
        "from_le_bytes",
        "from_be_bytes",
        "from_ne_bytes",
        "u64_at",
        "u32_at",
        "Cursor::new",
        "NATIVE.u",
        "endian.u",
    ];
    let reads = |line: &&str| ways.iter().any(|way| line.contains(way));
    let mut found = Vec::new();
    for source in ["report/src", "record/src"].iter().flat_map(|folder| sources(folder)) {
        let lines = source.code().lines().filter(reads).count();
        found.extend((lines > 0).then_some((source.path, lines)));
    }
    let mut allowed: Vec<_> =
        BYTES.iter().map(|(path, lines, _)| ((*path).to_owned(), *lines)).collect();
    found.sort();
    allowed.sort();
    assert_eq!(
        found, allowed,
        "read bytes of the format in `format`, and name other places in BYTES"
    );
}

/// Files of `report` that look for samples among records. All others get samples from
/// `samples::by_piece` or `samples::positions`.
const LOOK_FOR_SAMPLES: [&str; 4] = [
    "report/src/input/split.rs",
    "report/src/listings/dump/record.rs",
    "report/src/samples/pass.rs",
    "report/src/timeline/off_cpu/read.rs",
];

/// Files of `report` whose workers share work that they take in turn.
const SHARE_WORK: [&str; 3] = [
    "report/src/callchain/tree/cumulate.rs",
    "report/src/samples/pass.rs",
    "report/src/symbols/resolver/functions.rs",
];

#[test]
fn there_is_one_pass_over_samples() {
    let using = |word: &str| {
        let is_using =
            |source: &Source| !source.path.ends_with("/tests.rs") && source.code().contains(word);
        let all = sources("report/src").into_iter().filter(is_using);
        let mut paths: Vec<String> = all.map(|source| source.path).collect();
        paths.sort();
        paths
    };
    assert_eq!(using("RecordType::SAMPLE"), LOOK_FOR_SAMPLES);
    assert_eq!(using("broadcast("), SHARE_WORK);
    assert_eq!(using("ChainSources::new("), ["report/src/samples/chains.rs"]);
    assert_eq!(using("FrameFinder::new("), ["report/src/samples/chains.rs"]);
    assert_eq!(using(": deferred_chains("), ["report/src/samples/chains.rs"]);
    assert_eq!(using("RecentSpans::default("), ["report/src/samples/tasks.rs"]);
}

#[test]
fn no_file_is_over_500_lines() {
    for source in PACKAGES.iter().flat_map(|package| sources(package)) {
        let lines = source.text.lines().count();
        assert!(lines <= 500, "{} has {lines} lines", source.path);
    }
}

/// In `target/release`, a program with the name of a common command would hide that command.
#[test]
fn programs_of_the_tests_hide_no_command() {
    let programs = std::fs::read_dir(workspace().join("tests/src/bin")).unwrap();
    for program in programs {
        let name = program.unwrap().file_name().into_string().unwrap();
        assert!(name.starts_with("recrep-"), "tests/src/bin/{name}");
    }
}

#[test]
fn each_package_keeps_the_workspaces_lints() {
    for package in PACKAGES {
        let manifest =
            std::fs::read_to_string(workspace().join(package).join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "{package}");
        assert!(manifest.contains("license.workspace = true"), "{package}");
        assert!(!manifest.contains("TODO"), "{package} has no description");
    }
}
