//! A port of a NIC of ours as a device: the NIC of a lab that runs, changed over its control
//! socket, as `earmark nic set` does. On the port's own host the settings of the kernel's interface
//! are beside them: deferral, and what else belongs to no NIC.

use anyhow::{Context, Result, ensure};

use super::interface::Interface;
use super::{Counted, DeviceKind, Identity, TunedDevice};
use crate::setting::strategy::{changed, longest_usecs};
use crate::setting::{Change, Setting, State, Value};
use labctl::client::{ask, instance, port_here};
use labctl::{PortState, Request};

/// What a port has. Of those that the driver of TAPs has by the same names, the port's count.
const SETTINGS: [Setting; 4] =
    [Setting::Strategy, Setting::AdaptiveRx, Setting::RxUsecs, Setting::RxFrames];

#[derive(Debug)]
pub(crate) struct LabPort {
    identity: Identity,
    /// The interface at the port, if this is the port's host.
    interface: Option<Interface>,
}

impl LabPort {
    pub(crate) fn open(lab: &str, name: &str) -> Result<Self> {
        let (place, name) = (lab.to_owned(), name.to_owned());
        let identity = Identity { kind: DeviceKind::Port, name, place, number: 0, address: None };
        let mut port = Self { identity, interface: None };
        port.state()?;
        let number = instance(lab)?;
        port.identity.number = number.with_context(|| format!("lab {lab} has ended"))?;
        Ok(port)
    }

    /// The port behind `interface`, if that is the TAP of a lab's host.
    pub(super) fn behind(interface: Interface) -> Result<Box<dyn TunedDevice>> {
        if interface.driver_name().as_deref() != Some("tun") {
            return Ok(Box::new(interface));
        }
        let name = &interface.identity().name;
        let Some((lab, _)) = port_here(name) else { return Ok(Box::new(interface)) };
        Ok(Box::new(Self::open(&lab, name)?.with(interface)))
    }

    /// The same with the interface that a journal knows by its address, if that is here.
    pub(super) fn reopen(identity: &Identity) -> Result<Self> {
        let port = Self::open(&identity.place, &identity.name)?;
        let has_address = |it: &Interface| it.identity().address == identity.address;
        let interface =
            identity.address.as_ref().and_then(|_| Interface::open(&identity.name).ok());
        let interface = interface.filter(has_address);
        Ok(match interface {
            Some(interface) => port.with(interface),
            None => port,
        })
    }

    fn with(mut self, interface: Interface) -> Self {
        self.identity.address.clone_from(&interface.identity().address);
        Self { interface: Some(interface), ..self }
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

    fn read_with(&self, named: &[Setting]) -> Result<State> {
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
        let mut all = match &self.interface {
            Some(interface) => interface.read_with(named)?,
            None => State::default(),
        };
        all.0.extend(state);
        Ok(all)
    }

    /// What the port has goes as one strategy, since some settings only go together: one that never
    /// waits has no `rx-usecs`, say.
    fn change(&self, change: &Change) -> Result<()> {
        let name = &self.identity.name;
        let others = change.without(|setting| SETTINGS.contains(&setting));
        if !others.is_empty() {
            let interface = self.interface.as_ref().with_context(|| {
                format!("set {others}, which is of {name}'s host: type it on that host")
            })?;
            interface.change(&others)?;
        }
        let change = &change.without(|setting| !SETTINGS.contains(&setting));
        if change.is_empty() {
            return Ok(());
        }
        let queues = self.state()?.queues;
        ensure!(
            queues.windows(2).all(|pair| pair[0].setting == pair[1].setting),
            "the queues of {name} have settings of their own, which a change of the port would \
             overwrite; use: earmark nic set {name} rx-usecs 50 --queue 0; nothing was changed"
        );
        let now = self.read()?;
        let strategy = changed(&now, change)?;
        let lab = &self.identity.place;
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
        let mut way = before.only(|setting| setting == Setting::Strategy).restored_from(now);
        if let Some(interface) = &self.interface {
            let others = |state: &State| state.only(|setting| !SETTINGS.contains(&setting));
            way.0.extend(interface.way_back(&others(before), &others(now)).0);
        }
        way
    }
}
