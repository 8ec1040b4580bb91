//! `ethtool --json`: a list of objects, one for each device; the keys say which request it was.

use device::ethtool::{Channels, Coalesce, Eee, Features, ProfileStep, Rings, Timestamps};
use serde_json::{Map, Value};

use super::coalesce::parameter;
use super::{features, fields, timestamps};
use crate::kind::InputKind;
use crate::known::KnownDevice;

/// What an object of `ethtool --json` is, by its keys.
fn kind_of(object: &Map<String, Value>) -> Option<InputKind> {
    let has = |name: &str| object.contains_key(name);
    Some(match () {
        () if has("adaptive-rx") || has("rx-usecs") => InputKind::Coalesce,
        () if has("combined-max") || has("combined") => InputKind::Channels,
        () if has("rx-max") || has("rx-mini") => InputKind::Rings,
        () if has("rx-checksumming") || object.values().any(|it| it.get("active").is_some()) => {
            InputKind::Features
        }
        () if has("autonegotiate") => InputKind::Pause,
        () if has("capabilities") || has("ptp-hardware-clock") || has("phc-index") => {
            InputKind::Timestamps
        }
        () if has("tx-lpi") || has("eee-status") || has("status") => InputKind::Eee,
        () if has("speed") || has("link-detected") => InputKind::Settings,
        _ => return None,
    })
}

/// Whether a value is of `ethtool --json`.
pub(crate) fn is_of_ethtool(value: &Value) -> bool {
    let first = value.as_array().and_then(|list| list.first()).and_then(Value::as_object);
    first.is_some_and(|object| object.contains_key("ifname"))
}

/// Reads all objects; the kind and the device of each, and what it says through `known`.
pub(crate) fn read(
    value: &Value,
    mut known: impl FnMut(&str, Option<InputKind>, &dyn Fn(&mut KnownDevice)),
) {
    for object in value.as_array().into_iter().flatten().filter_map(Value::as_object) {
        let name = object.get("ifname").and_then(Value::as_str).unwrap_or_default();
        let kind = kind_of(object);
        known(name, kind, &|known| take(kind, object, known));
    }
}

fn take(kind: Option<InputKind>, object: &Map<String, Value>, known: &mut KnownDevice) {
    let number = |name: &str| object.get(name)?.as_u64().and_then(|it| u32::try_from(it).ok());
    let is_on = |name: &str| match object.get(name) {
        Some(Value::Bool(on)) => *on,
        Some(Value::String(text)) => text == "on" || text.starts_with("enabled"),
        _ => false,
    };
    match kind {
        Some(InputKind::Coalesce) => known.set_coalescing(coalesce(object)),
        Some(InputKind::Rings) => {
            known.rings = Some(Rings {
                rx: number("rx"),
                rx_max: number("rx-max"),
                rx_mini: number("rx-mini"),
                rx_jumbo: number("rx-jumbo"),
                tx: number("tx"),
                tx_max: number("tx-max"),
                rx_buf_len: number("rx-buf-len"),
                cqe_size: number("cqe-size"),
            });
        }
        Some(InputKind::Channels) => {
            known.channels = Some(Channels {
                rx: number("rx"),
                rx_max: number("rx-max"),
                tx: number("tx"),
                tx_max: number("tx-max"),
                other: number("other"),
                combined: number("combined"),
                combined_max: number("combined-max"),
            });
        }
        Some(InputKind::Features) => known.features = Some(all_features(object)),
        Some(InputKind::Pause) => {
            let on = [("RX", "rx"), ("TX", "tx")].into_iter().filter(|(_, name)| is_on(name));
            fields::note_pause(&on.map(|(name, _)| name).collect::<Vec<_>>(), known);
        }
        Some(InputKind::Eee) => {
            known.eee = Some(Eee {
                active: is_on("active"),
                enabled: is_on("enabled") || is_on("status"),
                tx_lpi_enabled: is_on("tx-lpi"),
                tx_lpi_timer_us: number("tx-lpi-timer").unwrap_or(0),
            });
        }
        Some(InputKind::Timestamps) => known.timestamps = Some(stamps(object)),
        _ => {}
    }
}

fn coalesce(object: &Map<String, Value>) -> Coalesce {
    let mut settings = Coalesce::new();
    for (name, value) in object {
        let value = match value {
            Value::Bool(is_on) => u32::from(*is_on),
            Value::Number(number) => match number.as_u64().and_then(|it| u32::try_from(it).ok()) {
                Some(number) => number,
                None => continue,
            },
            Value::Array(steps) if name == "rx-profile" => {
                settings.rx_profile = Some(steps.iter().map(step).collect());
                continue;
            }
            Value::Array(steps) if name == "tx-profile" => {
                settings.tx_profile = Some(steps.iter().map(step).collect());
                continue;
            }
            _ => continue,
        };
        if let Some(parameter) = parameter(name) {
            settings.set(parameter, value);
        }
    }
    settings
}

fn step(value: &Value) -> ProfileStep {
    let field = |name| value.get(name)?.as_u64().and_then(|it| u32::try_from(it).ok());
    ProfileStep { usec: field("usec"), pkts: field("pkts"), comps: field("comps") }
}

fn all_features(object: &Map<String, Value>) -> Features {
    let mut found = Features::default();
    for (name, value) in object {
        let is = |key: &str| value.get(key).and_then(Value::as_bool);
        if let Some(is_on) = is("active") {
            features::add(&mut found, name, is_on, is("fixed") == Some(true));
        }
    }
    found
}

fn stamps(object: &Map<String, Value>) -> Timestamps {
    let list = |name: &str| {
        let texts = object.get(name).and_then(Value::as_array).into_iter().flatten();
        texts.filter_map(Value::as_str).map(timestamps::plain).collect()
    };
    let clock = ["phc-index", "ptp-hardware-clock"];
    Timestamps {
        capabilities: list("capabilities"),
        tx_types: list("tx-types"),
        rx_filters: list("rx-filters"),
        phc_index: clock
            .iter()
            .find_map(|name| object.get(*name)?.as_u64())
            .and_then(|index| u32::try_from(index).ok()),
    }
}
