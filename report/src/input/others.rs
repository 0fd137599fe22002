//! Files of other formats that users hand over, with what to do.

/// Returns what a file that is no perf.data file is, by its first bytes, and what to do with it.
pub(super) fn describe(bytes: &[u8]) -> Option<&'static str> {
    const SIGNS: &[(usize, &[u8], &str)] = &[
        (
            257,
            b"ustar",
            "it is a tar archive; unpack it (tar xf FILE), or: tar xOf FILE NAME | rep -",
        ),
        (
            0,
            b"PK\x03\x04",
            "it is a zip archive; unpack it (unzip FILE), or: unzip -p FILE NAME | rep -",
        ),
        (0, b"BZh", "it is compressed by bzip2; unpack it: bzcat FILE | rep -"),
        (0, b"\x04\x22\x4d\x18", "it is compressed by lz4; unpack it: lz4 -dc FILE | rep -"),
        (0, b"\x5d\0\0", "it is compressed by lzma; unpack it: xz -dc --format=lzma FILE | rep -"),
        (0, b"7z\xbc\xaf\x27\x1c", "it is a 7z archive; unpack it: 7z e -so FILE | rep -"),
        (0, b"\x7fELF", "it is a program or library, not a recording; record it: rec -- FILE"),
        (0, b"SIMPLEPERF", "it is a report of simpleperf; rep reads what was recorded (perf.data)"),
        (
            0,
            b"JiTD",
            "it is the jitdump of a process; rep reads what was recorded (perf.data), and finds \
             jitdumps itself",
        ),
        (
            0,
            b"DTiJ",
            "it is the jitdump of a process; rep reads what was recorded (perf.data), and finds \
             jitdumps itself",
        ),
    ];
    for (at, sign, what) in SIGNS {
        if bytes.get(*at..).is_some_and(|rest| rest.starts_with(sign)) {
            return Some(what);
        }
    }
    let text = text(bytes)?.trim_start_matches('\u{feff}').trim_start();
    Some(match text.chars().next() {
        Some('<') => {
            "it is an HTML or SVG page, such as a flame graph; rep reads what was recorded \
             (perf.data)"
        }
        Some('{' | '[') => {
            "it is a JSON text, such as a profile for a browser; rep reads what was recorded \
             (perf.data)"
        }
        _ => {
            "it is a text, such as perf script or rep script prints; rep reads what was recorded \
             (perf.data)"
        }
    })
}

/// Returns the first bytes as text, if they are one.
fn text(bytes: &[u8]) -> Option<&str> {
    const SEEN: usize = 512;
    let head = bytes.get(..SEEN).unwrap_or(bytes);
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        // A character may be cut.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(head.get(..error.valid_up_to())?).ok()?
        }
        Err(_) => return None,
    };
    let is_text =
        valid.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\r' | '\t' | '\x1b'));
    (is_text && !valid.is_empty()).then_some(valid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_formats_are_known_by_their_first_bytes() {
        let mut tar = vec![0; 512];
        tar[257..262].copy_from_slice(b"ustar");
        for (bytes, what) in [
            (&tar[..], "tar"),
            (b"PK\x03\x04....", "zip"),
            (b"BZh91AY", "bzip2"),
            (b"\x7fELF\x02", "program"),
            (b"prog  7 1.000: cycles:\n\t 401000 main (/x)\n", "perf script"),
            (b"{\"meta\": {}}", "JSON"),
            (b"\n<!DOCTYPE html>", "HTML"),
            ("a name: ä".as_bytes(), "text"),
        ] {
            assert!(describe(bytes).unwrap().contains(what), "{what}");
        }
        assert_eq!(describe(b"\x01\x02\x03\xff"), None);
        assert_eq!(describe(b""), None);
    }
}
