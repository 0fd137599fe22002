//! What an instruction does to the flow of control, as far as a trace needs it.

use iced_x86::{Code as IcedCode, Decoder, DecoderOptions, FlowControl, Mnemonic, OpKind};

use super::size::CodeSize;

/// Branch instructions and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BranchKind {
    /// A conditional jump that was taken.
    Conditional,
    /// A jump, direct or indirect.
    Jump,
    /// A near call, direct or indirect.
    Call,
    /// A near return.
    Return,
    /// `syscall`, `sysenter`.
    SystemCall,
    /// `sysret`, `sysexit`.
    SystemReturn,
    /// `int` in all forms.
    Interrupt,
    /// `iret`.
    InterruptReturn,
    /// A jump, call or return to another code segment.
    Far,
    /// An interrupt, exception or signal, at any instruction.
    Asynchronous,
    /// Tracing began here: there is no source.
    Begin,
}

/// Where control goes behind an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// To the next instruction.
    Following,
    /// To an address that the instruction has: a jump or a call.
    Direct(BranchKind, u64),
    /// To this address or the next instruction, as an outcome says.
    Conditional(u64),
    /// To an address that a packet says.
    Indirect(BranchKind),
    /// The bytes are no instruction.
    Invalid,
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its address.
    pub address: u64,
    /// Address behind it.
    pub end: u64,
    /// Where control goes.
    pub next: Next,
}

impl Instruction {
    /// Returns the length in bytes.
    #[inline]
    pub fn length(&self) -> u8 {
        u8::try_from(self.end.wrapping_sub(self.address)).unwrap_or(0)
    }
}

/// Instructions one behind the other.
pub struct Instructions<'a>(Decoder<'a>);

impl<'a> Instructions<'a> {
    /// Returns the instructions of `code`, whose first byte is at `address`.
    pub fn new(code: &'a [u8], address: u64, size: CodeSize) -> Self {
        Self(Decoder::with_ip(size.bits(), code, address, DecoderOptions::NONE))
    }
}

impl Iterator for Instructions<'_> {
    type Item = Instruction;

    #[inline]
    fn next(&mut self) -> Option<Instruction> {
        if !self.0.can_decode() {
            return None;
        }
        let decoded = self.0.decode();
        Some(Instruction { address: decoded.ip(), end: decoded.next_ip(), next: next(&decoded) })
    }
}

fn next(decoded: &iced_x86::Instruction) -> Next {
    let is_near = || {
        matches!(
            decoded.op0_kind(),
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
        )
    };
    match decoded.flow_control() {
        FlowControl::Next if decoded.code() == IcedCode::INVALID => Next::Invalid,
        FlowControl::Exception if decoded.code() == IcedCode::INVALID => Next::Invalid,
        // Transactions, and traps that the processor reports as events.
        FlowControl::Next | FlowControl::XbeginXabortXend | FlowControl::Exception => {
            Next::Following
        }
        FlowControl::ConditionalBranch => Next::Conditional(decoded.near_branch_target()),
        FlowControl::UnconditionalBranch | FlowControl::Call if is_near() => {
            let is_call = decoded.flow_control() == FlowControl::Call;
            let kind = if is_call { BranchKind::Call } else { BranchKind::Jump };
            Next::Direct(kind, decoded.near_branch_target())
        }
        FlowControl::UnconditionalBranch => Next::Indirect(BranchKind::Far),
        FlowControl::IndirectBranch => match decoded.mnemonic() {
            Mnemonic::Jmp if !decoded.is_jmp_far_indirect() => Next::Indirect(BranchKind::Jump),
            _ => Next::Indirect(BranchKind::Far),
        },
        FlowControl::IndirectCall if !decoded.is_call_far_indirect() => {
            Next::Indirect(BranchKind::Call)
        }
        FlowControl::IndirectCall => Next::Indirect(BranchKind::Far),
        // To iced, what enters the kernel is a call, and so is what enters a hypervisor.
        FlowControl::Call => match decoded.mnemonic() {
            Mnemonic::Syscall | Mnemonic::Sysenter => Next::Indirect(BranchKind::SystemCall),
            Mnemonic::Call => Next::Indirect(BranchKind::Far),
            _ => Next::Following,
        },
        FlowControl::Return => Next::Indirect(match decoded.mnemonic() {
            Mnemonic::Ret => BranchKind::Return,
            Mnemonic::Sysret | Mnemonic::Sysretq | Mnemonic::Sysexit | Mnemonic::Sysexitq => {
                BranchKind::SystemReturn
            }
            Mnemonic::Retf => BranchKind::Far,
            _ => BranchKind::InterruptReturn,
        }),
        FlowControl::Interrupt => Next::Indirect(BranchKind::Interrupt),
    }
}
