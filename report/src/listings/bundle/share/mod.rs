//! `rep bundle --share`: a bundle without what is private.
//!
//! ```text
//!   mappings ─► new places ─┬─► records at new addresses, by a list of what may stay ─┐
//!                           └─► names at new addresses, without directories ──────────┴─► file
//! ```
//!
//! Functions, base names of modules, threads' names, times and counts stay. Whatever is made of the
//! file (a page, an export, a report) has nothing else, as the file has nothing else.

mod names;
mod places;
mod records;
mod removed;
mod texts;

use std::io::{self, Seek, Write};

use recrep_format::abi::{CpuMode, EventType};
use recrep_format::attr::{Attr, AttrEntry};
use recrep_format::feature::{
    BuildIdEvent, BuildIds, EventDesc, FeatureId, GroupDesc, GroupDescEntry, HeaderString, Hostname,
};
use recrep_format::wire::List;
use recrep_format::write::{FeatureWriter, FileWriter};

use self::places::SharedPlaces;
pub(super) use self::removed::Removed;
use self::removed::RemovedData;
use super::pack;
use crate::callchain::ChainOrigin;
use crate::samples::{ChainSetup, Session};
use crate::symbols::ModuleKind;

/// Features of the header that have nothing private.
const KEPT: [FeatureId; 24] = [
    FeatureId::OSRELEASE,
    FeatureId::VERSION,
    FeatureId::ARCH,
    FeatureId::NRCPUS,
    FeatureId::CPUDESC,
    FeatureId::CPUID,
    FeatureId::TOTAL_MEM,
    FeatureId::CPU_TOPOLOGY,
    FeatureId::NUMA_TOPOLOGY,
    FeatureId::BRANCH_STACK,
    FeatureId::PMU_MAPPINGS,
    FeatureId::STAT,
    FeatureId::CACHE,
    FeatureId::SAMPLE_TIME,
    FeatureId::CLOCKID,
    FeatureId::CLOCK_DATA,
    FeatureId::CPU_PMU_CAPS,
    FeatureId::PMU_CAPS,
    FeatureId::HYBRID_TOPOLOGY,
    FeatureId::MEM_TOPOLOGY,
    FeatureId::CPU_DOMAIN_INFO,
    FeatureId::E_MACHINE,
    FeatureId::CLN_SIZE,
    FeatureId::CHAIN_ENDS,
];

/// Features that are written anew, or say how the records were stored.
const REWRITTEN: [FeatureId; 6] = [
    FeatureId::BUILD_ID,
    FeatureId::EVENT_DESC,
    FeatureId::GROUP_DESC,
    FeatureId::COMPRESSED,
    FeatureId::BUNDLE,
    FeatureId::DIR_FORMAT,
];

/// Writes a recording without what is private, with the names in the body of its bundle. Returns
/// what was taken out.
pub(super) fn write<W: Write + Seek>(
    session: &Session<'_>,
    chains: &ChainSetup<'_>,
    body: &[u8],
    out: W,
) -> io::Result<Removed> {
    let endian = session.file.endian;
    let places = SharedPlaces::of(session);
    let entries: Vec<AttrEntry> = session.file.attrs.entries().iter().map(shared_entry).collect();
    let (records, mut removed) = records::rewritten(session, &places, chains);
    removed.note(RemovedData::Addresses);
    let mut writer = FileWriter::new(out, endian, &entries)?;
    for piece in &records {
        writer.write(piece)?;
    }
    let mut features = FeatureWriter::new(endian);
    for (id, section) in &session.file.features {
        match *id {
            FeatureId::HOSTNAME => {
                removed.note(RemovedData::HostName);
                let name = session.file.feature::<Hostname<'_>>().and_then(Result::ok);
                removed.host = name.map(|name| name.0.to_text().into_owned());
            }
            FeatureId::CMDLINE => removed.note(RemovedData::CommandLine),
            id if KEPT.contains(&id) => {
                if let Some(bytes) = section.of(session.file.bytes()) {
                    features.add_bytes(id, bytes.to_vec());
                }
            }
            id if REWRITTEN.contains(&id) => {}
            id => removed.features.push(id),
        }
    }
    features.add(&EventDesc::of(&entries).map_err(io::Error::other)?);
    add_groups(session, &mut features);
    features.add(&build_ids(session, &places));
    let body = names::rewritten(body, session, &places, endian).map_err(io::Error::other)?;
    pack::add_section(&body, &mut features)?;
    writer.finish(&features)?;
    Ok(removed)
}

/// Returns an event whose samples lack what is private.
fn shared_entry(entry: &AttrEntry) -> AttrEntry {
    let name = texts::event_name(&entry.event_name());
    let mut sample_type = entry.attr.sample_type.difference(records::PRIVATE);
    let mut attr = Attr { sample_regs_intr: 0, aux_sample_size: 0, ..entry.attr.clone() };
    if ChainOrigin::of(&entry.attr) != ChainOrigin::Copied {
        sample_type = sample_type.difference(records::COPIES);
        (attr.sample_regs_user, attr.sample_stack_user) = (0, 0);
    }
    // Of breakpoints and probes, these are addresses.
    let is_probe =
        ["uprobe", "uretprobe", "kprobe", "kretprobe"].iter().any(|kind| name.starts_with(kind));
    if attr.kind == EventType::BREAKPOINT || is_probe {
        (attr.config1, attr.config2) = (0, 0);
    }
    AttrEntry { attr: Attr { sample_type, ..attr }, ids: entry.ids.clone(), name: Some(name) }
}

/// Adds the groups, whose names may be those of probes.
fn add_groups(session: &Session<'_>, features: &mut FeatureWriter) {
    let Some(Ok(GroupDesc { groups })) = session.file.feature::<GroupDesc<'_>>() else { return };
    let names: Vec<String> =
        groups.0.iter().map(|group| texts::event_name(&group.name.to_text())).collect();
    let groups = groups.0.iter().zip(&names);
    let groups =
        groups.map(|(group, name)| GroupDescEntry { name: HeaderString::new(name), ..*group });
    features.add(&GroupDesc { groups: List(groups.collect()) });
}

/// Returns the build IDs of all modules under their new paths.
fn build_ids<'p>(session: &Session<'_>, places: &'p SharedPlaces) -> BuildIds<'p> {
    let mut entries = Vec::new();
    for (number, module) in (0..).zip(&session.side_band.modules) {
        let mode = match module.kind {
            ModuleKind::Kernel | ModuleKind::KernelModule { .. } => CpuMode::Kernel,
            ModuleKind::File | ModuleKind::Vdso => CpuMode::User,
            _ => continue,
        };
        if let Some(id) = &module.build_id {
            entries.push(BuildIdEvent::new(mode, id, places.module(number).1));
        }
    }
    BuildIds { entries }
}
