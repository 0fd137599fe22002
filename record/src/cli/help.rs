//! `rec -h`: the common options on one screen. `rec --help` has all of them.

pub(super) const SHORT: &str = "\
Record events of programs and the system into a perf.data file, for rep or perf report.

Usage: rec [OPTIONS] [--] COMMAND [ARGS]...
       rec [OPTIONS] -a | -p PIDS | -t TIDS | -u USER [[--] COMMAND [ARGS]...]
Commands:
  rec list [WHAT]     List the events of this machine
  rec stat            Count events, without samples
  rec mem, rec c2c    Record memory accesses; cache lines that CPUs contend for
  rec trace           Record system calls, for rep syscalls
Options:
  -g                  Record callchains
  -F HZ, -c N         Sample HZ times per second [default: 4000; 999 with -g]; or every N events
  -e EVENTS           Events to sample, comma-separated [default: cycles:P, or cpu-clock]
  --off-cpu, --waits  Show where threads wait, too; and who ends each wait
  -a, -C LIST         Record all processes on all CPUs; on these CPUs
  -p PIDS             Record existing processes, until Ctrl-C
  -o FILE             Write to FILE, or to standard output if '-' [default: out.data]
  -z                  Compress the file
  -q, -v              Print only errors and losses; print details
  --help              Show all options, and more examples
Examples:
  rec -g ./app                Where does the program spend its time? Then: rep
  rec -g -p 4711 -- sleep 10  Record a running process for ten seconds
  rec --off-cpu ./app         Where does it wait? Then: rep --wall
";

/// The template of the whole help: commands first.
pub(super) const TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

Commands:
  rec list [WHAT]  List the events of this machine; see rec list --help
  rec stat         Count events, and print the counts; see rec stat --help
  rec mem          Record loads and stores: addresses, latencies, where they hit; see rec mem --help
  rec c2c          Record what shows cache lines that CPUs contend for; see rec c2c --help
  rec trace        Record system calls: which, how long, what they returned; see rec trace --help
  rec man          Print the manual page: rec man | man -l -
  rec completions SHELL
                   Print completions for bash, zsh or fish; see rec completions --help
  A program of that name is recorded by: rec -- list

{all-args}{after-help}";

pub(super) const EXAMPLES: &str = "Examples:";

/// Text after the options.
pub(super) const AFTER: &str = "\
Examples:
  rec -g ./app                                Where does the program spend its time? Then: rep
  rec --call-graph fp ./app                   The same by frame pointers alone, for less
  rec -g -p 4711 -- sleep 10                  A running process, for ten seconds
  rec -a -g -- sleep 10                       The whole machine
  rec --off-cpu ./app                         Where does it wait? Then: rep --wall, rep --off-cpu
  rec -e page-faults -d -c 1 ./app            Every page fault, with its address
  rec -e sched:sched_switch --filter 'prev_state == 1' ./app
  rec -e uprobe/path=./app,func=main/ ./app   Each call of a function
  rec -z -o - ./app | rep -                   Compressed, through a pipe

Read the file with rep or perf report. Exit status: that of the command; 125 if rec failed, 126 \
if the command cannot be \
executed, 127 if it was not found; 2 for a usage error.";
