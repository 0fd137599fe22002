//! The tables of options and fields of the subcommands (`docs/script-options.md`) are right: each option and field of
//! perf 6.12 has a row; those marked *same* or *different* are accepted, and the others are refused by name.

use std::collections::BTreeMap;
use std::ffi::OsString;

use recrep_report::commands::{c2c, mem, script};

const TABLE: &str = include_str!("../../docs/script-options.md");

/// The long names of perf script 6.12 (`tools/perf/builtin-script.c`, `util/evswitch.h`).
const SCRIPT: &str = "dump-raw-trace dump-unsorted-raw-trace verbose Latency list list-dlfilters script gen-script dlfilter dlarg \
    input debug-mode header header-only vmlinux kallsyms hide-call-graph symfs fields all-cpus dsos symbols addr-range \
    insn-trace xed call-trace call-ret-trace graph-function stop-bt cpu comms pid tid max-stack reltime deltatime \
    show-info show-kernel-path show-task-events show-mmap-events show-switch-events show-namespace-events \
    show-cgroup-events show-lost-events show-round-events show-bpf-events show-text-poke-events per-event-dump force \
    max-blocks ns itrace full-source-path demangle demangle-kernel addr2line time inline guestmount guestvmlinux \
    guestkallsyms guestmodules guest-code stitch-lbr switch-on switch-off show-on-off-events";

/// The fields of perf script, from its usage text.
const FIELDS: &str = "comm tid pid time cpu event trace ip sym dso dsoff addr symoff srcline period iregs uregs brstack brstacksym flags \
    data_src weight bpf-output brstackinsn brstackinsnlen brstackdisasm brstackoff callindent insn disasm insnlen synth \
    phys_addr metric misc srccode ipc tod data_page_size code_page_size ins_lat machine_pid vcpu cgroup retire_lat brcntr";

/// The long names of perf mem report and perf c2c report (`builtin-mem.c`, `builtin-c2c.c`).
const MEM: &str = "type cpu force verbose phys-data data-page-size dump-raw-samples hide-unresolved input field-separator sort \
    type-profile";
const C2C: &str = "vmlinux input node-info stdio stats full-symbols no-source show-all call-graph display coalesce force stitch-lbr \
    double-cl verbose";

struct Row {
    section: &'static str,
    name: &'static str,
    answer: &'static str,
    why: &'static str,
    tried: &'static str,
}

impl Row {
    /// Parses the example; returns the error message if it is refused.
    fn refusal(&self) -> Option<String> {
        let command = match self.section {
            "perf mem report" => "rep mem",
            "perf c2c report" => "rep c2c",
            _ => "rep script",
        };
        let file = if self.name == "input" { None } else { Some("x.data") };
        let words = [command].into_iter().chain(self.tried.split(' ')).chain(file).map(OsString::from);
        let words: Vec<_> = words.collect();
        let error = match command {
            "rep mem" => mem::parse(words).err(),
            "rep c2c" => c2c::parse(words).err(),
            _ => script::parse(words).err(),
        };
        error.map(|said| said.to_string())
    }
}

/// Returns the rows of the tables, each with the heading that it is under.
fn rows() -> Vec<Row> {
    let mut section = "";
    let mut rows = Vec::new();
    for line in TABLE.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            section = heading;
        }
        if line.starts_with("| `") {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [names, answer, why, tried] = cells[..] else { panic!("{line}") };
            let name = names.rsplit(", ").next().unwrap().trim_matches('`').trim_start_matches('-');
            rows.push(Row { section, name, answer, why, tried: tried.trim_matches('`') });
        }
    }
    rows
}

#[test]
fn every_option_and_field_of_perf_has_a_row() {
    let names = |section: &str| {
        let rows = rows().into_iter().filter(|row| row.section == section);
        rows.map(|row| row.name).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names("perf script"), SCRIPT);
    assert_eq!(names("Fields of perf script"), FIELDS);
    assert_eq!(names("perf mem report"), MEM);
    assert_eq!(names("perf c2c report"), C2C);
}

#[test]
fn options_are_accepted_or_refused_by_name_as_the_table_says() {
    for row in rows() {
        let Row { name, answer, why, tried, .. } = row;
        match (answer, row.refusal()) {
            ("not" | "none", Some(said)) => {
                let named = tried.split([' ', ',']).find(|word| said.contains(*word));
                assert!(named.is_some() && why.len() > 10, "{tried}: {said}");
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
    let mut counts = BTreeMap::<&str, usize>::new();
    rows().iter().for_each(|row| *counts.entry(row.answer).or_default() += 1);
    let of = |answer| counts.get(answer).copied().unwrap_or(0);
    let (taken, all) = (of("same") + of("different"), of("same") + of("different") + of("not"));
    println!("{taken} of {all}: {counts:?}");
    assert!(taken * 10 >= all * 9, "{taken} of {all}: {counts:?}");
}

#[test]
fn every_option_of_rep_is_documented() {
    let help = |error: clap::Error| error.to_string();
    let words = |command: &str| [command, "--help"].map(OsString::from).to_vec();
    let all = [
        help(script::parse(words("rep script")).unwrap_err()),
        help(mem::parse(words("rep mem")).unwrap_err()),
        help(c2c::parse(words("rep c2c")).unwrap_err()),
    ];
    for text in all {
        let words = text.split(|c: char| c.is_whitespace() || "[]=,.`".contains(c));
        let is_option = |word: &&str| word.starts_with("--") && word.len() > 3;
        let options: Vec<_> = words.filter(is_option).collect();
        assert!(options.len() > 15, "{options:?}");
        for option in options.iter().filter(|option| !["--help", "--version"].contains(option)) {
            assert!(TABLE.contains(&format!("`{option}`")), "{option} is not documented");
        }
    }
}
