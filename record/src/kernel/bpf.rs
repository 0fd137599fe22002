//! BPF programs that are loaded, as bpf(2) lists them.

use rustix::io::Errno;

/// A BPF program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BpfProgram {
    pub id: u32,
    /// Its tag: a hash of its instructions.
    pub tag: [u8; 8],
    /// Its name, of which the kernel keeps 15 bytes.
    pub name: Vec<u8>,
    /// `true` if it has type information, which names its functions in full.
    pub has_btf: bool,
    /// Its functions in machine code, the first one first.
    pub functions: Vec<BpfFunction>,
}

/// A function of a BPF program, in machine code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BpfFunction {
    pub addr: u64,
    /// Its length in bytes.
    pub len: u32,
    pub tag: [u8; 8],
}

/// Returns all programs. `next` returns the id after another one, `program` the program of an id.
///
/// # Errors
/// Returns the errors of both, except for programs that were unloaded meanwhile, which are left
/// out.
pub(super) fn list(
    next: impl Fn(u32) -> Result<u32, Errno>,
    program: impl Fn(u32) -> Result<BpfProgram, Errno>,
) -> Result<Vec<BpfProgram>, Errno> {
    let (mut all, mut id) = (Vec::new(), 0);
    loop {
        id = match next(id) {
            // Ids only grow.
            Ok(next) if next > id => next,
            Ok(_) | Err(Errno::NOENT) => return Ok(all),
            Err(errno) => return Err(errno),
        };
        match program(id) {
            Ok(program) => all.push(program),
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_are_unloaded_meanwhile_are_left_out() {
        let next = |id| if id < 40 { Ok(id + 10) } else { Err(Errno::NOENT) };
        let program = |id| {
            if id == 20 {
                Err(Errno::NOENT)
            } else {
                Ok(BpfProgram { id, ..BpfProgram::default() })
            }
        };
        let ids: Vec<_> = list(next, program).unwrap().iter().map(|program| program.id).collect();
        assert_eq!(ids, [10, 30, 40]);
        assert_eq!(list(|_| Err(Errno::PERM), program), Err(Errno::PERM));
        assert_eq!(list(|_| Ok(7), program).unwrap().len(), 1);
    }
}
