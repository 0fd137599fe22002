//! The tables of options, sort keys and fields (`docs/options.md`, and `docs/script-options.md` of
//! the subcommands) are right: each that perf 7.0 has has a row; those marked *same* or
//! *different* are accepted, and the others are refused by name.

use std::ffi::OsString;

use recrep_report::testing::script;
use recrep_report::testing::{annotate, c2c, mem};
use recrep_report::testing::{args, parse};

const TABLES: [&str; 2] = [
    include_str!("../../../../report/docs/options.md"),
    include_str!("../../../../report/docs/script-options.md"),
];

/// The long names of perf report 7.0 (`tools/perf/builtin-report.c`).
const OPTIONS: &str = "input verbose quiet dump-raw-trace stats tasks mmaps vmlinux ignore-vmlinux \
                       kallsyms force modules show-nr-samples threads pretty tui gtk stdio header \
                       header-only sort fields show-cpu-utilization showcpuutilization parent \
                       exclude-other call-graph children max-stack inverted ignore-callees dsos \
                       comms pid tid symbols symbol-filter column-widths field-separator \
                       hide-unresolved symfs cpu show-info source asm-raw disassembler-style \
                       prefix prefix-strip show-total-period group group-sort-idx branch-stack \
                       branch-history objdump addr2line demangle demangle-kernel mem-mode samples \
                       percent-limit percentage itrace full-source-path show-ref-call-graph \
                       stitch-lbr socket-filter raw-trace hierarchy stdio-color time inline \
                       percent-type ns time-quantum total-cycles disable-order skip-empty \
                       latency parallelism";

/// The keys of `-s` and `-F` (`tools/perf/util/sort.c`).
const KEYS: &str = "pid comm dso symbol parent cpu socket srcline srcfile local_weight weight \
                    transaction trace symbol_size dso_size cgroup cgroup_id ipc_null time \
                    code_page_size local_ins_lat ins_lat local_p_stage_cyc p_stage_cyc addr \
                    local_retire_lat retire_lat simd type typeoff symoff typecln dso_from dso_to \
                    symbol_from symbol_to mispredict in_tx abort cycles srcline_from srcline_to \
                    ipc_lbr addr_from addr_to symbol_daddr symbol_iaddr dso_daddr locked tlb mem \
                    snoop dcacheline phys_daddr data_page_size blocked overhead overhead_sys \
                    overhead_us overhead_guest_sys overhead_guest_us overhead_children sample \
                    period weight1 weight2 weight3 latency parallelism";

/// The long names of perf script 7.0 (`tools/perf/builtin-script.c`, `util/evswitch.h`).
const SCRIPT: &str = "dump-raw-trace dump-unsorted-raw-trace verbose Latency list list-dlfilters \
                      script gen-script dlfilter dlarg input debug-mode header header-only vmlinux \
                      kallsyms hide-call-graph symfs fields all-cpus dsos symbols addr-range \
                      insn-trace xed call-trace call-ret-trace graph-function stop-bt cpu comms \
                      pid tid max-stack reltime deltatime show-info show-kernel-path \
                      show-task-events show-mmap-events show-switch-events show-namespace-events \
                      show-cgroup-events show-lost-events show-round-events show-bpf-events \
                      show-text-poke-events per-event-dump force max-blocks ns itrace \
                      full-source-path demangle demangle-kernel addr2line time inline guestmount \
                      guestvmlinux guestkallsyms guestmodules guest-code stitch-lbr switch-on \
                      switch-off show-on-off-events merge-callchains";

/// The fields of perf script, from its usage text.
const FIELDS: &str = "comm tid pid time cpu event trace ip sym dso dsoff addr symoff srcline \
                      period iregs uregs brstack brstacksym flags data_src weight bpf-output \
                      brstackinsn brstackinsnlen brstackdisasm brstackoff callindent insn disasm \
                      insnlen synth phys_addr metric misc srccode ipc tod data_page_size \
                      code_page_size ins_lat machine_pid vcpu cgroup retire_lat brcntr";

/// The long names of perf mem report and perf c2c report (`builtin-mem.c`, `builtin-c2c.c`).
const MEM: &str = "type cpu force verbose phys-data data-page-size dump-raw-samples \
                   hide-unresolved input field-separator sort type-profile";
const C2C: &str = "vmlinux input node-info stdio stats full-symbols no-source show-all call-graph \
                   display coalesce force stitch-lbr double-cl verbose";

/// The long names of perf annotate 7.0 (`builtin-annotate.c`).
const ANNOTATE: &str = "input dsos symbol force verbose quiet dump-raw-trace gtk tui stdio stdio2 \
                        ignore-vmlinux vmlinux modules print-line full-paths skip-missing group \
                        cpu symfs source asm-raw disassembler-style prefix prefix-strip objdump \
                        addr2line demangle demangle-kernel show-total-period show-nr-samples \
                        stdio-color percent-type percent-limit itrace data-type type-stat \
                        insn-stat skip-empty code-with-type";

/// What a row says of one of its names.
struct Row {
    section: &'static str,
    name: &'static str,
    answer: &'static str,
    why: &'static str,
    tried: String,
}

impl Row {
    /// Returns whether the row is about `rep report`.
    fn is_of_report(&self) -> bool {
        !self.section.contains("perf")
    }

    /// Parses the example; returns the error message if it is refused.
    fn refusal(&self) -> Option<String> {
        let command = match self.section {
            "perf mem report" => "rep mem",
            "perf c2c report" => "rep c2c",
            "perf annotate" => "rep annotate",
            _ if self.is_of_report() => "rep",
            _ => "rep script",
        };
        let file = if self.name == "input" { None } else { Some("x.data") };
        error(command, self.tried.split(' ').chain(file))
    }
}

/// Parses a command line; returns the error message if it is refused.
fn error<'a>(command: &'a str, words: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let words: Vec<_> = [command].into_iter().chain(words).map(OsString::from).collect();
    let error = match command {
        "rep" => args::parse(words).err(),
        "rep mem" => parse(words, mem::query).err(),
        "rep c2c" => parse(words, c2c::query).err(),
        "rep annotate" => parse(words, annotate::query).err(),
        _ => parse(words, script::query).err(),
    };
    error.map(|said| said.to_string())
}

/// Returns the rows of a file's tables, one for each name, with the heading that it is under.
fn rows(file: &'static str) -> Vec<Row> {
    let mut section = "";
    let mut rows = Vec::new();
    for line in file.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            section = heading;
        }
        if line.starts_with("| `") {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [names, answer, why, tried] = cells[..] else { panic!("{line}") };
            for (names, tried) in names.split(" · ").zip(tried.split(" · ").cycle()) {
                let mut names = names.split(", ").map(|name| name.trim_matches('`'));
                let first = names.next().unwrap();
                let name = names.last().unwrap_or(first).trim_start_matches('-');
                rows.push(Row {
                    section,
                    name,
                    answer,
                    why,
                    tried: tried.trim_matches('`').replace('…', first),
                });
            }
        }
    }
    rows
}

#[test]
fn every_option_key_and_field_of_perf_has_a_row() {
    let wanted = [
        ("", OPTIONS),
        ("Sort keys and fields", KEYS),
        ("perf script", SCRIPT),
        ("Fields of perf script", FIELDS),
        ("perf mem report", MEM),
        ("perf c2c report", C2C),
        ("perf annotate", ANNOTATE),
    ];
    let wanted = wanted
        .iter()
        .flat_map(|(section, names)| names.split_whitespace().map(|name| (*section, name)));
    let mut wanted: Vec<_> = wanted.collect();
    let mut found: Vec<_> =
        TABLES.into_iter().flat_map(rows).map(|row| (row.section, row.name)).collect();
    wanted.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, wanted);
}

#[test]
fn options_are_accepted_or_refused_by_name_as_the_table_says() {
    for row in TABLES.into_iter().flat_map(rows) {
        let Row { name, answer, why, tried, .. } = &row;
        assert!(tried.contains(name) || tried.starts_with('-'), "{tried}");
        match (*answer, row.refusal()) {
            ("not" | "none", Some(said)) => {
                let named = tried.split(' ').find(|word| said.contains(*word));
                let least = if row.is_of_report() { 20 } else { 10 };
                assert!(named.is_some() && why.len() > least, "{tried}: {said}");
            }
            ("not" | "none", None) => panic!("{tried} is accepted: update its row"),
            ("same", None) => {}
            ("different", None) => assert!(why.len() > 20, "{tried}: why is it different?"),
            (_, None) => panic!("{name}: what is `{answer}`?"),
            (_, Some(said)) => panic!("{tried}: {said}"),
        }
    }
}

#[test]
fn nine_in_ten_answerable_options_are_accepted() {
    for rows in TABLES.map(rows) {
        let count =
            |answers: &[&str]| rows.iter().filter(|row| answers.contains(&row.answer)).count();
        let (taken, refused) = (count(&["same", "different"]), count(&["not"]));
        assert!(taken * 10 >= (taken + refused) * 9, "{taken} of {}", taken + refused);
    }
}

#[test]
fn every_option_of_rep_is_documented() {
    let [of_report, of_others] = TABLES;
    for (command, table) in [
        ("rep", of_report),
        ("rep script", of_others),
        ("rep mem", of_others),
        ("rep c2c", of_others),
        ("rep annotate", of_others),
    ] {
        let help = error(command, ["--help"]).unwrap();
        let words = help.split(|c: char| c.is_whitespace() || "[]()=,.:;`".contains(c));
        let is_option = |word: &&str| {
            word.starts_with("--") && word.as_bytes().get(2).is_some_and(u8::is_ascii_alphabetic)
        };
        let options: Vec<_> = words.filter(is_option).collect();
        assert!(options.len() > 25, "{options:?}");
        for option in options.iter().filter(|option| !["--help", "--version"].contains(option)) {
            assert!(
                table.contains(&format!("`{option}`")),
                "{option} of {command} is not documented"
            );
        }
    }
}
