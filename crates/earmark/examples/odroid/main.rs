//! The story of the Odroid C2 and its clock, told anew by real programs in virtual time: writes
//! `odroid-virtual.json` and `odroid-virtual.svg` into a directory, if none is named into
//! `docs/results`.
//!
//! ```console
//! $ cargo build --release && cargo run --release --example odroid
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow};
use report::panels::{Curve, Panel, Picture};
use serde_json::{Value, json};

mod chrony;
use chrony::{CHANGE_AT_S, Sample, measure, medians};

/// A figure: its name, and how a sample tells it.
type Figure = (&'static str, fn(&Sample) -> f64);

const FIGURES: [Figure; 4] = [
    ("round_trip_us", |sample| sample.round_trip_us),
    ("request_us", Sample::request_us),
    ("response_us", Sample::response_us),
    ("offset_us", |sample| sample.offset_us),
];

fn main() -> Result<()> {
    let directory = std::env::args_os().nth(1).map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results"),
        PathBuf::from,
    );
    let earmark = std::env::current_exe()?.with_file_name("../earmark");
    let samples = measure(&mut Command::new(&earmark)).map_err(|why| {
        anyhow!("run {}: {why}; `cargo build --release` makes it", earmark.display())
    })?;
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))
    };
    let json = json(&samples);
    write("odroid-virtual.json", &(serde_json::to_string(&json)? + "\n"))?;
    write("odroid-virtual.svg", &picture(&samples).svg())?;
    println!("{}", serde_json::to_string_pretty(&json["clients"][0]["medians"])?);
    Ok(())
}

fn json(samples: &BTreeMap<String, Vec<Sample>>) -> Value {
    // A tenth of a microsecond is what chronyd's log tells.
    let short = |value: f64| (value * 10.0).round() / 10.0;
    let client = |(name, samples): (&String, &Vec<Sample>)| {
        let medians: BTreeMap<_, _> = FIGURES
            .map(|(name, figure)| {
                let [before, after] = medians(samples, figure).map(short);
                (name, json!({ "before": before, "after": after, "moved": short(after - before) }))
            })
            .into();
        let row = |sample: &Sample| {
            let mut row = vec![sample.at_s];
            row.extend(FIGURES.map(|(_, figure)| short(figure(sample))));
            row
        };
        let rows: Vec<_> = samples.iter().map(row).collect();
        json!({ "host": name, "medians": medians, "rows": rows })
    };
    let columns: Vec<_> = ["at_s"].into_iter().chain(FIGURES.map(|(name, _)| name)).collect();
    json!({
        "story": "chronyd in guests a and c asks chronyd in guest b four times a second; at second \
                  48 b's own `ethtool -C b0 rx-usecs 50` ends a hold of 393 us. Virtual time.",
        "change_at_s": CHANGE_AT_S,
        "columns": columns,
        "clients": samples.iter().map(client).collect::<Vec<_>>(),
    })
}

fn picture(samples: &BTreeMap<String, Vec<Sample>>) -> Picture {
    let curves = |what: &str, figure: fn(&Sample) -> f64| {
        let curve = |(host, samples): (&String, &Vec<Sample>)| Curve {
            name: format!("{what}{host}"),
            points: samples.iter().map(|sample| (sample.at_s, figure(sample))).collect(),
        };
        samples.iter().map(curve).collect::<Vec<_>>()
    };
    let panel = |title: &str, curves| Panel { title: format!("{title}, us"), curves };
    let halves =
        [curves("request from ", Sample::request_us), curves("response to ", Sample::response_us)];
    Picture {
        summary: "Round trips, their halves, and the offset that chronyd computes, before and \
                  after the server's NIC was told to hold packets for 50 us instead of 393: only \
                  requests become faster, and the offset moves by half of that."
            .to_owned(),
        x_title: "seconds".to_owned(),
        has_logarithmic_x: false,
        change: Some((CHANGE_AT_S, "ethtool -C b0 rx-usecs 50".to_owned())),
        panels: vec![
            panel("Round trip", curves("", |sample| sample.round_trip_us)),
            panel("Request and response", halves.concat()),
            panel("Offset", curves("", |sample| sample.offset_us)),
        ],
    }
}
