//! Tests: samples of made-up processes, whose code is memory without rules, so that their chains
//! go by frame pointers.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use recrep_format::abi::{AttrFlags, CpuMode, RegsAbi, SampleType as S, context, misc};
use recrep_format::attr::Attr;
use recrep_format::bytes::U64s;
use recrep_format::endian::Endian;
use recrep_format::layout::SampleIdLayout;
use recrep_format::read::Frames;
use recrep_format::record::{
    Body, Comm, Inode, Lost, Mmap2, MmapIdentity, Record, Regs, Sample, SampleFields, SampleId,
    StackUser, Task,
};
use recrep_format::wire::Text;
use recrep_unwind::Machine;

use super::*;
use crate::output::build_ids::{FileId, FileIdentity};

const ID: u64 = 7;
/// No process that lives.
const PID: u32 = u32::MAX - 1;
const STACK: u64 = 0x7fff_0000;
const MASK: u64 = 0xff_0fff;

fn attr() -> Attr {
    let always = S::IDENTIFIER | S::IP | S::TID | S::TIME | S::CPU;
    Attr {
        size: 128,
        sample_type: always | S::CALLCHAIN | S::REGS_USER | S::STACK_USER | S::WEIGHT,
        sample_regs_user: MASK,
        sample_stack_user: 64,
        flags: AttrFlags::SAMPLE_ID_ALL,
        ..Attr::default()
    }
}

fn shared() -> Arc<Unwinding> {
    let entry = AttrEntry { attr: attr(), ids: vec![ID], name: None };
    Unwinding::of(&[entry], None, false).unwrap()
}

/// A sample at 0x1234, and with frame pointers two return addresses: 0x1111, 0x1222.
fn sample(time: u64, pid: u32, abi: RegsAbi, copied: usize) -> Vec<u8> {
    let words =
        |words: &[u64]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>();
    let chain = words(&[context::KERNEL, 0xffff_8000, context::USER, 0x1234, 0x1111]);
    let mut registers = [0u64; 20];
    (registers[6], registers[7], registers[8]) = (STACK + 16, STACK, 0x1234);
    let registers = words(if abi == RegsAbi::NONE { &[] } else { &registers });
    let stack = words(&[5, 5, STACK + 32, 0x1111, 0, 0x1222, 0, 0]);
    let fields = SampleFields {
        identifier: Some(ID),
        ip: Some(0xffff_8000),
        tid: Some([pid, pid]),
        time: Some(time),
        cpu: Some([0, 0]),
        callchain: Some(U64s::new(&chain, Endian::NATIVE)),
        regs_user: Some(Regs { abi, mask: MASK, values: U64s::new(&registers, Endian::NATIVE) }),
        stack_user: Some(StackUser { bytes: &stack, dyn_size: Some(copied as u64) }),
        weight: Some(recrep_format::abi::Weight::Whole(99)),
        ..SampleFields::default()
    };
    Record::new(1, Body::Sample(Box::new(fields))).to_bytes(Endian::NATIVE).unwrap()
}

/// What became of a sample: the words of its chain, the number of registers, and the size of the
/// stack.
fn read(record: &[u8]) -> (Vec<u64>, usize, usize) {
    let layout = SampleLayout::of(&attr());
    let raw = Frames::new(record, 0, Endian::NATIVE).next().unwrap().unwrap();
    assert_eq!(raw.bytes.len(), record.len());
    let fields = Sample::new(raw, &layout, Endian::NATIVE).fields().unwrap();
    assert_eq!(fields.weight, Some(recrep_format::abi::Weight::Whole(99)));
    let (regs, stack) = (fields.regs_user.unwrap(), fields.stack_user.unwrap());
    (fields.callchain.unwrap().iter().collect(), regs.values.len(), stack.bytes.len())
}

fn gather(shared: &Unwinding, time: u64, misc: u16, body: Body<'_>) {
    let trailer = SampleId { time: Some(time), ..SampleId::default() };
    let trailer = trailer.shaped(&SampleIdLayout::of(&attr()));
    shared.spaces.gather(&Record::new(misc, body).with_trailer(trailer));
}

fn exec(shared: &Unwinding, time: u64, pid: u32) {
    let comm = Comm { pid, tid: pid, comm: Text::new(b"x") };
    gather(shared, time, misc::COMM_EXEC, Body::Comm(comm));
}

fn map(shared: &Unwinding, time: u64, pid: u32, range: [u64; 2], path: &[u8]) {
    map_file(shared, time, pid, range, (path, 1));
}

fn map_file(
    shared: &Unwinding,
    time: u64,
    pid: u32,
    [start, end]: [u64; 2],
    (path, ino): (&[u8], u64),
) {
    let inode = Inode { maj: 0, min: 0, ino, ino_generation: 0 };
    let map = Mmap2 {
        pid,
        tid: pid,
        addr: start,
        len: end - start,
        pgoff: 0,
        identity: MmapIdentity::Inode(inode),
        prot: 5,
        flags: 2,
        filename: Text::new(path),
    };
    gather(shared, time, CpuMode::User.bits(), Body::Mmap2(map));
}

const CODE: [u64; 2] = [0x1000, 0x2000];
const KERNEL: [u64; 2] = [context::KERNEL, 0xffff_8000];

fn chain(user: &[u64]) -> Vec<u64> {
    [&KERNEL[..], user].concat()
}

#[test]
fn a_chain_that_is_whole_stands_alone() {
    let shared = shared();
    exec(&shared, 10, PID);
    map(&shared, 11, PID, CODE, b"//anon");
    let mut rewriter = Rewriter::new(shared);
    let written = read(rewriter.rewrite(&sample(20, PID, RegsAbi::ABI_64, 64), 20));
    assert_eq!(written, (chain(&[context::USER, 0x1234, 0x1111, 0x1222]), 0, 0));
    assert_eq!(rewriter.take_chains(), Chains { whole: 1, ..Chains::default() });
}

#[test]
fn a_chain_that_ends_early_keeps_its_registers() {
    let shared = shared();
    exec(&shared, 10, PID);
    map(&shared, 11, PID, CODE, b"//anon");
    let mut rewriter = Rewriter::new(shared);
    let (words, registers, stack) =
        read(rewriter.rewrite(&sample(20, PID, RegsAbi::ABI_64, 32), 20));
    assert_eq!((words, registers, stack), (chain(&[context::USER, 0x1234, 0x1111]), 20, 0));
    assert_eq!(rewriter.take_chains().summary().unwrap().split(' ').next(), Some("under"));
}

#[test]
fn what_is_not_known_to_be_mapped_keeps_the_stack_that_was_copied() {
    let shared = shared();
    let mut rewriter = Rewriter::new(Arc::clone(&shared));
    let mut written = |time, pid, copied| {
        read(rewriter.rewrite(&sample(time, pid, RegsAbi::ABI_64, copied), time))
    };
    let kept = |stack| (chain(&[]), 20, stack);
    assert_eq!(written(20, PID, 64), kept(64), "nothing is known of it");
    exec(&shared, 30, PID);
    let alone = (chain(&[context::USER, 0x1234]), 20, 0);
    assert_eq!(written(31, PID, 64), alone, "nothing is mapped: nobody will know more");
    map(&shared, 40, PID, CODE, b"/no/such/file");
    assert_eq!(written(41, PID, 41), kept(48), "the file cannot be read");
    assert_eq!(written(41, PID, 0), kept(0));
    map(&shared, 50, PID, CODE, b"//anon");
    assert_eq!(written(49, PID, 64), kept(64), "that was mapped later");
    assert_eq!(written(50, PID, 64).2, 0);
    gather(&shared, 60, 0, Body::Lost(Lost { id: ID, lost: 1 }));
    assert_eq!(written(60, PID, 64), kept(64), "what was lost may be a mapping");
    exec(&shared, 70, PID);
    map(&shared, 70, PID, CODE, b"//anon");
    assert_eq!(written(71, PID, 64).2, 0);
    assert_eq!(rewriter.take_chains().kept, 5);
}

#[test]
fn children_have_what_their_parents_had_when_they_were_forked() {
    let shared = shared();
    let fork = |time, child: u32, parent: u32| {
        let task = Task { pid: child, ppid: parent, tid: child, ptid: parent, time };
        gather(&shared, time, 0, Body::Fork(task));
    };
    // In the order in which rings are read, which is not that of time.
    fork(30, PID - 1, PID);
    exec(&shared, 40, PID - 1);
    map(&shared, 11, PID, CODE, b"//anon");
    exec(&shared, 10, PID);
    let mut rewriter = Rewriter::new(Arc::clone(&shared));
    let mut length =
        |time, pid| read(rewriter.rewrite(&sample(time, pid, RegsAbi::ABI_64, 64), time)).0.len();
    assert_eq!([35, 45, 39].map(|time| length(time, PID - 1)), [6, 4, 6]);
    fork(50, PID - 2, PID - 9);
    assert_eq!(length(51, PID - 2), 4, "of a parent that is not known");
}

#[test]
fn other_records_and_samples_without_a_user_s_stack_stay() {
    let shared = shared();
    let mut rewriter = Rewriter::new(shared);
    let none = sample(1, PID, RegsAbi::NONE, 0);
    let (words, registers, stack) = read(rewriter.rewrite(&none, 1));
    assert_eq!((words, registers, stack), (chain(&[context::USER, 0x1234, 0x1111]), 0, 0));
    // Of another event, damaged, no record at all.
    let mut other = sample(1, PID, RegsAbi::ABI_64, 64);
    other[8] += 1;
    let mut damaged = sample(1, PID, RegsAbi::ABI_64, 64);
    let at_chain = 8 + 5 * 8;
    damaged[at_chain..at_chain + 8].copy_from_slice(&u64::MAX.to_ne_bytes());
    let bytes = [other, damaged, vec![1, 2, 3, 4, 5]].concat();
    assert_eq!(rewriter.rewrite(&bytes, 1), bytes);
    assert_eq!(rewriter.take_chains(), Chains::default());
}

#[test]
fn a_process_that_lives_is_looked_at_where_no_record_tells() {
    let shared = shared();
    let me = std::process::id();
    let space = shared.spaces.of(me, &mut spaces::SpaceCache::default()).unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let code = maps.lines().find(|line| line.contains(" r-xp ")).unwrap();
    let start = u64::from_str_radix(code.split('-').next().unwrap(), 16).unwrap();
    let mapping = space.find(start, 5).unwrap();
    let number = shared.modules.number(&mapping.source);
    let module = shared.modules.module(number, me, mapping).unwrap();
    assert_eq!(module.rules.machine(), modules::NATIVE);
}

/// Writes a jitdump that has code at an address, with the rule that the caller's frame is 48 bytes
/// above the stack pointer, and returns its path and inode.
fn jit_dump(dir: &Path, start: u64, code: &[u8], time: u64) -> (Vec<u8>, u64) {
    let size = u32::try_from(code.len()).unwrap();
    let pc = -(size.next_multiple_of(8) + 32).cast_signed();
    let words = |words: &[u32]| words.iter().flat_map(|w| w.to_ne_bytes()).collect::<Vec<_>>();
    let longs = |longs: &[u64]| longs.iter().flat_map(|l| l.to_ne_bytes()).collect::<Vec<_>>();
    let cie = [1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0].to_vec();
    let fde = [words(&[16, 28, pc.cast_unsigned(), size]), vec![0, 0x0e, 48, 0]].concat();
    let rules = [words(&[20, 0]), cie, fde].concat();
    let length = rules.len() as u64;
    let dump = [
        words(&[0x4a69_5444, 1, 40, 62, 0, 7, 0, 0, 0, 0]),
        words(&[4, 40 + u32::try_from(rules.len()).unwrap()]),
        longs(&[time, length, 0, length]),
        rules,
        words(&[0, 58 + size]),
        longs(&[time, 7, 0, start, size.into(), 0]),
        b"f\0".to_vec(),
        code.to_vec(),
    ];
    let path = dir.join("jit-7.dump");
    std::fs::write(&path, dump.concat()).unwrap();
    let ino = std::fs::metadata(&path).unwrap().ino();
    (path.into_os_string().into_encoded_bytes(), ino)
}

#[test]
fn code_of_a_jit_is_left_by_the_rules_in_its_dump() {
    let dir = tempfile::tempdir().unwrap();
    // Its return address is where the frame pointer does not say.
    let by_rules = (chain(&[context::USER, 0x1234, 0x1222]), 20, 0);
    let by_frame_pointer = (chain(&[context::USER, 0x1234, 0x1111, 0x1222]), 0, 0);
    for (time, is_monotonic, expected) in [
        (15, false, &by_rules),
        (15, true, &by_rules),
        (25, false, &by_rules),
        // The code came after the sample.
        (25, true, &by_frame_pointer),
    ] {
        let (path, ino) = jit_dump(dir.path(), 0x1230, &[0x90; 16], time);
        let mut shared = Arc::into_inner(shared()).unwrap();
        shared.is_monotonic = is_monotonic;
        exec(&shared, 10, PID);
        map(&shared, 11, PID, CODE, b"//anon");
        map_file(&shared, 12, PID, [0x9000, 0xa000], (&path, ino));
        let mut rewriter = Rewriter::new(Arc::new(shared));
        let written = read(rewriter.rewrite(&sample(20, PID, RegsAbi::ABI_64, 64), 20));
        assert_eq!(&written, expected, "loaded at {time}, monotonic: {is_monotonic}");
    }
}

#[test]
fn rules_count_while_the_process_has_the_code() {
    let dir = tempfile::tempdir().unwrap();
    let mut code = vec![0x90_u8; 16];
    let start = code.as_ptr().addr() as u64;
    let (path, ino) = jit_dump(dir.path(), start, &code, 5);
    let file = FileIdentity::File(FileId { ino, ..FileId::default() });
    let source = Arc::new(modules::Source::new(&path, file));
    let page = modules::Mapping { range: 0x9000..0xa000, pgoff: 0, source };
    let (mut dumps, mut memory) = (jit_dumps::JitDumps::default(), code::CodeCache::default());
    dumps.begin_batch();
    let mut found = |version| {
        let (pid, machine, time) = (std::process::id(), Machine::X86_64, None);
        let at = jit_dumps::Moment { pid, machine, version, time };
        let found = dumps.find(&page, start + 3, at, &mut memory);
        assert_eq!(found.is_some(), found.and_then(|module| dumps.rules(module)).is_some());
        found.is_some()
    };
    assert!(found(1));
    code.fill(0xcc);
    assert_eq!(std::hint::black_box(&code)[0], 0xcc);
    // Until the code of the process is known to have changed.
    assert!(found(1) && !found(2));
}
