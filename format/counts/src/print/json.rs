//! JSON (`recrep-stat/1`): a document on one line.

use serde::Serialize;

use crate::metric::Measure;
use crate::place::Place;
use crate::report::{Quantity, Report, Row};
use crate::spread::Spread;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    target: &'a str,
    runs: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval_end: Option<f64>,
    seconds: Seconds,
    counts: Vec<CountOut<'a>>,
    /// Metrics of event tables; with `--metric-only` ratios too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    metrics: Vec<MeasureOut<'a>>,
}

#[derive(Serialize)]
struct MeasureOut<'a> {
    name: &'a str,
    /// Value in the unit; null if it is unknown.
    value: Option<f64>,
    unit: &'a str,
    /// Index of an event that it is computed from.
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cgroup: Option<&'a str>,
    #[serde(flatten)]
    place: PlaceOut<'a>,
    /// Condition under which the value is remarkable.
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<ThresholdOut<'a>>,
}

#[derive(Serialize)]
struct ThresholdOut<'a> {
    condition: &'a str,
    /// Whether it is met; null if that is unknown.
    met: Option<bool>,
}

/// Times, in seconds.
#[derive(Serialize)]
struct Seconds {
    elapsed: Mean,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<Mean>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sys: Option<Mean>,
}

/// A mean over runs, with its spread if there are several.
#[derive(Serialize)]
struct Mean {
    mean: f64,
    #[serde(flatten)]
    spread: Option<SpreadOut>,
}

#[derive(Serialize)]
struct SpreadOut {
    /// Standard deviation of a single run.
    deviation: f64,
    /// Standard error of the mean.
    error: f64,
    /// Ends of the interval that contains the mean with a probability of 95 %.
    low: f64,
    high: f64,
}

#[derive(Serialize)]
struct CountOut<'a> {
    /// Index of the event.
    index: usize,
    event: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cgroup: Option<&'a str>,
    #[serde(flatten)]
    place: PlaceOut<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<usize>,
    status: &'static str,
    /// Value in the unit; null if nothing was counted.
    value: Option<f64>,
    unit: &'a str,
    /// Value before it is multiplied by the factor of the unit.
    count: Option<f64>,
    enabled_ns: u64,
    running_ns: u64,
    percent_running: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    spread: Option<SpreadOut>,
    metrics: Vec<MetricOut<'a>>,
}

#[derive(Default, Serialize)]
struct PlaceOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    socket: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    die: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    core: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comm: Option<&'a str>,
}

#[derive(Serialize)]
struct MetricOut<'a> {
    name: &'a str,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
}

/// Returns the document; with `metrics_only` without counts.
pub(super) fn text(report: &Report, metrics_only: bool) -> serde_json::Result<String> {
    let ratios = report.rows.iter().filter(|_| metrics_only).flat_map(|row| ratios(report, row));
    let metrics = ratios.chain(report.metrics.iter().map(measure)).collect();
    let rows = report.rows.iter().filter(|_| !metrics_only);
    let cpu = report.cpu_time;
    serde_json::to_string(&Document {
        schema: "recrep-stat/1",
        target: &report.target,
        runs: report.elapsed.runs().max(1),
        interval_end: report.interval_end.map(|end| end.as_secs_f64()),
        seconds: Seconds {
            elapsed: mean(report.elapsed),
            user: cpu.map(|cpu| mean(cpu.user)),
            sys: cpu.map(|cpu| mean(cpu.sys)),
        },
        counts: rows.filter_map(|row| count(report, row)).collect(),
        metrics,
    })
}

fn measure(measure: &Measure) -> MeasureOut<'_> {
    MeasureOut {
        name: &measure.name,
        value: measure.value,
        unit: &measure.unit,
        index: measure.event,
        cgroup: measure.cgroup.as_deref(),
        place: place(&measure.place),
        threshold: measure
            .threshold
            .as_ref()
            .map(|it| ThresholdOut { condition: &it.condition, met: it.met }),
    }
}

/// Returns the ratios of a row, as metrics.
fn ratios<'a>(report: &'a Report, row: &'a Row) -> impl Iterator<Item = MeasureOut<'a>> {
    row.metrics.iter().map(|metric| MeasureOut {
        name: &metric.name,
        value: Some(metric.value),
        unit: if metric.quantity == Quantity::Percent { "%" } else { "" },
        index: Some(row.event),
        cgroup: report.events.get(row.event).and_then(|event| event.cgroup.as_deref()),
        place: place(&row.place),
        threshold: None,
    })
}

fn count<'a>(report: &'a Report, row: &'a Row) -> Option<CountOut<'a>> {
    let event = report.events.get(row.event)?;
    let counted = row.is_counted();
    let metrics = row.metrics.iter().map(|metric| MetricOut {
        name: &metric.name,
        value: metric.value,
        unit: (metric.quantity == Quantity::Percent).then_some("%"),
    });
    Some(CountOut {
        index: row.event,
        event: &event.name,
        cgroup: event.cgroup.as_deref(),
        place: place(&row.place),
        cpus: (row.cpus > 0).then_some(row.cpus),
        status: match (counted, event.supported) {
            (true, _) => "counted",
            (false, true) => "not counted",
            (false, false) => "not supported",
        },
        value: counted.then_some(row.value * event.scale),
        unit: &event.unit,
        count: counted.then_some(row.value),
        enabled_ns: row.enabled,
        running_ns: row.running,
        percent_running: row.percent_running(),
        spread: row.spread.and_then(|spread| self::spread(spread.scaled(event.scale))),
        metrics: metrics.collect(),
    })
}

fn place(place: &Place) -> PlaceOut<'_> {
    let none = PlaceOut::default();
    match place {
        Place::Whole => none,
        Place::Node(node) => PlaceOut { node: Some(*node), ..none },
        Place::Socket(socket) => PlaceOut { socket: Some(*socket), ..none },
        Place::Die(socket, die) => PlaceOut { socket: Some(*socket), die: Some(*die), ..none },
        Place::Core(socket, die, core) => {
            PlaceOut { socket: Some(*socket), die: Some(*die), core: Some(*core), ..none }
        }
        Place::Cpu(cpu) => PlaceOut { cpu: Some(*cpu), ..none },
        Place::Thread(thread) => {
            PlaceOut { tid: Some(thread.tid), comm: Some(&thread.comm), ..none }
        }
    }
}

fn mean(spread: Spread) -> Mean {
    Mean { mean: spread.mean(), spread: self::spread(spread) }
}

fn spread(spread: Spread) -> Option<SpreadOut> {
    let (low, high) = spread.interval()?;
    Some(SpreadOut { deviation: spread.deviation(), error: spread.error(), low, high })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::Format;
    use super::super::samples::{interval, measured, metrics_only, printed, report, row, two_runs};
    use super::*;

    fn parsed(report: &Report) -> Value {
        let text = printed(Format::Json, report);
        assert_eq!(text.lines().count(), 1);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_whole_measurement() {
        let found = parsed(&report());
        let seconds =
            json!({"elapsed": {"mean": 0.004}, "user": {"mean": 0.002}, "sys": {"mean": 0.001}});
        assert_eq!(found["seconds"], seconds);
        assert_eq!((&found["schema"], &found["runs"]), (&json!("recrep-stat/1"), &json!(1)));
        let clock = json!({
            "index": 0, "event": "task-clock", "cpus": 2, "status": "counted", "value": 3.0,
            "unit": "msec", "count": 3e6, "enabled_ns": 3_000_000, "running_ns": 3_000_000,
            "percent_running": 100.0, "metrics": [{"name": "CPUs utilized", "value": 0.75}]
        });
        assert_eq!(found["counts"][0], clock);
        assert_eq!(found["counts"][1]["metrics"][1]["unit"], "%");
        let missing = [&found["counts"][2], &found["counts"][3]];
        assert_eq!(missing.map(|count| &count["value"]), [&Value::Null; 2]);
        assert_eq!(missing.map(|count| &count["status"]), ["not supported", "not counted"]);
    }

    #[test]
    fn runs_intervals_and_places() {
        let runs = parsed(&two_runs());
        assert_eq!(runs["runs"], 2);
        assert!((runs["counts"][0]["spread"]["error"].as_f64().unwrap() - 1.0).abs() < 1e-9);
        let found = parsed(&interval());
        assert_eq!(found["interval_end"], 1.5);
        assert_eq!(
            (&found["counts"][0]["tid"], &found["counts"][0]["comm"]),
            (&json!(7), &json!("sh"))
        );
        let mut report = report();
        report.rows = vec![row(3, Place::Core(1, 2, 3), 5.0, 1)];
        let core = &parsed(&report)["counts"][0];
        assert_eq!([&core["socket"], &core["die"], &core["core"]], [1, 2, 3]);
    }

    #[test]
    fn metrics_of_tables() {
        assert_eq!(parsed(&report()).get("metrics"), None);
        let found = parsed(&measured());
        let stalled = json!({
            "name": "stalled", "value": 45.678, "unit": "%", "index": 1,
            "threshold": {"condition": "stalled > 0.2", "met": true}
        });
        assert_eq!(found["metrics"][1], stalled);
        assert_eq!(found["metrics"][2]["value"], Value::Null);
        assert_eq!(found["counts"].as_array().unwrap().len(), 4);
        let only: Value = serde_json::from_str(&metrics_only(Format::Json, &measured())).unwrap();
        assert_eq!(only["counts"], json!([]));
        let names = only["metrics"].as_array().unwrap().iter().map(|metric| &metric["name"]);
        let expected = ["CPUs utilized", "/sec", "of all", "constant", "stalled", "latency"];
        assert_eq!(names.collect::<Vec<_>>(), expected);
    }
}
