//! Any bytes in place of what the kernel says of a device: netlink messages, their attributes, and
//! the text of files.
//!
//! Besides not panicking: what is read and written again is read as the same.

use netdev::aspm::l1_exit_us;
use netdev::ethtool::{
    Channels, Coalesce, Eee, Features, FlowRule, Link, LinkState, Rings, Strings, Timestamps,
    encode_coalesce, parse_driver, parse_flow_rule, parse_legacy, parse_rss,
};
use netdev::interrupts::parse_interrupts;
use netdev::message::{self, Message};
use netdev::names_in_proc_net_dev;
use netdev::netdev::{parse_napi, parse_queue, parse_queue_counters};
use netdev::softnet::parse_softnet;
use netdev::tlv::{Writer, parse};
use netdev::virtualisation::parse_cpuinfo;
use sys::cpus::{parse_list, parse_mask, write_list};

const SEQUENCE: u32 = 7;

pub(crate) fn replay(bytes: &[u8]) {
    attributes(bytes);
    for message in message::read(bytes, SEQUENCE).unwrap_or_default() {
        if let Message::Answer(payload) = message {
            attributes(payload.get(4..).unwrap_or_default());
        }
    }
    text(&String::from_utf8_lossy(bytes));
}

fn attributes(bytes: &[u8]) {
    if let Ok(coalesce) = parse::<Coalesce>(bytes) {
        let mut written = Writer::default();
        // A profile of any length is longer when it is written: what came as one byte is a word.
        if bytes.len() < 8_000 {
            encode_coalesce(&coalesce, &mut written);
            let again = parse::<Coalesce>(written.bytes()).expect("we have written it");
            for (parameter, value) in coalesce.iter() {
                let value = if parameter.is_switch() { value.min(1) } else { value };
                assert_eq!(again.get(parameter), Some(value), "{parameter}");
            }
            let profiles = (&coalesce.rx_profile, &coalesce.tx_profile);
            assert_eq!((&again.rx_profile, &again.tx_profile), profiles);
        }
    }
    let _ = (parse::<Rings>(bytes), parse::<Channels>(bytes), parse::<Features>(bytes));
    let _ = (parse::<Link>(bytes), parse::<LinkState>(bytes), parse::<Timestamps>(bytes));
    let _ = (parse::<Strings>(bytes), parse::<Eee>(bytes), parse_driver(bytes), l1_exit_us(bytes));
    let _ = (parse_napi(bytes), parse_queue(bytes), parse_queue_counters(bytes));
    let words = bytes.chunks_exact(4).map(|b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
    let words: Vec<u32> = words.collect();
    let _ = (parse_legacy(&words), parse_rss(&words));
    if let Some(rule) = parse_flow_rule(bytes) {
        assert_eq!(rule.to_string().parse(), Ok(rule));
    }
}

fn text(text: &str) {
    for interrupt in parse_interrupts(text) {
        assert!(interrupt.counts.iter().all(|(cpu, _)| text.contains(&cpu.to_string())));
        let _ = interrupt.total();
    }
    if let Ok(rule) = text.parse::<FlowRule>() {
        assert_eq!(rule.to_string().parse(), Ok(rule));
    }
    let _ = (parse_softnet(text), parse_cpuinfo(text), names_in_proc_net_dev(text));
    for cpus in [parse_list(text), parse_mask(text)].into_iter().flatten() {
        assert_eq!(parse_list(&write_list(&cpus)), Some(cpus));
    }
}
