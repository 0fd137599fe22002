//! The kernel's part of the stacks of threads that wait, by `/proc/PID/task/TID/stack`.
//!
//! ```text
//!   [<0>] futex_wait_queue+0x6c/0x90    innermost first; the address is `futex_wait_queue` of
//!   [<0>] do_syscall_64+0x71/0x280      /proc/kallsyms, and 0x6c
//! ```

use std::collections::HashMap;
use std::fs;

use recrep_format::abi::context;

use crate::machine::pmu::symbol::kernel_symbols;

/// Addresses of the kernel's functions by their names, read when they are first needed.
#[derive(Debug, Default)]
pub(super) struct KernelFunctions {
    /// Of several functions with one name the first one; empty if addresses are hidden.
    addresses: Option<HashMap<Box<str>, u64>>,
}

impl KernelFunctions {
    /// Returns the callchain, as the kernel writes it, of the lines of a stack; empty without any
    /// known function.
    pub(super) fn chain(&mut self, stack: &str) -> Vec<u64> {
        let mut chain = vec![context::KERNEL];
        chain.extend(stack.lines().filter_map(|line| self.address(line)));
        if chain.len() == 1 {
            chain.clear();
        }
        chain
    }

    /// Returns the address that a line of a stack names.
    fn address(&mut self, line: &str) -> Option<u64> {
        let (name, offset) = line.split_whitespace().nth(1)?.split_once("+0x")?;
        let (offset, _) = offset.split_once('/')?;
        let addresses = self.addresses.get_or_insert_with(|| {
            addresses(&fs::read_to_string("/proc/kallsyms").unwrap_or_default())
        });
        addresses.get(name)?.checked_add(u64::from_str_radix(offset, 16).ok()?)
    }
}

/// Returns the addresses of functions by the lines of `/proc/kallsyms`.
fn addresses(symbols: &str) -> HashMap<Box<str>, u64> {
    let mut all = HashMap::new();
    for (address, kind, name) in kernel_symbols(symbols) {
        if matches!(kind, "t" | "T" | "w" | "W") {
            all.entry(name.into()).or_insert(address);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "ffffffff81000000 T _text\n\
                           ffffffff81001000 t do_nanosleep\n\
                           ffffffff81002000 t do_nanosleep\n\
                           ffffffff81003000 D do_data\n\
                           ffffffffc0001000 t wait_here\t[module]\n";

    fn functions(symbols: &str) -> KernelFunctions {
        KernelFunctions { addresses: Some(addresses(symbols)) }
    }

    #[test]
    fn lines_of_a_stack_are_addresses() {
        let stack = "[<0>] do_nanosleep+0x7a/0x180\n[<0>] unknown+0x1/0x2\n\
                     [<0>] wait_here+0x10/0x20 [module]\n[<0>] do_data+0x1/0x8\n";
        let chain = functions(SYMBOLS).chain(stack);
        assert_eq!(chain, [context::KERNEL, 0xffff_ffff_8100_107a, 0xffff_ffff_c000_1010]);
    }

    #[test]
    fn without_known_functions_there_is_no_chain() {
        let stack = "[<0>] do_nanosleep+0x7a/0x180\n";
        let hidden = SYMBOLS.lines().map(|line| format!("{:016}{}\n", 0, &line[16..]));
        let hidden: String = hidden.collect();
        assert_eq!(functions(&hidden).chain(stack), Vec::<u64>::new());
        for stack in ["", "[<0>] 0xffffffffffffffff\n", "\n", "do_nanosleep+0x7a/0x180\n"] {
            assert_eq!(functions(SYMBOLS).chain(stack), Vec::<u64>::new(), "{stack:?}");
        }
    }
}
