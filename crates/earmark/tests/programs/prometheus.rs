//! A real Prometheus that scrapes `earmark exporter` in a guest of ours: every query of the rules
//! and of the dashboard, and alerts that are provoked.
//!
//! The exporter runs on host a, a guest, whose NIC has settings that can be changed. Prometheus
//! runs on this machine, at the loopback, and reaches the guest through [`Relay`]. Interrupts are
//! the one thing that is made up: a guest's are not named after its NIC, so a file lies over
//! `/proc/interrupts`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use exporter::background::Background;
use exporter::metric::{Kind, Metric};
use exporter::sample::{Format, encode};
use serde_json::Value;

use crate::support::{
    Directory, EARMARK, HeldPort, Lab, Running, needs, output, read, repository, soon,
};

#[test]
fn rules__pass_the_checks_and_tests_of_promtool() {
    needs!("promtool");
    let promtool = |arguments: &[&str]| {
        let mut command = Command::new("promtool");
        output(command.args(arguments).current_dir(repository("packaging/prometheus")))
    };
    let checked = promtool(&["check", "rules", "earmark.rules.yml"]);
    assert!(checked.output().contains("rules found"), "{checked:?}");
    let tested = promtool(&["test", "rules", "earmark.test.yml"]);
    assert!(tested.output().contains("SUCCESS"), "{tested:?}");
    // Each alert has a test.
    let file = |name: &str| read(&format!("packaging/prometheus/{name}"));
    let (rules, tests) = (file("earmark.rules.yml"), file("earmark.test.yml"));
    let alerts: Vec<&str> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() >= 6, "{alerts:?}");
    let page = read("docs/exporter.md");
    for alert in alerts {
        assert!(tests.contains(&format!("alertname: {alert}\n")), "{alert} has no test");
        assert!(page.contains(alert), "docs/exporter.md lacks {alert}");
    }
}

/// Starts a lab whose host a exports its NIC.
fn lab_with_exporter() -> Lab {
    let mut lab = Lab::start(&["--hosts", "uml", "--queues", "2", "--strategy", "delay:75"]);
    lab.does(&format!(
        "ip link set lo up; ethtool -L a0 combined 2 &&
         echo 1 > /sys/class/net/a0/threaded
         interrupts() {{
             n=$((n + 100))
             printf '           CPU0\\n 1: %d x 1-edge  a0-rx-0\\n 2: %d x 2-edge  a0-tx-0\\n' \
                 $n $n > /tmp/interrupts
         }}
         interrupts && mount --bind /tmp/interrupts /proc/interrupts || exit
         {EARMARK} exporter 2>/tmp/log &
         until grep -q '^of a0' /tmp/log; do sleep 0.1; kill -0 $! || exit; done
         ping -q -i 0.01 b >/dev/null &"
    ));
    lab
}

/// Passes each request on to the exporter in the guest, until `is_up` is false.
struct Relay {
    port: u16,
    is_up: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    fn start(lab: Arc<Mutex<Lab>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (is_up, is_over) = (Arc::new(AtomicBool::new(true)), Arc::<AtomicBool>::default());
        let (up, over) = (Arc::clone(&is_up), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                if up.load(Ordering::Relaxed) {
                    pass_on(stream, &lab);
                }
            }
        });
        Self { port, is_up, is_over, thread: Some(thread) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Asks the exporter for what Prometheus asks for, in its words.
fn pass_on(stream: TcpStream, lab: &Mutex<Lab>) {
    let request = read_request(&stream);
    let accept = request.iter().find(|line| line.to_lowercase().starts_with("accept:"));
    let accept = accept.cloned().unwrap_or_default();
    let (status, text) = lab.lock().unwrap().ask(&format!(
        "interrupts; bash -c 'exec 3<>/dev/tcp/127.0.0.1/7013
         printf \"GET /metrics HTTP/1.0\\r\\n%s\\r\\n\\r\\n\" \"$0\" >&3; cat <&3' '{accept}'"
    ));
    // The lines of the lab's shell end in a newline alone.
    let Some((_, body)) = text.split_once("\n\n").filter(|_| status == 0) else { return };
    answer(stream, body);
}

/// The lines of a request.
fn read_request(stream: &TcpStream) -> Vec<String> {
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.take_while(|line| !line.is_empty()).collect()
}

/// Answers with metrics.
fn answer(mut stream: TcpStream, body: &str) {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
}

/// An exporter of what `--explain` and `--probe` found, at a port of the loopback, as long as this
/// process lives: how a real one fares depends on who else is at work, and each query needs data.
fn background_exporter() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let background = Background::default();
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            background.observe(Metric::ExplainStage, &["h", "far"], 20e-6);
            background.observe(Metric::Stage, &["eth0", "", "asks", "far-acked"], 20e-6);
            background.observe(Metric::Request, &["eth0", "", "asks"], 30e-6);
            background.observe(Metric::ProbeHold, &["h", "theirs", "delay"], 250e-6);
            background.count(Metric::ProbeVerdicts, &["h", "theirs", "hold"], 1);
            background.count(Metric::ProbeRuns, &["h", "done"], 1);
            background.count(Metric::ExplainRuns, &["h", "failed"], 1);
            background.count(Metric::ExplainRuns, &["h", "done"], 0);
            read_request(&stream);
            answer(stream, &encode(&background.samples(), Format::OpenMetrics));
        }
    });
    port
}

/// A Prometheus at a port of the loopback.
struct Prometheus {
    port: HeldPort,
    _run: Running,
    _directory: Directory,
}

impl Prometheus {
    /// Starts one that scrapes `targets`, with our rules, whose alerts wait for nothing.
    fn start(targets: [u16; 2]) -> Self {
        let directory = Directory::new();
        let rules = read("packaging/prometheus/earmark.rules.yml");
        let at_once: String = rules
            .lines()
            .filter(|line| !line.trim().starts_with("for: "))
            .map(|line| line.to_owned() + "\n")
            .collect();
        directory.write("earmark.rules.yml", &at_once);
        let targets = targets.map(|port| format!("'127.0.0.1:{port}'")).join(", ");
        let config = directory.write(
            "prometheus.yml",
            &format!(
                "global: {{scrape_interval: 4s, scrape_timeout: 4s, evaluation_interval: 2s}}\n\
                 rule_files: [earmark.rules.yml]\n\
                 scrape_configs:\n\
                 - job_name: earmark\n  static_configs: [{{targets: [{targets}]}}]\n"
            ),
        );
        let port = HeldPort::new();
        let run = Running::start(Command::new("prometheus").args([
            format!("--config.file={config}"),
            format!("--storage.tsdb.path={}", directory.file("data")),
            format!("--web.listen-address=127.0.0.1:{}", port.number),
        ]));
        let prometheus = Self { port, _run: run, _directory: directory };
        soon("Prometheus is ready", || prometheus.get("/-/ready").is_some());
        prometheus
    }

    /// The body of an answer; `None` if there is none that is good.
    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port.number)).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.contains(" 200 ").then(|| body.to_owned())
    }

    fn api(&self, path: &str) -> Value {
        let answer = self.get(&format!("/api/v1/{path}"));
        answer.map_or(Value::Null, |answer| serde_json::from_str(&answer).unwrap())
    }

    /// What a query returns now; nothing also if it is refused.
    fn query(&self, query: &str) -> Vec<Value> {
        let answer = self.api(&format!("query?query={}", encoded(query)));
        answer["data"]["result"].as_array().cloned().unwrap_or_default()
    }

    /// The names of the alerts that fire.
    fn firing(&self) -> Vec<String> {
        let answer = self.api("alerts");
        let alerts = answer["data"]["alerts"].as_array().cloned().unwrap_or_default();
        let firing = alerts.iter().filter(|alert| alert["state"] == "firing");
        firing.map(|it| it["labels"]["alertname"].as_str().unwrap().to_owned()).collect()
    }

    #[track_caller]
    fn soon_returns(&self, query: &str) {
        soon(&format!("this returns something: {query}"), || !self.query(query).is_empty());
    }
}

/// Text as a part of a query of a URL.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

/// All queries of the dashboard, with its variables replaced as Grafana would for *All*.
fn queries_of_dashboard() -> Vec<String> {
    let text = read("packaging/grafana/earmark.json");
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let mut queries = Vec::new();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for panel in list(&dashboard["panels"]) {
        queries.extend(list(&panel["targets"]).iter().map(|target| target["expr"].clone()));
    }
    let annotations = list(&dashboard["annotations"]["list"]);
    queries.extend(annotations.iter().map(|annotation| annotation["expr"].clone()));
    let mut queries: Vec<String> =
        queries.iter().map(|query| query.as_str().unwrap().to_owned()).collect();
    for variable in list(&dashboard["templating"]["list"]) {
        let definition = variable["definition"].as_str().unwrap_or_default();
        let inner = definition.strip_prefix("label_values(").and_then(|it| it.rsplit_once(", "));
        queries.extend(inner.map(|(selector, _)| selector.to_owned()));
    }
    let replaced = |query: &String| {
        let query = query.replace("[$__rate_interval]", "[5m]");
        ["$job", "$instance", "$device"].iter().fold(query, |query, it| query.replace(it, ".*"))
    };
    queries.iter().map(replaced).collect()
}

/// The metrics that a query names.
fn names(query: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    query.split(|c| !is_part(c)).filter(|word| word.starts_with("earmark_")).collect()
}

/// Whether a series of this name is exported.
fn is_exported(name: &str) -> bool {
    Metric::ALL.iter().any(|metric| {
        let family = metric.family();
        let part = name.strip_prefix(&family.name());
        match family.kind {
            Kind::Histogram(_) => {
                part.is_some_and(|it| ["_bucket", "_sum", "_count"].contains(&it))
            }
            _ => part == Some(""),
        }
    })
}

#[test]
fn every_query_of_rules_and_dashboard__returns_something_from_a_real_prometheus() {
    needs!("guests", "prometheus", "ethtool", "ping", "bash");
    let lab = Arc::new(Mutex::new(lab_with_exporter()));
    let relay = Relay::start(Arc::clone(&lab));
    let prometheus = Prometheus::start([relay.port, background_exporter()]);
    prometheus.soon_returns("count(count_over_time(up{job=\"earmark\"}[5m]) > 2 and up == 1) == 2");
    let early = prometheus.firing();
    assert!(!early.iter().any(|it| it == "EarmarkNicLongHold"), "75 us are no long hold");
    let device = "{device=\"a0\",job=\"earmark\"}";
    let rx_usecs = format!("earmark_nic_coalesce_rx_seconds{device}");
    assert_eq!(prometheus.query(&rx_usecs)[0]["value"][1], "0.000075");

    let change = "ethtool -C a0 rx-usecs 500 && ethtool --per-queue a0 queue_mask 0x2 \
                  --coalesce rx-usecs 600";
    lab.lock().unwrap().does(change);
    for alert in [
        "EarmarkNicLongHold",
        "EarmarkNicSettingsChanged",
        "EarmarkProbeHold",
        "EarmarkBackgroundFails",
    ] {
        soon(&format!("{alert} fires"), || prometheus.firing().iter().any(|it| it == alert));
    }
    let queues = "earmark_nic_queue_coalesce_rx_seconds{bound=\"max\"} == 600e-6";
    prometheus.soon_returns(queues);

    let queries = queries_of_dashboard();
    assert!(queries.len() > 20, "{queries:?}");
    queries.iter().for_each(|query| prometheus.soon_returns(query));

    let rules = prometheus.api("rules");
    let groups = rules["data"]["groups"].as_array().unwrap();
    let rules: Vec<&Value> =
        groups.iter().flat_map(|group| group["rules"].as_array().unwrap()).collect();
    assert!(rules.len() > 8, "{rules:?}");
    for rule in rules {
        assert_eq!((&rule["health"], &rule["lastError"]), (&"ok".into(), &Value::Null), "{rule}");
        if rule["type"] == "recording" {
            prometheus.soon_returns(rule["name"].as_str().unwrap());
        }
        // A query for a metric that there is not returns nothing, and so is no error.
        for name in names(rule["query"].as_str().unwrap()) {
            assert!(is_exported(name), "{name} in {rule}");
        }
    }

    relay.is_up.store(false, Ordering::Relaxed);
    soon("EarmarkExporterDown fires", || {
        prometheus.firing().iter().any(|it| it == "EarmarkExporterDown")
    });
    let firing = prometheus.firing();
    for quiet in ["EarmarkNicInterruptStorm", "EarmarkNicDropsRising", "EarmarkNicReadErrors"] {
        assert!(!firing.iter().any(|it| it == quiet), "{firing:?}");
    }
}
