//! Tests of frames by address.

use proptest::prelude::*;

use super::*;
use crate::timeline::{Change, Mapping, Memory};

proptest! {
    /// Whatever was looked up before, frames are those of the timeline.
    #[test]
    fn remembered_frames_are_those_of_the_timeline(
        maps in prop::collection::vec((0i32..3, 0u64..12, 1u64..9, 0u32..4), 0..12),
        asked in prop::collection::vec((1i32..4, 0usize..3, 0u64..24, 0u64..2, 0u64..13), 0..80),
        (cpu_mode, ip, size, unmapped) in any::<(bool, bool, bool, bool)>(),
    ) {
        // Blocks of 16 MiB: some mappings are large.
        let mapping = |&(_, start, len, module): &(i32, u64, u64, u32)| Mapping {
            start: start << 24,
            end: (start + len) << 24,
            first: if module == 3 { start << 24 } else { u64::from(module) << 12 },
            module: Some(ModuleId(module)),
            is_shared: false,
            memory: Memory::Code,
        };
        let change = |map: &(i32, u64, u64, u32)| match map.0 {
            0 => Change::KernelMap(mapping(map)),
            pid => Change::Map { pid, tid: pid, mapping: mapping(map) },
        };
        let at = |time| Moment::timed(time, 0);
        let timeline = Timeline::build((1..).zip(&maps).map(|(time, map)| (at(time), change(map))).collect());
        let fields = FrameFields { cpu_mode, ip, size, inlined: false, unmapped, unnamed: true };
        let mut finder = FrameFinder::new(&timeline, fields, None, false, None);
        for (pid, mode, block, offset, time) in asked {
            let mode = [Some(CpuMode::Kernel), Some(CpuMode::User), None][mode];
            let (address, at) = ((block << 23) + offset, at(time));
            let space = timeline.span(pid, pid, at).task.space;
            let (found, place) = match mode {
                Some(mode) => (mode, timeline.place_in(mode, space, address, at).0),
                None => {
                    let (mode, place, range) = timeline.place_in_any_mode(space, address, at);
                    prop_assert!(range.contains(&address));
                    (mode, place)
                }
            };
            let expected = Frame {
                module: place.module.map_or(0, |module| module.0 + 1),
                end: End { cpu_mode: if cpu_mode { u8::try_from(found.bits()).unwrap() } else { 0 }, ..End::default() },
                address: place.address,
                size: if size { place.size } else { 0 },
                ..Frame::default()
            };
            prop_assert_eq!(finder.mapped(mode, space, address, at), expected);
            if let Some(mode) = mode {
                let expected = Frame { ip: if ip { address } else { 0 }, ..expected };
                let (sampled, moments) = finder.sampled(mode, space, at);
                prop_assert!(moments.contains(&at));
                let named = finder.named(&sampled, address, || at);
                prop_assert_eq!(finder.images.frame(named, &finder.stacks), Some(expected));
                let is_one = expected.module == 0 && !unmapped;
                let expected = Frame { address: if is_one { UNMAPPED } else { expected.address }, ..expected };
                let (epoch, mut found) = (finder.epoch(space, at), Vec::new());
                finder.resolve(epoch, at, std::iter::once((mode, address, CallSite::At)), &mut found);
                prop_assert_eq!(finder.stacks.frames[found[0].0 as usize], expected);
            }
        }
    }
}
