//! Options that filter samples.

use clap::Args;

use crate::query::Filters;
use crate::query::lists::{cpus, names, numbers};
use crate::query::times::Times;

/// Options that filter samples, shared by all commands that read samples.
#[derive(Clone, Debug, Default, Args)]
pub struct SampleFilterArgs {
    /// Only samples in these time ranges: space-separated START,END in seconds, as `rep script` prints them; or
    /// comma-separated parts of the recording: 0%-10% or 10%/1 is the first tenth, 10%/2 the second
    #[arg(long, value_name = "TIMES")]
    time: Option<String>,

    /// Only threads with these names
    #[arg(short = 'c', long, visible_alias = "comm", value_name = "NAME[,NAME…]")]
    comms: Option<String>,

    /// Only modules (shared objects) with these names or paths
    #[arg(short = 'd', long, visible_alias = "dso", value_name = "DSO[,DSO…]")]
    dsos: Option<String>,

    /// Only these processes
    #[arg(long, value_name = "PID[,PID…]")]
    pid: Option<String>,

    /// Only these threads
    #[arg(long, value_name = "TID[,TID…]")]
    tid: Option<String>,

    /// Only these CPUs, such as 0,2-4
    #[arg(short = 'C', long, value_name = "CPU[,CPU…]")]
    cpu: Option<String>,
}

/// Options that filter samples, shared by all commands that count samples.
#[derive(Clone, Debug, Default, Args)]
pub struct FilterArgs {
    #[command(flatten)]
    samples: SampleFilterArgs,

    /// Only samples of these events
    #[arg(long, value_name = "EVENT[,EVENT…]")]
    event: Option<String>,

    /// Only functions with these names
    #[arg(short = 'S', long, visible_alias = "symbol", value_name = "NAME[,NAME…]")]
    symbols: Option<String>,

    /// Only functions whose names contain TEXT
    #[arg(long, value_name = "TEXT")]
    symbol_filter: Option<String>,

    /// Only CPUs of this socket
    #[arg(long, value_name = "SOCKET")]
    socket_filter: Option<u32>,
}

impl SampleFilterArgs {
    /// Parses the values of the options.
    pub fn compiled(self) -> Result<Filters, String> {
        Ok(Filters {
            comms: self.comms.as_deref().map(names),
            dsos: self.dsos.as_deref().map(names),
            pids: numbers("--pid", self.pid.as_deref())?,
            tids: numbers("--tid", self.tid.as_deref())?,
            cpus: self.cpu.as_deref().map(cpus).transpose()?,
            times: self.time.as_deref().map(Times::parse).transpose()?,
            ..Filters::default()
        })
    }
}

impl FilterArgs {
    /// Parses the values of the options.
    pub fn compiled(self) -> Result<Filters, String> {
        Ok(Filters {
            symbols: self.symbols.as_deref().map(names),
            symbol_part: self.symbol_filter,
            socket: self.socket_filter,
            events: self.event.map(|list| list.split(',').map(str::to_owned).collect()),
            ..self.samples.compiled()?
        })
    }
}
