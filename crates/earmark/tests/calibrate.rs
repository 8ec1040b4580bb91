//! `earmark calibrate`: what it prints is what `earmark bench` takes.

use serde_json::Value;

mod common;
use common::{Ended, run};

/// What it prints, in as little time as it asks for: on a busy machine little may move nothing.
fn calibrate(options: &[&str]) -> Ended {
    let with = |seconds| run(&[&["calibrate", "--duration", seconds], options].concat());
    let ended = with("0.2");
    if ended.stderr.contains("--duration") { with("5") } else { ended }
}

#[test]
fn constants_are_options_of_virtual_time() {
    let ended = calibrate(&["--rounds", "1"]);
    let printed = ended.output();
    let options = printed.lines().find_map(|line| line.strip_prefix("  --")).unwrap();
    let options: Vec<String> = format!("--{options}").split(' ').map(str::to_owned).collect();
    let bench = ["bench", "udp-rr", "--world", "virtual", "--duration", "0.01", "--json"];
    let words = bench.into_iter().chain(options.iter().map(String::as_str)).collect::<Vec<_>>();
    let costs = run(&words).json()["results"][0]["environment"]["costs"].take();
    let words = [
        ("--interrupt-cost", "an interrupt"),
        ("--packet-cost", "a received packet"),
        ("--send-cost", "a sent packet"),
    ];
    assert!(options.len() >= 4, "a busy machine may hide what an interrupt costs: {printed}");
    for pair in options.chunks(2).filter(|pair| pair[1] != "0") {
        let (_, name) = words.into_iter().find(|(option, _)| *option == pair[0]).unwrap();
        let paid = format!("{name} {} ns", pair[1]);
        assert!(costs.as_str().unwrap().contains(&paid), "{costs}: {printed}");
    }
}

#[test]
fn each_measurement_is_in_the_json() {
    let json = calibrate(&["--rounds", "2", "--json"]).json();
    let [points, missed] = ["points", "missed"].map(|of| json[of].as_array().unwrap());
    assert_eq!(points.len() + missed.len(), 2 * 2 * 3, "rounds, experiments, settings");
    // A busy machine may starve hosts.
    assert!(missed.iter().all(|missed| !missed["why"].as_str().unwrap().is_empty()), "{json}");
    for point in points {
        // A host that polls all the time has packets and no interrupts.
        assert!(point["interrupts_per_packet"].as_f64() >= Some(0.0), "{point}");
        for figure in ["receive_ns", "programs_ns"] {
            assert!(point[figure].as_f64() > Some(0.0), "{point}");
        }
    }
    // A busy machine may hide what an interrupt costs, not that frames are sent by somebody.
    assert!(json["send_ns"]["median"].as_f64() > Some(0.0), "{json}");
    assert_ne!(json["environment"]["cpu_model"], Value::Null);
}
