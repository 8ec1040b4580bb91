//! The experiments of MX in the live world: figures that make sense, whatever the machine, and
//! refusals.

use serde_json::Value;

mod common;
use common::{run, unique};

/// The only result of a short `earmark bench` with these arguments.
#[track_caller]
fn result(arguments: &[&str]) -> Value {
    let name = unique("mx");
    let always = ["bench", "--json", "--warmup", "0.05", "--duration", "1", "--name", &name];
    let outcome = run(&[&always[..], arguments].concat()).json();
    assert_eq!(outcome["results"].as_array().map(Vec::len), Some(1));
    outcome["results"][0].clone()
}

fn number(result: &Value, pointer: &str) -> f64 {
    let value = result.pointer(pointer).and_then(Value::as_f64);
    value.unwrap_or_else(|| panic!("no {pointer} in {result:#}"))
}

#[test]
fn messages_of_each_class_go_there_and_back() {
    for size in ["0", "8", "128", "32768", "234880", "4194304"] {
        let result = result(&["mx-pingpong", "--size", size, "--strategy", "marked:75"]);
        let messages = number(&result, "/messages_per_s");
        assert!(messages > 0.0 && number(&result, "/transactions_per_s") > 0.0, "{size}");
        let bytes = number(&result, "/message_bytes_per_s");
        assert!((bytes - messages * size.parse::<f64>().unwrap()).abs() < 1.0, "{size}: {bytes}");
        let (half, whole) = (number(&result, "/half_round_trip_us/p50"), "/latency_us/p50");
        assert!((half * 2.0 - number(&result, whole)).abs() < 1e-6);
        assert!(number(&result, "/interrupts_per_message") > 0.0);
    }
}

#[test]
fn clients_share_an_endpoint_and_may_spin() {
    let more = ["--clients", "3", "--client-spin", "--think", "500", "--compute", "20"];
    let result = result(&[&["mx-pingpong"], &more[..]].concat());
    assert!(number(&result, "/transactions_per_s") > 0.0, "{result:#}");
    // A request may join the hold of another one, but the packet that begins a hold waits 75 us.
    assert!(number(&result, "/hold_us/max") >= 74.9, "{result:#}");
}

#[test]
fn streams_flow_one_way() {
    let more = ["--size", "10000", "--in-flight", "8", "--bulk-rate", "8"];
    let result = result(&[&["mx-stream"], &more[..]].concat());
    let messages = number(&result, "/messages_per_s");
    assert!(messages > 0.0, "{result:#}");
    assert_eq!(result["half_round_trip_us"], Value::Null);
    assert_eq!(result["transactions_per_s"], Value::Null);
}

#[test]
fn messages_share_a_nic_with_tcp() {
    let result = result(&["mx-mixed", "--bulk-rate", "20", "--rate", "200", "--queues", "2"]);
    for figure in ["/transactions_per_s", "/bulk_bits_per_s", "/message_bytes_per_s"] {
        assert!(number(&result, figure) > 0.0, "{result:#}");
    }
    assert_eq!(result["interrupts_per_message"], Value::Null, "some are for TCP");
    let result = self::result(&["tcp-rr"]);
    for figure in ["messages_per_s", "message_bytes_per_s", "interrupts_per_message"] {
        assert_eq!(result[figure], Value::Null);
    }
}

/// A port that marks nothing holds what MX has marked.
#[test]
fn marks_are_those_that_were_asked_for() {
    let marked = |more: &[&str]| {
        let arguments = [&["mx-large-anatomy", "--strategy", "marked:75"], more].concat();
        number(&result(&arguments), "/ports/1/marked")
    };
    assert!(marked(&[]) > 0.0);
    assert_eq!(marked(&["--mx-marks", "none"]), 0.0);
    assert_eq!(marked(&["--mark", "tcp-psh"]), 0.0);
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |arguments: &[&str], words: &[&str]| {
        run(&[&["bench", "--duration", "0.1"], arguments].concat()).refused(words);
    };
    refused(&["mx-pingpong", "--size", "4194305"], &["--size", "4194304"]);
    refused(&["mx-stream", "--in-flight", "0"], &["--in-flight", "1..=4096"]);
    refused(&["mx-misorder", "--size", "128"], &["--size 128", "129 to 32768"]);
    refused(&["mx-misorder", "--size", "40000"], &["--size 40000", "129 to 32768"]);
    refused(&["mx-large-anatomy", "--size", "32768"], &["--size 32768", "32769 bytes or more"]);
    refused(&["mx-pingpong", "--mx-marks", "all-medium"], &["`all-medium`", "medium-last"]);
    let lossy = ["mx-pingpong", "--link-loss", "100"];
    refused(&lossy, &["02:00:00:00:00:0b/1", "is the server agent up?"]);
}
