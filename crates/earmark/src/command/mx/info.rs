//! `earmark mx info`: what a port offers, and what is missing.

use anyhow::{Context, Result};
use clap::Args;
use mx_io::port::shm::memory_obstacle;
use mx_io::port::{self, PortError, PortSpec};
use mx_io::report::running;
use netdev::drivers::{Bound, lacks_timer, wait};
use netdev::ethtool::{Coalesce, Ethtool, Parameter};
use serde::Serialize;
use sys::netlink::Netlink;

use report::{json, outln};

/// From how many microseconds on a NIC that waits for more frames is reported. Open-MX warns from
/// there, too: a small message takes about as long.
const SLOW_US: f64 = 13.0;

#[derive(Args, Debug)]
pub(crate) struct InfoArgs {
    /// Where frames would travel: packet:IFACE, udp:ADDR:PORT, udp:IFACE or virtio:SOCKET
    #[arg(long, value_name = "PORT")]
    port: PortSpec,
    /// The number of the endpoint that is tried
    #[arg(long, default_value_t = 1)]
    endpoint: u8,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// What is known of a port.
#[derive(Debug, Default, Serialize)]
struct Info {
    port: String,
    /// Its address; None if it is not known.
    nic_id: Option<String>,
    /// Bytes of the largest frame.
    mtu: Option<u32>,
    /// Whether the endpoint can be opened here and now.
    can_open: bool,
    /// Endpoints of this port that serve their counters.
    endpoints: Vec<String>,
    /// How long messages get from one process of this host to another: `read` from the memory of
    /// the sender, or `ring`, through memory that both share. None if the port has no way within
    /// the host.
    within_host: Option<&'static str>,
    /// None if the port has none, or its driver does not tell.
    coalescing: Option<PortCoalescing>,
    warnings: Vec<String>,
}

/// How the interface waits before it interrupts.
#[derive(Debug, Serialize)]
struct PortCoalescing {
    rx_usecs: u32,
    rx_frames: u32,
    adaptive_rx: bool,
}

/// Prints what is known of a port.
pub(super) fn run(args: &InfoArgs) -> Result<()> {
    let spec = &args.port;
    let mut info = Info { port: spec.to_string(), ..Info::default() };
    if let PortSpec::Packet { interface: name, .. } = spec {
        info.look_at(name)?;
    }
    info.try_out(spec, args.endpoint)?;
    if !matches!(spec, PortSpec::Virtio(_)) {
        let obstacle = memory_obstacle();
        info.within_host = Some(if obstacle.is_none() { "read" } else { "ring" });
        info.warnings.extend(obstacle);
    }
    if let Some(nic) = &info.nic_id {
        let ours = format!("{nic}/");
        let running = running().context("list MX endpoints: read /proc/net/unix; mount /proc")?;
        info.endpoints = running.into_iter().filter(|it| it.starts_with(&ours)).collect();
    }
    if args.json {
        json::print(&info)?;
    } else {
        info.print();
    }
    Ok(())
}

impl Info {
    /// What an interface says without any rights.
    fn look_at(&mut self, interface: &str) -> Result<()> {
        let link = Netlink::open()?.link(interface)?;
        self.mtu = Some(link.mtu);
        let mac: Vec<String> = link.mac.iter().map(|byte| format!("{byte:02x}")).collect();
        self.nic_id = (mac.len() == 6).then(|| mac.join(":"));
        let ethtool = Ethtool::open()?;
        if let Ok(settings) = ethtool.coalesce(interface) {
            let driver = ethtool.driver(interface).map(|driver| driver.name);
            let driver = driver.as_deref().unwrap_or("its driver");
            self.warnings.extend(warning(interface, driver, &settings));
            let get = |name| settings.get(name).unwrap_or(0);
            self.coalescing = Some(PortCoalescing {
                rx_usecs: get(Parameter::RxUsecs),
                rx_frames: get(Parameter::RxFrames),
                adaptive_rx: get(Parameter::AdaptiveRx) != 0,
            });
        }
        Ok(())
    }

    /// What only an open port says.
    fn try_out(&mut self, spec: &PortSpec, endpoint: u8) -> Result<()> {
        match port::open(spec, endpoint) {
            Ok(port) => {
                self.can_open = true;
                self.nic_id = Some(port.nic_id().to_string());
                self.mtu = Some(port.mtu().into());
            }
            Err(error @ PortError::NotAllowed { .. }) => self.warnings.push(format!(
                "{error}; to let every user run this command: sudo setcap cap_net_raw+ep {}",
                std::env::current_exe()?.display()
            )),
            Err(error) => self.warnings.push(error.to_string()),
        }
        Ok(())
    }

    fn print(&self) {
        outln!("port: {}", self.port);
        outln!("nic id: {}", self.nic_id.as_deref().unwrap_or("unknown"));
        match self.mtu {
            Some(mtu) => outln!("mtu: {mtu} bytes"),
            None => outln!("mtu: unknown"),
        }
        outln!("can be opened: {}", if self.can_open { "yes" } else { "no" });
        match self.within_host {
            Some("read") => outln!("long messages within this host: read from the sender's memory"),
            Some(_) => outln!("long messages within this host: copied through shared memory"),
            None => {}
        }
        match &self.coalescing {
            Some(PortCoalescing { rx_usecs, rx_frames, adaptive_rx }) => outln!(
                "coalescing: rx-usecs {rx_usecs}, rx-frames {rx_frames}, adaptive-rx {}",
                if *adaptive_rx { "on" } else { "off" }
            ),
            None => outln!("coalescing: none, or the driver does not tell"),
        }
        if !self.endpoints.is_empty() {
            outln!("endpoints: {}", self.endpoints.join(", "));
        }
        self.warnings.iter().for_each(|warning| outln!("warning: {warning}"));
    }
}

/// What to say of an interface that makes messages wait.
fn warning(interface: &str, driver: &str, settings: &Coalesce) -> Option<String> {
    if settings.is_on(Parameter::AdaptiveRx) == Some(true) {
        return None;
    }
    let wait = wait(driver, settings)?;
    if matches!(wait.bound, Bound::Us(us) if us < SLOW_US) {
        return None;
    }
    let at_once = settings.clone().with(Parameter::RxUsecs, 0);
    let one = if lacks_timer(driver, &at_once).is_some() { " rx-frames 1" } else { "" };
    Some(format!(
        "messages over {interface} may wait: {}; for short round trips: ethtool -C {interface} \
         rx-usecs 0{one}",
        wait.what
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Parameter::{AdaptiveRx, RxFrames, RxUsecs};

    #[test]
    fn interface_that_makes_messages_wait_is_warned_of() {
        let slow = Coalesce::new().with(RxUsecs, 13);
        let text = warning("eth0", "igb", &slow).unwrap();
        assert!(
            text.contains("rx-usecs 13") && text.ends_with("ethtool -C eth0 rx-usecs 0"),
            "{text}"
        );
        assert_eq!(warning("eth0", "igb", &slow.clone().with(RxUsecs, 12)), None);
        assert_eq!(warning("eth0", "igb", &slow.clone().with(AdaptiveRx, 1)), None);
        let text = warning("eth0", "bnx2", &slow.with(RxUsecs, 0).with(RxFrames, 12)).unwrap();
        assert!(text.contains("12 packets") && text.ends_with("rx-usecs 0 rx-frames 1"), "{text}");
    }
}
