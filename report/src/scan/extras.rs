//! Words of a key from fields that only some samples have: cost and target of a memory access, data of a tracepoint.

use recrep_format::abi::{DataSrc, Weight, WeightParts};
use recrep_format::record::{Sample, SampleFields};

use super::common::Event;
use super::worker::{SampleContext, Worker};
use crate::query::{CacheLine, Field, Key};

impl Worker<'_> {
    /// Sets the requested words of a key and returns the weight.
    pub(super) fn extras(
        &mut self,
        event: Event,
        (key, found): (&mut Key, Option<SampleContext>),
        sample: &Sample<'_, '_>,
        fields: &SampleFields<'_>,
    ) -> u64 {
        let layout = self.scan.layout;
        let (weight, latency) = match fields.weight {
            None => (0, 0),
            Some(Weight::Whole(weight)) => (weight, 0),
            Some(Weight::Parts(WeightParts { var1, var2, var3 })) => {
                (u64::from(var1), u64::from(var2) | u64::from(var3) << 16)
            }
        };
        let Some((space, at)) = found else { return weight };
        if layout.has(Field::DataModule) {
            let addr = sample.addr().unwrap_or(0);
            let place = self.scan.timeline.place(sample.cpu_mode(), space, addr, at);
            let (is_shared, is_mapped) = (place.is_shared, place.module.is_some());
            *Field::DataModule.of_mut(key) = self.hit(place.module);
            *Field::DataAddr.of_mut(key) = addr;
            *Field::DataAddress.of_mut(key) = place.address;
            *Field::DataLine.of_mut(key) =
                CacheLine { address: place.address & !(layout.line - 1), is_shared, is_mapped }.pack();
            let reach = u64::from(addr != 0) | u64::from(is_mapped) << 1 | u64::from(self.is_mapped(key)) << 2;
            *Field::Reach.of_mut(key) = reach;
        }
        if let Some(traced) = self.scan.traced {
            *Field::Payload.of_mut(key) = traced.number(event.number, fields.raw, &mut self.seen);
        }
        for (field, value) in [
            (Field::LineOffset, sample.addr().unwrap_or(0) & (layout.line - 1)),
            (Field::DataSrc, fields.data_src.unwrap_or(DataSrc::NONE.0) & layout.data_src),
            (Field::Weight, weight),
            (Field::Latency, latency & layout.latency),
            (Field::PhysAddr, fields.phys_addr.unwrap_or(0)),
            (Field::Transaction, fields.transaction.unwrap_or(0)),
            (Field::CodePage, fields.code_page_size.unwrap_or(0)),
            (Field::DataPage, fields.data_page_size.unwrap_or(0)),
            (Field::Cgroup, fields.cgroup.unwrap_or(0)),
        ] {
            *field.of_mut(key) = value;
        }
        weight
    }
}
