//! Every record comes back as it was: field by field, and byte by byte.

use super::*;
use crate::abi::{
    AuxFlags, AuxtraceErrorKind, BpfEventType, BranchFlags, BranchSampleType, Cpu, KSymbolFlags,
    KSymbolType, Pid, ReadFormat, RecordType, RegsAbi, SampleType, Tid, Weight, misc,
};
use crate::attr::Attr;
use crate::bytes::{Cursor, Encoder, U64s};
use crate::endian::Endian;
use crate::layout::{SampleIdLayout, SampleLayout};
use crate::read::Frames;
use crate::wire::Text;

fn layout(attr: &Attr) -> SampleLayout {
    SampleLayout::of(attr)
}

fn round_trip(record: &Record<'_>, attr: &Attr, endian: Endian) -> usize {
    let e = record.to_bytes(endian).unwrap();
    let raw = Frames::new(&e, 0, endian).next().unwrap().unwrap();
    let sample = layout(attr);
    let cx = Context { endian, sample: &sample, trailer: SampleIdLayout::of(attr) };
    let back = raw.decode(&cx).unwrap();
    assert_eq!(&back, record);
    assert_eq!(back.to_bytes(endian).unwrap(), e);
    e.len()
}

fn trailing_attr() -> Attr {
    let sample_type = SampleType::TID | SampleType::TIME | SampleType::CPU | SampleType::IDENTIFIER;
    Attr { sample_type, flags: crate::abi::AttrFlags::SAMPLE_ID_ALL, ..Attr::default() }
}

fn trailer() -> SampleId {
    SampleId {
        tid: Some([3, 4]),
        time: Some(5),
        cpu: Some([6, 0]),
        identifier: Some(7),
        ..SampleId::default()
    }
}

#[test]
fn kernel_records_keep_every_field() {
    let ips = 9u64.to_le_bytes();
    let inode = Inode { maj: 8, min: 1, ino: 99, ino_generation: 2 };
    let mmap2 = |identity| Mmap2 {
        pid: 1,
        tid: 2,
        addr: 0x1000,
        len: 0x2000,
        pgoff: 0x3000,
        identity,
        prot: 5,
        flags: 2,
        filename: Text::new(b"/usr/bin/ls"),
    };
    let build_id = MmapBuildId { size: 20, reserved: [0; 3], bytes: [0xab; 20] };
    let task = Task { pid: 1, ppid: 2, tid: 3, ptid: 4, time: 5 };
    let throttle = Throttle { time: 1, id: 2, stream_id: 3 };
    let (ksym_type, flags) = (KSymbolType::BPF, KSymbolFlags::UNREGISTER);
    let symbol = KSymbol { addr: 1, len: 2, ksym_type, flags, name: Text::new(b"bpf_prog_1") };
    let bodies = [
        (
            0,
            Body::Mmap(Mmap {
                pid: 1,
                tid: 2,
                addr: 3,
                len: 4,
                pgoff: 5,
                filename: Text::new(b"//anon"),
            }),
        ),
        (0, Body::Mmap2(mmap2(MmapIdentity::Inode(inode)))),
        (misc::MMAP_BUILD_ID, Body::Mmap2(mmap2(MmapIdentity::BuildId(build_id)))),
        (misc::COMM_EXEC, Body::Comm(Comm { pid: 1, tid: 2, comm: Text::new(b"sleep") })),
        (0, Body::Fork(task)),
        (0, Body::Exit(task)),
        (0, Body::Lost(Lost { id: 1, lost: 2 })),
        (0, Body::LostSamples(LostSamples { lost: 2 })),
        (0, Body::Throttle(throttle)),
        (0, Body::Unthrottle(throttle)),
        (0, Body::Aux(Aux { aux_offset: 1, aux_size: 2, flags: AuxFlags::from_bits_retain(3) })),
        (0, Body::ItraceStart(ItraceStart { pid: 1, tid: 2 })),
        (misc::SWITCH_OUT, Body::Switch),
        (0, Body::SwitchCpuWide(SwitchCpuWide { next_prev_pid: 1, next_prev_tid: 2 })),
        (0, Body::KSymbol(symbol)),
        (
            0,
            Body::BpfEvent(BpfEvent {
                event_type: BpfEventType::PROG_LOAD,
                flags: 0,
                id: 3,
                tag: *b"tagtagta",
            }),
        ),
        (0, Body::Cgroup(Cgroup { id: 1, path: Text::new(b"/a/b") })),
        (0, Body::TextPoke(TextPoke { addr: 1, old_len: 1, new_len: 1, bytes: &[1, 2, 0, 0] })),
        (0, Body::AuxOutputHwId(AuxOutputHwId { hw_id: 7 })),
        (0, Body::Other(RecordType(4000), b"12345678")),
        (
            0,
            Body::CallchainDeferred(CallchainDeferred {
                cookie: 1,
                nr: 1,
                ips: U64s::new(&ips, Endian::Little),
            }),
        ),
    ];
    for (bits, body) in bodies {
        let kernel = body.kind().is_kernel();
        for endian in [Endian::Little, Endian::Big] {
            let record = Record::new(bits, body.clone());
            let record = if kernel { record.with_trailer(trailer()) } else { record };
            round_trip(&record, &trailing_attr(), endian);
        }
    }
}

#[test]
fn bytes_beyond_the_known_fields_are_kept() {
    let mut record = Record::new(0, Body::Lost(Lost { id: 1, lost: 2 })).with_trailer(trailer());
    record.rest = &[1, 2, 3, 4, 5, 6, 7, 8];
    assert_eq!(round_trip(&record, &trailing_attr(), Endian::Little), 8 + 16 + 8 + 32);
}

#[test]
fn a_sample_with_every_field_comes_back_and_is_read_lazily() {
    let attr = Attr {
        sample_type: SampleType::from_bits_retain((1 << 24) - 1),
        read_format: ReadFormat::GROUP
            | ReadFormat::ID
            | ReadFormat::LOST
            | ReadFormat::TOTAL_TIME_ENABLED,
        branch_sample_type: BranchSampleType::HW_INDEX | BranchSampleType::COUNTERS,
        sample_regs_user: 0b101,
        sample_regs_intr: 0b1,
        ..Attr::default()
    };
    let words: Vec<u8> =
        [2u64, 50, 10, 1, 0, 20, 2, 3].iter().flat_map(|w| w.to_le_bytes()).collect();
    let words = U64s::new(&words, Endian::Little);
    let bytes = [0x11u8; 48];
    let some = |count: usize| U64s::new(&bytes[..8 * count], Endian::Little);
    let fields = SampleFields {
        identifier: Some(1),
        ip: Some(2),
        tid: Some([3, 4]),
        time: Some(5),
        addr: Some(6),
        id: Some(7),
        stream_id: Some(8),
        cpu: Some([9, 0]),
        period: Some(10),
        read: Some(ReadValues { format: attr.read_format, words }),
        callchain: Some(some(3)),
        raw: Some(&bytes[..12]),
        branch_stack: Some(BranchStack {
            hw_idx: Some(1),
            words: some(6),
            counters: Some(some(2)),
        }),
        regs_user: Some(Regs { abi: RegsAbi::ABI_64, mask: 0b101, values: some(2) }),
        stack_user: Some(StackUser { bytes: &bytes[..16], dyn_size: Some(8) }),
        weight: Some(Weight::Whole(11)),
        data_src: Some(12),
        transaction: Some(13),
        regs_intr: Some(Regs { abi: RegsAbi::NONE, mask: 0b1, values: some(0) }),
        phys_addr: Some(14),
        cgroup: Some(15),
        data_page_size: Some(4096),
        code_page_size: Some(8192),
        aux: Some(&bytes[..24]),
    };
    let record = Record::new(2, Body::Sample(Box::new(fields.clone())));
    for endian in [Endian::Little, Endian::Big] {
        round_trip(&record, &attr, endian);
        let e = record.to_bytes(endian).unwrap();
        let raw = Frames::new(&e, 0, endian).next().unwrap().unwrap();
        let layout = layout(&attr);
        let sample = Sample::new(raw, &layout, endian);
        let fixed = [
            sample.event_id(),
            sample.ip(),
            sample.time(),
            sample.addr(),
            sample.stream_id(),
            sample.period(),
        ];
        assert_eq!(fixed, [1, 2, 5, 6, 8, 10].map(Some));
        assert_eq!((sample.pid(), sample.tid(), sample.cpu()), (Some(3), Some(4), Some(9)));
        assert_eq!(sample.callchain().unwrap(), fields.callchain);
        let counters: Vec<_> = sample.fields().unwrap().read.unwrap().counters().collect();
        assert_eq!(counters[1], Counter { value: 20, id: Some(2), lost: Some(3) });
        // Every cut is an error or `None`, never a panic.
        for cut in HEADER_SIZE..raw.bytes.len() {
            let short = RawRecord { bytes: &raw.bytes[..cut], ..raw };
            assert!(Sample::new(short, &layout, endian).fields().is_err());
        }
    }
}

#[test]
fn what_a_layout_cannot_represent_is_refused() {
    let words = [7u8; 64];
    let some = |count: usize| U64s::new(&words[..8 * count], Endian::Little);
    let inode = Inode { maj: 0, min: 0, ino: 0, ino_generation: 0 };
    let (pid, tid, addr, len, pgoff, prot, flags) = (1, 1, 0, 0, 0, 0, 0);
    let identity = MmapIdentity::Inode(inode);
    let mmap2 =
        Mmap2 { pid, tid, addr, len, pgoff, identity, prot, flags, filename: Text::new(b"a") };
    let (kind, code, cpu, ip, message) = (AuxtraceErrorKind::ITRACE, 0, Cpu(0), 0, Text::new(b""));
    let (of_pid, of_tid) = (Pid(1), Tid(1));
    let (time, guest) = (Some(1), None);
    let error = AuxtraceError {
        kind,
        code,
        cpu,
        pid: of_pid,
        tid: of_tid,
        fmt: 0,
        ip,
        time,
        message,
        guest,
    };
    let sample = |fields| Body::Sample(Box::new(fields));
    let branches = |words, counters| Some(BranchStack { hw_idx: None, words, counters });
    let read = ReadValues { format: ReadFormat::ID, words: some(3) };
    let stack = |bytes, dyn_size| Some(StackUser { bytes, dyn_size });
    let none = SampleFields::default;
    for (bits, body) in [
        (misc::MMAP_BUILD_ID, Body::Mmap2(mmap2)),
        (0, Body::AuxtraceError(error)),
        (0, Body::Read(ReadRecord { pid, tid, values: read.clone() })),
        (0, sample(SampleFields { read: Some(read), ..none() })),
        (0, sample(SampleFields { branch_stack: branches(some(4), None), ..none() })),
        (0, sample(SampleFields { branch_stack: branches(some(6), Some(some(1))), ..none() })),
        (0, sample(SampleFields { stack_user: stack(&words[..8], None), ..none() })),
        (0, sample(SampleFields { stack_user: stack(&[], Some(0)), ..none() })),
    ] {
        let mut e = Encoder::new(Endian::Little);
        e.u8(1);
        let record = Record::new(bits, body);
        assert!(record.encode(&mut e).is_err(), "{record:?}");
        assert_eq!(e.len(), 1);
    }
}

#[test]
fn a_read_record_of_a_group_has_all_its_counters() {
    let format = ReadFormat::GROUP | ReadFormat::ID | ReadFormat::TOTAL_TIME_ENABLED;
    let attr = Attr { read_format: format, ..trailing_attr() };
    let words: Vec<u8> =
        [2u64, 50, 10, 1, 20, 2].iter().flat_map(|word| word.to_le_bytes()).collect();
    let values = ReadValues { format, words: U64s::new(&words, Endian::Little) };
    let counters: Vec<_> = values.counters().map(|counter| (counter.value, counter.id)).collect();
    assert_eq!(counters, [(10, Some(1)), (20, Some(2))]);
    let record =
        Record::new(0, Body::Read(ReadRecord { pid: 1, tid: 2, values })).with_trailer(trailer());
    for endian in [Endian::Little, Endian::Big] {
        assert_eq!(round_trip(&record, &attr, endian), 8 + 8 + 48 + 32);
    }
}

#[test]
fn branches_keep_their_flags_across_byte_orders() {
    let flags = BranchFlags(1 | 7 << 4 | 2 << 24);
    let words: Vec<u8> = [1u64, 2, flags.0].iter().flat_map(|word| word.to_le_bytes()).collect();
    let stack =
        BranchStack { hw_idx: None, words: U64s::new(&words, Endian::Little), counters: None };
    let fields = SampleFields { branch_stack: Some(stack), ..SampleFields::default() };
    let attr = Attr { sample_type: SampleType::BRANCH_STACK, ..Attr::default() };
    let e = Record::new(2, Body::Sample(Box::new(fields))).to_bytes(Endian::Big).unwrap();
    let raw = Frames::new(&e, 0, Endian::Big).next().unwrap().unwrap();
    let back =
        Sample::new(raw, &layout(&attr), Endian::Big).fields().unwrap().branch_stack.unwrap();
    assert_eq!(back.entries().next().unwrap().flags, flags);
}

#[test]
fn every_named_bit_has_its_place() {
    let ordered: SampleType = crate::layout::ORDER.iter().copied().collect();
    assert_eq!(
        ordered.bits(),
        SampleType::all().iter_names().map(|(_, bit)| bit.bits()).fold(0, |a, b| a | b)
    );
    for (name, bit) in SampleType::all().iter_names() {
        let attr = Attr { sample_type: bit, ..Attr::default() };
        let zeroes = [0u8; 64];
        let decoded =
            SampleFields::decode(&mut Cursor::new(&zeroes, 0, Endian::NATIVE), &layout(&attr));
        let mut e = Encoder::new(Endian::NATIVE);
        decoded.unwrap().encode(&mut e).unwrap();
        assert!(!e.is_empty(), "{name} is decoded and not encoded");
    }
}

/// A type with a name but without a decoder is a type that somebody forgot.
#[test]
fn every_named_type_is_decoded() {
    let attr = Attr { size: 64, ..Attr::default() };
    for kind in RecordType::NAMED {
        let mut body = [0u8; 400];
        body[4] = 64;
        let mut e = Encoder::new(Endian::Little);
        RecordHeader { kind: *kind, misc: 0, size: 408 }.encode(&mut e);
        e.bytes(&body);
        let raw = RawRecord {
            header: RecordHeader { kind: *kind, misc: 0, size: 408 },
            offset: 0,
            bytes: e.as_bytes(),
            payload: &[],
        };
        let sample = layout(&attr);
        let cx = Context { endian: Endian::Little, sample: &sample, trailer: SampleIdLayout::NONE };
        let record = raw.decode(&cx).unwrap();
        assert_eq!(record.body.kind(), *kind);
        assert!(!matches!(record.body, Body::Other(..)), "{kind} has a name and no decoder");
        assert_eq!(record.to_bytes(Endian::Little).unwrap(), e.as_bytes(), "{kind}");
    }
}

#[test]
fn a_record_too_large_for_its_header_is_refused_and_leaves_nothing() {
    let path = vec![b'a'; 70_000];
    let mut e = Encoder::new(Endian::Little);
    e.u8(1);
    let record = Record::new(0, Body::Cgroup(Cgroup { id: 1, path: Text::new(&path) }));
    assert!(record.encode(&mut e).is_err());
    assert_eq!(e.len(), 1);
}
