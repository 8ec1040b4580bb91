//! `earmark bench`: every experiment, what its JSON says, and what the options do to it.
//!
//! Times are compared loosely, and only where an option adds far more than noise does.

use serde_json::Value;

mod common;
use common::{Directory, needs, run, unique};

/// A short run of an experiment; what it prints.
#[track_caller]
fn bench(arguments: &[&str]) -> Value {
    bench_for("1", arguments)
}

/// A run of an experiment for some seconds; what it prints.
#[track_caller]
fn bench_for(seconds: &str, arguments: &[&str]) -> Value {
    let name = unique("bench");
    let usual = ["bench", "--json", "--duration", seconds, "--warmup", "0.1", "--name", &name];
    run(&[&usual, arguments].concat()).json()
}

/// The number at a path such as `results/0/packets`.
#[track_caller]
fn number(value: &Value, path: &str) -> f64 {
    let found = value.pointer(&format!("/{path}")).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("no number {path} in {value:#}"))
}

/// The texts under `key` of a list.
fn texts<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|entry| entry[key].as_str().unwrap()).collect()
}

#[test]
fn the_schema_has_every_field() {
    let outcome = bench(&["mixed", "--strategy", "marked:75", "--bulk-rate", "20", "--seed", "7"]);
    assert_eq!(number(&outcome, "schema_version"), 2.0);
    assert_eq!((&outcome["experiment"], &outcome["world"]), (&"mixed".into(), &"live".into()));
    assert_eq!(texts(&outcome["results"], "setting"), ["marked:75"]);
    for path in [
        "latency_us/min",
        "latency_us/p50",
        "latency_us/p90",
        "latency_us/p99",
        "latency_us/max",
        "latency_us/mean",
        "transactions_per_s",
        "bulk_bits_per_s",
        "interrupts",
        "packets",
        "packets_per_interrupt",
        "hold_us/p50",
        "hold_us/p99",
        "hold_us/max",
    ] {
        assert!(number(&outcome, &format!("results/0/{path}")) > 0.0, "{path}: {outcome:#}");
    }
    let quantiles = ["min", "p50", "p90", "p99", "max"]
        .map(|name| number(&outcome, &format!("results/0/latency_us/{name}")));
    assert!(quantiles.is_sorted(), "{quantiles:?}");
    let environment = &outcome["results"][0]["environment"];
    for key in ["earmark", "kernel", "cpu_model", "privilege", "wait", "mark", "link", "command"] {
        assert!(environment[key].as_str().is_some_and(|text| !text.is_empty()), "{key}");
    }
    assert!(environment["command"].as_str().unwrap().contains("--seed 7"));
}

#[test]
fn every_experiment_runs() {
    needs("memcached", "memcached");
    for (experiment, figure) in [
        ("tcp-rr", "transactions_per_s"),
        ("udp-rr", "transactions_per_s"),
        ("ping", "transactions_per_s"),
        ("loaded-server", "transactions_per_s"),
        ("memcached", "transactions_per_s"),
        ("ntp", "transactions_per_s"),
        ("bulk", "bulk_bits_per_s"),
        ("mixed", "bulk_bits_per_s"),
        ("pps", "datagrams_per_s"),
        ("invalid-frames", "receive_ns_per_packet"),
    ] {
        // Paced, where it would otherwise keep a host polling: then there are no interrupts.
        let pace: &[&str] = match experiment {
            "pps" | "invalid-frames" => &["--rate", "2000"],
            "bulk" | "mixed" => &["--bulk-rate", "20"],
            _ => &[],
        };
        let outcome = bench(&[&[experiment], pace].concat());
        assert_eq!(texts(&outcome["results"], "setting"), ["delay:75"], "{experiment}");
        for figure in [figure, "interrupts", "packets"] {
            assert!(
                number(&outcome, &format!("results/0/{figure}")) > 0.0,
                "{experiment}: {figure}"
            );
        }
    }
}

#[test]
fn settings_are_compared_in_order() {
    let directory = Directory::new();
    let picture = directory.file("tradeoff.svg");
    let compare = ["tcp-rr", "--compare", "delay:75,disabled,marked:75", "--rounds", "2"];
    let outcome = bench(&[&compare[..], &["--svg", &picture]].concat());
    let expected = ["delay:75", "disabled", "marked:75"];
    assert_eq!(texts(&outcome["results"], "setting"), expected);
    let picture = std::fs::read_to_string(picture).unwrap();
    assert!(expected.iter().all(|name| picture.contains(&format!(">{name}</text>"))), "{picture}");
    for result in 0..3 {
        let rounds = outcome["results"][result]["rounds"].as_array().unwrap();
        assert_eq!(rounds.len(), 2);
    }
    let ratios = outcome["ratios"].as_array().unwrap();
    for (of, to) in [("marked:75", "delay:75"), ("disabled", "delay:75"), ("delay:75", "disabled")]
    {
        let pair = |ratio: &&Value| {
            ratio["figure"] == "latency_p50" && ratio["of"] == of && ratio["to"] == to
        };
        let ratio = ratios.iter().find(pair).unwrap_or_else(|| panic!("{of}/{to}: {outcome:#}"));
        let range = ["min", "median", "max"].map(|name| ratio[name].as_f64().unwrap());
        assert!(range.is_sorted() && range[0] > 0.0, "{range:?}");
    }
    let hold = number(&outcome, "results/0/hold_us/max");
    assert!(hold >= 74.9, "the packet that begins a hold waits 75 us, not {hold}");
}

#[test]
fn each_number_of_clients_is_measured() {
    let outcome = bench(&["tcp-rr", "--clients", "1..3"]);
    let clients: Vec<_> =
        (0..3).map(|at| number(&outcome, &format!("results/{at}/clients"))).collect();
    assert_eq!(clients, [1.0, 2.0, 3.0]);
    assert_eq!(outcome["results"].as_array().unwrap().len(), 3);
}

#[test]
fn scenarios_are_read_from_files() {
    let directory = Directory::new();
    let scenario = "title = 'Mine'\nstory = 'Short.'\nnic = { strategy = 'delay:40', queues = 2 }\n\
                    [[experiment]]\nrun = 'udp-rr'\n\
                    [[experiment]]\nrun = 'tcp-rr'\nnic = { strategy = 'throttle:60' }\n\
                    options = { clients = 2 }\n";
    let path = directory.write("mine.toml", scenario);
    let outcome = |arguments: &[&str]| bench(arguments)["outcomes"][0].clone();
    let chosen = outcome(&["tcp-rr", "--scenario", &path]);
    assert_eq!(texts(&chosen["results"], "setting"), ["throttle:60"]);
    assert_eq!(number(&chosen, "results/0/clients"), 2.0);
    let flags_win = outcome(&["udp-rr", "--scenario", &path, "--rx-usecs", "30"]);
    assert_eq!(texts(&flags_win["results"], "setting"), ["delay:30"]);
    let name = unique("bench");
    let all = run(&["bench", "--duration", "1", "--name", &name, "--scenario", &path]);
    assert!(all.output().contains("udp-rr") && all.stdout.contains("tcp-rr"), "{all:?}");
    run(&["bench", "pps", "--scenario", &path]).refused(&["udp-rr, tcp-rr"]);
    let wrong = directory.write("wrong.toml", &scenario.replace("queues", "queue"));
    run(&["bench", "--scenario", &wrong]).refused(&["wrong.toml", "unknown key `queue`", "queues"]);
}

#[test]
fn latency_of_the_cable_is_added() {
    let outcome = bench(&["tcp-rr", "--strategy", "disabled", "--link-latency", "2000"]);
    assert!(number(&outcome, "results/0/latency_us/min") >= 4_000.0, "{outcome:#}");
}

#[test]
fn a_cable_that_loses_everything_is_an_error() {
    for experiment in ["udp-rr", "ping", "tcp-rr", "pps"] {
        let name = unique("lossy");
        let lossy =
            ["bench", experiment, "--link-loss", "100", "--duration", "0.2", "--name", &name];
        run(&lossy).refused(&["earmark: "]);
    }
}
