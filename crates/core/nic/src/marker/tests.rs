use super::*;
use crate::frames::{ethernet, ipv4, mx, tagged, tcp, tcp4, udp4};
use crate::headers::{MX_FLAG_MARK, parse};
use alloc::string::{String, ToString};
use alloc::vec;
use proptest::prelude::*;

fn rules(text: &str) -> Rules {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn error(text: &str) -> String {
    text.parse::<Rules>().expect_err(text).to_string()
}

#[test]
fn a_test_is_small() {
    assert!(size_of::<Test>() <= 8);
}

#[test]
fn no_rules_mark_nothing() {
    for text in ["", "  "] {
        assert!(rules(text).is_empty());
        assert_eq!(rules(text).classify(&parse(&mx(0xff, 0)).unwrap()), Classification::default());
    }
}

#[test]
fn first_match_wins() {
    let rules = rules("unmark tcp-port=5001, tcp-psh & length<=512");
    let verdict = |frame: &[u8]| rules.classify(&parse(frame).unwrap());
    assert_eq!(verdict(&tcp4(5001, 1, 8, b"")), Classification { mark: false, rule: Some(0) });
    assert_eq!(verdict(&tcp4(5002, 1, 8, b"")), Classification { mark: true, rule: Some(1) });
    assert_eq!(verdict(&tcp4(5002, 1, 0, b"")), Classification { mark: false, rule: None });
    assert_eq!(verdict(&tcp4(5002, 1, 8, &[0; 500])), Classification { mark: false, rule: None });
    assert_eq!(rules.get(0).unwrap().to_string(), "unmark tcp-port=5001");
    assert!(!rules.get(0).unwrap().marks() && rules.get(1).unwrap().marks());
    assert_eq!((rules.len(), rules.get(2)), (2, None));
}

#[test]
fn each_field_reads_its_header() {
    let voice = tagged(0x8100, 5, &tcp4(1000, 80, 0x08, b"")); // 58 bytes, DSCP 46
    let clock = udp4(123, 124, b"");
    for (text, frame, holds) in [
        ("mx", &mx(MX_FLAG_MARK, 0), true),
        ("mx", &mx(!MX_FLAG_MARK, 0), false),
        ("mx", &voice, false),
        ("tcp-psh", &voice, true),
        ("tcp-psh", &clock, false),
        ("ethertype=0x0800", &voice, true),
        ("ethertype=0x86df", &voice, false),
        ("vlan-priority=5", &voice, true),
        ("vlan-priority=5", &clock, false),
        ("dscp=46", &clock, true),
        ("dscp=45", &clock, false),
        ("tcp-port=1000", &voice, true),
        ("tcp-port=80", &voice, true),
        ("tcp-port=81", &voice, false),
        ("tcp-port=123", &clock, false),
        ("udp-port=123", &clock, true),
        ("udp-port=124", &clock, true),
        ("udp-port=80", &voice, false),
        ("length=58", &voice, true),
        ("length=57", &voice, false),
    ] {
        assert_eq!(rules(text).mark(frame), Ok(holds), "{text} on {frame:02x?}");
    }
}

#[test]
fn each_operator_splits_where_it_says() {
    for (operator, holds) in [
        ("=10", [false, true, false]),
        ("!=10", [true, false, true]),
        ("<10", [true, false, false]),
        ("<=10", [true, true, false]),
        (">10", [false, false, true]),
        (">=10", [false, true, true]),
        ("=9-10", [true, true, false]),
        ("!=10-0xb", [true, false, false]),
    ] {
        let rules = rules(&["dscp", operator].concat());
        let results = [9, 10, 11].map(|dscp| {
            let mut frame = tcp4(1, 2, 0, b"");
            frame[15] = dscp << 2;
            rules.mark(&frame).unwrap()
        });
        assert_eq!(results, holds, "{operator}");
    }
}

#[test]
fn a_missing_field_fails_whatever_the_operator() {
    let arp = ethernet(0x0806, &[0; 46]);
    for text in ["dscp!=46", "vlan-priority>=0", "tcp-port!=80", "udp-port!=80", "tcp-port>=0"] {
        assert_eq!(rules(text).mark(&arp), Ok(false), "{text}");
    }
    let later_fragment = ethernet(0x0800, &ipv4(headers::TCP, 1, &[], &tcp(1, 2, 8, b"")));
    assert_eq!(rules("tcp-port>=0").mark(&later_fragment), Ok(false));
}

#[test]
fn a_negated_port_means_neither() {
    let rules = rules("tcp-port!=80");
    assert_eq!(rules.mark(&tcp4(80, 1000, 0, b"")), Ok(false));
    assert_eq!(rules.mark(&tcp4(1000, 80, 0, b"")), Ok(false));
    assert_eq!(rules.mark(&tcp4(1000, 81, 0, b"")), Ok(true));
}

#[test]
fn a_very_long_frame_is_still_long() {
    let frame = ethernet(0x0806, &vec![0; 70_000]);
    assert_eq!(rules("length>=65535").mark(&frame), Ok(true));
    assert_eq!(rules("length<=65534").mark(&frame), Ok(false));
}

#[test]
fn a_frame_that_cannot_be_read_is_an_error() {
    assert_eq!(rules("length>=0").mark(&[0; 13]), Err(Malformed::EthernetTruncated));
}

#[test]
fn text_is_normalised() {
    for (text, normal) in [
        (" mx,tcp-psh&length < 513 ", "mx, tcp-psh & length<=512"),
        ("ethertype = 34527", "ethertype=0x86df"),
        ("unmark\tvlan-priority>6", "unmark vlan-priority=7"),
        ("dscp=0x0a - 20, dscp!=1-2", "dscp=10-20, dscp!=1-2"),
        ("dscp=1 & tcp-psh & mx & mx", "mx & tcp-psh & dscp=1"),
        ("length>=0, length<=65535", "length>=0, length>=0"),
        ("udp-port=0, udp-port<=0", "udp-port=0, udp-port=0"),
        ("tcp-port>1023, tcp-port!=80", "tcp-port>=1024, tcp-port!=80"),
    ] {
        assert_eq!(rules(text).to_string(), normal);
    }
}

#[test]
fn errors_say_which_rule_what_is_wrong_and_what_is_right() {
    let tests = "the tests are mx, tcp-psh, ethertype, vlan-priority, dscp, tcp-port, udp-port, \
                 length";
    let operators = "the operators are =, !=, <, <=, > and >=";
    let numbers = "numbers are decimal or hexadecimal like 0x86df, and = and != also take a \
                   range like 10-20";
    let pointless = "no value of the field passes";
    for (text, what, right) in [
        (
            "mx, tcp-push & length<=512",
            "unknown test `tcp-push` in rule `tcp-push & length<=512`",
            tests,
        ),
        ("unmarked mx", "unknown test `unmarked mx` in rule `unmarked mx`", tests),
        ("=5", "unknown test `` in rule `=5`", tests),
        ("mx,", "missing test in rule ``", tests),
        ("unmark", "missing test in rule `unmark`", tests),
        ("mx & ", "missing test in rule `mx &`", tests),
        ("mx=1", "unexpected value in rule `mx=1`", "`mx` stands alone"),
        ("dscp", "missing operator after `dscp` in rule `dscp`", operators),
        ("dscp!5", "missing operator after `dscp` in rule `dscp!5`", operators),
        ("dscp=", "bad number `` in rule `dscp=`", numbers),
        ("dscp==5", "bad number `=5` in rule `dscp==5`", numbers),
        ("dscp=+5", "bad number `+5` in rule `dscp=+5`", numbers),
        ("dscp=0x", "bad number `0x` in rule `dscp=0x`", numbers),
        ("dscp<1-2", "bad number `1-2` in rule `dscp<1-2`", numbers),
        ("dscp=64", "number 64 out of range in rule `dscp=64`", "dscp is 0 to 63"),
        (
            "length<=99999999999999999999",
            "number 99999999999999999999 out of range in rule `length<=99999999999999999999`",
            "length is 0 to 65535",
        ),
        ("dscp=5-4", "pointless test `dscp=5-4` in rule `dscp=5-4`", pointless),
        ("dscp<0", "pointless test `dscp<0` in rule `dscp<0`", pointless),
        ("dscp>63", "pointless test `dscp>63` in rule `dscp>63`", pointless),
        ("length>65535", "pointless test `length>65535` in rule `length>65535`", pointless),
        ("dscp!=0-63", "pointless test `dscp!=0-63` in rule `dscp!=0-63`", pointless),
    ] {
        assert_eq!(error(text), [what, "; ", right].concat());
    }
}

#[test]
fn lists_are_bounded() {
    let many = |item: &str, by, count| vec![item; count].join(by);
    assert_eq!(rules(&many("mx", ",", MAX_RULES)).len(), MAX_RULES);
    let text = [&many("mx", ",", MAX_RULES), ",dscp=1"].concat();
    assert_eq!(error(&text), "too many rules at `dscp=1`; at most 32");
    assert_eq!(rules(&many("mx", "&", MAX_TESTS)).len(), 1);
    assert!(error(&many("mx", "&", MAX_TESTS + 1)).starts_with("too many tests in rule `mx&mx"));
}

/// Any test that the text form can express, the ends of a field's values more often than others.
fn any_test() -> impl Strategy<Value = Test> {
    prop::sample::select(&Field::ALL[..]).prop_flat_map(|field| {
        let value = prop_oneof![Just(0), Just(field.max()), 0..=field.max()];
        (any::<bool>(), value.clone(), value).prop_filter_map(
            "no value passes",
            move |(negate, a, b)| {
                let (lo, hi) = (a.min(b), a.max(b));
                let pointless = negate && (lo, hi) == (0, field.max());
                (!pointless).then(|| Test::new(field, negate, lo, hi))
            },
        )
    })
}

fn any_rules() -> impl Strategy<Value = Rules> {
    let flags = prop::sample::subsequence(FLAGS.map(|(_, fact)| fact).to_vec(), 0..=2);
    let rule = (any::<bool>(), flags, prop::collection::vec(any_test(), 0..=6))
        .prop_filter("a rule needs a test", |(_, flags, tests)| flags.len() + tests.len() > 0)
        .prop_map(|(mark, flags, tests)| {
            let facts = tests.iter().map(|test| test.field.needs()).chain(flags);
            let needs = facts.fold(Facts::NONE, Facts::with);
            let mut tests = tests.into_iter();
            Rule { mark, needs, first: tests.next(), others: tests.collect() }
        });
    prop::collection::vec(rule, 0..=6).prop_map(|rules| Rules { rules })
}

proptest! {
    #[test]
    fn text_form_loses_nothing(rules in any_rules()) {
        prop_assert_eq!(rules.to_string().parse::<Rules>(), Ok(rules));
    }
}

#[test]
fn a_rule_prints_its_conditions() {
    let rules: Rules = "unmark tcp-port!=80-90 & tcp-psh, length<=512".parse().unwrap();
    let all: Vec<Vec<Condition>> = rules.iter().map(|rule| rule.conditions().collect()).collect();
    let value = |field, negate, lo, hi| Condition::Value { field, lo, hi, negate };
    let first = vec![Condition::Flag("tcp-psh"), value("tcp-port", true, 80, 90)];
    assert_eq!(all, [first, vec![value("length", false, 0, 512)]]);
}
