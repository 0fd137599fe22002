//! Values of DWARF expressions in rules: those of procedure linkage tables, of signal trampolines,
//! and of code written by hand.

use gimli::{
    Encoding, EndianSlice, Evaluation, EvaluationResult, Expression, Location, RunTimeEndian, Value,
};

use super::machine::{Machine, Registers};
use super::memory::{Missing, Readable};

/// Greatest number of operations of an expression; those of real modules have fewer than 20.
const MOST_OPERATIONS: u32 = 200;

/// Returns the value of an expression that begins with `initial` on its stack.
pub(super) fn value(
    expression: Expression<EndianSlice<'_, RunTimeEndian>>,
    encoding: Encoding,
    initial: Option<u64>,
    registers: &Registers,
    memory: &Readable<'_>,
) -> Result<u64, Missing> {
    let mut evaluation: Evaluation<_> = expression.evaluation(encoding);
    evaluation.set_max_iterations(MOST_OPERATIONS);
    if let Some(initial) = initial {
        evaluation.set_initial_value(initial);
    }
    let mut result = evaluation.evaluate();
    loop {
        result = match result {
            Ok(EvaluationResult::Complete) => break,
            Ok(EvaluationResult::RequiresMemory { address, size, .. }) => {
                let word = memory.word(address)?;
                let bits = u32::from(size) * 8;
                let value = match 1u64.checked_shl(bits) {
                    Some(end) => word & (end - 1),
                    None => word,
                };
                evaluation.resume_with_memory(Value::Generic(value))
            }
            Ok(EvaluationResult::RequiresRegister { register, .. }) => {
                let value = registers.named(register).ok_or(Missing::Elsewhere)?;
                evaluation.resume_with_register(Value::Generic(value))
            }
            // Nothing else is part of call frame information.
            Ok(_) | Err(_) => return Err(Missing::Elsewhere),
        };
    }
    let found = match evaluation.as_result() {
        [piece] => match piece.location {
            Location::Address { address } => Some(address),
            Location::Value { value } => value.to_u64(u64::MAX).ok(),
            Location::Register { register } => registers.named(register),
            _ => None,
        },
        _ => None,
    };
    let mask = if registers.machine() == Machine::X86 { u32::MAX.into() } else { u64::MAX };
    found.map(|value| value & mask).ok_or(Missing::Elsewhere)
}
