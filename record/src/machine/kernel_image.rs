//! The kernel's image, its modules and the code of BPF programs: where they are.
//!
//! The image is `[kernel.kallsyms]`, from the reference symbol (`_text` or `_stext`) to `_etext`;
//! the record's pgoff is the address of the reference symbol, by which readers find out how far the
//! kernel was moved at boot.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};

/// The kernel's image and modules in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelImage {
    /// Reference symbol, whose address shows the relocation.
    pub reference: &'static str,
    pub reference_at: u64,
    pub start: u64,
    pub end: u64,
    pub modules: Vec<KernelModule>,
    /// The symbols of BPF programs and of what calls them, by address, where they were asked for.
    pub bpf_symbols: Vec<BpfSymbol>,
}

/// A symbol of code that BPF made, without its length, which the kernel does not give here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BpfSymbol {
    pub addr: u64,
    pub name: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelModule {
    /// Name, as in `/proc/modules`.
    pub name: String,
    /// File that it was loaded from, or `[name]` if unknown.
    pub path: String,
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
}

impl KernelImage {
    /// Reads the addresses from `/proc`. `None` if they are hidden from this user
    /// (`kernel.kptr_restrict`), or if the kernel has no `/proc/kallsyms`. `bpf`: with the symbols
    /// of BPF programs, which are the last in it.
    pub(crate) fn find(bpf: bool) -> Option<Self> {
        let symbols = BufReader::with_capacity(256 << 10, File::open("/proc/kallsyms").ok()?);
        // Where code ends is otherwise known only after 100,000 lines, which take the kernel longer
        // to print than a short recording takes. Elsewhere than on x86, the resource has another
        // end, or begins at `_stext`.
        let resources = if cfg!(target_arch = "x86_64") {
            fs::read_to_string("/proc/iomem").ok()
        } else {
            None
        };
        let mut image = Self::of_symbols(symbols, bpf, resources.as_deref().and_then(code_length))?;
        let modules = fs::read_to_string("/proc/modules").unwrap_or_default();
        let index = module_index();
        image.modules = modules.lines().filter_map(|line| module(line, &index)).collect();
        image.modules.sort_unstable_by_key(|m| m.start);
        if image.end <= image.start {
            image.end = image
                .modules
                .iter()
                .map(|m| m.start)
                .find(|start| *start > image.start)
                .unwrap_or(u64::MAX);
        }
        Some(image)
    }

    /// Finds the image in lines `address type name [module]`, without modules, and without the end
    /// if `_etext` is missing. `length`: from `_text` to `_etext`, if that is known. No more is
    /// read than is needed; for `bpf` symbols, all.
    fn of_symbols(mut symbols: impl BufRead, bpf: bool, length: Option<u64>) -> Option<Self> {
        let (mut text, mut stext, mut end) = (None, None, 0);
        let mut bpf_symbols = Vec::new();
        let mut line = Vec::new();
        while (end == 0 || bpf)
            && matches!({ line.clear(); symbols.read_until(b'\n', &mut line) }, Ok(n) if n > 0)
        {
            let slot = match name_of(&line) {
                b"_text" => &mut text,
                b"_stext" => &mut stext,
                b"_etext" => {
                    end = address(&line)?;
                    continue;
                }
                name => {
                    if let Some(name) = name.strip_suffix(b"\t[bpf]").filter(|_| bpf) {
                        bpf_symbols.push(BpfSymbol { addr: address(&line)?, name: name.to_vec() });
                    }
                    continue;
                }
            };
            // A zero means that addresses are hidden.
            *slot = Some(address(&line).filter(|a| *a != 0)?);
            if let Some(end_of_code) =
                text.zip(length).and_then(|(text, length)| text.checked_add(length))
            {
                end = end_of_code;
            }
        }
        let (reference, reference_at) =
            text.map(|at| ("_text", at)).or(stext.map(|at| ("_stext", at)))?;
        bpf_symbols.sort_unstable_by_key(|symbol| symbol.addr);
        Some(Self {
            reference,
            reference_at,
            start: reference_at,
            end,
            modules: Vec::new(),
            bpf_symbols,
        })
    }
}

/// Returns the number of bytes of the kernel's code, by lines `start-end : name` of physical
/// memory; `None` where they are hidden from this user.
fn code_length(resources: &str) -> Option<u64> {
    let line =
        resources.lines().find_map(|line| line.trim_start().strip_suffix(" : Kernel code"))?;
    let (start, last) = line.split_once('-')?;
    let [start, last] = [start, last].map(|digits| u64::from_str_radix(digits, 16));
    last.ok()?.checked_sub(start.ok()?).filter(|length| *length > 0).map(|length| length + 1)
}

fn name_of(line: &[u8]) -> &[u8] {
    // After the address follow a space, a type of one letter, and a space.
    let name = line
        .iter()
        .position(|b| *b == b' ')
        .and_then(|space| line.get(space + 3..))
        .unwrap_or_default();
    name.trim_ascii_end()
}

fn address(line: &[u8]) -> Option<u64> {
    let digits = line.split(|b| *b == b' ').next()?;
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Parses `name size refcount users state address …`.
fn module(line: &str, index: &[(String, String)]) -> Option<KernelModule> {
    let mut fields = line.split_ascii_whitespace();
    let name = fields.next()?;
    let size = fields.next()?.parse().ok()?;
    let start =
        u64::from_str_radix(fields.nth(3)?.strip_prefix("0x")?, 16).ok().filter(|at| *at != 0)?;
    let path = index
        .iter()
        .find(|(n, _)| n == name)
        .map_or_else(|| format!("[{name}]"), |(_, path)| path.clone());
    Some(KernelModule { name: name.to_owned(), path, start, size })
}

/// Returns the names and files of this kernel's loadable modules, from the index of depmod(8).
fn module_index() -> Vec<(String, String)> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let dir = format!("/lib/modules/{release}");
    let index = fs::read_to_string(format!("{dir}/modules.dep")).unwrap_or_default();
    let files = index.lines().filter_map(|line| line.split_once(':').map(|(file, _)| file));
    files.filter_map(|file| Some((module_name(file)?, format!("{dir}/{file}")))).collect()
}

/// Returns the module's name of a file: `nls_utf8` for `kernel/fs/nls/nls-utf8.ko.zst`.
fn module_name(file: &str) -> Option<String> {
    let (stem, _) = file.rsplit('/').next()?.split_once(".ko")?;
    Some(stem.replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(symbols: &str) -> Option<KernelImage> {
        KernelImage::of_symbols(symbols.as_bytes(), false, None)
    }

    #[test]
    fn the_image_from_text_to_etext() {
        let found = image(
            "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\nffffffff81000000 T \
             _text\n\
             ffffffff81000010 t x_etext\nffffffff8220bb08 T _etext\nffffffff82400000 D _sdata\n",
        );
        let found = found.unwrap();
        assert_eq!((found.reference, found.reference_at), ("_text", 0xffff_ffff_8100_0000));
        assert_eq!((found.start, found.end), (0xffff_ffff_8100_0000, 0xffff_ffff_8220_bb08));
    }

    #[test]
    fn the_end_by_the_length_of_the_code() {
        let resources = "00100000-bfffffff : System RAM\n  01000000-022090c7 : Kernel code\n  \
                         02400000-02e08fff : Kernel rodata\n";
        assert_eq!(code_length(resources), Some(0x120_90c8));
        assert_eq!(code_length("00000000-00000000 : Kernel code\n"), None);
        assert_eq!(code_length("00000000-00000000 : System RAM\n"), None);
        // What follows is not read.
        let symbols =
            "ffffffff81000000 T _stext\nffffffff81000000 T _text\nffffffff8220bb08 T _etext\n";
        let found =
            KernelImage::of_symbols(symbols.as_bytes(), false, code_length(resources)).unwrap();
        assert_eq!(
            (found.reference, found.start, found.end),
            ("_text", 0xffff_ffff_8100_0000, 0xffff_ffff_8220_90c8)
        );
    }

    #[test]
    fn both_ways_find_the_same_end_here() {
        let symbols = || BufReader::new(File::open("/proc/kallsyms").unwrap());
        let resources = fs::read_to_string("/proc/iomem").unwrap_or_default();
        let Some(length) = code_length(&resources).filter(|_| cfg!(target_arch = "x86_64")) else {
            return;
        };
        assert_eq!(
            KernelImage::of_symbols(symbols(), false, Some(length)),
            KernelImage::of_symbols(symbols(), false, None)
        );
    }

    #[test]
    fn stext_where_there_is_no_text() {
        let found = image("ffff800080010000 T _stext\nffff800080f00000 D _etext\n").unwrap();
        assert_eq!((found.reference, found.start), ("_stext", 0xffff_8000_8001_0000));
    }

    #[test]
    fn hidden_addresses_are_no_image() {
        assert_eq!(
            image(
                "0000000000000000 T _stext\n0000000000000000 T _text\n0000000000000000 T _etext\n"
            ),
            None
        );
        assert_eq!(image(""), None);
    }

    #[test]
    fn bpf_programs_are_the_last_symbols() {
        let symbols = "ffffffff81000000 T _text\nffffffff8220bb08 T _etext\nffffffffc0001000 t \
                       xt_x\t[xt]\n\
                       ffffffffc0203100 t bpf_prog_6deef7357e7b4530_f\t[bpf]\n\
                       ffffffffc0203000 t bpf_trampoline_6442\t[bpf]\n";
        let found = KernelImage::of_symbols(symbols.as_bytes(), true, None).unwrap();
        let symbol = |addr, name: &str| BpfSymbol { addr, name: name.into() };
        assert_eq!(
            found.bpf_symbols,
            [
                symbol(0xffff_ffff_c020_3000, "bpf_trampoline_6442"),
                symbol(0xffff_ffff_c020_3100, "bpf_prog_6deef7357e7b4530_f")
            ]
        );
        assert_eq!(found.end, 0xffff_ffff_8220_bb08);
        assert!(image(symbols).unwrap().bpf_symbols.is_empty());
    }

    #[test]
    fn modules_by_name_and_file() {
        let index =
            vec![("nls_utf8".to_owned(), "/lib/modules/x/kernel/fs/nls/nls_utf8.ko".to_owned())];
        let found = module("nls_utf8 12288 1 - Live 0xffffffffc0a00000 (E)", &index).unwrap();
        assert_eq!(found.path, "/lib/modules/x/kernel/fs/nls/nls_utf8.ko");
        assert_eq!((found.start, found.size), (0xffff_ffff_c0a0_0000, 12288));
        assert_eq!(module("zram 1 0 - Live 0xffffffffc0b00000", &index).unwrap().path, "[zram]");
        assert_eq!(module("zram 1 0 - Live 0x0000000000000000", &index), None);
        assert_eq!(module_name("kernel/a/nls-utf8.ko.zst").as_deref(), Some("nls_utf8"));
    }
}
