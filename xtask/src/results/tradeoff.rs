//! Lone round trips beside a bulk flow of each rate, on hosts that cost time.

use serde_json::Value;

use super::format::{list, number};

const HEAD: &str = "\n## The trade-off, over the rate of the bulk flow\n\n\
    1000 round trips a second beside a bulk flow on one NIC, a cable of 10 Gbit/s, hosts with the\n\
    costs of the Open-MX paper, in virtual time. *Load* is that of the busiest host.\n\n\
    ![Latency and load of each setting](tradeoff.svg)\n\n\
    | bulk Mbit/s | setting | p50 us | p99 us | load, % | interrupts/s |\n|---|---|---|---|---|---|\n";

/// The section of `tradeoff.json`.
pub(super) fn page(json: &Value) -> String {
    let mut text = String::from(HEAD);
    for rate in list(json, "rates") {
        for result in list(&rate["comparison"], "results") {
            let latency = &result["latency_us"];
            text += &format!(
                "| {} | `{}` | {} | {} | {:.1} | {} |\n",
                rate["bulk_mbit"],
                result["setting"].as_str().unwrap_or_default(),
                number(&latency["p50"], 1),
                number(&latency["p99"], 1),
                load(result),
                number(&result["interrupts_per_s"], 0),
            );
        }
    }
    let first =
        list(json, "rates").next().and_then(|rate| list(&rate["comparison"], "results").next());
    text + &first.map(|result| super::environment(&result["environment"])).unwrap_or_default()
}

fn load(result: &Value) -> f64 {
    let idle = list(result, "ports").filter_map(|port| port["processor"]["idle"].as_f64());
    idle.map(|idle| 100.0 * (1.0 - idle)).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_busiest_host_is_the_load() {
        let port = |idle: f64| json!({ "processor": { "idle": idle } });
        let result = json!({ "setting": "marked:75", "latency_us": { "p50": 45.3, "p99": 92.4 },
            "ports": [port(0.999), port(0.75)], "interrupts_per_s": 2120.0 });
        let json = json!({ "rates": [
            { "bulk_mbit": 100, "comparison": { "results": [result] } }] });
        let page = page(&json);
        assert!(page.contains("| 100 | `marked:75` | 45.3 | 92.4 | 25.0 | 2120 |"), "{page}");
    }
}
