//! The image that the kernel maps into every process as `[vdso]`.
//!
//! It is not in a file, but this process has it too. So if the running kernel is the recorded one,
//! the image can be read through `/proc/self/mem`.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use crate::symbols::outcome::Refusal;

/// Maximum size in bytes: more than any kernel's image has.
const LIMIT: u64 = 1 << 20;

/// Returns the bytes of this process's `[vdso]`.
pub(crate) fn running() -> Result<Vec<u8>, Refusal> {
    let maps = fs::read("/proc/self/maps")?;
    let range = maps.split(|&byte| byte == b'\n').find_map(range_of_vdso);
    let (start, end) = range.ok_or(Refusal::Other("this process has no [vdso] mapping"))?;
    let size = end
        .checked_sub(start)
        .filter(|&size| size <= LIMIT)
        .and_then(|size| usize::try_from(size).ok());
    let mut bytes =
        vec![
            0;
            size.ok_or(Refusal::Other("the [vdso] mapping of this process has an invalid size"))?
        ];
    File::open("/proc/self/mem")?.read_exact_at(&mut bytes, start)?;
    Ok(bytes)
}

/// Returns the address range in a line of `/proc/self/maps`, if it is the line of `[vdso]`.
fn range_of_vdso(line: &[u8]) -> Option<(u64, u64)> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix("[vdso]")?;
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
}
