//! The tables of options and sort keys (`docs/options.md`) are right: each option and key of perf report 6.12 has a
//! row; those marked *same* or *different* are accepted, and the others are refused by name.

use std::ffi::OsString;

use recrep_report::cli::args;

const TABLE: &str = include_str!("../../docs/options.md");

/// The long names of perf report 6.12 (`tools/perf/builtin-report.c`).
const OPTIONS: &str = "input verbose quiet dump-raw-trace stats tasks mmaps vmlinux ignore-vmlinux kallsyms force modules \
    show-nr-samples threads pretty tui gtk stdio header header-only sort fields show-cpu-utilization \
    showcpuutilization parent exclude-other call-graph children max-stack inverted ignore-callees dsos comms pid tid \
    symbols symbol-filter column-widths field-separator hide-unresolved symfs cpu show-info source asm-raw \
    disassembler-style prefix prefix-strip show-total-period group group-sort-idx branch-stack branch-history \
    objdump addr2line demangle demangle-kernel mem-mode samples percent-limit percentage itrace full-source-path \
    show-ref-call-graph stitch-lbr socket-filter raw-trace hierarchy stdio-color time inline percent-type ns \
    time-quantum total-cycles disable-order skip-empty";

/// The keys of `-s` and `-F` (`tools/perf/util/sort.c`).
const KEYS: &str = "pid comm dso symbol parent cpu socket srcline srcfile local_weight weight transaction trace symbol_size dso_size \
    cgroup cgroup_id ipc_null time code_page_size local_ins_lat ins_lat local_p_stage_cyc p_stage_cyc addr \
    local_retire_lat retire_lat simd type typeoff symoff typecln dso_from dso_to symbol_from symbol_to mispredict \
    in_tx abort cycles srcline_from srcline_to ipc_lbr addr_from addr_to symbol_daddr symbol_iaddr dso_daddr locked \
    tlb mem snoop dcacheline phys_daddr data_page_size blocked overhead overhead_sys overhead_us overhead_guest_sys \
    overhead_guest_us overhead_children sample period weight1 weight2 weight3";

struct Row {
    name: &'static str,
    answer: &'static str,
    why: &'static str,
    tried: &'static str,
}

/// Returns the rows of the tables with four columns.
fn rows() -> Vec<Row> {
    let cells = |line: &'static str| -> Vec<&str> { line.trim_matches('|').split('|').map(str::trim).collect() };
    let lines = TABLE.lines().filter(|line| line.starts_with("| `")).map(cells).filter(|cells| cells.len() == 4);
    let row = |cells: Vec<&'static str>| Row {
        name: cells[0].rsplit(", ").next().unwrap().trim_matches('`').trim_start_matches('-'),
        answer: cells[1],
        why: cells[2],
        tried: cells[3].trim_matches('`'),
    };
    lines.map(row).collect()
}

#[test]
fn every_option_and_key_of_perf_has_a_row() {
    let names: Vec<_> = rows().iter().map(|row| row.name).collect();
    assert_eq!(names, OPTIONS.split_whitespace().chain(KEYS.split_whitespace()).collect::<Vec<_>>());
}

#[test]
fn options_are_accepted_or_refused_by_name_as_the_table_says() {
    for Row { name, answer, why, tried } in rows() {
        assert!(tried.contains(name) || tried.starts_with('-'), "{tried}");
        let words = tried.split(' ').chain(["x.data"]).map(OsString::from);
        let outcome = args::parse([OsString::from("rep")].into_iter().chain(words));
        match (answer, outcome) {
            ("not" | "none", Err(said)) => {
                let named = tried.split(' ').find(|word| said.to_string().contains(*word));
                assert!(named.is_some() && why.len() > 20, "{tried}: {said}");
            }
            ("not" | "none", Ok(_)) => panic!("{tried} is accepted: update its row"),
            ("same", Ok(_)) => {}
            ("different", Ok(_)) => assert!(why.len() > 20, "{tried}: why is it different?"),
            (_, Ok(_)) => panic!("{name}: what is `{answer}`?"),
            (_, Err(said)) => panic!("{tried}: {said}"),
        }
    }
}

#[test]
fn nine_in_ten_answerable_options_are_accepted() {
    let count = |answers: &[&str]| rows().iter().filter(|row| answers.contains(&row.answer)).count();
    let (taken, refused) = (count(&["same", "different"]), count(&["not"]));
    assert!(taken * 100 >= (taken + refused) * 90, "{taken} of {}", taken + refused);
}

#[test]
fn every_option_of_rep_is_documented() {
    let help = args::parse(["rep", "--help"].map(OsString::from)).unwrap_err().to_string();
    let words = help.split(|c: char| c.is_whitespace() || "[]()=,.:;`".contains(c));
    let mut options: Vec<_> = words
        .filter(|word| word.starts_with("--") && word.as_bytes().get(2).is_some_and(u8::is_ascii_lowercase))
        .collect();
    options.sort_unstable();
    options.dedup();
    assert!(options.len() > 25, "{options:?}");
    for option in options.iter().filter(|option| !["--help", "--version"].contains(option)) {
        assert!(TABLE.contains(option), "{option} is not documented");
    }
}
