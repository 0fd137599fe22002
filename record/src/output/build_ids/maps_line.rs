//! Parser for `/proc/PID/maps`, written for speed: a busy machine has thousands of lines.
//!
//! ```text
//! 7f0000001000-7f0000002000 r-xp 00001000 fd:01 41038      /usr/lib/with space.so (deleted)
//! start        end          prot pgoff    maj:min inode    name, to the end of the line
//! ```

use recrep_format::abi::{map_flags, prot};

use super::FileId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MapsLine<'a> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) prot: u32,
    pub(crate) flags: u32,
    pub(crate) pgoff: u64,
    pub(crate) file: FileId,
    path: &'a [u8],
}

impl<'a> MapsLine<'a> {
    /// Parses a line without its newline.
    pub(crate) fn parse(line: &'a [u8]) -> Option<Self> {
        let (start, rest) = hex(line, b'-')?;
        let (end, rest) = hex(rest, b' ')?;
        let ([r, w, x, s, b' '], rest) = rest.split_first_chunk()? else { return None };
        let (pgoff, rest) = hex(rest, b' ')?;
        let (maj, rest) = hex(rest, b':')?;
        let (min, rest) = hex(rest, b' ')?;
        let digits = rest.iter().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len());
        let (inode, rest) = rest.split_at_checked(digits)?;
        let ino = inode
            .iter()
            .try_fold(0u64, |n, d| n.checked_mul(10)?.checked_add(u64::from(d - b'0')))?;
        let spaces = rest.iter().take_while(|b| **b == b' ').count();
        Some(Self {
            start,
            end: (end >= start).then_some(end)?,
            prot: bit_if(*r, b'r', prot::READ)
                | bit_if(*w, b'w', prot::WRITE)
                | bit_if(*x, b'x', prot::EXEC),
            flags: if *s == b's' { map_flags::SHARED } else { map_flags::PRIVATE },
            pgoff,
            file: FileId {
                maj: u32::try_from(maj).ok()?,
                min: u32::try_from(min).ok()?,
                ino,
                generation: 0,
            },
            path: rest.get(spaces..)?,
        })
    }

    /// Returns the name as in the kernel's MMAP2 records: `//anon` for memory without a file.
    pub(crate) fn name(&self) -> &'a [u8] {
        if self.path.is_empty() { b"//anon" } else { self.path }
    }

    pub(crate) fn is_code(&self) -> bool {
        self.prot & prot::EXEC != 0
    }

    pub(crate) fn is_readable(&self) -> bool {
        self.prot & prot::READ != 0
    }
}

fn bit_if(found: u8, letter: u8, bit: u32) -> u32 {
    if found == letter { bit } else { 0 }
}

/// Parses hexadecimal digits up to `end`, which is skipped.
fn hex(text: &[u8], end: u8) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (at, byte) in text.iter().enumerate() {
        if *byte == end {
            return Some((value, text.get(at + 1..)?));
        }
        let digit = char::from(*byte).to_digit(16)?;
        value = value.checked_mul(16)? | u64::from(digit);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> MapsLine<'_> {
        MapsLine::parse(line.as_bytes()).unwrap()
    }

    #[test]
    fn a_library() {
        let m = parsed(
            "7f5c0a228000-7f5c0a39b000 r-xp 00028000 fd:01 41038                      \
             /usr/lib/libc.so.6",
        );
        assert_eq!((m.start, m.end, m.pgoff), (0x7f5c_0a22_8000, 0x7f5c_0a39_b000, 0x28000));
        assert_eq!((m.prot, m.flags), (prot::READ | prot::EXEC, map_flags::PRIVATE));
        assert_eq!(m.file, FileId { maj: 0xfd, min: 1, ino: 41038, generation: 0 });
        assert_eq!(m.name(), b"/usr/lib/libc.so.6");
        assert!(m.is_code());
    }

    #[test]
    fn names_are_all_that_is_left_of_the_line() {
        assert_eq!(parsed("1-2 r--p 0 00:00 7  /a b/c d (deleted)").name(), b"/a b/c d (deleted)");
        assert_eq!(parsed("1-2 r-xp 0 00:00 0    [vdso]").name(), b"[vdso]");
        assert_eq!(
            parsed("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0   [vsyscall]").name(),
            b"[vsyscall]"
        );
        assert_eq!(parsed("1-2 r-xp 0 00:00 9 /a\\012b").name(), b"/a\\012b");
    }

    #[test]
    fn memory_without_a_file_is_anon() {
        let m = parsed("7ffd1000-7ffd2000 rwxs 00000000 00:00 0 ");
        assert_eq!(
            (m.name(), m.flags, m.prot),
            (&b"//anon"[..], map_flags::SHARED, prot::READ | prot::WRITE | prot::EXEC)
        );
        assert_eq!(parsed("1-2 ---p 0 00:00 0").name(), b"//anon");
    }

    #[test]
    fn what_is_no_line_is_none() {
        for bad in [
            "",
            "1-2",
            "1-2 r-xp",
            "x-2 r-xp 0 00:00 0",
            "2-1 r-xp 0 00:00 0",
            "11112222333344445-2 r-xp 0 0:0 0",
            "1-2 r-xp 0 00:00 99999999999999999999999 x",
        ] {
            assert_eq!(MapsLine::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn every_line_of_this_process_parses() {
        let maps = std::fs::read("/proc/self/maps").unwrap();
        let lines = maps.split(|b| *b == b'\n').filter(|l| !l.is_empty());
        let all: Vec<_> = lines.map(|line| MapsLine::parse(line).unwrap()).collect();
        assert!(all.iter().any(MapsLine::is_code));
        assert!(all.iter().any(|m| m.name() == b"[vdso]"));
    }
}
