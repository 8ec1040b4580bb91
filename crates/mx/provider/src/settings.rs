//! Settings from environment variables.

use std::sync::OnceLock;
use std::time::Duration;

use mx_io::port::PortSpec;
use mx_io::port::faulty::Faults;
use sys::netlink::Netlink;

use crate::fault::warn;

/// Where frames travel: `packet:IFACE`, `udp:ADDR` or `udp:IFACE`.
const PORT: &str = "EARMARK_PORT";
/// Frames to lose, double or delay on purpose, as `earmark mx perf --faults`.
const FAULTS: &str = "EARMARK_FAULTS";
/// Whether to say what is going on: 1.
const VERBOSE: &str = "EARMARK_VERBOSE";
/// Seconds for which a peer may say nothing before it counts as gone.
const PEER_TIMEOUT: &str = "EARMARK_PEER_TIMEOUT";

/// What is set, or why it cannot be.
#[derive(Clone, Debug)]
pub(crate) struct ProviderSettings {
    pub(crate) port: PortSpec,
    pub(crate) faults: Faults,
    pub(crate) verbose: bool,
    pub(crate) peer_timeout: Duration,
}

/// The settings of this process. What is wrong with them is reported once, on standard error.
pub(crate) fn get() -> Option<&'static ProviderSettings> {
    static SETTINGS: OnceLock<Option<ProviderSettings>> = OnceLock::new();
    let settings = || {
        let settings = read(|name| std::env::var(name).ok(), ethernet)?;
        let is_there = settings.port.check();
        is_there.map_err(|error| format!("{PORT}={}: {error}", settings.port))?;
        Ok::<_, String>(settings)
    };
    let read = || match settings() {
        Ok(settings) => Some(settings),
        Err(error) => {
            // A program that only lists providers, or uses another one, need not hear of it.
            if has_asked(|name| std::env::var(name).ok()) {
                warn(&error);
            }
            None
        }
    };
    SETTINGS.get_or_init(read).as_ref()
}

/// Whether the environment names us, so that somebody may wonder where we are.
fn has_asked(variable: impl Fn(&str) -> Option<String>) -> bool {
    variable("FI_PROVIDER").is_some_and(|names| names.contains("earmark"))
        || variable(PORT).is_some()
        || is_verbose(&variable)
}

fn is_verbose(variable: impl Fn(&str) -> Option<String>) -> bool {
    variable(VERBOSE).is_some_and(|value| !["", "0"].contains(&value.as_str()))
}

fn read(
    variable: impl Fn(&str) -> Option<String>,
    interfaces: impl Fn() -> Vec<String>,
) -> Result<ProviderSettings, String> {
    let wrong = |name: &str, value: &str, why: &str| format!("{name}={value}: {why}");
    let port = match variable(PORT) {
        Some(text) => text.parse().map_err(|error: String| wrong(PORT, &text, &error))?,
        None => only_one(&interfaces())?,
    };
    let faults = match variable(FAULTS) {
        Some(text) => text.parse().map_err(|error: mx_io::port::faulty::BadFaults| {
            wrong(FAULTS, &text, &error.to_string())
        })?,
        None => Faults::default(),
    };
    let verbose = is_verbose(&variable);
    let peer_timeout = match variable(PEER_TIMEOUT) {
        Some(text) => {
            let seconds = text.parse().ok().filter(|seconds| (1..=86_400).contains(seconds));
            let why = "no number of seconds; use 1 to 86400";
            Duration::from_secs(seconds.ok_or_else(|| wrong(PEER_TIMEOUT, &text, why))?)
        }
        // A rank may be stopped, or its machine be busy; that must not end a job.
        None => Duration::from_secs(60),
    };
    Ok(ProviderSettings { port, faults, verbose, peer_timeout })
}

fn only_one(interfaces: &[String]) -> Result<PortSpec, String> {
    match interfaces {
        [interface] => format!("packet:{interface}").parse(),
        [] => Err(format!(
            "no Ethernet interface is up; bring one up: ip link set IFACE up, or set \
             {PORT}=udp:IFACE"
        )),
        several => Err(format!(
            "several Ethernet interfaces are up ({}); choose one: {PORT}=packet:{}",
            several.join(", "),
            several[0]
        )),
    }
}

/// Ethernet interfaces that are up. Where the kernel does not tell, none is found.
fn ethernet() -> Vec<String> {
    Netlink::open().and_then(|netlink| netlink.ethernet_up()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)], interfaces: &[&str]) -> Result<ProviderSettings, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        read(variable, || interfaces.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn wrong_settings_are_reported_to_those_who_name_us() {
        let asks = |name: &str, value: &str| {
            has_asked(|variable| (variable == name).then(|| value.to_owned()))
        };
        for (name, value) in [("FI_PROVIDER", "tcp,earmark"), (PORT, "udp:eth0"), (VERBOSE, "1")] {
            assert!(asks(name, value), "{name}={value}");
        }
        for (name, value) in [("FI_PROVIDER", "tcp"), (VERBOSE, "0"), (FAULTS, "drop:5")] {
            assert!(!asks(name, value), "{name}={value}");
        }
    }

    #[test]
    fn port_is_chosen_or_found() {
        let port = |variables: &[_], interfaces: &[_]| {
            with(variables, interfaces).unwrap().port.to_string()
        };
        assert_eq!(port(&[], &["eth0"]), "packet:eth0");
        assert_eq!(port(&[(PORT, "packet:eth1")], &["eth0", "eth1"]), "packet:eth1");
        assert_eq!(port(&[(PORT, "udp:10.0.0.1")], &[]), "udp:10.0.0.1:0");
        assert_eq!(port(&[(PORT, "udp:eth0")], &[]), "udp:eth0");
    }
}
