//! What columns show, and of which kind their cells are.

use super::key::KeyAddress;

/// Kind of the cells of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Numbers of interned texts.
    Label,
    Address,
    Number,
    /// Numbers of one sample; printed multiplied by the samples of the row.
    PerSample,
    /// Data sources (`union perf_mem_data_src`).
    DataSrc,
    /// Nanoseconds; printed in seconds, to the microsecond.
    Micros,
    /// Nanoseconds; printed in seconds, to the nanosecond.
    Nanos,
    /// Cycles; 0 if unknown.
    Cycles,
    /// CPUs; all ones if not sampled.
    Cpu,
    /// Flags of a memory access: 1 if it has an address, 2 if its data is mapped, 4 if its code is
    /// mapped.
    Reach,
}

/// What a column shows of its fields.
#[derive(Clone, Copy, Debug)]
pub enum Shown {
    /// The first field, as a number of this kind.
    Number(Kind),
    /// A text that depends on the first field alone.
    Text(fn(u64) -> String),
    /// A name that the fields stand for.
    Name(Name),
    /// A text of the tracepoint's data.
    Trace,
    /// A part of the input's path.
    Input,
}

/// Names that the fields of a key stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// The thread's name.
    Comm,
    /// The thread, as `tid:name`.
    Thread,
    /// The process, as `pid:name`.
    Process,
    /// The module's base name.
    Module,
    Path,
    BuildId,
    /// What tells the module's file from others ([`crate::symbols::Module::identity`]).
    Identity,
    /// The size of the module's mapping.
    MapSize,
    /// The function at an address.
    Function(KeyAddress),
    FunctionSize,
    /// The function and the offset in it.
    FunctionOffset,
    /// The function, as a place in its module.
    FunctionPlace,
    /// The source file and line of an address.
    Line(KeyAddress),
    /// The source file of the sampled address.
    SourceFile,
    /// The module's path and the offset of an address in it.
    FileOffset(KeyAddress),
    /// A data address without a symbol.
    Data,
    /// The symbol at the data address.
    DataSymbol,
    /// The symbol at the data address's cache line.
    CacheLine,
    Event,
    Socket,
    /// The cgroup's path.
    Cgroup,
    /// Device and inode of the cgroup namespace.
    CgroupSpace,
    /// The function of the caller that matches `--parent`.
    Parent,
    /// The thread's activity.
    Activity,
    /// What the thread waited for.
    Wait,
}
