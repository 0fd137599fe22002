//! The flow of control: packets and code ─► blocks and the edges between them.

use super::clock::Clock;
use super::event::WaitingEvents;
use super::graph::{BlockId, Direct, EdgeId, Exit, Graph};
use super::instruction::{BranchKind, Next};
use super::ip::Ip;
use super::packet::{Damage, Outcomes, Packet};
use super::read::Packets;
use super::size::CodeSize;
use super::state::{Flow, Fup, Header, Place, Run, SpaceCode};
use super::step::{Branch, Gap, Sink, Step, TakenStep, Task, Times, World};

/// Most blocks one behind the other that need no packet: what takes more is an endless loop.
const ENDLESS: u32 = 64;

/// Most blocks without a packet up to an event.
const LONG: u32 = 8;

impl Flow {
    /// Decodes a part: from the PSB at the begin of `trace` to the one at or behind `end`, whose
    /// address ends the last block. `clock` is the time in front of the part.
    pub fn run<W: World, S: Sink>(
        &mut self,
        trace: &[u8],
        end: usize,
        clock: Clock,
        world: &mut W,
        sink: &mut S,
    ) {
        self.time = clock.now();
        self.waiting = WaitingEvents::of_ratio(clock.ratio());
        self.clock = clock;
        self.place = Place::Lost;
        self.fup = Fup::Event;
        self.event = None;
        self.header = None;
        let mut run = Run { flow: self, packets: Packets::from_bytes(trace), world, sink };
        while let Some(found) = run.packets.next_packet() {
            let packet = match found.packet {
                Ok(packet) => packet,
                Err(damage) => {
                    run.damaged(damage);
                    continue;
                }
            };
            if run.flow.clock.apply(&packet) {
                if matches!(packet, Packet::Cbr(_)) {
                    run.ratio();
                }
                continue;
            }
            if packet == Packet::Psb {
                run.psb(found.offset, found.offset >= end);
            } else if run.packet(packet) {
                break;
            }
        }
        run.finish_task();
        self.header = None;
    }
}

impl<W: World, S: Sink> Run<'_, W, S> {
    /// Takes a packet; returns whether the part ends here.
    fn packet(&mut self, packet: Packet) -> bool {
        if self.flow.header.is_some() {
            return self.in_header(packet);
        }
        match packet {
            Packet::Tnt(outcomes) => self.outcomes(outcomes),
            Packet::Tip(ip) => self.tip(ip),
            Packet::TipPge(ip) => self.begin(ip),
            Packet::TipPgd(ip) => self.end(ip),
            Packet::Fup(ip) => self.fup(ip),
            Packet::ModeExec(size, interrupts) => self.mode(size, interrupts),
            Packet::Ovf => {
                self.gap(Gap::Overflow);
                self.flow.fup = Fup::Overflow;
                self.flow.stack.clear();
            }
            Packet::TraceStop => self.flow.place = Place::Off,
            packet => self.side_event(packet),
        }
        false
    }

    fn gap(&mut self, gap: Gap) {
        let flow = &mut *self.flow;
        (flow.place, flow.event) = (Place::Lost, None);
        flow.waiting.clear();
        self.sink.gap(gap, flow.task, flow.clock.now());
    }

    fn damaged(&mut self, damage: Damage) {
        self.gap(match damage {
            Damage::Unknown => Gap::Damaged,
            Damage::Truncated => Gap::Truncated,
        });
        self.flow.header = None;
        self.packets.resume();
    }

    fn psb(&mut self, offset: usize, is_last: bool) {
        if self.flow.header.is_some() {
            self.gap(Gap::Header);
        }
        self.flow.last_ip.reset();
        self.flow.header = Some(Header { offset, is_last, ..Header::default() });
    }

    fn in_header(&mut self, packet: Packet) -> bool {
        let Some(header) = &mut self.flow.header else { return false };
        match packet {
            Packet::Fup(ip) => header.ip = self.flow.last_ip.update(ip).or(header.ip),
            Packet::ModeExec(size, interrupts) => {
                header.size = Some(size);
                self.flow.waiting.set_interrupts(interrupts);
            }
            Packet::PsbEnd => {
                let header = *header;
                self.flow.header = None;
                self.anchor(header);
                return header.is_last;
            }
            Packet::Pad
            | Packet::Pip(..)
            | Packet::Vmcs(_)
            | Packet::Mnt(_)
            | Packet::ModeTsx { .. } => {}
            _ => {
                let is_last = header.is_last;
                self.flow.header = None;
                self.gap(Gap::Header);
                return is_last || self.packet(packet);
            }
        }
        false
    }

    /// Goes on at what a PSB+ states.
    fn anchor(&mut self, header: Header) {
        match (self.flow.place, header.ip) {
            (Place::At(block), Some(ip)) => {
                self.walk_to(block, ip);
            }
            (Place::At(_), None) => self.gap(Gap::Mismatch),
            _ => {}
        }
        if header.is_last {
            return;
        }
        self.flow.stack.clear();
        (self.flow.fup, self.flow.event) = (Fup::Event, None);
        self.flow.next_size = None;
        self.times();
        let task = self.world.task(self.flow.clock.now());
        self.switch(task, header.size.unwrap_or_default());
        self.with_psb(header.offset);
        self.tell_events(header.ip.unwrap_or(0));
        match header.ip {
            Some(ip) => self.go(ip),
            None => self.flow.place = Place::Off,
        }
    }

    /// Stands at the block that starts at `address`.
    fn go(&mut self, address: u64) {
        if let Some(size) = self.flow.next_size.take() {
            let task = self.flow.task;
            self.switch(task, size);
        }
        let code = SpaceCode(&*self.world, self.flow.task.space);
        self.flow.place = Place::At(self.flow.graph.block_at(address, &code));
    }

    /// Commits the time and the cycles of the packets so far to the branch that comes.
    pub(super) fn times(&mut self) -> Times {
        self.flow.clock.commit(true);
        self.times_of_events()
    }

    /// Commits the time alone.
    pub(super) fn times_of_events(&mut self) -> Times {
        let before = self.flow.time;
        self.flow.time = before.max(self.flow.clock.now());
        Times { before, now: self.flow.time }
    }

    pub(super) fn branch(&mut self, branch: Branch, times: Times) {
        self.report(Step::Branch(branch), times);
    }

    /// Goes on with the code of a task.
    fn switch(&mut self, task: Task, size: CodeSize) {
        if (task, size) != (self.flow.task, self.flow.size) {
            self.finish_task();
            self.flow.switch(task, size);
        }
    }

    /// Tells the sink that what follows is of another graph or task.
    fn finish_task(&mut self) {
        let code = SpaceCode(&*self.world, self.flow.task.space);
        self.sink.finish_task(&self.flow.graph, &code);
    }

    #[inline]
    fn report(&mut self, step: Step, times: Times) {
        let Flow { graph, task, clock, is_ending, .. } = &*self.flow;
        let is_end = *is_ending;
        let code = SpaceCode(&*self.world, task.space);
        let step = TakenStep { graph, code: &code, step, task: *task, times, clock, is_end };
        self.sink.step(&step);
    }

    /// Passes blocks that need no packet; returns the one that does.
    #[inline]
    fn passed(&mut self, mut block: BlockId) -> Result<(BlockId, Exit), Gap> {
        for _ in 0..ENDLESS {
            let Some(known) = self.flow.graph.block(block) else { return Err(Gap::Mismatch) };
            match known.exit {
                Exit::Continue => {}
                Exit::NoCode => return Err(Gap::NoCode(known.start)),
                Exit::Invalid => return Err(Gap::Invalid(known.start)),
                exit => return Ok((block, exit)),
            }
            let edge = Graph::continuation(known);
            let times = self.same_time();
            self.push_calls(block);
            self.report(Step::Edge(edge), times);
            block = self.follow(edge);
        }
        Err(Gap::Endless)
    }

    #[inline]
    fn push_calls(&mut self, block: BlockId) {
        let flow = &mut *self.flow;
        if let Some(known) = flow.graph.block(block) {
            for &address in flow.graph.pushes(known) {
                flow.stack.push(address);
            }
        }
    }

    #[inline]
    fn follow(&mut self, edge: EdgeId) -> BlockId {
        let code = SpaceCode(&*self.world, self.flow.task.space);
        self.flow.graph.follow(edge, &code)
    }

    fn outcomes(&mut self, outcomes: Outcomes) {
        match self.flow.place {
            Place::Lost => {}
            Place::Off => self.gap(Gap::Off),
            Place::At(block) => {
                self.flow.event = None;
                self.forget_events();
                match self.follow_outcomes(block, outcomes) {
                    Ok(block) => self.flow.place = Place::At(block),
                    Err(gap) => self.gap(gap),
                }
            }
        }
    }

    fn follow_outcomes(&mut self, from: BlockId, outcomes: Outcomes) -> Result<BlockId, Gap> {
        let mut at = from;
        let mut left = outcomes.len;
        let mut first = true;
        while left > 0 {
            let (block, exit) = self.passed(at)?;
            let is_taken = outcomes.bits >> (left - 1) & 1 != 0;
            self.push_calls(block);
            // A target that is deferred is of a branch in front of the packet's.
            let is_deferred = matches!(exit, Exit::Indirect(BranchKind::Jump | BranchKind::Call));
            let has_time = first && !is_deferred;
            let times = if has_time { self.times() } else { self.same_time() };
            first &= is_deferred;
            let edge = match exit {
                Exit::Conditional => {
                    left -= 1;
                    let Some(known) = self.flow.graph.block(block) else {
                        return Err(Gap::Mismatch);
                    };
                    Graph::outcome(known, is_taken)
                }
                Exit::Indirect(BranchKind::Return) => {
                    left -= 1;
                    if !is_taken {
                        return Err(Gap::Mismatch);
                    }
                    let target = self.flow.stack.pop().ok_or(Gap::ReturnStack)?;
                    self.flow.graph.target(block, target)
                }
                Exit::Indirect(BranchKind::Jump | BranchKind::Call) => {
                    let target = self.deferred_target()?;
                    self.flow.graph.target(block, target)
                }
                _ => return Err(Gap::Mismatch),
            };
            self.report(Step::Edge(edge), times);
            at = self.follow(edge);
        }
        Ok(at)
    }

    fn same_time(&mut self) -> Times {
        self.flow.clock.commit(false);
        Times { before: self.flow.time, now: self.flow.time }
    }

    /// Returns the target of an indirect branch whose TIP stands behind outcomes that come after it.
    fn deferred_target(&mut self) -> Result<u64, Gap> {
        while let Some(found) = self.packets.next_packet() {
            match found.packet {
                Ok(Packet::Tip(ip)) => {
                    return self.flow.last_ip.update(ip).ok_or(Gap::Mismatch);
                }
                Ok(packet) if self.flow.clock.apply(&packet) || packet == Packet::Pad => {}
                Ok(_) => break,
                Err(_) => break,
            }
        }
        Err(Gap::Mismatch)
    }

    fn tip(&mut self, ip: Ip) {
        let target = self.flow.last_ip.update(ip);
        if let Some(from) = self.flow.event.take() {
            self.with_interrupts(target);
            self.event_branch(from, target);
        } else {
            self.forget_events();
            match self.flow.place {
                Place::At(block) => match self.leave(block, target) {
                    Ok(Some(next)) => {
                        self.flow.place = Place::At(next);
                        if self.flow.next_size.is_none() {
                            return;
                        }
                    }
                    Ok(None) => {}
                    Err(gap) => self.gap(gap),
                },
                Place::Off => self.gap(Gap::Off),
                Place::Lost => {}
            }
        }
        match target {
            Some(target) => self.go(target),
            None => self.flow.place = Place::Lost,
        }
    }

    /// Leaves a block by an indirect branch; returns the block of the target, if there is one.
    fn leave(&mut self, from: BlockId, target: Option<u64>) -> Result<Option<BlockId>, Gap> {
        let (block, exit) = self.passed(from)?;
        let Exit::Indirect(kind) = exit else { return Err(Gap::Mismatch) };
        self.push_calls(block);
        if kind == BranchKind::Return {
            self.flow.stack.pop();
        }
        self.with_interrupts(target);
        if let Some(last) = self.flow.graph.block(block).map(|block| block.last) {
            self.tell_events(last);
        }
        let times = self.times();
        let edge = self.flow.graph.target(block, target.unwrap_or(0));
        self.report(Step::Edge(edge), times);
        Ok(target.map(|_| self.follow(edge)))
    }

    fn begin(&mut self, ip: Ip) {
        self.flow.event = None;
        self.flow.fup = Fup::Event;
        let Some(to) = self.flow.last_ip.update(ip) else {
            self.flow.place = Place::Lost;
            return;
        };
        let task = self.world.task(self.flow.clock.now());
        let size = self.flow.next_size.take().unwrap_or(self.flow.size);
        self.switch(task, size);
        self.forget_events();
        let times = self.times();
        self.branch(Branch::begin_at(to), times);
        self.with_interrupts(Some(to));
        self.tell_events(0);
        self.go(to);
    }

    fn end(&mut self, ip: Ip) {
        let target = self.flow.last_ip.update(ip);
        self.flow.is_ending = true;
        if let Some(from) = self.flow.event.take() {
            self.event_branch(from, target);
        } else if let Place::At(block) = self.flow.place {
            match self.leave(block, target) {
                Err(Gap::Mismatch) if self.left_region(block, target) => {}
                Err(gap) => self.gap(gap),
                Ok(_) => {}
            }
        }
        self.flow.is_ending = false;
        self.flow.place = Place::Off;
    }

    /// Leaves a block by a direct branch to where nothing is traced.
    fn left_region(&mut self, from: BlockId, target: Option<u64>) -> bool {
        let (Some(to), Some(&block)) = (target, self.flow.graph.block(from)) else { return false };
        let times = self.times();
        if block.exit == Exit::Conditional {
            for is_taken in [false, true] {
                let edge = Graph::outcome(&block, is_taken);
                if self.flow.graph.edge(edge).is_some_and(|edge| edge.to == to) {
                    self.report(Step::Edge(edge), times);
                    return true;
                }
            }
        }
        let direct = self.flow.graph.directs(&block).iter().find(|direct| direct.to == to);
        let Some(&Direct { from, to, kind, len }) = direct else { return false };
        self.walked(block.start, from, times);
        self.branch(Branch { from, to, kind, len }, times);
        true
    }

    fn fup(&mut self, ip: Ip) {
        let kind = std::mem::replace(&mut self.flow.fup, Fup::Event);
        let Some(address) = self.flow.last_ip.update(ip) else { return };
        match (kind, self.flow.place) {
            (Fup::Overflow, _) => {
                let times = self.times();
                self.branch(Branch::begin_at(address), times);
            }
            (_, Place::At(block)) => {
                if !self.walk_to(block, address) {
                    // The event's target follows, and is true.
                    return;
                }
                self.flow.event = (kind == Fup::Event).then_some(address);
                if kind == Fup::Alone {
                    self.tell_events_alone(address);
                }
            }
            (_, Place::Off) => return self.tell_events_alone(address),
            (_, Place::Lost) => return,
        }
        self.go(address);
    }

    /// Walks from the start of a block to an address inside; returns whether it was met.
    fn walk_to(&mut self, from: BlockId, address: u64) -> bool {
        let mut from = from;
        for _ in 0..LONG {
            let Some(&block) = self.flow.graph.block(from) else { return false };
            let times = self.same_time();
            if self.walked(block.start, address, times) {
                return true;
            }
            if block.exit != Exit::Continue {
                break;
            }
            self.push_calls(from);
            let edge = Graph::continuation(&block);
            self.report(Step::Edge(edge), times);
            from = self.follow(edge);
        }
        let gap = match self.flow.graph.block(from) {
            Some(block) if block.exit == Exit::NoCode => Gap::NoCode(block.start),
            _ => Gap::Mismatch,
        };
        self.gap(gap);
        false
    }

    /// Walks from an instruction to one that follows without a packet; returns whether it was met.
    fn walked(&mut self, start: u64, end: u64, times: Times) -> bool {
        let flow = &mut *self.flow;
        let code = SpaceCode(&*self.world, flow.task.space);
        let mut pushes = Vec::new();
        let is_met = flow.graph.visit(start, Some(end), &code, |instruction| {
            if let Next::Direct(BranchKind::Call, to) = instruction.next
                && to != instruction.end
            {
                pushes.push(instruction.end);
            }
        });
        if is_met && start != end {
            for address in pushes {
                flow.stack.push(address);
            }
            self.report(Step::Piece { start, end }, times);
        }
        is_met
    }
}
