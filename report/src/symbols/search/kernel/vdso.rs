//! The image that the kernel maps into every process as `[vdso]`.
//!
//! It is not in a file, but this process has it too. So if the running kernel is the recorded one,
//! the image can be read through `/proc/self/mem`.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use crate::query::Demangle;
use crate::symbols::elf::ElfImage;
use crate::symbols::file::Refusal;
use crate::symbols::module::Module;
use crate::symbols::names::table::SymbolTable;
use crate::symbols::outcome::{Outcome, Source};
use crate::symbols::search::candidates;
use crate::symbols::search::kernel::Kernel;
use crate::symbols::search::mapped::{FoundFile, Search, build, opened};
use crate::symbols::search::proof::{Proof, checked_image, open_image};

/// Maximum size in bytes: more than any kernel's image has.
const LIMIT: u64 = 1 << 20;

/// Loads the symbols of the copy that is kept under the recorded build ID, or of the running image.
pub(crate) fn load(
    search: &Search,
    kernel: &Kernel,
    module: &Module,
    outcome: &mut Outcome,
) -> Option<SymbolTable> {
    let found = kept_or_running(search, kernel, module, outcome)?;
    build(Some(&found), None, search.options.demangle != Demangle::No, outcome)
}

/// Returns the copy that is kept under the recorded build ID, or the running image.
pub(crate) fn kept_or_running(
    search: &Search,
    kernel: &Kernel,
    module: &Module,
    outcome: &mut Outcome,
) -> Option<FoundFile> {
    let entries = module.build_id.map(|id| candidates::cache_entries(&id, &search.options));
    let kept = module.build_id.into_iter().zip(entries).flat_map(|(id, entries)| {
        entries.into_iter().map(move |entry| (Proof::BuildId(id), entry.join("vdso")))
    });
    let found = kept.into_iter().find_map(|(proof, path)| {
        let image = open_image(&path, proof, &module.origin);
        opened(Source::BuildIdCache, path, image, outcome)
    });
    found.or_else(|| {
        let path = module.as_path().into();
        opened(Source::RunningVdso, path, image(search, kernel, module), outcome)
    })
}

/// Returns this process's vdso image if it is proven to be the recorded one: by its build ID if
/// recorded, else by the kernel's build ID, else by the machine or the running kernel.
pub(crate) fn image(
    search: &Search,
    kernel: &Kernel,
    module: &Module,
) -> Result<ElfImage, Refusal> {
    if &*module.path != b"[vdso]" {
        return Err(Refusal::Other(
            "this process has only [vdso]; this image is for 32-bit or x32 processes",
        ));
    }
    if search.options.symfs.is_some() {
        return Err(Refusal::Symfs);
    }
    let origin = &module.origin;
    let proof = match (module.build_id, origin.kernel) {
        (Some(build_id), _) => Proof::BuildId(build_id),
        (None, None) if search.host.made(origin).is_ok() => Proof::Trust,
        _ => kernel.check_running(origin).map(|()| Proof::Trust)?,
    };
    checked_image(running()?.into(), proof, origin)
}

/// Returns the bytes of this process's `[vdso]`.
fn running() -> Result<Vec<u8>, Refusal> {
    let maps = fs::read("/proc/self/maps")?;
    let range = maps.split(|&byte| byte == b'\n').find_map(range_of_vdso);
    let (start, end) = range.ok_or(Refusal::Other("this process has no [vdso] mapping"))?;
    let size = end.checked_sub(start).filter(|&size| size <= LIMIT);
    let size = size.and_then(|size| usize::try_from(size).ok());
    let size =
        size.ok_or(Refusal::Other("the [vdso] mapping of this process has an invalid size"))?;
    let mut bytes = vec![0; size];
    File::open("/proc/self/mem")?.read_exact_at(&mut bytes, start)?;
    Ok(bytes)
}

/// Returns the address range in a line of `/proc/self/maps`, if it is the line of `[vdso]`.
fn range_of_vdso(line: &[u8]) -> Option<(u64, u64)> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix("[vdso]")?;
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
}
