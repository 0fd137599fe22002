//! Threads that wait when a recording begins. The kernel reports switches, so it says nothing of a
//! thread that waits until the end. Each of them gets the records of a switch from its CPU at that
//! moment: a sample, if switches are sampled, and a SWITCH record.
//!
//! ```text
//!   /proc/PID/task/TID/stat ─────▶ waits; CPU
//!   /proc/PID/task/TID/syscall ──▶ instruction, stack pointer ─┐
//!   /proc/PID/mem ───────────────▶ stack ──────────────────────┴─▶ unwound ─▶ callchain
//!   /proc/PID/task/TID/stack ────▶ functions of the kernel ─────────────────▶   its kernel part
//! ```
//!
//! The kernel part, which says what a thread waits for, is only that of `--waits`. Nothing is done to the thread: its other registers are unknown, so a chain ends at a function
//! whose frame only they show.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use recrep_format::abi::{AttrFlags, CpuMode, RegsAbi, misc};
use recrep_format::attr::Attr;
use recrep_format::bytes::{Encoder, U64s};
use recrep_format::endian::Endian;
use recrep_format::layout::{SampleIdLayout, SampleLayout};
use recrep_format::record::{Body, Comm, Record, Regs, SampleFields, SampleId, SwitchCpuWide};
use recrep_format::wire::Text;

use super::kernel_stack::KernelFunctions;
use super::tasks::{Proc, Scope, Stat, numbers};
use crate::machine::registers::Arch;
use crate::messages::error::Result;
use crate::output::Output;
use crate::output::tally::Counts;
use crate::output::unwind::{Pointers, Rewriter};

/// Most bytes of a stack that are read.
const MOST_STACK: usize = 256 << 10;

/// Events whose records say that threads wait: each with its attr and the ID of a counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SwitchEvents<'a> {
    /// The event that carries SWITCH records.
    pub(crate) records: (&'a Attr, u64),
    /// The event whose samples are switches; `None` if the user may not sample them.
    pub(crate) samples: Option<(&'a Attr, u64)>,
}

/// Writer of records of threads that wait at a moment of the samples' clock.
#[derive(Debug)]
pub(crate) struct Waits<'a> {
    output: &'a Output,
    samples: Option<(&'a Attr, u64)>,
    records: Records<'a>,
    proc: Proc,
    rewriter: Rewriter,
    stack: Vec<u8>,
    functions: KernelFunctions,
    /// Number of samples.
    count: u64,
    /// `true` if samples have the arguments of system calls (`--waits`).
    has_arguments: bool,
    /// `true` if all that CPUs run is recorded: the kernel has another record for that.
    is_of_cpus: bool,
}

impl<'a> Waits<'a> {
    /// Creates a writer of records of this time; `has_arguments`: samples have the registers of
    /// system calls' arguments.
    pub(crate) fn new(
        output: &'a Output,
        events: SwitchEvents<'a>,
        time: u64,
        has_arguments: bool,
    ) -> Self {
        let (attr, id) = events.records;
        Self {
            output,
            samples: events.samples,
            records: Records { encoder: Encoder::new(Endian::NATIVE), attr, id, time },
            proc: Proc::default(),
            rewriter: output.rewriter(),
            stack: Vec::new(),
            functions: KernelFunctions::default(),
            count: 0,
            has_arguments,
            is_of_cpus: false,
        }
    }

    /// Writes records of each thread that waits.
    pub(crate) fn write(mut self, scope: &Scope) -> Result<()> {
        match scope {
            // It runs from its exec on.
            Scope::Child(_) => {}
            Scope::These(tasks) => tasks.iter().for_each(|task| self.thread(task.pid, task.tid)),
            Scope::All => {
                self.is_of_cpus = true;
                // rec itself runs.
                let own = std::process::id();
                for pid in numbers("/proc").into_iter().filter(|pid| *pid != own) {
                    for tid in numbers(&format!("/proc/{pid}/task")) {
                        self.thread(pid, tid);
                    }
                }
            }
        }
        let time = self.records.time;
        let first = (self.count > 0).then_some(time);
        let counts = Counts {
            samples: self.count,
            first,
            last: first.unwrap_or_default(),
            ..Counts::default()
        };
        self.output.write_counted(self.records.encoder.as_bytes(), counts)
    }

    /// Writes the name of a living task, so that the file has a record of this time.
    pub(crate) fn write_end(mut self, scope: &Scope) -> Result<()> {
        let own = std::process::id();
        let tasks: Vec<[u32; 2]> = match scope {
            Scope::Child(pid) => vec![[*pid, *pid]],
            Scope::These(tasks) => tasks.iter().map(|task| [task.pid, task.tid]).collect(),
            Scope::All => vec![[own, own]],
        };
        for [pid, tid] in tasks {
            let stat = self.proc.read(format_args!("/proc/{pid}/task/{tid}/stat"));
            let Some(stat) = stat.and_then(Stat::parse) else { continue };
            let comm = Comm { pid, tid, comm: Text::new(stat.comm) };
            self.records.put(0, Body::Comm(comm), [pid, tid], stat.cpu);
            break;
        }
        self.output.write(self.records.encoder.as_bytes())
    }

    /// Writes records of a thread, if it waits.
    fn thread(&mut self, pid: u32, tid: u32) {
        let stat = self.proc.read(format_args!("/proc/{pid}/task/{tid}/stat"));
        let Some(stat) = stat.and_then(Stat::parse).filter(Stat::is_waiting) else { return };
        let Stat { cpu, kernel_thread, .. } = stat;
        if !kernel_thread
            && let Some((attr, id)) = self.samples
            && let Some(pointers) = self.pointers(pid, tid)
        {
            self.sample(attr, id, [pid, tid], cpu, pointers);
        }
        let misc = misc::SWITCH_OUT | misc::WAITS_AT_START;
        let body = match self.is_of_cpus {
            true => Body::SwitchCpuWide(SwitchCpuWide { next_prev_pid: 0, next_prev_tid: 0 }),
            false => Body::Switch,
        };
        self.records.put(misc, body, [pid, tid], cpu);
    }

    /// Returns where a thread waits; `None` if it has woken up, or the user may not know.
    fn pointers(&mut self, pid: u32, tid: u32) -> Option<Pointers> {
        let line = self.proc.read(format_args!("/proc/{pid}/task/{tid}/syscall"))?;
        Pointers::parse(std::str::from_utf8(line).ok()?)
    }

    /// Returns the kernel's part of a thread's callchain; empty if the user may not know it.
    fn kernel_chain(&mut self, attr: &Attr, [pid, tid]: [u32; 2]) -> Vec<u64> {
        if !self.has_arguments || attr.flags.contains(AttrFlags::EXCLUDE_CALLCHAIN_KERNEL) {
            return Vec::new();
        }
        let stack = self.proc.read(format_args!("/proc/{pid}/task/{tid}/stack"));
        let stack = stack.and_then(|bytes| std::str::from_utf8(bytes).ok());
        stack.map(|stack| self.functions.chain(stack)).unwrap_or_default()
    }

    /// Writes a sample of a thread's switch from its CPU.
    fn sample(&mut self, attr: &Attr, id: u64, task: [u32; 2], cpu: u32, pointers: Pointers) {
        let [pid, _] = task;
        let (mut chain, mut is_whole) = (Vec::new(), true);
        if !attr.flags.contains(AttrFlags::EXCLUDE_CALLCHAIN_USER) {
            self.read_stack(pid, pointers.sp);
            let most = attr.sample_max_stack;
            let time = self.records.time;
            (chain, is_whole) = self.rewriter.waiting(pid, time, pointers, &self.stack, most);
        }
        let kernel = self.kernel_chain(attr, task);
        chain.splice(..0, kernel.iter().flat_map(|word| word.to_ne_bytes()));
        let innermost = kernel.get(1).copied();
        let Ok(mut fields) = SampleFields::shaped(&SampleLayout::of(attr)) else { return };
        let trailer = self.records.trailer(attr, id, task, cpu);
        (fields.tid, fields.time, fields.cpu) = (trailer.tid, trailer.time, trailer.cpu);
        (fields.id, fields.identifier) = (trailer.id, trailer.identifier);
        fields.ip = fields.ip.map(|_| innermost.unwrap_or(pointers.ip));
        fields.period = fields.period.map(|_| 1);
        fields.callchain = fields.callchain.map(|_| U64s::new(&chain, Endian::NATIVE));
        // Registers without a copy of the stack say that callers are missing, unless the
        // instruction pointer alone is 0.
        let mask = attr.sample_regs_user;
        let mut values = vec![0; 8 * mask.count_ones() as usize];
        if self.has_arguments {
            let ip = if is_whole { 0 } else { pointers.ip };
            values = registers(mask, Pointers { ip, ..pointers });
        }
        if let Some(regs) = fields.regs_user.as_mut().filter(|_| !is_whole || self.has_arguments) {
            *regs = Regs { abi: RegsAbi::ABI_64, mask, values: U64s::new(&values, Endian::NATIVE) };
        }
        let mode = if innermost.is_some() { CpuMode::Kernel } else { CpuMode::User };
        let misc = mode.bits() | misc::WAITS_AT_START;
        let encoder = &mut self.records.encoder;
        let start = encoder.len();
        match Record::new(misc, Body::Sample(Box::new(fields))).encode(encoder) {
            Ok(()) => self.count += 1,
            Err(_) => encoder.truncate(start),
        }
    }

    /// Reads a stack from its stack pointer on, as far as it is mapped.
    fn read_stack(&mut self, pid: u32, sp: u64) {
        self.stack.resize(MOST_STACK, 0);
        let memory = File::open(format!("/proc/{pid}/mem"));
        let read = memory.and_then(|memory| memory.read_at(&mut self.stack, sp));
        self.stack.truncate(read.unwrap_or(0));
    }
}

/// Returns the values of the registers of a mask: 0 for those that others cannot read.
fn registers(mask: u64, pointers: Pointers) -> Vec<u8> {
    let Pointers { ip, sp, arguments } = pointers;
    let numbers = Arch::NATIVE.arguments().into_iter().flatten();
    let known: Vec<(u32, u64)> = numbers
        .zip(arguments)
        .chain(Arch::NATIVE.pointers().into_iter().flatten().zip([ip, sp]))
        .collect();
    let value = |number| {
        let known = known.iter().find(|(known, _)| *known == number);
        known.map_or(0, |(_, value)| *value)
    };
    let sampled = (0..u64::BITS).filter(|number| mask >> number & 1 == 1);
    sampled.flat_map(|number| value(number).to_ne_bytes()).collect()
}

/// Records of one moment.
#[derive(Debug)]
struct Records<'a> {
    encoder: Encoder,
    /// The event of records that are not samples.
    attr: &'a Attr,
    id: u64,
    time: u64,
}

impl Records<'_> {
    /// Returns the trailer of a record of an event; samples have the same fields.
    fn trailer(&self, attr: &Attr, id: u64, task: [u32; 2], cpu: u32) -> SampleId {
        let fields = SampleId {
            tid: Some(task),
            time: Some(self.time),
            cpu: Some([cpu, 0]),
            identifier: Some(id),
            ..SampleId::default()
        };
        fields.shaped(&SampleIdLayout::of(attr))
    }

    /// Writes a record other than a sample.
    fn put(&mut self, misc: u16, body: Body<'_>, task: [u32; 2], cpu: u32) {
        let trailer = self.trailer(self.attr, self.id, task, cpu);
        // Only a long name could exceed the size limit.
        let _ = Record::new(misc, body).with_trailer(trailer).encode(&mut self.encoder);
    }
}
