//! `earmark bench` in real time: every experiment, what its JSON says, and what the options do.
//!
//! Times are compared loosely, and only where an option adds far more than noise does.

use std::process::Command;

use serde_json::Value;

use crate::support::shards::{merge, shards};
use crate::support::{Directory, EARMARK, has, needs, output, run_line, unique};

/// A short run of an experiment; what it prints.
#[track_caller]
fn bench(line: &str) -> Value {
    let name = unique("bench");
    run_line(&format!("bench --json --duration 1 --warmup 0.1 --name {name} {line}")).json()
}

/// The number at a path such as `results/0/packets`.
#[track_caller]
fn number(value: &Value, path: &str) -> f64 {
    let found = value.pointer(&format!("/{path}")).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("no number {path} in {value:#}"))
}

/// The settings of a list of results.
fn settings(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|entry| entry["setting"].as_str().unwrap()).collect()
}

#[test]
fn the_schema_has_every_field() {
    needs!("lab");
    let outcome = bench("mixed --strategy marked:75 --bulk-rate 20 --seed 7");
    assert_eq!(number(&outcome, "schema_version"), 2.0);
    assert_eq!((&outcome["experiment"], &outcome["world"]), (&"mixed".into(), &"live".into()));
    assert_eq!(settings(&outcome["results"]), ["marked:75"]);
    for path in [
        "latency_us/min",
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
    needs!("lab", "memcached");
    // Paced, where it would otherwise keep a host polling: then there are no interrupts.
    for (line, figure) in [
        ("tcp-rr", "transactions_per_s"),
        ("udp-rr", "transactions_per_s"),
        ("ping", "transactions_per_s"),
        ("loaded-server", "transactions_per_s"),
        ("memcached", "transactions_per_s"),
        ("ntp", "transactions_per_s"),
        ("bulk --bulk-rate 20", "bulk_bits_per_s"),
        ("mixed --bulk-rate 20", "bulk_bits_per_s"),
        ("pps --rate 2000", "datagrams_per_s"),
        ("invalid-frames --rate 2000", "receive_ns_per_packet"),
        ("mx-pingpong --clients 3 --client-spin --compute 20", "half_round_trip_us/p50"),
        ("mx-pingpong --size 4194304", "message_bytes_per_s"),
        ("mx-stream --size 10000 --in-flight 8 --bulk-rate 8", "messages_per_s"),
        ("mx-mixed --bulk-rate 20 --rate 200 --queues 2", "bulk_bits_per_s"),
    ] {
        let outcome = bench(line);
        assert_eq!(settings(&outcome["results"]), ["delay:75"], "{line}");
        for figure in [figure, "interrupts", "packets"] {
            assert!(number(&outcome, &format!("results/0/{figure}")) > 0.0, "{line}: {figure}");
        }
    }
}

/// A port that marks nothing holds what MX has marked.
#[test]
fn marks_are_those_that_were_asked_for() {
    needs!("lab");
    for (options, is_marked) in [("", true), ("--mx-marks none", false), ("--mark tcp-psh", false)]
    {
        let outcome = bench(&format!("mx-large-anatomy --strategy marked:75 {options}"));
        assert_eq!(number(&outcome, "results/0/ports/1/marked") > 0.0, is_marked, "{options}");
    }
}

#[test]
fn settings_are_compared_in_order() {
    needs!("lab");
    let directory = Directory::new();
    let picture = directory.file("tradeoff.svg");
    let compare = "tcp-rr --compare delay:75,disabled,marked:75 --rounds 2";
    let outcome = bench(&format!("{compare} --svg {picture}"));
    let expected = ["delay:75", "disabled", "marked:75"];
    assert_eq!(settings(&outcome["results"]), expected);
    let picture = std::fs::read_to_string(picture).unwrap();
    assert!(expected.iter().all(|name| picture.contains(&format!(">{name}</text>"))), "{picture}");
    for result in 0..3 {
        assert_eq!(outcome["results"][result]["rounds"].as_array().unwrap().len(), 2);
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
fn the_demo_has_a_row_for_each_strategy_and_says_what_real_traffic_confirms() {
    needs!("lab");
    let directory = Directory::new();
    let [page, json] = ["report.html", "demo.json"].map(|name| directory.file(name));
    let line = format!("demo --duration 0.3 --rounds 1 --report {page} --json {json}");
    let words =
        ["In a model", "Beside the bulk flow", "rounds: 1", "Nothing is concluded", "Next:", &page];
    run_line(&line).says(&words);
    let [page, json] = [page, json].map(|file| std::fs::read_to_string(file).unwrap());
    let demo: Value = serde_json::from_str(&json).unwrap();
    let all = "disabled delay:75 throttle:125 periodic:75 delay:75+frames:16 adaptive marked:75 stream:75";
    assert_eq!(settings(&demo["model"]["rows"]).join(" "), all);
    assert_eq!(settings(&demo["rows"]).join(" "), "disabled delay:75 marked:75");
    assert_eq!((&demo["agreement"]["rounds"], &demo["not_measured"]), (&1.into(), &Value::Null));
    assert!(page.contains("<svg") && page.contains("<h2>In a model</h2>"), "{page}");
    assert!(page.trim_end().ends_with("</html>"), "{page}");
}

#[test]
fn a_cable_that_loses_everything_is_an_error() {
    needs!("lab");
    for experiment in ["udp-rr", "ping", "tcp-rr", "pps", "mx-pingpong"] {
        let name = unique("lossy");
        let line = format!("bench {experiment} --link-loss 100 --duration 0.2 --name {name}");
        run_line(&line).refused(&["earmark: "]);
    }
}

#[test]
fn in_real_time_each_shard_compares_whole_rounds() {
    needs!("lab");
    let directory = Directory::new();
    let line = "bench ping --compare disabled,delay:200 --rounds 2 --warmup 0.05 --duration 0.2";
    let files = shards(&directory, line, 2);
    for (index, file) in files.iter().enumerate() {
        let file: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let cases = &file["results"][0]["cases"];
        assert_eq!((cases.as_array().unwrap().len(), &cases[0]["case"]), (1, &index.into()));
        assert_eq!(cases[0]["turns"].as_array().unwrap().len(), 2, "a round has both settings");
    }
    let merged = merge(&files, &["--json"]).json();
    for result in merged["results"].as_array().unwrap() {
        assert_eq!(result["rounds"].as_array().unwrap().len(), 2, "{merged:#}");
        assert!(!result["environment"]["command"].as_str().unwrap().contains("--shard"));
    }
    let ratio = &merged["ratios"][0];
    assert!(ratio["median"].as_f64() >= ratio["min"].as_f64(), "{ratio}");
}

/// What `earmark calibrate` prints and writes is what `earmark bench` takes.
#[test]
fn constants_of_this_machine_are_options_of_virtual_time_and_a_machine_of_the_model() {
    needs!("lab", "guests");
    let directory = Directory::new();
    let file = directory.file("this.toml");
    // In as little time as it asks for: on a busy machine little may move nothing.
    let calibrate = |more: &str| {
        let with = |seconds| run_line(&format!("calibrate --duration {seconds} {more}"));
        let ended = with("0.2");
        if ended.stderr.contains("--duration") { with("5") } else { ended }
    };
    let ended = calibrate(&format!("--rounds 1 --machine {file}"));
    ended.says(&["wake-up", "cache line", &file]);
    let machine = std::fs::read_to_string(&file).unwrap();
    let table: toml::Table = toml::from_str(&machine).unwrap();
    let constants = table["constants"].as_table().unwrap();
    for name in ["wake", "library", "copy"] {
        assert_eq!(constants[name]["origin"].as_str(), Some("measured"), "{machine}");
    }
    let is_positive = |value: &toml::Value| {
        value.as_float().is_some_and(|it| it > 0.0) || value.as_integer().is_some_and(|it| it > 0)
    };
    assert!(constants.values().all(|it| is_positive(&it["value"])), "{machine}");
    let bench = format!("bench tcp-rr --world model --duration 0.01 --json --machine {file}");
    let result = run_line(&bench).json()["results"][0].clone();
    assert!(result["environment"]["machine"].as_str().unwrap().contains("this machine"));
    let options = ended.output().lines().find_map(|line| line.strip_prefix("  --")).unwrap();
    let bench = "bench udp-rr --world virtual --duration 0.01 --json";
    let result = run_line(&format!("{bench} --{options}")).json()["results"][0].clone();
    let costs = result["environment"]["costs"].as_str().unwrap();
    for option in options.split("--") {
        let (name, value) = option.trim().split_once(' ').unwrap();
        let paid = match name {
            "interrupt-cost" => format!("an interrupt {value} ns"),
            "packet-cost" => format!("a received packet {value} ns"),
            _ => format!("a sent packet {value} ns"),
        };
        assert!(value == "0" || costs.contains(&paid), "{costs}: {options}");
    }
    let json = calibrate("--rounds 2 --json").json();
    let [points, missed] = ["points", "missed"].map(|of| json[of].as_array().unwrap());
    assert_eq!(points.len() + missed.len(), 2 * 2 * 3, "rounds, experiments, settings");
    for point in points {
        for figure in ["receive_ns", "programs_ns"] {
            assert!(number(point, figure) > 0.0, "{point}");
        }
    }
    // A busy machine may hide what an interrupt costs, not that frames are sent.
    assert!(number(&json, "send_ns/median") > 0.0, "{json}");
}

#[test]
fn an_experiment_whose_program_is_not_installed_is_left_out_and_the_others_are_played() {
    needs!("lab");
    let directory = Directory::new();
    let both = "title = \"two\"\nstory = \"Two experiments.\"\n[[experiment]]\nrun = \"memcached\"\n\
                [[experiment]]\nrun = \"tcp-rr\"\n";
    let scenario = directory.write("two.toml", both);
    let name = unique("bench");
    let options = ["--duration", "0.2", "--rounds", "1", "--name", &name, "--json"];
    let arguments = [&["bench", "--scenario", &scenario][..], &options].concat();
    let nowhere = format!("PATH={}", directory.path().display());
    let mut command = Command::new("env");
    command.args([nowhere.as_str(), EARMARK]).args(arguments);
    let ended = output(&mut command);
    let words = ["memcached is left out: memcached is not installed", "apt-get install memcached"];
    has(&ended.stderr, &words);
    assert_eq!(ended.code, 1, "not all was played: {ended:?}");
    let outcomes = ended.printed_json()["outcomes"].take();
    assert_eq!(outcomes.as_array().unwrap().len(), 1, "{outcomes}");
    assert_eq!(outcomes[0]["experiment"], "tcp-rr");

    // Shards leave it out as well, and so does what is made of them.
    let shards = ["1/2", "2/2"].map(|shard| {
        let mut command = Command::new("env");
        let options = ["--duration", "0.1", "--rounds", "2", "--name", &name];
        let options = [&options[..], &["--json", "--shard", shard]].concat();
        command.args([nowhere.as_str(), EARMARK, "bench", "--scenario", &scenario]).args(options);
        let ended = output(&mut command);
        assert_eq!(ended.code, 1, "{ended:?}");
        has(&ended.stderr, &words);
        directory.write(&shard.replace('/', "of"), &ended.stdout)
    });
    let ended = output(Command::new(EARMARK).args(["merge", "--json"]).args(&shards));
    assert_eq!(ended.code, 1, "{ended:?}");
    has(&ended.stderr, &words);
    let outcomes = ended.printed_json()["outcomes"].take();
    assert_eq!(outcomes.as_array().unwrap().len(), 1, "{outcomes}");
}
