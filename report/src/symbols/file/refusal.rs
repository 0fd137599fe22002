//! Reasons for which a file is not used, each as a sentence that `rep modules` prints.

use std::io;

use recrep_format::build_id::BuildId;

/// Reason why no symbols were read from a place.
#[derive(Clone, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Refusal {
    #[error("no such file")]
    Missing,
    #[error("not a regular file: not opened")]
    NotRegular,
    #[error("cannot be read: {0}")]
    Io(String),
    #[error("damaged or of the wrong format: {0}")]
    Malformed(String),
    #[error("build ID is {found}, but {recorded} was recorded: another version of the file")]
    BuildIdMismatch { recorded: BuildId, found: BuildId },
    #[error(
        "its checksum is {found:08x}, the debuglink says {linked:08x}: another version of the \
         debug file"
    )]
    CrcMismatch { linked: u32, found: u32 },
    #[error("has no build ID, but {recorded} was recorded: not known to be the same file")]
    NoBuildId { recorded: BuildId },
    #[error("has no symbol table (stripped)")]
    NoSymbols,
    #[error(
        "addresses are hidden (kernel.kptr_restrict or no CAP_SYSLOG): read as root or set \
         kernel.kptr_restrict=0"
    )]
    Restricted,
    #[error(
        "the running kernel has build ID {found}, but {recorded} was recorded: use --kallsyms \
         FILE of that kernel"
    )]
    OtherKernel { recorded: BuildId, found: BuildId },
    #[error(
        "the running kernel's build ID cannot be read, but {recorded} was recorded: use \
         --kallsyms FILE"
    )]
    UnknownKernel { recorded: BuildId },
    #[error(
        "no build ID was recorded, and the recorded {what} is {recorded}, but here it is {found}"
    )]
    OtherMachine { what: &'static str, recorded: String, found: String },
    #[error(
        "no build ID was recorded, and the recording does not say that it was made on this machine"
    )]
    UnknownMachine,
    #[error("neither its build ID nor its device and inode were recorded")]
    NoInode,
    #[error(
        "no build ID was recorded, and device and inode are not the recorded ones: the file was \
         replaced"
    )]
    OtherInode,
    #[error("no build ID was recorded, and the file was written to after the recording")]
    Changed,
    #[error("several recorded processes had this pid")]
    ReusedPid,
    #[error(
        "was last written to before the recorded process began: by another process that had the pid"
    )]
    MapBeforeProcess,
    #[error(
        "was written to after the end of the recorded process or, if that is not known, of the \
         recording"
    )]
    MapAfterProcess,
    #[error("belongs to user {owner}: not to the process's, nor to root")]
    OtherUser { owner: u32 },
    #[error("neither a build ID nor a checksum shows that it belongs to the recorded file")]
    NoChecksum,
    #[error(
        "no kernel build ID was recorded, and the running kernel has {symbol} at {found:#x}, not \
         at {recorded}"
    )]
    MovedKernel { symbol: String, recorded: String, found: u64 },
    #[error(
        "neither the kernel's build ID nor its release was recorded: an address alone does not \
         tell kernels apart"
    )]
    NoRelease,
    #[error(
        "no address of a kernel symbol, such as _text, was recorded: each boot may load the \
         kernel elsewhere"
    )]
    NoReference,
    #[error("is for another architecture than the recorded {recorded}")]
    OtherArchitecture { recorded: String },
    #[error("not loaded at the recorded address {recorded:#x}")]
    MovedKernelModule { recorded: u64 },
    #[error("not used: --symfs says that the recording is from another machine")]
    Symfs,
    #[error("not fetched: {0}")]
    NotFetched(String),
    #[error("{0}")]
    Other(&'static str),
}

impl Refusal {
    /// Returns whether the place was refused because nothing proves that its file is the recorded
    /// one.
    pub fn is_unproven(&self) -> bool {
        matches!(
            self,
            Self::BuildIdMismatch { .. }
                | Self::NoBuildId { .. }
                | Self::OtherKernel { .. }
                | Self::UnknownKernel { .. }
                | Self::OtherMachine { .. }
                | Self::UnknownMachine
                | Self::NoInode
                | Self::OtherInode
                | Self::Changed
                | Self::ReusedPid
                | Self::MapBeforeProcess
                | Self::MapAfterProcess
                | Self::OtherUser { .. }
                | Self::NoChecksum
                | Self::MovedKernel { .. }
                | Self::NoRelease
                | Self::NoReference
                | Self::OtherArchitecture { .. }
                | Self::MovedKernelModule { .. }
        )
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Missing,
            _ => Self::Io(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_not_an_io_refusal() {
        let of = |kind| Refusal::from(io::Error::from(kind));
        assert!(matches!(of(io::ErrorKind::NotFound), Refusal::Missing));
        assert!(matches!(of(io::ErrorKind::PermissionDenied), Refusal::Io(_)));
    }
}
