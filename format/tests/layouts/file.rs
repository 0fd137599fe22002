//! The headers of files and streams, and a whole file.

use recrep_format::abi::SampleType;
use recrep_format::attr::{Attr, AttrEntry};
use recrep_format::bytes::Cursor;
use recrep_format::endian::Endian;
use recrep_format::feature::NrCpus;
use recrep_format::read::{File, FileHeader, Mode, Section};
use recrep_format::wire::Wire;
use recrep_format::write::{FeatureWriter, FileWriter, PipeWriter};

/// A file with an attr, its id, a record and a feature.
fn checked(endian: Endian, fields: &[&[u8]], magic: [u8; 8]) {
    let bytes = fields.concat();
    let sample_type = SampleType::IP;
    let entry = AttrEntry {
        attr: Attr { size: 64, config: 1, sample_type, ..Attr::default() },
        ids: vec![7],
        name: None,
    };
    let mut writer =
        FileWriter::new(std::io::Cursor::new(Vec::new()), endian, std::slice::from_ref(&entry))
            .unwrap();
    let round: [u8; 8] =
        if endian == Endian::Big { [0, 0, 0, 68, 0, 0, 0, 8] } else { [68, 0, 0, 0, 0, 0, 8, 0] };
    writer.write(&round).unwrap();
    let mut features = FeatureWriter::new(endian);
    features.add(&NrCpus { available: 4, online: 2 });
    let written = writer.finish(&features).unwrap().into_inner();
    assert_eq!(written, bytes, "{endian:?}");

    let header = FileHeader {
        magic,
        size: 104,
        attr_size: 80,
        attrs: Section { offset: 112, size: 80 },
        data: Section { offset: 192, size: 8 },
        event_types: Section { offset: 0, size: 0 },
        features: [1 << 7, 0, 0, 0],
    };
    assert_eq!(FileHeader::decode(&mut Cursor::new(&bytes, 0, endian), "header").unwrap(), header);
    let file = File::parse(&bytes).unwrap();
    assert_eq!((file.endian, file.attrs.entries(), file.warnings.len()), (endian, &[entry][..], 0));
    assert_eq!(file.records().count(), 1);
    assert_eq!(file.feature::<NrCpus>().unwrap().unwrap(), NrCpus { available: 4, online: 2 });
}

#[test]
fn a_file_little_endian() {
    let fields: &[&[u8]] = &[
        b"PERFILE2",
        &[104, 0, 0, 0, 0, 0, 0, 0],  // size of this header
        &[80, 0, 0, 0, 0, 0, 0, 0],   // attr_size
        &[112, 0, 0, 0, 0, 0, 0, 0],  // attrs: offset
        &[80, 0, 0, 0, 0, 0, 0, 0],   // size
        &[192, 0, 0, 0, 0, 0, 0, 0],  // data: offset
        &[8, 0, 0, 0, 0, 0, 0, 0],    // size
        &[0; 16],                     // event_types
        &[0x80, 0, 0, 0, 0, 0, 0, 0], // features: NRCPUS
        &[0; 24],
        &[7, 0, 0, 0, 0, 0, 0, 0],   // id
        &[0, 0, 0, 0, 64, 0, 0, 0],  // attr: type, size
        &[1, 0, 0, 0, 0, 0, 0, 0],   // config
        &[0; 8],                     // sample_period
        &[1, 0, 0, 0, 0, 0, 0, 0],   // sample_type
        &[0; 32],                    // read_format … config1
        &[104, 0, 0, 0, 0, 0, 0, 0], // ids: offset
        &[8, 0, 0, 0, 0, 0, 0, 0],   // size
        &[68, 0, 0, 0, 0, 0, 8, 0],  // FINISHED_ROUND
        &[216, 0, 0, 0, 0, 0, 0, 0], // NRCPUS: offset
        &[8, 0, 0, 0, 0, 0, 0, 0],   // size
        &[4, 0, 0, 0, 2, 0, 0, 0],   // available, online
    ];
    checked(Endian::Little, fields, *b"PERFILE2");
}

#[test]
fn a_file_big_endian() {
    let fields: &[&[u8]] = &[
        b"2ELIFREP",
        &[0, 0, 0, 0, 0, 0, 0, 104],  // size of this header
        &[0, 0, 0, 0, 0, 0, 0, 80],   // attr_size
        &[0, 0, 0, 0, 0, 0, 0, 112],  // attrs: offset
        &[0, 0, 0, 0, 0, 0, 0, 80],   // size
        &[0, 0, 0, 0, 0, 0, 0, 192],  // data: offset
        &[0, 0, 0, 0, 0, 0, 0, 8],    // size
        &[0; 16],                     // event_types
        &[0, 0, 0, 0, 0, 0, 0, 0x80], // features: NRCPUS
        &[0; 24],
        &[0, 0, 0, 0, 0, 0, 0, 7],   // id
        &[0, 0, 0, 0, 0, 0, 0, 64],  // attr: type, size
        &[0, 0, 0, 0, 0, 0, 0, 1],   // config
        &[0; 8],                     // sample_period
        &[0, 0, 0, 0, 0, 0, 0, 1],   // sample_type
        &[0; 32],                    // read_format … config1
        &[0, 0, 0, 0, 0, 0, 0, 104], // ids: offset
        &[0, 0, 0, 0, 0, 0, 0, 8],   // size
        &[0, 0, 0, 68, 0, 0, 0, 8],  // FINISHED_ROUND
        &[0, 0, 0, 0, 0, 0, 0, 216], // NRCPUS: offset
        &[0, 0, 0, 0, 0, 0, 0, 8],   // size
        &[0, 0, 0, 4, 0, 0, 0, 2],   // available, online
    ];
    checked(Endian::Big, fields, *b"2ELIFREP");
}

#[test]
fn the_header_of_a_stream() {
    for (endian, bytes) in [
        (Endian::Little, *b"PERFILE2\x10\0\0\0\0\0\0\0"),
        (Endian::Big, *b"2ELIFREP\0\0\0\0\0\0\0\x10"),
    ] {
        let features = FeatureWriter::new(endian);
        assert_eq!(
            PipeWriter::new(Vec::new(), endian, &[], &features).unwrap().finish().unwrap(),
            bytes
        );
        let file = File::parse(&bytes).unwrap();
        assert_eq!((file.endian, file.mode), (endian, Mode::Pipe));
    }
}
