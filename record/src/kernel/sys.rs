//! The real kernel: perf_event_open(2) and the ioctls of its file descriptors; bpf(2); the mask of
//! signals; the scheduler.
//!
//! The attr goes to the kernel in the very bytes that the file will have: [`Attr::encode`] in this
//! machine's order.

#![allow(unsafe_code)] // There is no safe interface to the syscall and the ioctls.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use recrep_format::attr::Attr;
use recrep_format::bytes::Encoder;
use recrep_format::endian::Endian;
use rustix::io::Errno;

use crate::kernel::bpf::{self, BpfFunction, BpfProgram};
use crate::kernel::ring::Ring;
use crate::kernel::{ClockMoment, Kernel, Place, moment};

/// `PERF_FLAG_FD_CLOEXEC`: the workload does not inherit the counters.
const FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;
/// `PERF_FLAG_PID_CGROUP`: the pid is the descriptor of a cgroup's directory.
const FLAG_PID_CGROUP: libc::c_ulong = 1 << 2;
/// Bits for the direction of a request in `asm/ioctl.h`. These architectures have a different
/// layout.
#[cfg(any(
    target_arch = "mips",
    target_arch = "mips64",
    target_arch = "powerpc",
    target_arch = "powerpc64",
    target_arch = "sparc64"
))]
const DIRECTION: (u32, u32) = (1 << 29, 2 << 29);
#[cfg(not(any(
    target_arch = "mips",
    target_arch = "mips64",
    target_arch = "powerpc",
    target_arch = "powerpc64",
    target_arch = "sparc64"
)))]
const DIRECTION: (u32, u32) = (0, 2 << 30);
/// Direction bits of a request that passes data to the kernel (`_IOC_WRITE`).
const WRITE: u32 = if DIRECTION.0 == 0 { 1 << 30 } else { 4 << 29 };

/// `PERF_EVENT_IOC_*`, `include/uapi/linux/perf_event.h`; the first two take a number, the third a
/// descriptor.
const IOC_ENABLE: libc::Ioctl = (DIRECTION.0 | 0x2400) as libc::Ioctl;
const IOC_DISABLE: libc::Ioctl = (DIRECTION.0 | 0x2401) as libc::Ioctl;
const IOC_SET_OUTPUT: libc::Ioctl = (DIRECTION.0 | 0x2405) as libc::Ioctl;
/// `_IOW('$', 9, __u32)`.
const IOC_PAUSE_OUTPUT: libc::Ioctl = (WRITE | 0x2409 | 4 << 16) as libc::Ioctl;
const POINTER_SIZE: u32 = usize::BITS / 8;
/// `_IOW('$', 6, char *)`: includes the size of a pointer.
const IOC_SET_FILTER: libc::Ioctl = (WRITE | 0x2406 | POINTER_SIZE << 16) as libc::Ioctl;
/// `_IOR('$', 7, __u64 *)`: includes the size of a pointer.
const IOC_ID: libc::Ioctl = (DIRECTION.1 | 0x2407 | POINTER_SIZE << 16) as libc::Ioctl;

/// The kernel that this process runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Perf;

impl Kernel for Perf {
    fn open(
        &self,
        attr: &Attr,
        place: Place,
        leader: Option<BorrowedFd<'_>>,
    ) -> Result<OwnedFd, Errno> {
        let mut encoder = Encoder::new(Endian::NATIVE);
        attr.encode(&mut encoder, attr.own_size()).map_err(|_| Errno::TOOBIG)?;
        // The kernel writes its own size back on E2BIG, so the bytes must be mutable.
        let mut bytes = encoder.into_bytes();
        let pid = place.cgroup.unwrap_or_else(|| place.thread.map_or(-1, u32::cast_signed));
        let flags = FLAG_FD_CLOEXEC | if place.cgroup.is_some() { FLAG_PID_CGROUP } else { 0 };
        // SAFETY: `bytes` is a perf_event_attr of the length that its `size` field says and lives
        // through the call; the other arguments are plain numbers (perf_event_open(2)).
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                bytes.as_mut_ptr(),
                pid,
                place.cpu.map_or(-1, u32::cast_signed),
                leader.map_or(-1, |leader| leader.as_raw_fd()),
                flags,
            )
        };
        let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(last_errno)?;
        // SAFETY: the kernel has just given us this descriptor, and nobody else knows it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    fn id(&self, counter: BorrowedFd<'_>) -> Result<u64, Errno> {
        let mut id = 0u64;
        // SAFETY: PERF_EVENT_IOC_ID writes one u64 to its argument, which points to one that lives
        // through the call.
        check(unsafe { libc::ioctl(counter.as_raw_fd(), IOC_ID, &raw mut id) })?;
        Ok(id)
    }

    fn enable(&self, counter: BorrowedFd<'_>) -> Result<(), Errno> {
        // SAFETY: PERF_EVENT_IOC_ENABLE takes a number, 0: not the whole group. It touches no
        // memory of ours.
        check(unsafe { libc::ioctl(counter.as_raw_fd(), IOC_ENABLE, 0) })
    }

    fn disable(&self, counter: BorrowedFd<'_>) -> Result<(), Errno> {
        // SAFETY: as PERF_EVENT_IOC_ENABLE.
        check(unsafe { libc::ioctl(counter.as_raw_fd(), IOC_DISABLE, 0) })
    }

    fn set_filter(&self, counter: BorrowedFd<'_>, filter: &CStr) -> Result<(), Errno> {
        // SAFETY: PERF_EVENT_IOC_SET_FILTER reads a text up to its zero byte, which `filter` has,
        // and which lives through the call.
        check(unsafe { libc::ioctl(counter.as_raw_fd(), IOC_SET_FILTER, filter.as_ptr()) })
    }

    fn redirect(&self, counter: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Result<(), Errno> {
        // SAFETY: PERF_EVENT_IOC_SET_OUTPUT takes a descriptor, which is open. It touches no memory
        // of ours.
        check(unsafe { libc::ioctl(counter.as_raw_fd(), IOC_SET_OUTPUT, to.as_raw_fd()) })
    }

    fn read(&self, counter: BorrowedFd<'_>, numbers: &mut [u64]) -> Result<usize, Errno> {
        let mut bytes = vec![0; 8 * numbers.len()];
        let read = rustix::io::read(counter, &mut bytes)?;
        let found = bytes.as_chunks::<8>().0.iter().take(read / 8);
        for (to, from) in numbers.iter_mut().zip(found) {
            *to = u64::from_ne_bytes(*from);
        }
        Ok(read / 8)
    }

    fn pause(&self, counter: BorrowedFd<'_>, pause: bool) -> Result<(), Errno> {
        // SAFETY: PERF_EVENT_IOC_PAUSE_OUTPUT takes a number: whether to pause. It touches no
        // memory of ours.
        check(unsafe { libc::ioctl(counter.as_raw_fd(), IOC_PAUSE_OUTPUT, u32::from(pause)) })
    }

    fn map(&self, counter: BorrowedFd<'_>, pages: usize, backward: bool) -> Result<Ring, Errno> {
        if backward { Ring::map_backward(counter, pages) } else { Ring::map(counter, pages) }
    }

    fn now(&self, clock: Option<i32>) -> Option<ClockMoment> {
        moment::now(self, clock)
    }

    fn bpf_programs(&self) -> Result<Vec<BpfProgram>, Errno> {
        bpf::list(next_bpf_program, bpf_program)
    }
}

/// Duplicates an open descriptor, given by its number. The command does not inherit the duplicate.
pub(crate) fn duplicate(number: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: F_DUPFD_CLOEXEC takes a number and touches no memory of ours; a number that is not
    // open is refused.
    let fd = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) };
    check(fd)?;
    // SAFETY: the kernel has just given us this descriptor, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Returns the CPU time in user mode and in the kernel of all children that have ended and were
/// waited for, with theirs.
pub(crate) fn children_cpu_time() -> (Duration, Duration) {
    // SAFETY: a rusage is plain numbers, for which all zeroes are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: getrusage(2) writes one rusage to its argument, which lives through the call. It
    // cannot fail with these arguments.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    (duration(usage.ru_utime), duration(usage.ru_stime))
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

/// Unblocks a signal in this thread, and in threads that it starts later. A process inherits
/// blocked signals from its parent, and with SIGCHLD blocked, rec would wait for its child for
/// ever.
pub(crate) fn unblock(signal: i32) -> std::io::Result<()> {
    // SAFETY: a sigset_t is plain bits, for which all zeroes are valid.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is ours and lives through both calls.
    check(unsafe { libc::sigemptyset(&raw mut set) })?;
    // SAFETY: as above.
    check(unsafe { libc::sigaddset(&raw mut set, signal) })?;
    // SAFETY: `set` is a valid signal set; the old mask is not requested.
    match unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()) }
    {
        0 => Ok(()),
        errno => Err(std::io::Error::from_raw_os_error(errno)),
    }
}

/// `si_code` of a signal that no process sent: of the keys of a terminal, and of its end
/// (sigaction(2)).
const SI_KERNEL: i32 = 0x80;

/// Sets `flag` when a signal arrives that a terminal sends to all processes of its foreground
/// group.
pub(crate) fn note_terminal_signal(signal: i32, flag: Arc<AtomicBool>) -> std::io::Result<()> {
    let act = move |info: &libc::siginfo_t| {
        if info.si_code == SI_KERNEL {
            flag.store(true, Ordering::Relaxed);
        }
    };
    // SAFETY: the action reads a number and stores one, which is async-signal-safe.
    unsafe { signal_hook_registry::register_sigaction(signal, act) }.map(drop)
}

/// Passes over a signal that a terminal sends to all processes of its foreground group; one that is
/// sent to rec alone has its default action.
pub(crate) fn ignore_terminal_signal(signal: i32) -> std::io::Result<()> {
    let act = move |info: &libc::siginfo_t| {
        if info.si_code != SI_KERNEL {
            // A signal that it cannot emulate is passed over.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    };
    // SAFETY: the action reads a number and makes system calls: `emulate_default_handler` is for
    // signal handlers.
    unsafe { signal_hook_registry::register_sigaction(signal, act) }.map(drop)
}

/// sched_setattr(2)'s argument, as of its first version (`struct sched_attr`).
#[repr(C)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Sets the nice value and the time slice of this thread, in the class SCHED_OTHER. Kernels before
/// 6.12 ignore the slice.
///
/// # Errors
/// Returns the system's error: EPERM for a nice value lower than this user may set.
pub(crate) fn set_share(nice: i32, slice: Duration) -> Result<(), Errno> {
    let attr = SchedAttr {
        size: u32::try_from(size_of::<SchedAttr>()).unwrap_or(0),
        policy: 0,
        flags: 0,
        nice,
        priority: 0,
        runtime: u64::try_from(slice.as_nanos()).unwrap_or(0),
        deadline: 0,
        period: 0,
    };
    // SAFETY: `attr` is a whole sched_attr that says its own size and lives through the call; 0 is
    // this thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
    if result < 0 { Err(last_errno()) } else { Ok(()) }
}

/// Returns whether this thread is in the class SCHED_OTHER.
pub(crate) fn is_other() -> bool {
    // SAFETY: the call takes a number alone; 0 is this thread.
    unsafe { libc::sched_getscheduler(0) == libc::SCHED_OTHER }
}

/// Sets the scheduling class SCHED_FIFO for this thread.
pub(crate) fn set_fifo(priority: u32) -> std::io::Result<()> {
    let priority = i32::try_from(priority).unwrap_or(i32::MAX);
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: `param` is a whole sched_param that lives through the call; 0 is this thread.
    Ok(check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) })?)
}

/// The commands of bpf(2) that list programs (`enum bpf_cmd`, `include/uapi/linux/bpf.h`).
const BPF_PROG_GET_NEXT_ID: libc::c_long = 11;
const BPF_PROG_GET_FD_BY_ID: libc::c_long = 13;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_long = 15;

/// bpf(2)'s argument for those commands (`union bpf_attr`).
#[repr(C)]
struct BpfAttr {
    /// `start_id`, `prog_id`, `bpf_fd`.
    what: u32,
    /// `next_id`, `info_len`.
    more: u32,
    /// `info`: an address.
    info: u64,
}

/// The part of `struct bpf_prog_info` that has the addresses of a program. `prog_tags` is there since
/// Linux 5.0.
#[repr(C)]
#[derive(Default)]
struct BpfProgInfo {
    kind: u32,
    id: u32,
    tag: [u8; 8],
    insns_lens: [u32; 2],
    insns: [u64; 2],
    load_time: u64,
    created_by_uid: u32,
    nr_map_ids: u32,
    map_ids: u64,
    name: [u8; 16],
    ifindex: u32,
    gpl_compatible: u32,
    netns: [u64; 2],
    nr_jited_ksyms: u32,
    nr_jited_func_lens: u32,
    jited_ksyms: u64,
    jited_func_lens: u64,
    btf_id: u32,
    func_info_rec_size: u32,
    func_info: u64,
    nr_func_info: u32,
    nr_line_info: u32,
    line_info: u64,
    jited_line_info: u64,
    nr_jited_line_info: u32,
    line_info_rec_size: u32,
    jited_line_info_rec_size: u32,
    nr_prog_tags: u32,
    prog_tags: u64,
}

const _: () = assert!(size_of::<BpfAttr>() == 16 && size_of::<BpfProgInfo>() == 192);

/// Returns the id of the BPF program after this one.
///
/// # Errors
/// ENOENT: this is the last one; EPERM without CAP_SYS_ADMIN.
pub(super) fn next_bpf_program(id: u32) -> Result<u32, Errno> {
    let mut attr = BpfAttr { what: id, more: 0, info: 0 };
    bpf(BPF_PROG_GET_NEXT_ID, &mut attr)?;
    Ok(attr.more)
}

/// Returns a BPF program and where its functions are, or none if the kernel hides addresses.
///
/// # Errors
/// The kernel's refusal; ENOENT: it was unloaded.
pub(super) fn bpf_program(id: u32) -> Result<BpfProgram, Errno> {
    let fd = bpf(BPF_PROG_GET_FD_BY_ID, &mut BpfAttr { what: id, more: 0, info: 0 })?;
    // SAFETY: the kernel has just given us this descriptor, and nobody else knows it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut info = BpfProgInfo::default();
    bpf_info(&fd, &mut info)?;
    let count = info.nr_jited_ksyms.min(info.nr_jited_func_lens).min(info.nr_prog_tags);
    let n = count as usize;
    let (mut addrs, mut lens, mut tags) = (vec![0u64; n], vec![0u32; n], vec![[0u8; 8]; n]);
    let mut info = BpfProgInfo {
        nr_jited_ksyms: count,
        nr_jited_func_lens: count,
        nr_prog_tags: count,
        jited_ksyms: addrs.as_mut_ptr() as u64,
        jited_func_lens: lens.as_mut_ptr() as u64,
        prog_tags: tags.as_mut_ptr() as u64,
        ..BpfProgInfo::default()
    };
    bpf_info(&fd, &mut info)?;
    let functions = addrs.into_iter().zip(lens).zip(tags);
    let functions = functions.map(|((addr, len), tag)| BpfFunction { addr, len, tag });
    // Programs without machine code run in the kernel's interpreter, which has a name.
    let functions = functions.filter(|function| function.addr != 0 && function.len != 0).collect();
    let name = info.name.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
    Ok(BpfProgram { id, tag: info.tag, name, has_btf: info.btf_id != 0, functions })
}

/// Asks for the facts about a program. The addresses in `info` are of arrays as long as the counts
/// beside them say, or the counts are 0.
fn bpf_info(program: &OwnedFd, info: &mut BpfProgInfo) -> Result<(), Errno> {
    let what = u32::try_from(program.as_raw_fd()).map_err(|_| Errno::BADF)?;
    let more = u32::try_from(size_of::<BpfProgInfo>()).map_err(|_| Errno::TOOBIG)?;
    bpf(BPF_OBJ_GET_INFO_BY_FD, &mut BpfAttr { what, more, info: std::ptr::from_mut(info) as u64 })
        .map(drop)
}

fn bpf(command: libc::c_long, attr: &mut BpfAttr) -> Result<i32, Errno> {
    // SAFETY: `attr` is as long as its size says and lives through the call. Only
    // BPF_OBJ_GET_INFO_BY_FD takes addresses from it: of a BpfProgInfo, which the kernel overwrites
    // up to `info_len`, and of the arrays in that, into each of which it writes as many items as
    // the count beside it says at most (`bpf_prog_get_info_by_fd` in kernel/bpf/syscall.c).
    // `bpf_program` keeps all of them until the call is over.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attr), size_of::<BpfAttr>())
    };
    i32::try_from(result).ok().filter(|result| *result >= 0).ok_or_else(last_errno)
}

fn check(result: libc::c_int) -> Result<(), Errno> {
    if result < 0 { Err(last_errno()) } else { Ok(()) }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
