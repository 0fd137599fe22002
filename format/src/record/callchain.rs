//! Callchains, word by word: addresses, each in the context of the marker before it.
//!
//! ```text
//!   words   KERNEL  k1  k2  USER  u1            KERNEL  k1  USER_DEFERRED  cookie
//!   items           k1  k2        u1                    k1                 cookie
//! ```

use crate::abi::CallchainContext;
use crate::bytes::U64s;
use crate::wire;

wire! {
    /// The user part of an earlier sample's callchain (`PERF_RECORD_CALLCHAIN_DEFERRED`).
    pub struct CallchainDeferred<'a> {
        /// The cookie in the callchains that this part completes ([`CallchainItem::Deferred`]).
        pub cookie: u64 => hex,
        /// Number of words that follow, as the record says.
        pub nr: u64,
        /// The addresses and context markers.
        pub ips: U64s<'a>,
    }
}

impl<'a> CallchainDeferred<'a> {
    /// Returns the addresses.
    pub fn items(&self) -> CallchainItems<impl Iterator<Item = u64> + use<'a>> {
        CallchainItems::new(self.ips.iter())
    }
}

/// An item of a callchain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallchainItem {
    /// An address.
    Frame {
        /// The address: of the sampled instruction, or a return address.
        ip: u64,
        /// The marker that it follows; `None` before the first one. A marker without a name is
        /// kept.
        context: Option<CallchainContext>,
    },
    /// The place of the user part, which a CALLCHAIN_DEFERRED record of the same thread with this
    /// cookie has.
    Deferred(u64),
}

/// Iterates over the items of a callchain, innermost first; the words may come from anywhere, such
/// as [`SampleFields::callchain`](super::SampleFields::callchain).
///
/// ```
/// use recrep_format::abi::{CallchainContext, CpuMode, context};
/// use recrep_format::record::{CallchainItem, CallchainItems};
///
/// let words = [context::KERNEL, 0xffff_8000, context::USER_DEFERRED, 7];
/// let items: Vec<_> = CallchainItems::new(words).collect();
/// let CallchainItem::Frame { ip, context: Some(marker) } = items[0] else { panic!() };
/// assert_eq!((ip, marker), (0xffff_8000, CallchainContext::KERNEL));
/// assert_eq!(marker.cpu_mode(), CpuMode::Kernel);
/// assert_eq!(items[1], CallchainItem::Deferred(7));
/// ```
#[derive(Clone, Debug)]
pub struct CallchainItems<I> {
    words: I,
    context: Option<CallchainContext>,
}

impl<I: Iterator<Item = u64>> CallchainItems<I> {
    /// Creates an iterator over the items in these words.
    pub fn new(words: impl IntoIterator<IntoIter = I>) -> Self {
        Self { words: words.into_iter(), context: None }
    }
}

impl<I: Iterator<Item = u64>> Iterator for CallchainItems<I> {
    type Item = CallchainItem;

    #[inline]
    fn next(&mut self) -> Option<CallchainItem> {
        loop {
            let word = self.words.next()?;
            match CallchainContext::of(word) {
                None => return Some(CallchainItem::Frame { ip: word, context: self.context }),
                Some(marker) => self.context = Some(marker),
            }
            if self.context == Some(CallchainContext::USER_DEFERRED) {
                return self.words.next().map(CallchainItem::Deferred);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{CpuMode, context};

    use crate::endian::Endian;
    use crate::wire::Wire;

    fn frames(words: &[u64]) -> Vec<(u64, Option<CpuMode>)> {
        let frame = |item| match item {
            CallchainItem::Frame { ip, context } => (ip, context.map(CallchainContext::cpu_mode)),
            CallchainItem::Deferred(cookie) => (cookie, None),
        };
        CallchainItems::new(words.iter().copied()).map(frame).collect()
    }

    #[test]
    fn addresses_take_the_marker_before_them() {
        assert_eq!(
            frames(&[
                1,
                context::KERNEL,
                2,
                3,
                context::USER,
                4,
                context::GUEST_USER,
                context::GUEST_KERNEL,
                5
            ]),
            [
                (1, None),
                (2, Some(CpuMode::Kernel)),
                (3, Some(CpuMode::Kernel)),
                (4, Some(CpuMode::User)),
                (5, Some(CpuMode::GuestKernel)),
            ]
        );
        assert_eq!(
            frames(&[context::HV, 1, context::MAX, 2]),
            [(1, Some(CpuMode::Hypervisor)), (2, Some(CpuMode::Unknown)),]
        );
        assert_eq!(frames(&[context::USER]), []);
    }

    #[test]
    fn a_cookie_is_no_address() {
        // The cookie may look like a marker.
        let words = [context::KERNEL, 1, context::USER_DEFERRED, context::USER];
        let items: Vec<_> = CallchainItems::new(words).collect();
        let frame = CallchainItem::Frame { ip: 1, context: Some(CallchainContext::KERNEL) };
        assert_eq!(items, [frame, CallchainItem::Deferred(context::USER)]);
        assert_eq!(CallchainItems::new([context::USER_DEFERRED]).next(), None);
    }

    #[test]
    fn a_deferred_part_has_items() {
        #[rustfmt::skip]
        let bytes = [
            0, 0, 0, 0, 0, 0, 0, 5, // cookie
            0, 0, 0, 0, 0, 0, 0, 2, // nr
            255, 255, 255, 255, 255, 255, 0xfe, 0, // PERF_CONTEXT_USER
            0, 0, 0, 0, 0, 0, 1, 0x23, // an address
        ];
        let deferred = CallchainDeferred::from_bytes(&bytes, Endian::Big).unwrap();
        let user = CallchainItem::Frame { ip: 0x123, context: Some(CallchainContext::USER) };
        assert_eq!((deferred.cookie, deferred.items().collect::<Vec<_>>()), (5, vec![user]));
    }
}
