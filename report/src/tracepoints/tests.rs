//! Tests of print fmts against the texts that the kernel and perf print.

use proptest::prelude::*;
use recrep_format::endian::Endian;
use recrep_format::feature::tracing::EventFormat;

use super::eval::KernelTexts;
use super::event::Tracepoint;

struct Machine;

impl KernelTexts for Machine {
    fn function(&self, address: u64) -> Option<(String, u64)> {
        let offset = address.checked_sub(0x1000).filter(|offset| *offset < 0x100);
        offset.map(|offset| ("work".into(), offset))
    }

    fn string(&self, address: u64) -> Option<&[u8]> {
        (address == 0x5000).then_some(b"rcu_sched")
    }
}

const HEAD: &str = "name: t\nID: 9\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:char comm[8];\toffset:8;\tsize:8;\tsigned:0;\n\
    \tfield:int a;\toffset:16;\tsize:4;\tsigned:1;\n\
    \tfield:u32 b;\toffset:20;\tsize:4;\tsigned:0;\n\
    \tfield:unsigned long p;\toffset:24;\tsize:8;\tsigned:0;\n\
    \tfield:__data_loc char[] name;\toffset:32;\tsize:4;\tsigned:0;\n\
    \tfield:__data_loc u32[] list;\toffset:36;\tsize:4;\tsigned:0;\n\
    \tfield:__u8 mac[6];\toffset:40;\tsize:6;\tsigned:0;\n\
    \tfield:s16 h;\toffset:46;\tsize:2;\tsigned:1;\n\
    \tfield:__rel_loc char[] rel;\toffset:48;\tsize:4;\tsigned:0;\n\n\
    print fmt: ";

fn event(print_fmt: &str, endian: Endian) -> Tracepoint {
    let format = EventFormat::parse("s", format!("{HEAD}{print_fmt}\n").as_bytes(), 0).unwrap();
    Tracepoint::new(format, endian, 8)
}

/// Returns raw bytes: `a` is -2, `b` is 5, `p` an address in `work`; the strings follow the fields.
fn payload(endian: Endian) -> Vec<u8> {
    let (two, four) = (|value| endian.bytes_u16(value), |value| endian.bytes_u32(value));
    [
        &two(9)[..],
        &[0, 0],
        &four(77),
        b"bash\0\0\0\0",
        &four(0xffff_fffe),
        &four(5),
        &endian.bytes_u64(0x1010),
        &four(52 | 6 << 16),
        &four(60 | 8 << 16),
        &[1, 2, 3, 0xa, 0xb, 0xc],
        &two(0xffff),
        &four(4 << 16),
        b"hello\0\0\0",
        &four(7),
        &four(8),
    ]
    .concat()
}

fn printed(print_fmt: &str) -> String {
    let texts = [Endian::Little, Endian::Big]
        .map(|endian| event(print_fmt, endian).text(&payload(endian), &Machine));
    assert_eq!(texts[0], texts[1], "{print_fmt}: the byte order must not matter");
    texts[0].clone()
}

#[test]
fn print_fmts_are_printed() {
    for (print_fmt, text) in [
        (r#""comm=%s a=%d b=%u", REC->comm, REC->a, REC->b"#, "comm=bash a=-2 b=5"),
        (
            r#""%8s|%-6s|%.2s|%.*s", REC->comm, REC->comm, REC->comm, 3, REC->comm"#,
            "    bash|bash  |ba|bas",
        ),
        (
            r#""%x %#x %08lx %5d %-5d| %llu %c%%", REC->b, REC->b, REC->p, REC->b, REC->b, (u64)REC->b, 'x'"#,
            "5 0x5 00001010     5 5    | 5 x%",
        ),
        (r#""%d %d", (REC->b + 1) * 2 - 3 % 2, REC->b << 2 | 1"#, "11 21"),
        (r#""%s%s", REC->b & 1 ? "odd" : "even", REC->b > 9 ? "+" : """#, "odd"),
        (r#""%s", REC->b == 4 ? "four" : REC->b == 5 ? "five" : "more""#, "five"),
        (r#""%s", __print_symbolic(REC->b, { 4, "FOUR" }, { 5, "FIVE" })"#, "FIVE"),
        (r#""%s", __print_symbolic(REC->b + 1, { 4, "FOUR" }, { -1, ((void *)0) })"#, "0x6"),
        (
            r#""%s", __print_flags(REC->b, "|", { 1UL << 0, "A" }, { (( gfp_t)2), "B" }, { 4, "C" })"#,
            "A|C",
        ),
        (r#""%s", __print_flags(REC->b, "|", { 1, "A" })"#, "A|0x4"),
        (r#""%s", (REC->b) ? __print_flags(REC->b, "", { 5, "ALL" }) : "none""#, "ALL"),
        (r#""%s %s", __get_str(name), __get_rel_str(rel)"#, "hello hell"),
        (
            r#""%s %s", __print_hex(REC->mac, 3), __print_hex_str(REC->mac, 6)"#,
            "01 02 03 0102030a0b0c",
        ),
        (
            r#""%s %d", __print_array(__get_dynamic_array(list), __get_dynamic_array_len(list) / 4, 4), ((u32 *)__get_dynamic_array(list))[1]"#,
            "{0x7,0x8} 8",
        ),
        (
            r#""%pS %ps %p %pM %*ph", (void *)REC->p, REC->p, REC->p, REC->mac, 2, REC->mac"#,
            "work+0x10 work 0x1010 01:02:03:0a:0b:0c 01 02",
        ),
        (
            r#""%s %d", REC->p == 0x1010 ? "yes" : "no", (int)sizeof(REC->comm) + sizeof(u16)"#,
            "yes 10",
        ),
        (r#""%hd %d", REC->h, REC->common_pid"#, "-1 77"),
        (r#""%d", REC->mac[3]"#, "10"),
    ] {
        assert_eq!(printed(print_fmt), text, "{print_fmt}");
    }
}

#[test]
fn unsupported_print_fmts_show_the_fields() {
    let fields = " comm=bash a=-2 b=5 p=0x1010 name=hello list=ARRAY[07, 00, 00, 00, 08, 00, 00, \
                  00] mac=ARRAY[01, 02, 03, 0a, 0b, 0c] h=-1 rel=hell";
    for print_fmt in [
        "",
        "\"%d\"",
        "\"%d\", REC->nope",
        "\"%s\", own_function(REC->a)",
        "\"%d\", REC->a = 1",
        "\"%d\", (REC->a",
    ] {
        let event = event(print_fmt, Endian::Little);
        let text = event.text(&payload(Endian::Little), &Machine);
        assert_eq!(text, format!("[FAILED TO PARSE]{fields}"), "{print_fmt}");
    }
    // A field is written as in the print fmt if an argument is just this field.
    let event = event("\"0x%x %#lx\", REC->b, REC->p", Endian::Little);
    let text = event.fields_of(&event.values(&payload(Endian::Little), &Machine));
    assert!(text.starts_with(" comm=bash a=-2 b=0x5 p=0x1010"), "{text}");
}

#[test]
fn missing_bytes_read_as_zero() {
    let event =
        event(r#""%s %d %s %pM|", REC->comm, REC->a, __get_str(name), REC->mac"#, Endian::Little);
    let whole = payload(Endian::Little);
    for len in 0..whole.len() {
        let text = event.text(&whole[..len], &Machine);
        assert!(text.ends_with('|'), "{text}");
    }
    assert_eq!(event.text(&[], &Machine), " 0  |");
}

#[test]
fn too_deep_nesting_is_unsupported() {
    let is_supported = |print_fmt: &str| {
        !event(print_fmt, Endian::Little).text(&[], &Machine).starts_with("[FAILED")
    };
    let nested = |depth: usize| format!("\"%d\", {}1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(is_supported(&nested(50)));
    assert!(!is_supported(&nested(20_000)));
    assert!(is_supported(&format!("\"%d\", 1{}", "+1".repeat(900))));
    assert!(!is_supported(&format!("\"%d\", 1{}", "+1".repeat(20_000))));
    assert!(!is_supported(&format!("\"%d\", {}1", "!".repeat(20_000))));
    let wide = event("\"%999999999d %.999999999d %*d\", 1, 1, 0x7fffffff, 1", Endian::Little);
    assert!(wide.text(&[], &Machine).len() < 20_000);
}

proptest! {
    #[test]
    fn survives_any_print_fmt_and_payload(
        parts in proptest::collection::vec(0usize..24, 0..40),
        bytes: Vec<u8>,
    ) {
        const WORDS: [&str; 24] = [
            "\"%s %d %*d %pS %pI6c %pU %*pbl\"", "REC->a", "REC->comm", "REC->list", ",", "(", ")",
            "[", "]", "?", ":", "+", "/", "<<", "-", "(u8)", "(u32 *)", "__get_dynamic_array(list)",
            "__get_str(name)", "__print_flags(", "{ 1, \"x\" }", "7",
            "__print_array(REC->list, 9, 4)", "__print_hex(REC->mac, 99)",
        ];
        let text: Vec<&str> = parts.iter().filter_map(|part| WORDS.get(*part).copied()).collect();
        for print_fmt in [text.join(" "), format!("\"%s %d %pM %s %c\", {}", text.join(","))] {
            let event = event(&print_fmt, Endian::Little);
            prop_assert!(event.text(&bytes, &Machine).len() < 1 << 20);
            prop_assert!(event.fields_of(&event.values(&bytes, &Machine)).len() < 1 << 20);
        }
    }
}
