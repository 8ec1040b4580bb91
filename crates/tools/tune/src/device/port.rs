//! A port of a NIC of ours as a device: the NIC of a lab that runs, changed over its control
//! socket, as `earmark nic set` does.

use anyhow::{Context, Result, anyhow, ensure};
use nic::moderation::{Coalesce, Moderation, Profile, TimerKind};

use super::{Counted, DeviceKind, Identity, TunedDevice};
use crate::setting::{Change, Setting, State, Value};
use labctl::client::{ask, instance};
use labctl::{PortState, Request};

/// A port of the NIC of a lab.
#[derive(Debug)]
pub struct LabPort {
    identity: Identity,
}

impl LabPort {
    /// The port of that name in a lab.
    pub fn open(lab: &str, name: &str) -> Result<Self> {
        let (place, name) = (lab.to_owned(), name.to_owned());
        let identity = Identity { kind: DeviceKind::Port, name, place, number: 0, address: None };
        let mut port = Self { identity };
        port.state()?;
        let number = instance(lab)?;
        port.identity.number = number.with_context(|| format!("lab {lab} has ended"))?;
        Ok(port)
    }

    fn state(&self) -> Result<PortState> {
        let Identity { place: lab, name, .. } = &self.identity;
        let ports = ask(lab, &Request::Show)?;
        let names: Vec<String> = ports.iter().map(|port| port.port.clone()).collect();
        let port = ports.into_iter().find(|port| port.port == *name);
        port.with_context(|| format!("no port {name} in lab {lab}; there are {}", names.join(", ")))
    }
}

impl TunedDevice for LabPort {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn driver(&self) -> String {
        format!("the NIC of lab {}", self.identity.place)
    }

    fn read_with(&self, _: &[Setting]) -> Result<State> {
        let port = self.state()?;
        let queue = port.queues.first().with_context(|| {
            format!("port {} has no queues; its lab is of another version", port.port)
        })?;
        let state = [
            (Setting::Strategy, Value::Text(queue.setting.clone())),
            (Setting::AdaptiveRx, Value::Switch(queue.adaptive_rx)),
            (Setting::RxUsecs, Value::Number(usecs(&queue.setting, queue.rx_usecs).into())),
            (Setting::RxFrames, Value::Number(queue.rx_frames.into())),
        ];
        Ok(State(state.into()))
    }

    /// All of it goes as one strategy, since some settings only go together: one that never waits
    /// has no `rx-usecs`, say.
    fn change(&self, change: &Change) -> Result<()> {
        let queues = self.state()?.queues;
        ensure!(
            queues.windows(2).all(|pair| pair[0].setting == pair[1].setting),
            "the queues of {} have settings of their own, which a change of the port would \
             overwrite; use: earmark nic set {0} --queue NUMBER; nothing was changed",
            self.identity.name
        );
        let now = self.read()?;
        let strategy = strategy(&now, change)?;
        let Identity { place: lab, name, .. } = &self.identity;
        let settings = vec![(Setting::Strategy.name().into_owned(), strategy.to_string())];
        ask(lab, &Request::Set { port: name.clone(), queue: None, settings }).map(drop)
    }

    fn counted(&self) -> Result<Counted> {
        let port = self.state()?;
        let interrupts = port.queues.iter().flat_map(|queue| queue.interrupts.values()).sum();
        let packets = port.queues.iter().filter_map(|queue| queue.counters.get("rx-packets")).sum();
        Ok(Counted { interrupts: Some(interrupts), packets })
    }

    /// The strategy says all.
    fn way_back(&self, before: &State, now: &State) -> Change {
        before.only(|setting| setting == Setting::Strategy).restored_from(now)
    }
}

/// The `rx-usecs` of a strategy. What `itr` has picked changes with each poll, and no setting
/// does: its longest gap, 250 us, stands for it.
fn usecs(strategy: &str, in_force: u32) -> u32 {
    match strategy.parse() {
        Ok(Moderation { timer: TimerKind::Itr(_), .. }) => 250,
        _ => in_force,
    }
}

/// The strategy that `now` becomes by `change` ([`Moderation::coalesce`]).
pub fn strategy(now: &State, change: &Change) -> Result<Moderation> {
    let written = |text: &str| text.parse::<Moderation>().map_err(|why| anyhow!("{why}"));
    let Some(Value::Text(text)) = now.get(Setting::Strategy) else {
        anyhow::bail!("the NIC does not tell its strategy; its lab is of another version")
    };
    let before = match change.get(Setting::Strategy) {
        Some(Value::Text(text)) => written(text)?,
        _ => written(text)?,
    };
    let read = |setting| now.get(setting).and_then(Value::number).unwrap_or(0) as u32;
    let chosen = Profile { rx_usecs: read(Setting::RxUsecs), rx_frames: read(Setting::RxFrames) };
    // What is too large for the type is too large for the setting.
    let number =
        |setting| change.number(setting).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    let coalesce = Coalesce {
        adaptive_rx: change.get(Setting::AdaptiveRx).and_then(Value::switch),
        rx_usecs: number(Setting::RxUsecs),
        rx_frames: number(Setting::RxFrames),
    };
    Ok(before.coalesce(coalesce, chosen)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn becomes(now: &str, change: &str) -> String {
        let state = State(
            [
                (Setting::Strategy, Value::Text(now.into())),
                (Setting::RxUsecs, Value::Number(32)),
                (Setting::RxFrames, Value::Number(8)),
            ]
            .into(),
        );
        strategy(&state, &change.parse().unwrap()).unwrap().to_string()
    }

    #[test]
    fn settings_of_ethtool_make_strategies() {
        assert_eq!(becomes("delay:75", "rx-usecs 50 rx-frames 16"), "delay:50+frames:16");
        assert_eq!(becomes("marked:75", "rx-usecs 0"), "marked:0");
        assert_eq!(becomes("delay:75", "adaptive-rx on"), "adaptive");
        assert_eq!(becomes("adaptive", "adaptive-rx off"), "delay:32+frames:8");
        assert_eq!(becomes("adaptive", "adaptive-rx off rx-usecs 9 rx-frames 0"), "delay:9");
        assert_eq!(becomes("adaptive", "strategy marked:60"), "marked:60");
        assert_eq!(becomes("adaptive", "strategy marked:60 rx-usecs 20"), "marked:20");
        assert_eq!((usecs("marked+itr:1", 14), usecs("delay:14", 14)), (250, 14));
    }

    #[test]
    fn what_the_nic_cannot_do_is_refused() {
        let state = State([(Setting::Strategy, Value::Text("delay:75".into()))].into());
        assert!(strategy(&state, &"rx-usecs 1000001".parse().unwrap()).is_err());
        assert!(strategy(&state, &"strategy dealy".parse().unwrap()).is_err());
    }
}
