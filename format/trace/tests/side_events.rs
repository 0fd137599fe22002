//! Events of Intel PT beside the flow of control: where and when they happened.

use recrep_trace::pt::{
    Clock, CodeSize, Flow, Gap, Ip, LastIp, Outcomes, Packet, SideEvent, Sink, TakenEvent,
    TakenStep, Task, Width, World,
};

/// Ten `nop` and a `jne` back to the first, then a `ret`.
struct Code(Vec<u8>);

const START: u64 = 0x1000;
const BEHIND: u64 = START + 12;

impl World for Code {
    fn task(&mut self, _: u64) -> Task {
        Task::default()
    }

    fn code(&self, _: u32, address: u64) -> Option<&[u8]> {
        self.0.get(usize::try_from(address.checked_sub(START)?).ok()?..)
    }
}

/// Events, with their addresses and times.
#[derive(Default)]
struct Found {
    events: Vec<(SideEvent, u64, u64)>,
    gaps: Vec<Gap>,
}

impl Sink for Found {
    fn step(&mut self, _: &TakenStep<'_>) {}

    fn event(&mut self, taken: &TakenEvent<'_>) {
        self.events.push((taken.event.clone(), taken.ip, taken.time));
    }

    fn gap(&mut self, gap: Gap, _: Task, _: u64) {
        self.gaps.push(gap);
    }
}

fn ip(address: u64) -> Ip {
    LastIp::default().compress(address)
}

/// Returns the events of a trace, from a PSB at time 100 in front of the code up to one behind `packets`.
fn events(packets: &[Packet]) -> Vec<(SideEvent, u64, u64)> {
    let mut code = vec![0x90; 10];
    code.extend([0x75, 0xf4, 0xc3]);
    let psb = |tsc, at| {
        [Packet::Psb, Packet::Tsc(tsc), Packet::Cbr(30), Packet::Fup(ip(at)), Packet::PsbEnd]
    };
    let mut trace = Vec::new();
    for packet in psb(100, START).iter().chain(packets) {
        packet.write(&mut trace);
    }
    let end = trace.len();
    for packet in psb(900, BEHIND) {
        packet.write(&mut trace);
    }
    let mut found = Found::default();
    Flow::new().run(&trace, end, Clock::default(), &mut Code(code), &mut found);
    assert_eq!(found.gaps, []);
    let first: Vec<_> = found.events.drain(..2).collect();
    assert_eq!(first, [(SideEvent::Psb(0), START, 100), (SideEvent::Cbr(30), START, 100)]);
    found.events
}

const NOT_TAKEN: Packet = Packet::Tnt(Outcomes { bits: 0, len: 1 });

#[test]
fn values_that_the_program_writes() {
    let found = events(&[
        Packet::Tsc(200),
        Packet::PtWrite(7, Width::Eight, true),
        Packet::Fup(ip(START + 5)),
        NOT_TAKEN,
        Packet::PtWrite(8, Width::Four, false),
    ]);
    let written = |value, has_ip| SideEvent::PtWrite { value, has_ip };
    assert_eq!(found, [(written(7, true), START + 5, 200), (written(8, false), BEHIND, 200)]);
}

#[test]
fn power_events_share_an_address_or_have_none() {
    let found = events(&[
        Packet::MWait(0x20),
        Packet::Pwre(0x3000),
        Packet::ExStop(true),
        Packet::Fup(ip(START + 2)),
        Packet::Tsc(300),
        Packet::Pwrx(0x33),
        Packet::Cbr(30),
        Packet::Cbr(31),
        NOT_TAKEN,
    ]);
    let at = START + 2;
    let expected = [
        (SideEvent::MWait(0x20), at, 100),
        (SideEvent::Pwre(0x3000), at, 100),
        (SideEvent::ExStop { has_ip: true }, at, 100),
        (SideEvent::Pwrx(0x33), at, 300),
        (SideEvent::Cbr(31), at, 300),
    ];
    assert_eq!(found, expected);
}

#[test]
fn nothing_is_traced_and_events_go_on() {
    let found = events(&[
        NOT_TAKEN,
        Packet::TipPgd(Ip::NONE),
        Packet::ExStop(false),
        Packet::PtWrite(1, Width::Four, true),
        Packet::Fup(ip(0x5000)),
        Packet::TipPge(ip(START)),
        NOT_TAKEN,
    ]);
    let expected = [
        (SideEvent::ExStop { has_ip: false }, 0, 100),
        (SideEvent::PtWrite { value: 1, has_ip: true }, 0x5000, 100),
    ];
    assert_eq!(found, expected);
}

#[test]
fn transactions_begin_and_abort() {
    let mode = |is_in, is_aborted| Packet::ModeTsx { is_in, is_aborted };
    let found = events(&[
        mode(true, false),
        Packet::Fup(ip(START + 1)),
        Packet::Tsc(400),
        mode(false, true),
        Packet::Fup(ip(START + 3)),
        Packet::Tip(ip(START)),
        // Of the trace that begins, not of a transaction.
        mode(false, false),
        NOT_TAKEN,
    ]);
    let expected =
        [(SideEvent::Transaction, START + 1, 100), (SideEvent::Transaction, START + 3, 400)];
    assert_eq!(found, expected);
}

#[test]
fn interrupts_come_with_their_data() {
    let found = events(&[
        Packet::Evd(0, 0xdead),
        Packet::Cfe(1, 14, false),
        Packet::Fup(ip(START + 4)),
        Packet::ModeExec(CodeSize::Bits64, true),
        Packet::Tip(ip(START)),
        Packet::ModeExec(CodeSize::Bits64, false),
        Packet::Fup(ip(START + 6)),
        Packet::Cfe(2, 0, true),
        Packet::Fup(ip(START + 7)),
        NOT_TAKEN,
    ]);
    let event = |kind, vector, data: &[(u8, u64)]| SideEvent::ControlFlow {
        kind,
        vector,
        has_ip: true,
        data: data.to_vec(),
    };
    let flag = |is_set, branch_to| SideEvent::InterruptFlag { is_set, branch_to };
    let expected = [
        (event(1, 14, &[(0, 0xdead)]), START + 4, 100),
        (flag(true, Some(START)), START + 4, 100),
        (flag(false, None), START + 6, 100),
        (event(2, 0, &[]), START + 7, 100),
    ];
    assert_eq!(found, expected);
}
