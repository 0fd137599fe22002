//! What packets tell of beside the flow of control: where and when it happened.

use super::event::SideEvent;
use super::packet::Packet;
use super::size::CodeSize;
use super::state::{Fup, Place, Run};
use super::step::{Branch, Sink, TakenEvent, World};

impl<W: World, S: Sink> Run<'_, W, S> {
    /// Takes a packet that tells of an event.
    pub(super) fn side_event(&mut self, packet: Packet) {
        let is_on = matches!(self.flow.place, Place::At(_));
        match packet {
            Packet::PtWrite(value, _, has_ip) => {
                self.take_event(SideEvent::PtWrite { value, has_ip }, has_ip);
            }
            Packet::ExStop(has_ip) => self.take_event(SideEvent::ExStop { has_ip }, has_ip),
            Packet::MWait(operands) => self.take_event(SideEvent::MWait(operands), true),
            Packet::Pwre(state) => {
                let waiting = &self.flow.waiting.events;
                let is_of_mwait = waiting.iter().any(|event| matches!(event, SideEvent::MWait(_)));
                self.take_event(SideEvent::Pwre(state), is_of_mwait);
            }
            Packet::Pwrx(states) => self.take_event(SideEvent::Pwrx(states), false),
            Packet::Bep(true) => self.flow.fup = Fup::Alone,
            Packet::ModeTsx { is_aborted, .. } => {
                if is_on {
                    self.flow.waiting.events.push(SideEvent::Transaction);
                }
                if !is_aborted {
                    self.flow.fup = Fup::Alone;
                }
            }
            Packet::Cfe(kind, vector, has_ip) => {
                let data = std::mem::take(&mut self.flow.waiting.data);
                let has_address = has_ip || is_on;
                let event = SideEvent::ControlFlow { kind, vector, has_ip: has_address, data };
                if is_on && !has_ip {
                    // The branch to its handler follows.
                    self.flow.waiting.events.push(event);
                } else {
                    self.take_event(event, has_ip);
                }
            }
            Packet::Evd(kind, value) => self.flow.waiting.data.push((kind, value)),
            _ => {}
        }
    }

    /// Takes an event whose address is the next FUP, or an event without one.
    fn take_event(&mut self, event: SideEvent, awaits_address: bool) {
        if awaits_address {
            self.flow.waiting.events.push(event);
            self.flow.fup = Fup::Alone;
        } else {
            let waiting = std::mem::replace(&mut self.flow.waiting.events, vec![event]);
            self.tell_events_alone(self.here());
            self.flow.waiting.events = waiting;
        }
    }

    /// Returns the address from which the flow goes on; 0 if there is none.
    fn here(&self) -> u64 {
        let Place::At(block) = self.flow.place else { return 0 };
        self.flow.graph.block(block).map_or(0, |block| block.start)
    }

    /// Takes a new ratio of the clocks. In a PSB+ and in front of an event's target it waits.
    pub(super) fn ratio(&mut self) {
        if self.flow.header.is_none() && self.flow.event.is_none() {
            let waiting = std::mem::take(&mut self.flow.waiting.events);
            self.tell_events_alone(self.here());
            self.flow.waiting.events = waiting;
        }
    }

    /// Takes the mode of the code that comes.
    pub(super) fn mode(&mut self, size: CodeSize, are_interrupts_enabled: bool) {
        self.flow.next_size = Some(size);
        let waiting = &mut self.flow.waiting;
        waiting.are_interrupts_enabled.1 = are_interrupts_enabled;
        let next = self.packets.clone().next_packet();
        if next.is_some_and(|next| matches!(next.packet, Ok(Packet::Fup(_)))) {
            waiting.are_interrupts_enabled.0 = are_interrupts_enabled;
            let is_set = are_interrupts_enabled;
            waiting.events.push(SideEvent::InterruptFlag { is_set, branch_to: None });
            self.flow.fup = Fup::Alone;
        }
    }

    /// Adds that interrupts are enabled or disabled by a branch to `to`, if they are.
    #[inline]
    pub(super) fn with_interrupts(&mut self, to: Option<u64>) {
        let waiting = &mut self.flow.waiting;
        let (before, is_set) = waiting.are_interrupts_enabled;
        if before != is_set {
            waiting.are_interrupts_enabled.0 = is_set;
            let branch_to = Some(to.unwrap_or(0));
            waiting.events.push(SideEvent::InterruptFlag { is_set, branch_to });
        }
    }

    /// Adds a PSB.
    pub(super) fn with_psb(&mut self, offset: usize) {
        self.flow.waiting.events.push(SideEvent::Psb(offset));
    }

    /// Goes from an event to its handler.
    pub(super) fn event_branch(&mut self, from: u64, target: Option<u64>) {
        self.tell_events(from);
        let times = self.times();
        self.branch(Branch::event_at(from, target), times);
    }

    /// Forgets events whose address did not come.
    #[inline]
    pub(super) fn forget_events(&mut self) {
        if !self.flow.waiting.events.is_empty() {
            self.flow.waiting.clear();
            self.flow.fup = Fup::Event;
        }
    }

    /// Tells the sink of the events that wait, at this address.
    #[inline]
    pub(super) fn tell_events(&mut self, ip: u64) {
        let ratio = self.flow.clock.ratio();
        if self.flow.waiting.events.is_empty() && ratio == self.flow.waiting.ratio {
            return;
        }
        self.tell_waiting(ip, ratio);
    }

    /// Tells the sink of the events that wait, which are no branch's: the cycles so far are theirs.
    pub(super) fn tell_events_alone(&mut self, ip: u64) {
        self.flow.clock.commit(true);
        self.tell_events(ip);
    }

    #[cold]
    fn tell_waiting(&mut self, ip: u64, ratio: u8) {
        let waiting = &mut self.flow.waiting;
        if ratio != waiting.ratio {
            waiting.ratio = ratio;
            waiting.events.push(SideEvent::Cbr(ratio));
        }
        let mut events = std::mem::take(&mut waiting.events);
        events.sort();
        let time = self.times_of_events().now;
        for event in &events {
            self.sink.event(&TakenEvent { event, ip, task: self.flow.task, time });
        }
    }
}
