//! Tests: lists of events, on fake machines.

use std::path::Path;

use recrep_format::abi::{BranchSampleType, EventType};

use super::*;
use crate::event::parse::parse;
use crate::event::sampling::{Callchain, Rate};
use crate::machine::sources::EventSources;
use crate::testkit::sysfs::{CORE, HYBRID, machine};

fn on(pmus: &[(&str, &str)], list: &str) -> Result<Vec<EventSpec>, String> {
    let dir = machine(pmus);
    let sources = EventSources::new(&dir.path().join("sys"), Some(dir.path().join("tracing")));
    parse(list, &sources).map_err(|error| error.to_string())
}

fn all(list: &str) -> Vec<EventSpec> {
    on(CORE, list).unwrap_or_else(|why| panic!("{why}"))
}

#[track_caller]
fn one(list: &str) -> EventSpec {
    let mut all = all(list);
    assert_eq!(all.len(), 1, "{list}");
    all.remove(0)
}

fn refusal(list: &str) -> String {
    on(CORE, list).unwrap_err()
}

#[test]
fn names_and_their_aliases() {
    for (name, kind, config) in [
        ("cycles", EventType::HARDWARE, 0),
        ("cpu-cycles", EventType::HARDWARE, 0),
        ("branches", EventType::HARDWARE, 4),
        ("cpu-clock", EventType::SOFTWARE, 0),
        ("faults", EventType::SOFTWARE, 2),
        ("cs", EventType::SOFTWARE, 3),
        ("cgroup-switches", EventType::SOFTWARE, 11),
        ("L1-dcache-load-misses", EventType::HW_CACHE, 0x10000),
        ("dTLB-prefetch-misses", EventType::HW_CACHE, 0x10203),
        ("r1a8", EventType::RAW, 0x1a8),
    ] {
        let spec = one(name);
        assert_eq!((spec.kind, spec.config, spec.name.as_str()), (kind, config, name));
    }
}

#[test]
fn every_known_name_is_an_event() {
    for event in known() {
        for name in &event.names {
            let spec = one(name);
            assert_eq!((spec.kind, spec.config), (event.kind, event.config), "{name}");
        }
    }
}

#[test]
fn lists_and_groups() {
    let events = all("page-faults,{cpu-clock:u,cs}:S,{faults,cs:k}:W");
    let shown: Vec<_> =
        events.iter().map(|e| (e.name.as_str(), e.modifiers.to_string(), e.leader)).collect();
    assert_eq!(
        shown,
        [
            ("page-faults", String::new(), None),
            ("cpu-clock", "uS".to_owned(), None),
            ("cs", "S".to_owned(), Some(1)),
            ("faults", "W".to_owned(), None),
            ("cs", "kW".to_owned(), Some(3)),
        ]
    );
    assert_eq!(events.iter().map(EventSpec::suffix).collect::<Vec<_>>(), ["", "u", "", "", "k"]);
    let mut events = all("cs");
    let dir = machine(CORE);
    append(&mut events, "{faults,cs}", &EventSources::new(dir.path(), None)).unwrap();
    assert_eq!(
        events.iter().map(|e| (e.list, e.leader)).collect::<Vec<_>>(),
        [(0, None), (1, None), (1, Some(1))]
    );
}

#[test]
fn terms_of_a_pmu() {
    let spec = one("cpu/event=0x1a8,umask=0x2,inv,ldlat=7,name=mine/pp");
    assert_eq!(
        (spec.kind, spec.config, spec.config1),
        (EventType(4), 1 << 32 | 1 << 23 | 0x2a8, 7)
    );
    assert_eq!(
        (spec.name.as_str(), spec.suffix().as_str(), spec.modifiers.precise),
        ("mine", "", 2)
    );
    let spec = one("cpu/event=0x3c/u");
    assert_eq!((spec.name.as_str(), spec.suffix().as_str()), ("cpu/event=0x3c/", "u"));
    assert_eq!(one("cpu/config=0x10,umask=1,config3=5/").config, 0x110);
    assert_eq!(
        (one("cpu/config4=5,umask=1/").config4, one("cpu/config4=5,umask=1/").config),
        (5, 0x100)
    );
    let alias = one("cpu/mem-loads,ldlat=30/P");
    assert_eq!((alias.config, alias.config1), (0x1cd, 31));
    assert_eq!(one("cpu/param,umask=0x9/").config, 0x901);
    assert_eq!((one("mem-loads").config, one("mem-loads").kind), (0x1cd, EventType(4)));
    let known = one("cpu/instructions/");
    assert_eq!((known.kind, known.config), (EventType::HARDWARE, 1));
    assert_eq!((one("cpu/r1a8/").kind, one("cpu/r1a8/").config), (EventType(4), 0x1a8));
}

#[test]
fn pmus_beside_the_cores() {
    let events = all("uncore_imc/cas/");
    assert_eq!(events.iter().map(|e| e.kind.0).collect::<Vec<_>>(), [20, 21]);
    assert_eq!(events[0].unit.as_deref(), Some("MiB"));
    assert_eq!(events[0].scale.as_deref(), Some("6.1e-5"));
    assert_eq!(events[1].pmu.as_ref().unwrap().cpus, Some(vec![0, 8]));
    assert!(events[1].pmu.as_ref().unwrap().uncore);
    assert_eq!(all("imc*/event=4/").len(), 2);
    let pt = one("intel_pt//u");
    assert_eq!((pt.config, pt.pmu.as_ref().unwrap().has_aux), (1 | 1 << 10 | 1 << 13, true));
    assert_eq!(one("intel_pt/tsc=0/").config, 1 | 1 << 13);
    assert_eq!(one("cs_etm/@tmc_etr0/u").config2, 0x1b2c);
    assert!(refusal("cs_etm/@tmc_etr1/").contains("did you mean '@tmc_etr0'?"));
}

#[test]
fn cores_of_several_kinds() {
    let events = on(HYBRID, "{cycles,instructions,cs}:S,r3c").unwrap();
    let shown: Vec<_> = events.iter().map(|e| (e.name.as_str(), e.config, e.leader)).collect();
    assert_eq!(
        shown,
        [
            ("cpu_atom/cycles/", 10 << 32, None),
            ("cpu_atom/instructions/", 10 << 32 | 1, Some(0)),
            ("cpu_core/cycles/", 4 << 32, None),
            ("cpu_core/instructions/", 4 << 32 | 1, Some(2)),
            ("cs", 3, Some(2)),
            ("cpu_atom/r3c/", 0x3c, None),
            ("cpu_core/r3c/", 0x3c, None),
        ]
    );
    assert_eq!((events[5].kind, events[6].kind), (EventType(10), EventType(4)));
    assert_eq!(events[0].pmu.as_ref().unwrap().cpus, Some((8..16).collect()));
    assert_eq!(on(HYBRID, "cpu_atom/cycles/").unwrap()[0].config, 10 << 32);
}

#[test]
fn terms_that_all_events_have() {
    let spec = one(
        "cpu-clock/period=1000,call-graph=dwarf,stack-size=1000,no-inherit,max-stack=5,time=0/u",
    );
    assert_eq!(
        (spec.name.as_str(), spec.kind),
        (
            "cpu-clock/period=1000,call-graph=dwarf,stack-size=1000,no-inherit,max-stack=5,time=0/",
            EventType::SOFTWARE
        )
    );
    let terms = &spec.terms;
    assert_eq!(
        (terms.rate, terms.inherit, terms.max_stack, terms.time),
        (Some(Rate::Period(1000)), Some(false), Some(5), Some(false))
    );
    assert_eq!(terms.callchain, Some(Some(Callchain::Dwarf { stack_size: 1000 })));
    let terms =
        one("cpu/event=1,freq=99,branch_type=any_call,overwrite,aux-output,aux-sample-size=64,call-graph=no/").terms;
    assert_eq!(
        (terms.rate, terms.branches),
        (Some(Rate::Hz(99)), Some(BranchSampleType::ANY_CALL))
    );
    assert_eq!(
        (terms.overwrite, terms.aux_output, terms.aux_sample_size),
        (Some(true), true, Some(64))
    );
    assert_eq!(terms.callchain, Some(None));
    assert_eq!(one("sched:sched_switch/name=x/").name, "x");
    assert_eq!(one("sched:sched_switch/name=x/").tracepoint.as_deref(), Some("sched:sched_switch"));
    assert_eq!(one("mem:0x10/8:w/name=y/u").modifiers.to_string(), "u");
}

#[test]
fn breakpoints_in_lists_and_groups() {
    let shown = |list: &str| {
        let shown =
            |e: &EventSpec| format!("{}:{}={:#x}/{}", e.name, e.modifiers, e.config1, e.config2);
        all(list).iter().map(shown).collect::<Vec<_>>()
    };
    let cs = "cs:=0x0/0";
    assert_eq!(shown("mem:0x404080:w,cs"), ["mem:0x404080:w:=0x404080/4", cs]);
    assert_eq!(
        shown("mem:16/8:w:u,mem:0x20/8:x:k,cs"),
        ["mem:16/8:w:u=0x10/8", "mem:0x20/8:x:k=0x20/8", cs]
    );
    let group = all("{cs,mem:0x404080:w,mem:0x8/1:rw:u}:S,faults");
    assert_eq!(group.iter().map(|e| e.leader).collect::<Vec<_>>(), [None, Some(0), Some(0), None]);
    assert_eq!(
        group.iter().map(|e| e.modifiers.to_string()).collect::<Vec<_>>(),
        ["S", "S", "uS", ""]
    );
    assert_eq!(shown("{mem:0x10,mem:0x20/2/name=b/u}").len(), 2);
}

#[test]
fn tracepoints_and_patterns_of_them() {
    let spec = one("sched:sched_switch:u");
    assert_eq!(
        (spec.kind, spec.config, spec.raw, spec.default_period),
        (EventType::TRACEPOINT, 314, true, Some(1))
    );
    assert_eq!((spec.name.as_str(), spec.suffix().as_str()), ("sched:sched_switch", "u"));
    let names = |list| all(list).into_iter().map(|e| e.name).collect::<Vec<_>>();
    assert_eq!(names("sched:*"), ["sched:sched_switch", "sched:sched_wakeup"]);
    assert_eq!(names("*:s*_[es]*"), ["irq:softirq_entry", "sched:sched_switch"]);
    assert_eq!(names("*:*").len(), 3);
    assert!(
        refusal("sched:sched_swich").ends_with(
            "unknown tracepoint 'sched:sched_swich'; did you mean 'sched:sched_switch'?"
        )
    );
    assert!(refusal("shced:sched_switch").contains("did you mean 'sched:sched_switch'?"));
    let dir = machine(&[]);
    let none = EventSources::new(dir.path(), Some(dir.path().join("none")));
    assert!(parse("a:bcd", &none).unwrap_err().to_string().contains("unknown tracepoint"));
    let unmounted =
        parse("sched:sched_switch", &EventSources::new(dir.path(), None)).unwrap_err().to_string();
    assert!(unmounted.contains("mount -t tracefs"), "{unmounted}");
}

#[test]
fn probes_on_functions() {
    let me = std::env::current_exe().unwrap().canonicalize().unwrap();
    let path = me.to_str().unwrap();
    let main = crate::machine::pmu::symbol::functions(Path::new(path), "main").unwrap()[0].offset;
    let spec = one(&format!("uprobe/path={path},func=main,ret/"));
    assert_eq!((spec.kind, spec.config, spec.config1, spec.config2), (EventType(7), 1, 0, main));
    assert_eq!(spec.probe.unwrap().target.unwrap().to_str().unwrap(), path);
    assert_eq!(one(&format!("uprobe/path={path},func=main+0x4/u")).config2, main + 4);
    assert_eq!(one(&format!("uprobe/path={path},offset=0x99/")).config2, 0x99);
    assert_eq!(one(&format!("uprobe/path={path},offset=1,retprobe/")).config, 1);
    assert!(refusal(&format!("uprobe/path={path}/")).contains("needs a location in the file"));
    assert!(refusal(&format!("uprobe/path={path},func=nope/")).contains("no function 'nope'"));
    assert!(
        refusal("uprobe/path=/nonexistent/x,func=main/").contains("/nonexistent/x: No such file")
    );
    assert!(refusal("uprobe/func=main/").contains("needs a file"));
}

#[test]
fn what_is_wrong_and_where() {
    for (list, says) in [
        ("cpuclock", "event 'cpuclock': unknown event 'cpuclock'; did you mean 'cpu-clock'?"),
        ("cycels:u", "event 'cycels:u': unknown event 'cycels'; did you mean 'cycles'?"),
        (
            "cs,cycles:uu",
            "event 'cycles:uu', character 12 of 'cs,cycles:uu': repeated modifier 'u'",
        ),
        ("zzzzqq", "event 'zzzzqq': unknown event 'zzzzqq'"),
        ("cycles,", "event 'cycles,', character 8: an event name is missing"),
        (
            "cs,L1-icache-stores:u",
            "event 'L1-icache-stores:u', character 4 of 'cs,L1-icache-stores:u': there is no event \
             'L1-icache-stores': L1-icache has no stores, only loads and prefetches",
        ),
        (
            "cycles:",
            "event 'cycles:', character 8: modifiers are missing after the colon: u k h G H p P S \
             D I W e",
        ),
        ("{cs,faults", "event '{cs,faults': the closing '}' is missing"),
        (
            "cpu/event=0x1000/",
            "event 'cpu/event=0x1000/', character 5: 0x1000 does not fit the term 'event', whose \
             largest value is 0xfff",
        ),
        (
            "cpu/umask/",
            "event 'cpu/umask/', character 5: the term 'umask' needs a value: umask=NUMBER",
        ),
        ("cs:W", "event 'cs:W', character 4: the modifier 'W' applies only to groups: {a,b}:W"),
        (
            "cpu/percore/",
            "event 'cpu/percore/', character 5: the term 'percore' is for perf stat, not for \
             recordings; leave it out",
        ),
        (
            "cpu/nr=4/",
            "event 'cpu/nr=4/', character 5: the term 'nr' is for perf trace, not for recordings; \
             leave it out",
        ),
    ] {
        assert_eq!(refusal(list), says);
    }
    let unknown = refusal("cpu/evnt=1/");
    assert!(unknown.contains("PMU 'cpu' has no term 'evnt'; it accepts config"), "{unknown}");
    assert!(unknown.ends_with("did you mean 'event'?"), "{unknown}");
    assert!(
        refusal("cpuu/event=1/").contains("no PMU 'cpuu' (see rec list pmu); did you mean 'cpu'?")
    );
    assert!(refusal("cs/evnt=1/").contains("the event 'cs' has no term 'evnt'"));
}

/// Every mistyped list is either parsed, or gives an error with a position within the text.
#[test]
fn mistyped_lists_are_answered() {
    let lists = [
        "{cycles:u,cpu/event=0x1a8,umask=0x2,name='a,b'/pp}:S,mem:0x10/4:w:u",
        "uprobe/path=/nonexistent/k,func=m+0x4,ret/u,sched:sched_*/inherit/:k",
        "cs_etm/@tmc_etr0/,intel_pt//u,L1-dcache-load-misses:é",
    ];
    let dir = machine(CORE);
    let sources = EventSources::new(&dir.path().join("sys"), Some(dir.path().join("tracing")));
    for list in lists {
        let letters: Vec<char> = list.chars().collect();
        for at in 0..letters.len() {
            for typed in ["", "/", ",", "{", "}", ":", "=", "'", "0", "u", "*", "é"] {
                let mut mistyped: String = letters[..at].iter().collect();
                mistyped.push_str(typed);
                mistyped.extend(&letters[at + 1..]);
                if let Err(error) = parse(&mistyped, &sources) {
                    assert!(error.at <= mistyped.chars().count(), "{error}");
                    assert!(!error.to_string().is_empty());
                }
            }
        }
    }
}
