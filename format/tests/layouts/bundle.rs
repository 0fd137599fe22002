//! The body of a bundle.

use recrep_format::endian::Endian;
use recrep_format::feature::{
    BundledFrame, BundledFunction, BundledImage, BundledKind, BundledModule, BundledPlace,
    BundledSection, BundledSegment, BundledVersion, Counted, bundle_body, bundle_body_with,
    bundled_modules, bundled_versions,
};
use recrep_format::wire::List;

#[test]
fn modules_of_a_bundle() {
    let bytes: &[&[u8]] = &[
        &[1, 0, 0, 0],                                           // one module
        &[2, 0, 0, 0],                                           // path
        b"/a",                                                   //
        &[1, 0, 0, 0],                                           // kind: a file
        &[0, 0, 0, 0],                                           // pid
        &[0; 16],                                                // start, end
        &[2, 0, 0, 0, 0xab, 0xcd],                               // build ID
        &[8, 0, 0, 0, 1, 0, 0, 0],                               // device
        &[77, 0, 0, 0, 0, 0, 0, 0],                              // inode
        &[0, 0, 0, 0],                                           // source
        &[1, 0, 0, 0],                                           // one function
        &[0, 0x10, 0, 0, 0, 0, 0, 0, 4, 0x10, 0, 0, 0, 0, 0, 0], // from 0x1000 to 0x1004
        &[1, 0, 0, 0, b'f'],                                     // its name
        &[1, 0, 0, 0, 3, 0, 0, 0],                               // one text
        b"a.c",                                                  //
        &[1, 0, 0, 0],                                           // one place
        &[2, 0x10, 0, 0, 0, 0, 0, 0],                            // at 0x1002
        &[1, 0, 0, 0],                                           // with one frame
        &[0, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0],                   // no function, first text, line 9
        &[1, 0, 0, 0],                                           // one image
        &[2, 0, 0, 0, 1, 0, 0, 0, 62, 0, 0, 0],                  // 64-bit, little-endian, x86-64
        &[1, 0, 0, 0],                                           // one segment
        &[0, 0x20, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0], // at 0x2000, 128 bytes
        &[0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0], // 64 of them in the file at 0x1000
        &[1, 0, 0, 0],                                           // one section
        &[9, 0, 0, 0],                                           //
        b".eh_frame",                                            //
        &[0x10, 0x20, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0], // at 0x2010, 3 bytes
        &[3, 0, 0, 0, 7, 8, 9],                                  // contents
    ];
    let bytes = bytes.concat();
    let segment =
        BundledSegment { address: 0x2000, memory_size: 128, file_size: 64, offset: 0x1000 };
    let section = BundledSection {
        name: Counted(b".eh_frame"),
        address: 0x2010,
        size: 3,
        contents: Counted(&[7, 8, 9]),
    };
    let image = BundledImage {
        class: 2,
        data: 1,
        machine: 62,
        segments: List(vec![segment]),
        sections: List(vec![section]),
    };
    let frame = BundledFrame { function: 0, file: 1, line: 9 };
    let module = BundledModule {
        path: Counted(b"/a"),
        kind: BundledKind::FILE,
        pid: 0,
        start: 0,
        end: 0,
        build_id: Counted(&[0xab, 0xcd]),
        major: 8,
        minor: 1,
        inode: 77,
        source: Counted(b""),
        functions: List(vec![BundledFunction { start: 0x1000, end: 0x1004, name: Counted(b"f") }]),
        texts: List(vec![Counted(b"a.c")]),
        places: List(vec![BundledPlace { address: 0x1002, frames: List(vec![frame]) }]),
        images: List(vec![image]),
    };
    assert_eq!(bundled_modules(&bytes, Endian::Little).unwrap(), std::slice::from_ref(&module));
    assert_eq!(bundle_body(vec![module.clone()], Endian::Little).unwrap(), bytes);
    for cut in 0..bytes.len() {
        assert!(bundled_modules(&bytes[..cut], Endian::Little).is_err(), "{cut}");
    }
    assert_eq!(bundled_versions(&bytes, Endian::Little).unwrap(), []);
    let versions = [
        &[1, 0, 0, 0][..],               // number of versions
        &[0, 0, 0, 0],                   // module
        &[7, 0, 0, 0],                   // pid
        &[9, 0, 0, 0, 0, 0, 0, 0],       // time
        &[0, 0x10, 0, 0, 0, 0, 0, 0],    // start
        &[0x40, 0x10, 0, 0, 0, 0, 0, 0], // end
        &[0, 0, 0, 0, 0, 0, 0, 0x80],    // first
        &[1, 0, 0, 0],                   // is_replaced
    ];
    let with = [bytes.clone(), versions.concat()].concat();
    let version = BundledVersion {
        module: 0,
        pid: 7,
        time: 9,
        start: 0x1000,
        end: 0x1040,
        first: 1 << 63,
        is_replaced: 1,
    };
    assert_eq!(bundled_versions(&with, Endian::Little).unwrap(), [version]);
    assert_eq!(bundled_modules(&with, Endian::Little).unwrap(), std::slice::from_ref(&module));
    assert_eq!(bundle_body_with(vec![module], vec![version], Endian::Little).unwrap(), with);
    for cut in bytes.len() + 1..with.len() {
        assert!(bundled_versions(&with[..cut], Endian::Little).is_err(), "{cut}");
    }
}
