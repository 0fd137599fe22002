//! `--dry-run`: prints the plan to standard output, as text or JSON (`"schema": "recrep-plan/1"`),
//! and opens nothing.
//!
//! The JSON has every field of an attr under its name in `perf_event_open(2)`, and each one-bit
//! field as a separate field. Both fields of a union (`sample_period` and `sample_freq`,
//! `wakeup_events` and `wakeup_watermark`, `config1` and `bp_addr`, `config2` and `bp_len`) are
//! present with the same value. The kernel may still refuse an attr when it is opened.

use std::fmt::Write as _;
use std::io::Write as _;

use recrep_console::units;
use recrep_format::abi::AttrFlags;
use recrep_format::attr::Attr;
use serde_json::{Map, Value, json};

use crate::machine::Machine;
use crate::messages::error::{Error, Result};
use crate::plan::config::Config;
use crate::plan::{self, Plan, PlannedEvent};
use crate::tasks::Target;

/// Prints the plan.
pub fn run(config: &Config) -> Result<()> {
    let machine = match &config.machine {
        Some(given) => given.clone(),
        None => Machine::read()?,
    };
    let plan = plan::plan(config, &machine)?;
    let text = if config.json {
        format!("{:#}\n", json(&plan, config, &machine))
    } else {
        text(&plan, config, &machine)
    };
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        // A reader that closes the pipe early, such as head(1), is no error.
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::io("cannot print the plan", e))
        }
        _ => Ok(()),
    }
}

/// Formats the plan as JSON.
pub fn json(plan: &Plan, config: &Config, machine: &Machine) -> Value {
    let page = machine.page_size as u64;
    let (kind, ids) = target(config);
    let events: Vec<_> =
        plan.events.iter().enumerate().map(|(index, e)| event(index, e, plan, config)).collect();
    json!({
        "schema": "recrep-plan/1",
        "machine": machine,
        "target": { "kind": kind, "ids": ids },
        "cpus": plan.cpus,
        "per_thread": plan.per_thread,
        "events": events,
        "rings": {
            "pages": plan.ring_pages,
            "bytes": plan.ring_pages as u64 * page,
            "overwrite": config.rings.overwrite,
            "aux_pages": plan.aux_pages,
            "aux_bytes": plan.aux_pages as u64 * page,
            "snapshot_bytes": plan.snapshot_size,
        },
        "notes": plan.notes,
    })
}

/// Returns the target's kind, and the pids that counters are opened for: -1 for all processes of a
/// CPU, 0 for the command.
fn target(config: &Config) -> (&'static str, Value) {
    match &config.target {
        Target::Command => ("command", json!([0])),
        Target::System => ("system", json!([-1])),
        Target::Processes(pids) => ("processes", json!(pids)),
        Target::Threads(tids) => ("threads", json!(tids)),
        Target::User(uid) => ("user", json!([uid])),
    }
}

fn event(index: usize, event: &PlannedEvent, plan: &Plan, config: &Config) -> Value {
    let whole_cpus = config.target == Target::System || event.system_wide || event.cgroup.is_some();
    let pids = if whole_cpus { json!([-1]) } else { target(config).1 };
    let cpus = match plan.per_thread && !event.system_wide {
        true => json!([-1]),
        false => json!(event.cpus.as_ref().unwrap_or(&plan.cpus)),
    };
    json!({
        "name": event.full_name(),
        "attr": attr(&event.attr),
        "group_leader": event.leader.unwrap_or(index),
        "pids": pids,
        "cpus": cpus,
        "cgroup": event.cgroup,
        "filter": event.filter,
        "tracks": event.attr.flags.contains(AttrFlags::COMM),
        "aux_area": event.has_aux,
        "max_precise": event.max_precise,
        "weak": event.weak,
    })
}

/// Formats an attr as an object, with the kernel's field names as keys.
pub fn attr(attr: &Attr) -> Value {
    let mut fields = Map::new();
    for (name, value) in [
        ("type", u64::from(attr.kind.0)),
        ("size", attr.size.into()),
        ("config", attr.config),
        ("sample_period", attr.sample_period),
        ("sample_freq", attr.sample_period),
        ("sample_type", attr.sample_type.bits()),
        ("read_format", attr.read_format.bits()),
        ("wakeup_events", attr.wakeup.into()),
        ("wakeup_watermark", attr.wakeup.into()),
        ("bp_type", attr.bp_type.into()),
        ("config1", attr.config1),
        ("bp_addr", attr.config1),
        ("config2", attr.config2),
        ("bp_len", attr.config2),
        ("branch_sample_type", attr.branch_sample_type.bits()),
        ("sample_regs_user", attr.sample_regs_user),
        ("sample_stack_user", attr.sample_stack_user.into()),
        ("sample_regs_intr", attr.sample_regs_intr),
        ("aux_watermark", attr.aux_watermark.into()),
        ("sample_max_stack", attr.sample_max_stack.into()),
        ("aux_sample_size", attr.aux_sample_size.into()),
        ("sig_data", attr.sig_data),
        ("config3", attr.config3),
        ("config4", attr.config4),
        ("precise_ip", attr.flags.precise_ip().into()),
    ] {
        fields.insert(name.to_owned(), value.into());
    }
    fields.insert("clockid".to_owned(), attr.clockid.into());
    for (name, flag) in
        AttrFlags::all().iter_names().filter(|(name, _)| !name.starts_with("PRECISE_IP"))
    {
        fields.insert(name.to_ascii_lowercase(), u8::from(attr.flags.contains(flag)).into());
    }
    Value::Object(fields)
}

/// Formats the plan as text: the notes, then each event with the non-zero fields of its attr.
fn text(plan: &Plan, config: &Config, machine: &Machine) -> String {
    let mut out = String::new();
    for note in &plan.notes {
        line(&mut out, format_args!("note: {note}"));
    }
    for (index, event) in plan.events.iter().enumerate() {
        line(&mut out, format_args!("event {index}: {}", event.full_name()));
        let of = |name: &str, value: &str, out: &mut String| {
            line(out, format_args!("  {name:<20} {value}"));
        };
        let a = &event.attr;
        of("sample_type", &units::bit_names(a.sample_type.iter_names()), &mut out);
        of("read_format", &units::bit_names(a.read_format.iter_names()), &mut out);
        let set = AttrFlags::all() & a.flags;
        of("flags", &units::bit_names(set.iter_names()), &mut out);
        let Value::Object(fields) = attr(a) else { continue };
        let shown =
            ["sample_type", "read_format", "sample_freq", "wakeup_watermark", "bp_addr", "bp_len"];
        for (name, value) in fields.iter().filter(|(name, _)| !shown.contains(&name.as_str())) {
            let is_flag = AttrFlags::from_name(&name.to_ascii_uppercase()).is_some();
            if *value != json!(0) && !is_flag {
                of(name, &value.to_string(), &mut out);
            }
        }
        if let Some(leader) = event.leader {
            of("group leader", &leader.to_string(), &mut out);
        }
        for (name, value) in [("cgroup", &event.cgroup), ("filter", &event.filter)] {
            if let Some(value) = value {
                of(name, value, &mut out);
            }
        }
    }
    let (kind, ids) = target(config);
    line(&mut out, format_args!("target: {kind} {ids}"));
    let cpus = if plan.per_thread {
        "one ring for each thread".to_owned()
    } else {
        format!("on CPUs {}", units::list(&plan.cpus))
    };
    line(
        &mut out,
        format_args!("rings: {} pages of {} bytes, {cpus}", plan.ring_pages, machine.page_size),
    );
    if plan.aux_pages > 0 {
        line(
            &mut out,
            format_args!(
                "AUX areas: {} pages, snapshots of {} bytes",
                plan.aux_pages, plan.snapshot_size
            ),
        );
    }
    out
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{text}");
}
