//! An entry of a table: the fields that perf's JSON files have, made into the terms of a PMU's
//! event.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::unit::Unit;
use crate::machine::pmu::{Alias, Pmu};

/// An entry, as the file has it: `"EventName": "INST_RETIRED.ANY", "EventCode": "0xC0", …`. Those
/// that have no name are metrics.
pub(super) type Fields = Map<String, Value>;

/// Entries that others take their terms from (`ArchStdEvent`), by name.
pub(super) type Standard = HashMap<String, EventEntry>;

#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(transparent)]
pub(super) struct EventEntry(Fields);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableEvent {
    /// Its name, in small letters.
    pub(super) name: String,
    unit: Unit,
    pub(super) alias: Alias,
}

impl TableEvent {
    pub(super) fn is_of(&self, pmu: &Pmu) -> bool {
        self.unit.has(pmu)
    }
}

/// Fields and the terms that they become, in this order.
const TERMS: &[(&str, &str)] = &[
    ("AnyThread", "any"),
    ("PortMask", "ch_mask"),
    ("CounterMask", "cmask"),
    ("EdgeDetect", "edge"),
    ("FCMask", "fc_mask"),
    ("Invert", "inv"),
    ("SampleAfterValue", "period"),
    ("UMask", "umask"),
    ("NodeType", "type"),
    ("RdWrMask", "rdwrmask"),
    ("EnAllCores", "enallcores"),
    ("EnAllSlices", "enallslices"),
    ("SliceId", "sliceid"),
    ("ThreadMask", "threadmask"),
];

/// Registers of Intel's that hold what has no place in an event's code, and the terms for them.
const REGISTERS: &[(u64, &str)] =
    &[(0x3f6, "ldlat"), (0x1a6, "offcore_rsp"), (0x1a7, "offcore_rsp"), (0x3f7, "frontend")];

/// Events whose counters are fixed: their codes in Intel's tables are not those that the kernel
/// takes.
const FIXED: &[(&str, &str)] = &[
    ("inst_retired.any", "event=0xc0,period=2000003"),
    ("inst_retired.any_p", "event=0xc0,period=2000003"),
    ("cpu_clk_unhalted.ref", "event=0x0,umask=0x03,period=2000003"),
    ("cpu_clk_unhalted.thread", "event=0x3c,period=2000003"),
    ("cpu_clk_unhalted.core", "event=0x3c,period=2000003"),
    ("cpu_clk_unhalted.thread_any", "event=0x3c,any=1,period=2000003"),
];

impl EventEntry {
    /// The entry under its name, for those that refer to it.
    pub(super) fn standard(self) -> Option<(String, Self)> {
        let name = self.text("EventName").or_else(|| self.text("MetricName"))?.to_lowercase();
        Some((name, self))
    }

    /// The event; none: the entry is about a metric.
    pub(super) fn event(&self, standard: &Standard) -> Result<Option<TableEvent>, String> {
        let base = self.base(standard)?;
        let text = |key: &str| self.text(key).or_else(|| base?.text(key));
        let Some(name) = text("EventName").map(str::to_lowercase) else { return Ok(None) };
        let fixed =
            FIXED.iter().find(|(fixed, _)| *fixed == name).map(|(_, terms)| (*terms).to_owned());
        let terms = fixed
            .map_or_else(|| base.unwrap_or(self).terms(), Ok)
            .map_err(|why| format!("{name}: {why}"))?;
        let (scale, unit) = text("ScaleUnit").map(scale).unzip();
        let alias = Alias {
            terms,
            unit,
            scale,
            description: text("BriefDescription").map(|d| self.description(d)),
        };
        Ok(Some(TableEvent { name, unit: Unit::new(text("Unit"), text("Compat")), alias }))
    }

    /// Returns the entry that it takes its other fields from.
    pub(super) fn base<'a>(&self, standard: &'a Standard) -> Result<Option<&'a Self>, String> {
        match self.text("ArchStdEvent") {
            None => Ok(None),
            Some(base) => standard.get(&base.to_lowercase()).map(Some).ok_or_else(|| {
                format!("there is no standard event '{base}' in the tables beside mapfile.csv")
            }),
        }
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    /// A field that is a number; of several with commas between them, the first.
    fn number(&self, key: &str) -> Result<Option<u64>, String> {
        let Some(value) = self.0.get(key) else { return Ok(None) };
        let number = match value {
            Value::String(text) => {
                let text = text.split(',').next().unwrap_or("").trim();
                match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
                    Some(digits) => u64::from_str_radix(digits, 16).ok(),
                    None => text.parse().ok(),
                }
            }
            other => other.as_u64(),
        };
        number.map(Some).ok_or_else(|| format!("{key} is {value}, which is not a number"))
    }

    fn terms(&self) -> Result<String, String> {
        let (config, id) = (self.number("ConfigCode")?, self.number("EventidCode")?);
        let code =
            self.number("EventCode")?.unwrap_or(0) | self.number("ExtSel")?.unwrap_or(0) << 8;
        let mut terms = match (config, id) {
            (Some(config), _) => format!("config={}", spelt(config)),
            (None, Some(id)) => format!("eventid={}", spelt(id)),
            (None, None) => format!("event={}", spelt(code)),
        };
        for (key, term) in TERMS {
            if let Some(value) = self.number(key)?.filter(|value| *value != 0) {
                // Periods are read by people.
                let value = if *term == "period" { value.to_string() } else { spelt(value) };
                terms.push_str(&format!(",{term}={value}"));
            }
        }
        if let Some(filter) = self.text("Filter") {
            terms.push_str(&format!(",{filter}"));
        }
        if let Some(register) = self.number("MSRIndex")?.filter(|register| *register != 0) {
            let known = REGISTERS.iter().find(|(number, _)| *number == register);
            let (_, term) = known
                .ok_or_else(|| format!("MSRIndex is {register:#x}, for which rec knows no term"))?;
            terms.push_str(&format!(",{term}={}", spelt(self.number("MSRValue")?.unwrap_or(0))));
        }
        Ok(terms)
    }

    /// The description, with what else one has to know to use the event.
    pub(super) fn description(&self, brief: &str) -> String {
        let mut text =
            brief.split_whitespace().collect::<Vec<_>>().join(" ").replace(char::is_control, "");
        text.truncate(text.trim_end_matches(['.', ' ']).len());
        if !brief.contains("(Precise Event)") {
            text.push_str(match self.text("PEBS") {
                None | Some("0") => "",
                Some("2") => " (Must be precise)",
                Some(_) => " (Precise event)",
            });
        }
        if self.0.contains_key("Data_LA") {
            text.push_str("; supports addresses when precise");
        }
        if let Some(errata) = self.text("Errata") {
            text.push_str(&format!("; spec update: {errata}"));
        }
        text
    }
}

/// A number as PMUs' events are written: with `0x`, from 10 on.
fn spelt(number: u64) -> String {
    if number < 10 { number.to_string() } else { format!("{number:#x}") }
}

/// `64Bytes` in its parts.
pub(super) fn scale(text: &str) -> (String, String) {
    let ends = (1..=text.len()).rev().filter(|_| starts_number(text));
    let split =
        { ends }.find(|at| text.get(..*at).is_some_and(|number| number.parse::<f64>().is_ok()));
    let (number, unit) = split.and_then(|at| text.split_at_checked(at)).unwrap_or(("1", text));
    (number.to_owned(), unit.trim().to_owned())
}

fn starts_number(rest: &str) -> bool {
    rest.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(json: &str) -> EventEntry {
        serde_json::from_str(json).unwrap()
    }

    fn event(json: &str) -> TableEvent {
        entry(json).event(&Standard::new()).unwrap().unwrap()
    }

    fn terms(json: &str) -> String {
        event(json).alias.terms
    }

    #[test]
    fn fields_become_terms() {
        let json = r#"{"EventName": "A.B", "EventCode": "0xD1", "UMask": "0x20", "CounterMask": "0x10", "Invert": "1",
            "EdgeDetect": "1", "AnyThread": "0", "SampleAfterValue": "100003", "PEBS": "1", "BriefDescription": "Counts a."}"#;
        let made = event(json);
        assert_eq!(made.name, "a.b");
        assert_eq!(made.alias.terms, "event=0xd1,cmask=0x10,edge=1,inv=1,period=100003,umask=0x20");
        assert_eq!(made.alias.description.unwrap(), "Counts a (Precise event)");
        assert_eq!(
            terms(r#"{"EventName": "x", "EventCode": "0x2", "ExtSel": "1"}"#),
            "event=0x102"
        );
        assert_eq!(terms(r#"{"EventName": "x", "ConfigCode": "0x7ff"}"#), "config=0x7ff");
        assert_eq!(
            terms(r#"{"EventName": "x", "EventidCode": "0x9", "NodeType": "0x10"}"#),
            "eventid=9,type=0x10"
        );
        assert_eq!(
            terms(r#"{"EventName": "x", "EventCode": "5", "Filter": "config1=0x8,a=1"}"#),
            "event=5,config1=0x8,a=1"
        );
        assert_eq!(
            terms(
                r#"{"EventName": "x", "EventCode": "0xB7, 0xBB", "UMask": "1", "MSRIndex": "0x1a6,0x1a7", "MSRValue": "0x10001"}"#
            ),
            "event=0xb7,umask=1,offcore_rsp=0x10001"
        );
        assert_eq!(
            terms(r#"{"EventName": "INST_RETIRED.ANY", "EventCode": "0x0"}"#),
            "event=0xc0,period=2000003"
        );
    }

    #[test]
    fn standard_events_lend_what_is_not_said() {
        let base = entry(
            r#"{"EventName": "L1D_CACHE", "EventCode": "0x4", "BriefDescription": "Accesses"}"#,
        );
        let standard: Standard = base.standard().into_iter().collect();
        let of = |json: &str| entry(json).event(&standard);
        let made = of(r#"{"ArchStdEvent": "L1D_CACHE", "BriefDescription": "Own words"}"#)
            .unwrap()
            .unwrap();
        assert_eq!((&made.name[..], &made.alias.terms[..]), ("l1d_cache", "event=4"));
        assert_eq!(made.alias.description.unwrap(), "Own words");
        let metric = entry(r#"{"MetricName": "Bound", "MetricExpr": "a / b"}"#)
            .standard()
            .into_iter()
            .collect();
        assert_eq!(entry(r#"{"ArchStdEvent": "bound"}"#).event(&metric).unwrap(), None);
        assert!(of(r#"{"ArchStdEvent": "L9"}"#).unwrap_err().contains("no standard event 'L9'"));
        assert_eq!(of(r#"{"MetricName": "ipc", "MetricExpr": "a / b"}"#).unwrap(), None);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let wrong = |json: &str| entry(json).event(&Standard::new()).unwrap_err();
        assert!(wrong(r#"{"EventName": "x", "UMask": "many"}"#).contains("x: UMask is \"many\""));
        assert!(wrong(r#"{"EventName": "x", "MSRIndex": "0x10"}"#).contains("0x10"));
    }

    #[test]
    fn scales_and_units() {
        assert_eq!(scale("64Bytes"), ("64".to_owned(), "Bytes".to_owned()));
        assert_eq!(scale("6.103515625E-5MiB"), ("6.103515625E-5".to_owned(), "MiB".to_owned()));
        assert_eq!(scale("1e-9 s"), ("1e-9".to_owned(), "s".to_owned()));
        assert_eq!(scale("nanoseconds"), ("1".to_owned(), "nanoseconds".to_owned()));
    }
}
