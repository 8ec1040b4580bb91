//! A port of a NIC of ours as a device: the NIC of a lab that runs, changed over its control
//! socket, as `earmark nic set` does.

use anyhow::{Context, Result, ensure};

use super::{Counted, DeviceKind, Identity, TunedDevice};
use crate::setting::strategy::{changed, longest_usecs};
use crate::setting::{Change, Setting, State, Value};
use labctl::client::{ask, instance};
use labctl::{PortState, Request};

#[derive(Debug)]
pub(crate) struct LabPort {
    identity: Identity,
}

impl LabPort {
    pub(crate) fn open(lab: &str, name: &str) -> Result<Self> {
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
            (Setting::RxUsecs, Value::Number(longest_usecs(&queue.setting, queue.rx_usecs).into())),
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
        let strategy = changed(&now, change)?;
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

    fn way_back(&self, before: &State, now: &State) -> Change {
        before.only(|setting| setting == Setting::Strategy).restored_from(now)
    }
}
