//! The lab's side of the control socket; the crate `labctl` has the other one.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::dataplane::{DataPlane, Handle};
use crate::host::Host;
use crate::snapshot::{PortSnapshot, QueueSnapshot};
use anyhow::{Context, Result, anyhow, bail, ensure};
use base::distribution::Distribution;
use base::quantiles::Quantiles;
use base::quantity::Unit;
use nic::lanes::Lanes;
use nic::marker::Rules;
use nic::moderation::{
    Coalesce, MAX_RX_FRAMES, MAX_RX_USECS, Marks, Moderation, Profile, Reason, TimerKind,
};

use labctl::{AttachmentState, LaneState, PREFIX, PortState, QueueState, Reply, Request, SETTINGS};
use sys::peer::{self, Credentials};
use sys::seed::seed;
use sys::streams::{read_line, write_full};

/// The longest request that is read, in bytes.
const MAX_REQUEST: usize = 65_536;

/// How long a client may take to send its request, and to take the answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Serves a lab's control sockets until it is dropped; their names are free again then.
#[derive(Debug)]
pub struct Server {
    name: String,
    sockets: Vec<(UnixListener, JoinHandle<()>)>,
}

impl Server {
    /// Listens as the lab `name`, or as one named after this process, here and in `hosts`.
    pub fn start(name: Option<&str>, plane: &Arc<Handle>, hosts: &[Host]) -> Result<Self> {
        let name = name.map_or_else(|| std::process::id().to_string(), str::to_owned);
        ensure!(
            !name.is_empty() && name.len() <= 64 && name.chars().all(|c| c.is_ascii_graphic()),
            "lab name `{name}`: 1 to 64 letters, digits and signs, no blanks"
        );
        let bind = || -> Result<UnixListener> {
            let address = SocketAddr::from_abstract_name(format!("{PREFIX}{name}"))?;
            UnixListener::bind_addr(&address).map_err(|error| match error.kind() {
                std::io::ErrorKind::AddrInUse => {
                    let owner = peer::owner(&format!("{PREFIX}{name}"));
                    let whose =
                        owner.map_or_else(|_| String::new(), |user| format!(" of user {user}"));
                    anyhow!(
                        "a lab named {name}{whose} runs already; choose another name with --name"
                    )
                }
                _ => anyhow!("open the control socket of lab {name}: {error}"),
            })
        };
        let mut listeners = vec![bind()?];
        for host in hosts {
            listeners.push(host.enter_net(bind)??);
        }
        let mut server = Self { name, sockets: Vec::new() };
        let instance = seed();
        for listener in listeners {
            let (plane, ours) = (Arc::downgrade(plane), listener.try_clone()?);
            let thread = std::thread::Builder::new()
                .name("earmark-control".into())
                .spawn(move || serve(&listener, &plane, instance))
                .context("start the control thread")?;
            server.sockets.push((ours, thread));
        }
        Ok(server)
    }

    /// The name of the lab.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for (socket, thread) in self.sockets.drain(..) {
            // A socket that is shut down accepts no client any more, and its thread ends.
            let _ = rustix::net::shutdown(&socket, rustix::net::Shutdown::Both);
            let _ = thread.join();
        }
    }
}

fn serve(listener: &UnixListener, plane: &Weak<Handle>, instance: u64) {
    while let Some(stream) = peer::accept(listener) {
        let Some(plane) = plane.upgrade() else { return };
        // A client that goes away or talks nonsense is its own problem.
        let _ = answer(&stream, &plane, instance);
    }
}

fn answer(stream: &UnixStream, plane: &Handle, instance: u64) -> Result<()> {
    let until = Instant::now() + TIMEOUT;
    let reply = if Credentials::of(stream)?.are_trusted() {
        let line = String::from_utf8(read_line(stream, MAX_REQUEST, until)?)?;
        obey(&line, plane, instance).unwrap_or_else(|error| Reply::Refused(format!("{error:#}")))
    } else {
        Reply::Foreign
    };
    let mut text = serde_json::to_string(&reply)?;
    text.push('\n');
    Ok(write_full(stream, text.as_bytes(), Instant::now() + TIMEOUT)?)
}

fn obey(line: &str, plane: &Handle, instance: u64) -> Result<Reply> {
    match serde_json::from_str(line)? {
        Request::Show => {}
        Request::Identify => return Ok(Reply::Instance(instance)),
        Request::Set { port, queue, settings } => {
            plane.call(move |plane| set(plane, &port, queue, &settings))??;
        }
        Request::Evict { port } => plane.call(move |plane| evict(plane, &port))??,
    }
    let snapshot = plane.call(|plane| plane.snapshot())?;
    Ok(Reply::Ports(snapshot.ports.iter().map(port_state).collect()))
}

fn number_of(plane: &mut DataPlane, port: &str) -> Result<usize> {
    let names = plane.plane().port_names();
    let number = names.iter().position(|name| *name == port);
    number.ok_or_else(|| anyhow!("no port {port}; there are {}", names.join(", ")))
}

fn evict(plane: &mut DataPlane, port: &str) -> Result<()> {
    let number = number_of(plane, port)?;
    let snapshot = plane.snapshot();
    let connects = snapshot.ports[number].attachment.is_some();
    ensure!(connects, "port {port} belongs to a host of this lab; end the lab to end it");
    ensure!(plane.plane().evict(number), "nothing is connected to port {port}");
    Ok(())
}

/// Checks settings as far as that goes without a port, for a change that is to come.
pub fn check(settings: &[(String, String)]) -> Result<()> {
    if link(settings)?.is_some() {
        return Ok(());
    }
    Change::read(settings).map(drop)
}

#[derive(Default)]
struct Change {
    strategy: Option<Moderation>,
    coalesce: Coalesce,
    rules: Option<Rules>,
    lanes: Option<Lanes>,
}

impl Change {
    fn read(settings: &[(String, String)]) -> Result<Self> {
        let mut change = Self::default();
        for (name, value) in settings {
            match name.as_str() {
                "mark" => change.rules = Some(value.parse()?),
                "lane" => change.lanes = Some(value.parse()?),
                "strategy" => change.strategy = Some(value.parse()?),
                _ => read_parameter(&mut change.coalesce, name, value)?,
            }
        }
        Ok(change)
    }
}

/// Whether the link is to be up, if settings are about that. Nothing else changes with it.
fn link(settings: &[(String, String)]) -> Result<Option<bool>> {
    let Some((_, value)) = settings.iter().find(|(name, _)| name == "link") else {
        return Ok(None);
    };
    ensure!(settings.len() == 1, "link changes alone: in a command of its own");
    match value.as_str() {
        "up" => Ok(Some(true)),
        "down" => Ok(Some(false)),
        _ => bail!("link {value}: up or down"),
    }
}

/// Changes settings of a port: all of them, or, if one is wrong, none.
pub fn set(
    plane: &mut DataPlane,
    name: &str,
    queue: Option<u16>,
    settings: &[(String, String)],
) -> Result<()> {
    let number = number_of(plane, name)?;
    if let Some(up) = link(settings)? {
        ensure!(queue.is_none(), "the link is that of the port: drop --queue");
        ensure!(
            plane.set_link(number, up),
            "port {name}: its host's NIC cannot lose its link; Intel's can: --nic e1000e"
        );
        return Ok(());
    }
    let has_registers = plane.plane().has_registers(number);
    let queues = plane.plane().port_mut(number).queues();
    let Change { strategy, coalesce, rules, lanes } = Change::read(settings)?;
    let mut changed = Vec::new();
    for (at, state) in queues.iter().enumerate() {
        if queue.is_some_and(|queue| usize::from(queue) != at) {
            continue;
        }
        let before = strategy.unwrap_or(*state.moderation());
        let moderation = before.coalesce(coalesce, state.in_force())?;
        changed.push((at as u16, moderation));
        if moderation.timer == TimerKind::Driver && !has_registers {
            bail!("port {name}: its host's driver has no registers to decide by; name a strategy");
        }
    }
    if changed.is_empty() {
        bail!("port {name} has queues 0 to {}, not {}", queues.len() - 1, queue.unwrap_or(0));
    }
    if (rules.is_some() || lanes.is_some()) && queue.is_some() {
        bail!("marking rules and lanes are those of the port: drop --queue");
    }
    let port = plane.plane().port_mut(number);
    let has_lanes = !lanes.as_ref().unwrap_or(port.lanes()).is_empty();
    ensure!(
        has_lanes || changed.iter().all(|(_, moderation)| moderation.marks != Marks::Lane),
        "no rule says which packets have a lane; name them: earmark nic set {name} lane \
         'tcp-port=11211:1' strategy lane:75"
    );
    if let Some(lanes) = lanes {
        port.set_lanes(lanes).with_context(|| format!("port {name}"))?;
    }
    for (at, moderation) in changed {
        plane.set_moderation(number, Some(at), moderation);
    }
    if let Some(rules) = rules {
        plane.plane().port_mut(number).set_rules(rules);
    }
    Ok(())
}

fn read_parameter(change: &mut Coalesce, name: &str, value: &str) -> Result<()> {
    let number = |unit: Unit, max: u32| -> Result<Option<u32>> {
        let number = unit.read_whole(value, 0..=max.into());
        number.map(Some).map_err(|why| anyhow!("{name}: {value} {why}"))
    };
    match (name, value) {
        ("rx-usecs", _) => change.rx_usecs = number(Unit::Micros, MAX_RX_USECS)?,
        ("rx-frames", _) => change.rx_frames = number(Unit::Count, MAX_RX_FRAMES)?,
        ("adaptive-rx", "on") => change.adaptive_rx = Some(true),
        ("adaptive-rx", "off") => change.adaptive_rx = Some(false),
        ("adaptive-rx", _) => bail!("adaptive-rx {value}: on or off"),
        _ => bail!("no setting is called {name}; there are {}", SETTINGS.join(", ")),
    }
    Ok(())
}

fn port_state(port: &PortSnapshot) -> PortState {
    let attached = port.attachment.as_ref();
    let counters = [
        ("rx-length-errors", port.counters.bad_length),
        ("rx-refused", port.refused),
        ("link-lost", port.link.lost),
        ("link-duplicated", port.link.duplicated),
        ("link-reordered", port.link.reordered),
    ];
    PortState {
        port: port.name.clone(),
        mark: port.rules.clone(),
        lanes: port
            .lanes
            .iter()
            .map(|(rule, packets)| LaneState { rule: rule.clone(), packets: *packets })
            .collect(),
        queues: port.queues.iter().map(queue_state).collect(),
        hold_us: Quantiles::of(&Distribution::of(&port.holds, 1)),
        counters: counters
            .into_iter()
            .chain(attached.map(|attached| ("tx-too-long", attached.too_long)))
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
        attachment: attached.map(|attached| AttachmentState {
            connected: attached.connected,
            lost: attached.lost.clone(),
            queue_pairs: attached.pairs,
            queue_pairs_used: attached.pairs_used,
        }),
        vanished: port.vanished.clone(),
    }
}

fn queue_state(queue: &QueueSnapshot) -> QueueState {
    let Profile { rx_usecs, rx_frames } = queue.in_force;
    let interrupts =
        Reason::ALL.map(|reason| (reason.name().to_owned(), queue.counters.interrupts_for(reason)));
    let counters = queue.counters.named().map(|(name, value)| (name.to_owned(), value));
    QueueState {
        setting: queue.moderation.to_string(),
        strategy: queue.moderation.strategy().to_owned(),
        adaptive_rx: queue.moderation.timer == TimerKind::Adaptive,
        rx_usecs,
        rx_frames,
        interrupts: interrupts.into(),
        counters: counters.into(),
    }
}
