// Packets of traces of any bytes.

use recrep_trace::bts::{self, Branch};
use recrep_trace::spe::{Packet, PacketError, PacketKind, RecordReader};

/// A byte of choice, then packets of Arm SPE. Each that is read comes back from its bytes, and no
/// record has more packets than there are bytes.
pub(crate) fn spe(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let (mut at, mut records, mut reader) = (0, 0, RecordReader::default());
    while at < bytes.len() {
        let offset = (usize::from(*choice) + at) as u64;
        match Packet::read(&bytes[at..], offset) {
            Ok((packet, len)) => {
                assert!(len > 0 && at + len <= bytes.len(), "{packet:?}: {len} bytes");
                assert!(!packet.to_string().is_empty());
                comes_back(&packet);
                records += usize::from(reader.take(&packet).is_some());
                at += len;
            }
            Err(error) => {
                assert!(error == PacketError::Unknown || bytes.len() - at < 16, "{error}");
                reader.reset();
                at += 1;
            }
        }
    }
    assert!(records <= bytes.len());
}

fn comes_back(packet: &Packet) {
    let mut written = Vec::new();
    packet.write(&mut written);
    let (again, len) = Packet::read(&written, 0).expect("what was written is read");
    assert_eq!(&again, packet);
    assert!(len == written.len() || packet.kind == PacketKind::Alignment, "{packet:?}");
}

/// Branches of Intel BTS come back.
pub(crate) fn bts(bytes: &[u8]) {
    for branch in bytes.as_chunks::<{ bts::SIZE }>().0 {
        let read = Branch::read(branch);
        assert_eq!(&read.to_bytes(), branch);
        assert!(!read.to_string().is_empty());
    }
}
