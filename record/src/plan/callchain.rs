//! Callchains of an event's samples: how they are found, and the fields for that.

use recrep_format::abi::{AttrFlags as F, BranchSampleType, SampleType as S, SwEvent};
use recrep_format::attr::Attr;
use recrep_unwind::Machine;

use super::context::Context;
use super::notes::Notes;
use crate::event::EventSpec;
use crate::event::sampling::Callchain;
use crate::machine::registers::{Arch, Of};
use crate::messages::error::{Error, Result};
use crate::plan::config::Only;

/// Sets the callchain that the event's terms or flags request.
pub(super) fn set(
    attr: &mut Attr,
    spec: &EventSpec,
    context: &Context<'_>,
    notes: &mut Notes,
) -> Result<()> {
    let asked = &context.config.sample;
    let own = spec.terms.callchain.or(spec.terms.max_stack.map(|_| Some(Callchain::Fp)));
    let function = is_function(spec);
    attr.flags.set(F::EXCLUDE_CALLCHAIN_USER, function);
    let Some(chain) = own.unwrap_or(asked.callchain) else { return Ok(()) };
    attr.sample_type |= S::CALLCHAIN;
    let depth = spec.terms.max_stack.or(if own.is_none() { asked.max_stack } else { None });
    attr.flags
        .set(F::EXCLUDE_CALLCHAIN_USER, function || asked.callchain_only == Some(Only::Kernel));
    attr.flags.set(F::EXCLUDE_CALLCHAIN_KERNEL, asked.callchain_only == Some(Only::User));
    let chain = choose(chain, attr, spec, context, notes)?;
    let most = context.machine.max_stack;
    attr.sample_max_stack = match (chain, depth) {
        (_, None) => 0,
        // rec follows as many frames as are asked for.
        (Callchain::Unwind { .. }, Some(depth)) => depth.min(most),
        (_, Some(depth)) => limited(depth, most, notes),
    };
    let chain = match (chain, spec.terms.stack_size) {
        (Callchain::Dwarf { .. }, Some(stack_size)) => Callchain::Dwarf { stack_size },
        _ => chain,
    };
    set_fields(attr, chain, spec, context, notes);
    Ok(())
}

/// Sets the fields of a kind of callchains; leaves it at frame pointers, with a note, if an event
/// cannot have others.
fn set_fields(
    attr: &mut Attr,
    chain: Callchain,
    spec: &EventSpec,
    context: &Context<'_>,
    notes: &mut Notes,
) {
    match chain {
        Callchain::Fp | Callchain::Best => {}
        Callchain::Dwarf { .. } | Callchain::Unwind { .. } if is_function(spec) => {
            notes.add(format!(
                "callchains of {} use frame pointers: its samples cannot have the user stack",
                spec.name
            ));
        }
        Callchain::Unwind { stack_size } => {
            // The kernel's user part says what is beyond the copy; rec writes what it unwound
            // in its place.
            attr.sample_type |= S::REGS_USER | S::STACK_USER;
            attr.sample_stack_user = stack_size.unwrap_or(0);
            attr.sample_regs_user = registers(context.machine.arch);
        }
        Callchain::Dwarf { stack_size } => {
            // The kernel records its own part of the callchain; rep unwinds the user part.
            attr.flags |= F::EXCLUDE_CALLCHAIN_USER;
            attr.sample_type |= S::REGS_USER | S::STACK_USER | S::ADDR | S::DATA_SRC;
            attr.sample_stack_user = stack_size;
            attr.sample_regs_user = context.machine.arch.all(Of::User, context.machine.sve);
        }
        Callchain::Lbr if context.config.sample.branches.is_some() => {
            notes.add(
                "callchains use frame pointers, not lbr: -b or -j uses the branch records"
                    .to_owned(),
            );
        }
        Callchain::Lbr if attr.flags.contains(F::EXCLUDE_USER) || asked_kernel_only(context) => {
            notes.add(format!(
                "callchains of {} use frame pointers: lbr works in user space only",
                spec.name
            ));
        }
        Callchain::Lbr => {
            use BranchSampleType as B;
            attr.sample_type |= S::BRANCH_STACK;
            attr.branch_sample_type =
                B::USER | B::CALL_STACK | B::NO_CYCLES | B::NO_FLAGS | B::HW_INDEX;
        }
    }
}

/// Returns whether the kernel traces its own functions for the event, and so cannot handle page
/// faults of the user stack.
fn is_function(spec: &EventSpec) -> bool {
    spec.tracepoint.as_deref() == Some("ftrace:function")
}

fn asked_kernel_only(context: &Context<'_>) -> bool {
    context.config.only == Some(Only::Kernel)
}

/// Limits a depth to the kernel's maximum, with a note.
fn limited(depth: u16, most: u16, notes: &mut Notes) -> u16 {
    if depth > most {
        notes.add(format!(
            "callchains have at most {most} frames instead of {depth}, because of \
             kernel.perf_event_max_stack"
        ));
    }
    depth.min(most)
}

/// Returns how an event's callchains are found: the kernel may have to do what would be unwound.
fn choose(
    chain: Callchain,
    attr: &Attr,
    spec: &EventSpec,
    context: &Context<'_>,
    notes: &mut Notes,
) -> Result<Callchain> {
    let sample = &context.config.sample;
    let by_choice = match chain {
        Callchain::Best => false,
        Callchain::Unwind { .. } => true,
        other => return Ok(other),
    };
    // There is nothing to unwind, so no note is due.
    let is_idle = sample.none || spec.is_software(SwEvent::DUMMY.0);
    if is_idle || sample.callchain_only == Some(Only::Kernel) {
        return Ok(Callchain::Fp);
    }
    let is_overwritten = spec.terms.overwrite.unwrap_or(attr.flags.contains(F::WRITE_BACKWARD));
    let why = if machine(context.machine.arch).is_none() {
        "rec does not unwind stacks of this architecture"
    } else if sample.regs_user.is_some() {
        "the registers of --user-regs stay in the file"
    } else if by_choice {
        return Ok(chain);
    } else if is_overwritten {
        "copies of stacks would leave few samples in overwritten rings"
    } else {
        return Ok(Callchain::Unwind { stack_size: None });
    };
    if by_choice {
        return Err(Error::Usage(format!(
            "--call-graph unwind: {why}; use --call-graph dwarf or fp"
        )));
    }
    notes.add(format!("callchains of {} use frame pointers: {why}", spec.name));
    Ok(Callchain::Fp)
}

/// Returns the machine whose stacks are unwound on this architecture.
fn machine(arch: Arch) -> Option<Machine> {
    match arch {
        Arch::X86_64 => Some(Machine::X86_64),
        Arch::Aarch64 => Some(Machine::Aarch64),
        Arch::Other => None,
    }
}

/// Returns the registers that unwinding needs.
fn registers(arch: Arch) -> u64 {
    machine(arch).map_or(0, Machine::sampled_registers)
}
