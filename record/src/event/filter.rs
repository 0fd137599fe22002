//! Filters that the kernel applies to events: `--filter`, `--exclude-perf`.
//!
//! ```text
//!  tracepoints         prev_pid == 0 && prev_comm ~ "sh*"         parsed by the kernel; several are joined by &&
//! hardware tracers    filter main @ /bin/x, stop 0x10 @ lib.so   names are replaced by offsets, paths become absolute:
//!                      filter 0x1139/0x40@/bin/x stop 0x10@/lib.so
//! ```
//!
//! A filter applies to the events of the last `-e` list before it. Source: perf-record(1);
//! `perf_event_parse_addr_filter` in `kernel/events/core.c`.

use super::spec::EventSpec;
use super::terms::number;
use crate::machine::pmu::symbol::{self, Function};
use crate::machine::sources::EventSources;

/// Adds a filter to all events of the last list.
pub(crate) fn attach_filter(
    events: &mut [EventSpec],
    text: &str,
    sources: &EventSources,
) -> Result<(), String> {
    let Some(list) = events.last().map(|last| last.list) else {
        return Err(format!(
            "--filter '{text}' applies to the events before it, but there are none; put -e before \
             it"
        ));
    };
    if text.trim().is_empty() {
        return Err("--filter: the filter is empty; give one, or leave --filter out".to_owned());
    }
    for event in events.iter_mut().filter(|event| event.list == list) {
        let addresses = event.pmu.as_ref().map_or(0, |pmu| pmu.address_filters);
        if event.is_tracepoint() {
            add(event, text);
        } else if addresses > 0 {
            let (count, ranges) = address_filters(text, sources)
                .map_err(|why| format!("--filter '{text}': {why}"))?;
            if count > addresses {
                let pmu = event.pmu.as_ref().map_or("", |pmu| &pmu.name);
                return Err(format!(
                    "--filter '{text}': {pmu} supports {addresses} address filters, not {count}"
                ));
            }
            event.filter = Some(
                event
                    .filter
                    .take()
                    .map_or_else(|| ranges.clone(), |before| format!("{before} {ranges}")),
            );
        } else {
            return Err(format!(
                "--filter '{text}': {} has no fields to filter by; only tracepoints have, and \
                 tracing PMUs with address filters (filters by BPF are a matter of perf record)",
                event.name
            ));
        }
    }
    Ok(())
}

/// Excludes a process from the events of the last list.
pub(crate) fn exclude_process(events: &mut [EventSpec], pid: u32) -> Result<(), String> {
    let Some(list) = events.last().map(|last| last.list) else {
        return Err(
            "--exclude-perf applies to tracepoints before it, but there are none; put -e before"
                .to_owned(),
        );
    };
    for event in events.iter_mut().filter(|event| event.list == list) {
        if !event.is_tracepoint() {
            return Err(format!(
                "--exclude-perf applies to tracepoints, but {} is not a tracepoint",
                event.name
            ));
        }
        add(event, &format!("common_pid != {pid}"));
    }
    Ok(())
}

fn add(event: &mut EventSpec, text: &str) {
    event.filter = Some(match event.filter.take() {
        Some(before) => format!("({before}) && ({text})"),
        None => text.to_owned(),
    });
}

/// Converts address filters to the kernel's form. Also returns their number.
fn address_filters(text: &str, sources: &EventSources) -> Result<(u64, String), String> {
    let mut scanner = Scanner(text);
    let (mut count, mut filters) = (0, Vec::new());
    loop {
        scanner.skip(", \t");
        if scanner.0.is_empty() {
            return Ok((count, filters.join(" ")));
        }
        filters.push(one(&mut scanner, sources)?);
        count += 1;
    }
}

struct Scanner<'a>(&'a str);

impl<'a> Scanner<'a> {
    fn skip(&mut self, these: &str) {
        self.0 = self.0.trim_start_matches(|c| these.contains(c));
    }

    fn until(&mut self, these: &str) -> &'a str {
        let (word, rest) =
            self.0.split_at(self.0.find(|c| these.contains(c)).unwrap_or(self.0.len()));
        self.0 = rest;
        word
    }

    /// Returns the word after a sign, if the sign comes next.
    fn after(&mut self, sign: char, until: &str) -> Option<&'a str> {
        self.skip(" \t");
        self.0 = self.0.strip_prefix(sign)?;
        self.skip(" \t");
        Some(self.until(until))
    }
}

/// Converts `filter|start|stop|tracestop START [#N] [/ SIZE [#N]] [@ FILE]`.
fn one(scanner: &mut Scanner<'_>, sources: &EventSources) -> Result<String, String> {
    let action = scanner.until(" \t");
    let (word, ranged) = match action {
        "filter" => ("filter", true),
        "tracestop" => ("stop", true),
        "start" | "stop" => (action, false),
        _ => return Err(format!("'{action}' is not one of filter, start, stop and tracestop")),
    };
    scanner.skip(" \t");
    let start = scanner.until(" \t/@#,");
    let start_nth = scanner.after('#', " \t/@,");
    let end = scanner.after('/', " \t@#,");
    let end_nth = end.and_then(|_| scanner.after('#', " \t@,"));
    let file = scanner.after('@', " \t,").map(symbol::file).transpose()?;
    let find = |name: &str, nth: Option<&str>| {
        let found = match &file {
            Some(file) => symbol::functions(file, name)?,
            None => symbol::kernel(sources.kallsyms(), name),
        };
        chosen(&found, name, nth)
    };
    let (at, mut length) = match (start, number(start)) {
        ("", _) => return Err(format!("{action} needs an address or a function: {action} START")),
        ("*", _) => {
            let file = file
                .as_deref()
                .ok_or("'*' stands for all code of a file, but no file is given (@ FILE)")?;
            let all = symbol::extent(file)?;
            (all.offset, Some(all.size))
        }
        (_, Some(address)) => (address, None),
        (name, None) => {
            let function = find(name, start_nth)?;
            (function.offset, ranged.then_some(function.size))
        }
    };
    if let Some(end) = end {
        length = Some(match number(end) {
            Some(size) => size,
            None => {
                let last = find(end, end_nth)?;
                (last.offset + last.size)
                    .checked_sub(at)
                    .ok_or_else(|| format!("{end} ends before {start} begins"))?
            }
        });
    }
    if ranged && length.unwrap_or(0) == 0 {
        return Err(format!("{action} {start} needs a size: {action} {start} / SIZE"));
    }
    let length = length.map(|length| format!("/{length:#x}")).unwrap_or_default();
    let file = file.map(|file| format!("@{}", file.display())).unwrap_or_default();
    Ok(format!("{word} {at:#x}{length}{file}"))
}

fn chosen(found: &[Function], name: &str, nth: Option<&str>) -> Result<Function, String> {
    match (found, nth) {
        ([], _) => Err(format!("no function '{name}' was found")),
        ([only], None) => Ok(*only),
        (several, None) => Err(format!(
            "there are {} functions '{name}'; choose one, such as '{name} #1'",
            several.len()
        )),
        (several, Some(nth)) => {
            let at = nth
                .parse::<usize>()
                .ok()
                .and_then(|n| n.checked_sub(1))
                .and_then(|n| several.get(n))
                .copied();
            at.ok_or_else(|| {
                format!("'{name} #{nth}': the functions of this name are #1 to #{}", several.len())
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::PmuUse;
    use recrep_format::abi::EventType;

    fn sources() -> EventSources {
        EventSources::new(std::path::Path::new("/nonexistent"), None)
    }

    fn tracepoint(list: usize) -> EventSpec {
        EventSpec { list, ..EventSpec::numbered("a:b", EventType::TRACEPOINT, 1) }
    }

    fn tracer() -> EventSpec {
        let pmu = PmuUse { name: "intel_pt".to_owned(), address_filters: 2, ..PmuUse::default() };
        EventSpec { pmu: Some(pmu), ..EventSpec::numbered("intel_pt//", EventType(8), 0) }
    }

    #[test]
    fn filters_are_about_the_last_list() {
        let mut events = [tracepoint(0), tracepoint(1), tracepoint(1)];
        attach_filter(&mut events, "x == 1", &sources()).unwrap();
        attach_filter(&mut events, "y == 2 || z", &sources()).unwrap();
        exclude_process(&mut events, 7).unwrap();
        let filters = events.map(|event| event.filter);
        assert_eq!(filters[0], None);
        assert_eq!(filters[1].as_deref(), Some("((x == 1) && (y == 2 || z)) && (common_pid != 7)"));
        assert_eq!(filters[1], filters[2]);
    }

    #[test]
    fn where_there_is_nothing_to_filter() {
        assert!(attach_filter(&mut [], "x", &sources()).unwrap_err().contains("there are none"));
        let mut clock = [EventSpec::numbered("cpu-clock", EventType::SOFTWARE, 0)];
        assert!(
            attach_filter(&mut clock, "x", &sources())
                .unwrap_err()
                .contains("cpu-clock has no fields")
        );
        assert!(exclude_process(&mut clock, 1).unwrap_err().contains("is not a tracepoint"));
        assert!(
            attach_filter(&mut [tracepoint(0)], " ", &sources()).unwrap_err().contains("empty")
        );
    }

    #[test]
    fn addresses_by_number_and_by_name() {
        let me = std::env::current_exe().unwrap().canonicalize().unwrap();
        let shown = me.display();
        let main = symbol::functions(&me, "main").unwrap()[0];
        let filtered = |text: &str| {
            let mut events = [tracer()];
            attach_filter(&mut events, text, &sources()).map(|()| events[0].filter.clone().unwrap())
        };
        assert_eq!(filtered("filter 0x10 / 0x20").unwrap(), "filter 0x10/0x20");
        assert_eq!(filtered("start 0x10, stop 32").unwrap(), "start 0x10 stop 0x20");
        let whole = format!("filter {:#x}/{:#x}@{shown}", main.offset, main.size);
        assert_eq!(filtered(&format!("filter main @ {shown}")).unwrap(), whole);
        assert_eq!(filtered(&format!("filter main #1 @{shown}")).unwrap(), whole);
        assert_eq!(filtered(&format!("filter main / main @ {shown}")).unwrap(), whole);
        assert_eq!(
            filtered(&format!("tracestop main / 0x4 @ {shown}")).unwrap(),
            format!("stop {:#x}/0x4@{shown}", main.offset)
        );
        assert!(filtered(&format!("filter * @ {shown}")).unwrap().ends_with(&format!("@{shown}")));
        for (text, why) in [
            ("watch 0x10", "'watch' is not one of"),
            ("filter 0x10", "needs a size"),
            ("filter *", "no file is given"),
            ("start 1 stop 2 stop 3", "2 address filters, not 3"),
            (&format!("filter main #2 @ {shown}"), "are #1 to #1"),
            (&format!("filter nope @ {shown}"), "no function 'nope'"),
        ] {
            let refusal = filtered(text).unwrap_err();
            assert!(refusal.contains(why), "{refusal}");
        }
    }
}
