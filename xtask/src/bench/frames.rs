//! Frames per second through the real data plane: two hosts, two TAP ports.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::figure::Figure;
use crate::shell;

/// The shortest Ethernet frame and the usual longest, in bytes without FCS.
pub(super) const SIZES: [u32; 2] = [60, 1_500];

/// What Ethernet, IPv4 and UDP put before a datagram's payload, in bytes.
const HEADERS: u32 = 14 + 20 + 8;

/// The name of the figure.
pub(super) fn name(frame: u32) -> String {
    format!("TAP to TAP, {frame}-byte frames")
}

/// Runs the experiment `pps` of the `earmark` command: a flood of datagrams, one way.
pub(super) fn measure(frame: u32, runs: u32) -> Result<Figure> {
    let rates = (0..runs).map(|_| rate(frame)).collect::<Result<_>>()?;
    Ok(Figure::new(name(frame), "frames per second", rates))
}

fn rate(frame: u32) -> Result<f64> {
    let mut earmark = shell::cargo(["run", "--release", "--quiet", "--package", "earmark", "--"]);
    earmark.args(["bench", "pps", "-s", "disabled", "--wait", "sleep"]);
    earmark.args(["--duration", "2", "--rounds", "3", "--json"]);
    earmark.args(["--payload-bytes", &(frame - HEADERS).to_string()]);
    let output = shell::output(&mut earmark)?;
    parse(&output).with_context(|| format!("reading what `{}` measured", shell::line(&earmark)))
}

fn parse(output: &str) -> Result<f64> {
    let json: Value = serde_json::from_str(output)?;
    let field = |name| json["results"][0][name].as_f64().with_context(|| format!("no {name}"));
    let (packets, seconds) = (field("packets")?, field("seconds")?);
    ensure!(packets > 0.0 && seconds > 0.0, "{packets} packets in {seconds} s");
    Ok(packets / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_packets_by_seconds() {
        let json = r#"{"schema": 1, "results": [{"packets": 1000, "seconds": 0.5}]}"#;
        assert_eq!(parse(json).unwrap(), 2_000.0);
    }

    #[test]
    fn measurement_of_nothing_is_refused() {
        assert!(parse(r#"{"results": []}"#).is_err());
        assert!(parse(r#"{"results": [{"packets": 0, "seconds": 0.5}]}"#).is_err());
    }
}
