//! One event's attr, by perf's rules.
//!
//! What all events have first, then what samples carry, then what the event's own terms say, which outdo the flags.

use recrep_format::abi::{AttrFlags, BranchSampleType, EventType, ReadFormat, SampleType};
use recrep_format::attr::Attr;

use super::context::Context;
use super::event::{ATTR_SIZE, ATTR_SIZE_CONFIG3};
use super::group::{self, Group};
use super::notes::Notes;
use crate::event::EventSpec;
use crate::event::sampling::Callchain;
use crate::machine::registers::{Arch, Of};
use crate::messages::error::{Error, Result};
use crate::plan::config::Only;

use AttrFlags as F;
use SampleType as S;

/// The attr of an event that was asked for.
pub(super) fn of(spec: &EventSpec, group: Group, context: &Context<'_>, notes: &mut Notes) -> Result<Attr> {
    refuse_terms(spec)?;
    let mut attr = base(spec, group, context);
    rate(&mut attr, spec, context);
    let plain = plain(spec);
    what_samples_carry(&mut attr, context, !plain);
    if !plain {
        callchain(&mut attr, spec, context, notes);
        registers(&mut attr, context, notes);
        branches(&mut attr, spec, context);
    }
    attr.flags.set(F::DISABLED, group.leads);
    attr.flags.set(F::ENABLE_ON_EXEC, group.leads && context.starts_on_exec());
    only(&mut attr, context);
    terms(&mut attr, spec, context, notes)?;
    if let Some(wanted) = context.config.sample.period {
        attr.sample_type.set(S::PERIOD, wanted);
    }
    Ok(attr)
}

/// The attr of a dummy that rec adds for the side-band.
pub(super) fn of_dummy(spec: &EventSpec, context: &Context<'_>) -> Attr {
    let mut attr = base(spec, Group { members: 1, leads: true }, context);
    // Not in frequency mode, which would have the kernel run timers for it.
    context.rates.of(Some(1)).set(&mut attr);
    attr.sample_type.set(S::PERIOD, attr.flags.contains(F::FREQ));
    if context.config.sample.none {
        attr.sample_period = 0;
    }
    what_samples_carry(&mut attr, context, false);
    // User-only, so that everyone may open it.
    attr.flags |= F::EXCLUDE_KERNEL | F::EXCLUDE_HV | F::EXCLUDE_GUEST;
    only(&mut attr, context);
    attr.sample_type.set(S::PERIOD, context.config.sample.period.unwrap_or(attr.sample_type.contains(S::PERIOD)));
    attr
}

/// `--all-kernel`, `--all-user`.
fn only(attr: &mut Attr, context: &Context<'_>) {
    match context.config.only {
        Some(Only::User) => attr.flags = (attr.flags - F::EXCLUDE_USER) | F::EXCLUDE_KERNEL,
        Some(Only::Kernel) => attr.flags = (attr.flags - F::EXCLUDE_KERNEL) | F::EXCLUDE_USER,
        None => {}
    }
}

/// Whether samples of it are never looked at, so that they need no callchains and the like.
fn plain(spec: &EventSpec) -> bool {
    spec.pmu.as_ref().is_some_and(|pmu| pmu.has_aux)
}

/// What all attrs have: a stream in which each record says which event it is of, when, where and whose it is.
fn base(spec: &EventSpec, group: Group, context: &Context<'_>) -> Attr {
    let config = context.config;
    let mut attr = Attr {
        size: if spec.config3 == 0 { ATTR_SIZE } else { ATTR_SIZE_CONFIG3 },
        kind: spec.kind,
        config: spec.config,
        config1: spec.config1,
        config2: spec.config2,
        config3: spec.config3,
        bp_type: spec.bp_type,
        sample_type: S::IDENTIFIER | S::IP | S::TID | S::TIME | S::CPU,
        read_format: ReadFormat::ID | ReadFormat::LOST,
        flags: spec.modifiers.flags() | F::SAMPLE_ID_ALL,
        ..Attr::default()
    };
    attr.flags.set(F::INHERIT, inherits(context));
    attr.flags.set(F::WRITE_BACKWARD, config.rings.overwrite);
    attr.sample_type.set(S::RAW | S::PERIOD, spec.raw);
    if group::samples_for_all(spec) {
        attr.sample_type |= S::READ;
        if group.members > 1 {
            attr.read_format |= ReadFormat::GROUP;
            attr.flags -= F::INHERIT;
        }
    }
    let times = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
    attr.read_format.set(times, config.sample.stat || config.sample.running_time);
    attr.flags.set(F::INHERIT_STAT, config.sample.stat);
    if let Some(clock) = config.clock {
        attr.flags |= F::USE_CLOCKID;
        attr.clockid = clock;
    }
    attr
}

/// Whether threads and children that come are counted too.
pub(super) fn inherits(context: &Context<'_>) -> bool {
    !context.config.no_inherit && !context.config.per_thread
}

/// What is counted one by one has a period of 1, where nothing else is asked for.
fn default_period(spec: &EventSpec) -> Option<u64> {
    let spe = spec.pmu.as_ref().is_some_and(|pmu| pmu.name.starts_with("arm_spe"));
    // What Arm SPE samples are operations, each of which would be too many.
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

/// The fields of samples that flags ask for; `full`: also those that are about what was sampled.
fn what_samples_carry(attr: &mut Attr, context: &Context<'_>, full: bool) {
    let asked = &context.config.sample;
    let data = asked.data || matches!(asked.callchain, Some(Callchain::Dwarf { .. }));
    for (bits, wanted) in [
        (S::ADDR | S::DATA_SRC, data),
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

/// x86 has three weights in one field.
fn weight(arch: Arch) -> SampleType {
    if arch == Arch::X86_64 { S::WEIGHT_STRUCT } else { S::WEIGHT }
}

/// The callchain that flags ask for, or what the event's terms say of it.
fn callchain(attr: &mut Attr, spec: &EventSpec, context: &Context<'_>, notes: &mut Notes) {
    let asked = &context.config.sample;
    let own = spec.terms.callchain.or(spec.terms.max_stack.map(|_| Some(Callchain::Fp)));
    // The kernel cannot take page faults where it traces its own functions.
    let function = spec.tracepoint.as_deref() == Some("ftrace:function");
    attr.flags.set(F::EXCLUDE_CALLCHAIN_USER, function);
    let Some(chain) = own.unwrap_or(asked.callchain) else { return };
    attr.sample_type |= S::CALLCHAIN;
    let depth = spec.terms.max_stack.or(if own.is_none() { asked.max_stack } else { None });
    attr.sample_max_stack = depth.map_or(0, |depth| within(depth, context.machine.max_stack, notes));
    attr.flags.set(F::EXCLUDE_CALLCHAIN_USER, function || asked.callchain_only == Some(Only::Kernel));
    attr.flags.set(F::EXCLUDE_CALLCHAIN_KERNEL, asked.callchain_only == Some(Only::User));
    let chain = match (chain, spec.terms.stack_size) {
        (Callchain::Dwarf { .. }, Some(stack_size)) => Callchain::Dwarf { stack_size },
        _ => chain,
    };
    match chain {
        Callchain::Fp => {}
        Callchain::Dwarf { .. } if function => {
            notes.add(format!(
                "callchains of {} by frame pointers: dwarf needs the user's stack, which it cannot have",
                spec.name
            ));
        }
        Callchain::Dwarf { stack_size } => {
            // The kernel gives its own part; the user's is found afterwards.
            attr.flags |= F::EXCLUDE_CALLCHAIN_USER;
            attr.sample_type |= S::REGS_USER | S::STACK_USER | S::ADDR | S::DATA_SRC;
            attr.sample_stack_user = stack_size;
            attr.sample_regs_user = context.machine.arch.all(Of::User, context.machine.sve);
        }
        Callchain::Lbr if asked.branches.is_some() => {
            notes.add("callchains by frame pointers, not lbr: the branch records are taken by -b or -j".to_owned());
        }
        Callchain::Lbr if attr.flags.contains(F::EXCLUDE_USER) || asked_kernel_only(context) => {
            notes.add(format!("callchains of {} by frame pointers: lbr knows user space only", spec.name));
        }
        Callchain::Lbr => {
            use BranchSampleType as B;
            attr.sample_type |= S::BRANCH_STACK;
            attr.branch_sample_type = B::USER | B::CALL_STACK | B::NO_CYCLES | B::NO_FLAGS | B::HW_INDEX;
        }
    }
}

fn asked_kernel_only(context: &Context<'_>) -> bool {
    context.config.only == Some(Only::Kernel)
}

/// A depth within what the kernel allows.
fn within(depth: u16, most: u16, notes: &mut Notes) -> u16 {
    if depth > most {
        notes.add(format!(
            "callchains of {most} frames instead of {depth}, which is all that kernel.perf_event_max_stack allows"
        ));
    }
    depth.min(most)
}

fn registers(attr: &mut Attr, context: &Context<'_>, notes: &mut Notes) {
    let (asked, arch) = (&context.config.sample, context.machine.arch);
    let dummy = attr.kind == EventType::SOFTWARE && attr.config == recrep_format::abi::SwEvent::DUMMY.0;
    if dummy {
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
                "sampling the instruction and stack pointers too: no stack can be unwound without them".to_owned(),
            );
        }
        attr.sample_regs_user = if unwinds { mask | least } else { mask };
        attr.sample_type |= S::REGS_USER;
    }
    if arch == Arch::Aarch64 && asked.callchain == Some(Callchain::Fp) {
        // The caller of a leaf function is in the link register only.
        attr.sample_regs_user |= Arch::LINK_REGISTER;
        attr.sample_type |= S::REGS_USER;
    }
}

fn branches(attr: &mut Attr, spec: &EventSpec, context: &Context<'_>) {
    if let Some(filters) = context.config.sample.branches {
        // Nothing that counts nothing has branches.
        attr.sample_type.set(S::BRANCH_STACK, !spec.is_software(recrep_format::abi::SwEvent::DUMMY.0));
        attr.branch_sample_type = filters;
    }
}

/// What the event's terms say beside its callchain.
fn terms(attr: &mut Attr, spec: &EventSpec, context: &Context<'_>, notes: &mut Notes) -> Result<()> {
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

/// Terms that perf record takes and that rec cannot do.
fn refuse_terms(spec: &EventSpec) -> Result<()> {
    if spec.terms.time == Some(false) {
        return Err(Error::Usage(format!(
            "'{}': time=0 is not for rec, whose samples always have their time; leave it out",
            spec.name
        )));
    }
    Ok(())
}
