//! The attr of one event, by perf's rules.
//!
//! First the fields common to all events, then the contents of samples, then the event's own terms,
//! which override flags.

use recrep_format::abi::{AttrFlags, EventType, ReadFormat, SampleType, SwEvent};
use recrep_format::attr::Attr;

use super::callchain;
use super::context::Context;
use super::event::{ATTR_SIZE, ATTR_SIZE_CONFIG3, ATTR_SIZE_CONFIG4};
use super::group::{self, Group};
use super::notes::Notes;
use crate::event::sampling::Callchain;
use crate::event::{EventSpec, TOOL_KIND};
use crate::machine::registers::Arch;
use crate::messages::error::{Error, Result};
use crate::plan::config::Only;

use AttrFlags as F;
use SampleType as S;

/// Returns the attr of an event that the user asks for.
pub(super) fn from_spec(
    spec: &EventSpec,
    group: Group,
    context: &Context<'_>,
    notes: &mut Notes,
) -> Result<Attr> {
    refuse_terms(spec)?;
    let mut attr = base(spec, group, context);
    rate(&mut attr, spec, context);
    let plain = plain(spec);
    what_samples_carry(&mut attr, context, !plain);
    if !plain {
        callchain::set(&mut attr, spec, context, notes)?;
        registers(&mut attr, spec, context, notes);
        branches(&mut attr, spec, context);
    }
    attr.flags.set(F::DISABLED, group.leads);
    attr.flags.set(F::ENABLE_ON_EXEC, group.leads && context.starts_on_exec);
    only(&mut attr, context.config.only);
    terms(&mut attr, spec, context, notes)?;
    if let Some(wanted) = context.config.sample.period {
        attr.sample_type.set(S::PERIOD, wanted);
    }
    Ok(attr)
}

/// Returns the attr of the dummies that rec adds for the side-band.
pub(super) fn of_dummy(context: &Context<'_>) -> Attr {
    let spec = EventSpec::numbered("dummy", EventType::SOFTWARE, SwEvent::DUMMY.0);
    let mut attr = base(&spec, Group { members: 1, leads: true }, context);
    // With a period, as in frequency mode the kernel would run timers for it.
    context.rates.of(Some(1)).set(&mut attr);
    attr.sample_type.set(S::PERIOD, attr.flags.contains(F::FREQ));
    if context.config.sample.none {
        attr.sample_period = 0;
    }
    what_samples_carry(&mut attr, context, false);
    // User space only, so that any user may open it.
    attr.flags |= F::EXCLUDE_KERNEL | F::EXCLUDE_HV | F::EXCLUDE_GUEST;
    only(&mut attr, context.config.only);
    attr.sample_type.set(
        S::PERIOD,
        context.config.sample.period.unwrap_or(attr.sample_type.contains(S::PERIOD)),
    );
    // Side-band records must not be overwritten.
    attr.flags -= F::WRITE_BACKWARD;
    attr
}

/// Applies `--all-kernel` and `--all-user`.
pub(super) fn only(attr: &mut Attr, only: Option<Only>) {
    match only {
        Some(Only::User) => attr.flags = (attr.flags - F::EXCLUDE_USER) | F::EXCLUDE_KERNEL,
        Some(Only::Kernel) => attr.flags = (attr.flags - F::EXCLUDE_KERNEL) | F::EXCLUDE_USER,
        None => {}
    }
}

/// Returns whether the event's samples are not analyzed, so that they need no callchains and
/// similar fields.
fn plain(spec: &EventSpec) -> bool {
    spec.pmu.as_ref().is_some_and(|pmu| pmu.has_aux)
}

/// Returns the fields that say what is counted.
pub(super) fn counted(spec: &EventSpec) -> Attr {
    Attr {
        size: match (spec.config3, spec.config4) {
            (0, 0) => ATTR_SIZE,
            (_, 0) => ATTR_SIZE_CONFIG3,
            _ => ATTR_SIZE_CONFIG4,
        },
        kind: spec.kind,
        config: spec.config,
        config1: spec.config1,
        config2: spec.config2,
        config3: spec.config3,
        config4: spec.config4,
        bp_type: spec.bp_type,
        flags: spec.modifiers.flags(),
        ..Attr::default()
    }
}

/// Returns the fields common to all attrs: each record has its event's id, time, CPU, pid and tid.
fn base(spec: &EventSpec, group: Group, context: &Context<'_>) -> Attr {
    let config = context.config;
    let event = counted(spec);
    let mut attr = Attr {
        sample_type: S::IDENTIFIER | S::IP | S::TID | S::TIME | S::CPU,
        read_format: ReadFormat::ID | ReadFormat::LOST,
        flags: event.flags | F::SAMPLE_ID_ALL,
        ..event
    };
    attr.flags.set(F::INHERIT, context.inherits);
    attr.flags.set(F::WRITE_BACKWARD, config.rings.overwrite);
    attr.sample_type.set(S::RAW | S::PERIOD, spec.raw);
    if group::samples_for_all(spec) {
        attr.sample_type |= S::READ;
        if group.members > 1 {
            attr.read_format |= ReadFormat::GROUP;
        }
    }
    let times = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
    // Counts without samples are printed, scaled by these.
    let is_timed = config.sample.stat || config.sample.running_time || config.sample.none;
    attr.read_format.set(times, is_timed);
    attr.flags.set(F::INHERIT_STAT, config.sample.stat);
    if let Some(clock) = config.clock {
        attr.flags |= F::USE_CLOCKID;
        attr.clockid = clock;
    }
    attr
}

/// Returns the default period of events that are sampled one by one.
fn default_period(spec: &EventSpec) -> Option<u64> {
    let spe = spec.pmu.as_ref().is_some_and(|pmu| pmu.name.starts_with("arm_spe"));
    // Arm SPE samples operations, which are too frequent for a period of 1.
    let traced = plain(spec).then_some(if spe { 4096 } else { 1 });
    spec.default_period.or(traced)
}

fn rate(attr: &mut Attr, spec: &EventSpec, context: &Context<'_>) {
    context.rates.of(default_period(spec)).set(attr);
    if attr.flags.contains(F::FREQ) {
        attr.sample_type |= S::PERIOD;
    }
    if context.config.sample.none {
        attr.sample_period = 0;
    }
}

/// Sets the fields of samples that flags request; with `full`, also those that describe the sampled
/// code or data.
fn what_samples_carry(attr: &mut Attr, context: &Context<'_>, full: bool) {
    let asked = &context.config.sample;
    let data = asked.data || matches!(asked.callchain, Some(Callchain::Dwarf { .. }));
    for (bits, wanted) in [
        (S::ADDR | S::DATA_SRC, data),
        (S::DATA_SRC, asked.memory_info),
        (S::PHYS_ADDR, asked.phys_data),
        (S::RAW, asked.raw && full),
        (weight(context.machine.arch), asked.weight),
        (S::TRANSACTION, asked.transaction),
        (S::DATA_PAGE_SIZE, asked.data_page_size),
        (S::CODE_PAGE_SIZE, asked.code_page_size),
        (S::CGROUP, context.config.side_band.cgroups),
    ] {
        if wanted {
            attr.sample_type |= bits;
        }
    }
}

/// Returns the bit for weights. x86 has three weights in one field.
fn weight(arch: Arch) -> SampleType {
    if arch == Arch::X86_64 { S::WEIGHT_STRUCT } else { S::WEIGHT }
}

fn registers(attr: &mut Attr, spec: &EventSpec, context: &Context<'_>, notes: &mut Notes) {
    let (asked, arch) = (&context.config.sample, context.machine.arch);
    if attr.kind == EventType::SOFTWARE && attr.config == SwEvent::DUMMY.0 {
        return;
    }
    if let Some(mask) = asked.regs_intr {
        attr.sample_regs_intr = mask;
        attr.sample_type |= S::REGS_INTR;
    }
    let unwinds = attr.sample_type.contains(S::STACK_USER);
    if let Some(mask) = asked.regs_user {
        let least = arch.least_to_unwind();
        if unwinds && mask & least != least {
            notes.add(
                "sampling the instruction and stack pointers too: unwinding requires them"
                    .to_owned(),
            );
        }
        attr.sample_regs_user = if unwinds { mask | least } else { mask };
        attr.sample_type |= S::REGS_USER;
    }
    let calls = spec.tracepoint.as_deref().is_some_and(is_system_calls);
    if calls && asked.regs_user.is_none() && !unwinds && arch.of_system_calls() != 0 {
        attr.sample_regs_user |= arch.of_system_calls();
        attr.sample_type |= S::REGS_USER;
    }
    let by_pointers = matches!(asked.callchain, Some(Callchain::Fp | Callchain::Best)) && !unwinds;
    if arch == Arch::Aarch64 && by_pointers {
        // In a leaf function, only the link register has the caller.
        attr.sample_regs_user |= Arch::LINK_REGISTER;
        attr.sample_type |= S::REGS_USER;
    }
}

/// Returns whether a tracepoint is one of system calls, whose numbers are of two tables.
fn is_system_calls(tracepoint: &str) -> bool {
    tracepoint.starts_with("raw_syscalls:") || tracepoint.starts_with("syscalls:")
}

fn branches(attr: &mut Attr, spec: &EventSpec, context: &Context<'_>) {
    if let Some(filters) = context.config.sample.branches {
        // Dummies count nothing, so they have no branches.
        attr.sample_type.set(S::BRANCH_STACK, !spec.is_software(SwEvent::DUMMY.0));
        attr.branch_sample_type = filters;
    }
}

/// Applies the event's terms, except for its callchain.
fn terms(
    attr: &mut Attr,
    spec: &EventSpec,
    context: &Context<'_>,
    notes: &mut Notes,
) -> Result<()> {
    let terms = &spec.terms;
    if let Some(rate) = terms.rate {
        context.rates.sampling(rate, notes)?.set(attr);
        attr.sample_type.set(S::PERIOD, attr.flags.contains(F::FREQ));
    }
    if let Some(filters) = terms.branches {
        attr.sample_type.set(S::BRANCH_STACK, !filters.is_empty());
        attr.branch_sample_type = filters;
    }
    if let Some(inherit) = terms.inherit {
        attr.flags.set(F::INHERIT, inherit);
    }
    if let Some(overwrite) = terms.overwrite {
        attr.flags.set(F::WRITE_BACKWARD, overwrite);
    }
    attr.flags.set(F::AUX_OUTPUT, terms.aux_output);
    Ok(())
}

/// Refuses terms of perf record that rec does not support.
fn refuse_terms(spec: &EventSpec) -> Result<()> {
    if spec.kind == TOOL_KIND {
        return Err(Error::Usage(format!(
            "'{0}' is a time that rec stat measures, and cannot be sampled: rec stat -e {0}",
            spec.name
        )));
    }
    if spec.terms.time == Some(false) {
        return Err(Error::Usage(format!(
            "'{}': rec does not support time=0, as its samples always have their time; leave it \
             out",
            spec.name
        )));
    }
    Ok(())
}
