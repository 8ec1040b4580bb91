//! What `NicOptions` say of ports, cables and captures, for every world.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use hostside::HostSide;
use intel::{Adapter, Model};
use lab::dataplane::{DataPlane, Handle};
use lab::plane::PortPlan;
use lab::snapshot::Snapshot;
use lab::wait::Waiting;
use nic::lanes::Lanes;
use nic::moderation::Moderation;
use nic::port::PortSettings;
use nic::queue::Dma;
use sys::privilege::Privilege;
use vhost::DeviceSettings;

use crate::counted;
use bench::environment::Environment;
use bench::nic_kind::NicKind;
use bench::options::{NicOptions, Ports, Text};
use bench::slice::{Part, Slice};
use bench::world::setup::{describe_link, link, micros, rules, tick_seed};
use report::errln;
use sys::files::writable;
use workload::Record;

/// The largest packet of a guest's interface where no option says otherwise, in bytes.
const USUAL_MTU: u32 = 1_500;

/// Port `number` of the NIC, before a setting is in force, for a host whose interface is `name`.
pub(crate) fn port_plan(
    options: &NicOptions,
    number: usize,
    name: String,
    host: Box<dyn HostSide>,
) -> Result<PortPlan> {
    let settings = PortSettings {
        queues: options.queues.unwrap_or(1),
        ring: options.ring.unwrap_or(1_024) as usize,
        moderation: Moderation::DISABLED,
        rules: rules(options)?,
        dma: Dma { latency: micros(options.dma_latency), ..Dma::default() },
        transmit_interrupts: options.transmit_interrupts.unwrap_or(false),
        tick_seed: Some(tick_seed(options.seed, number)),
    };
    Ok(PortPlan { name, host, settings, link: link(options, number as u64) })
}

/// Puts `moderation` into force on the ports of `plane` that take it, with the lanes that belong to
/// it.
///
/// # Panics
/// If the ports cannot have these lanes, which [`NicOptions::check`] refuses.
pub(crate) fn set(plane: &mut DataPlane, ports: Ports, moderation: Moderation, lanes: &Lanes) {
    for number in ports.numbers(plane.plane().len()) {
        let port = plane.plane().port_mut(number);
        if port.lanes() != lanes {
            port.set_lanes(lanes.clone()).expect("lanes were checked against the queues");
        }
        plane.set_moderation(number, None, moderation);
    }
}

/// The round between two snapshots, if what it is to show was in force, one setting and perhaps
/// another one after it.
pub(crate) fn slice(
    [before, after]: [Snapshot; 2],
    options: &NicOptions,
    (moderation, change_to): (Moderation, Option<Moderation>),
    records: impl FnOnce() -> Result<Vec<(Part, Record)>>,
) -> Result<Slice> {
    ensure_in_force(&before, options, moderation)?;
    ensure_in_force(&after, options, change_to.unwrap_or(moderation))?;
    Ok(counted::slice(records()?, &after.since(&before)))
}

/// Makes sure that a figure has the name of what was in force: that the ports which take
/// `moderation` had it, or one like it, when `snapshot` was taken.
fn ensure_in_force(
    snapshot: &Snapshot,
    options: &NicOptions,
    moderation: Moderation,
) -> Result<()> {
    let lanes = options.lanes(moderation).queues(options.queues.unwrap_or(1));
    for number in options.ports.unwrap_or(Ports::Both).numbers(snapshot.ports.len()) {
        let port = &snapshot.ports[number];
        for (queue, state) in (0..).zip(&port.queues) {
            let (wanted, found) = (moderation.of_queue(lanes.contains(&queue)), state.moderation);
            ensure!(
                found == wanted || (found.is_immediate() && wanted.is_immediate()),
                "queue {queue} of port {} had `{found}` in force instead of `{wanted}`: the driver of \
                 its host has changed it, or `earmark nic set`; a figure would have the wrong name",
                port.name
            );
        }
    }
    Ok(())
}

/// The largest packet of a guest's interface, in bytes: what namespaces may have, guests may.
pub(crate) fn mtu(options: &NicOptions) -> Result<u16> {
    let mtu = options.mtu.unwrap_or(USUAL_MTU);
    lab::check_mtu(mtu)?;
    Ok(mtu as u16)
}

/// A device that the driver of guest `number` finds at its port; packets have `mtu` bytes at most.
pub(crate) fn device(
    options: &NicOptions,
    number: usize,
    mac: [u8; 6],
    mtu: u16,
) -> DeviceSettings {
    DeviceSettings {
        mac,
        mtu,
        pairs: options.queues.unwrap_or(1),
        rss: options.rss.unwrap_or(false),
        inband: false,
        counts_rings: false,
        interrupt_latency: micros(options.interrupt_latency),
        costs: options.costs_of(number),
        polled: options.wait == Some(Text(Waiting::Spin)),
        speed_mbit: options.link_rate.unwrap_or(0),
    }
}

/// The speed that a virtual function reports where the cable has none.
const USUAL_SPEED_MBIT: u32 = 10_000;

/// The NIC of Intel's that guests find, if it is one.
pub(crate) fn intel(options: &NicOptions) -> Option<Adapter> {
    match options.nic.unwrap_or_default() {
        NicKind::Virtio => None,
        NicKind::E1000e => Some(Adapter::Card(Model::E82574)),
        NicKind::E1000 => Some(Adapter::Card(Model::E82545)),
        NicKind::Iavf => Some(Adapter::Virtual),
    }
}

/// One of Intel's NICs that the driver of guest `number` finds at its port.
pub(crate) fn adapter(
    options: &NicOptions,
    number: usize,
    mac: [u8; 6],
    adapter: Adapter,
) -> Result<intel::DeviceSettings> {
    let name = options.nic.unwrap_or_default().driver();
    let (pairs, max_pairs) = (options.queues.unwrap_or(1), adapter.max_pairs());
    ensure!(pairs <= max_pairs, "--queues: {name} has at most {max_pairs}; ask for no more");
    ensure!(
        !options.rss.unwrap_or(false),
        "--rss: it is for virtio; iavf always sets key and table, and Intel's cards have one queue"
    );
    let max = adapter.max_mtu();
    ensure!(mtu(options)? <= max, "--mtu: packets of {name} have at most {max} bytes");
    ensure!(
        adapter != Adapter::Virtual || options.driver_options.iter().flatten().next().is_none(),
        "--driver-options: {name} has no parameters; it is set by ethtool, as in ethtool -C"
    );
    Ok(intel::DeviceSettings {
        adapter,
        mac,
        pairs,
        speed_mbit: options.link_rate.unwrap_or(USUAL_SPEED_MBIT),
        inband: false,
        interrupt_latency: micros(options.interrupt_latency),
        costs: options.costs_of(number),
    })
}

/// Refuses what only virtual time can do.
pub(crate) fn in_real_time(options: &NicOptions) -> Result<()> {
    ensure!(
        options.interrupt_latency.unwrap_or(0) == 0,
        "--interrupt-latency: in real time an interrupt takes what this machine takes; leave it out, or give `earmark \
         bench` --world virtual, or `earmark lab run` --time virtual"
    );
    Ok(())
}

/// The NIC of Intel's that guests have, if they have one, and its driver's options.
fn describe_nic(options: &NicOptions) -> String {
    let Some(nic) = options.nic.filter(|nic| nic.is_intel()) else { return String::new() };
    let driver_options =
        options.driver_options.iter().flatten().map(|Text(option)| format!(" {option}"));
    nic.driver().to_owned() + &driver_options.collect::<String>()
}

/// What a result says of a world that `options` describe: of this machine, of the NIC and of its
/// cable. What hosts have of their own is left to the world.
pub(crate) fn environment(
    world: &'static str,
    options: &NicOptions,
    privilege: Privilege,
) -> Result<Environment> {
    Ok(Environment {
        privilege: privilege.to_string(),
        nic: describe_nic(options),
        mark: rules(options)?.to_string(),
        lane: options.lane.as_ref().map_or_else(String::new, ToString::to_string),
        link: describe_link(options.link_rate, micros(options.link_latency), options),
        ..crate::environment::read(world)
    })
}

/// Refuses what cannot work before anything is built or run.
pub fn check(options: &NicOptions) -> Result<()> {
    ensure!(
        options.link_reorder_delay.is_none() || options.link_reorder.is_some_and(|part| part > 0.0),
        "--link-reorder-delay: no frame is overtaken without --link-reorder; give both, or neither"
    );
    let Some(path) = &options.pcap else { return Ok(()) };
    writable(path, 0)
        .with_context(|| format!("write capture {}; give --pcap another place", path.display()))
}

/// Ends the capture of `plane`, if there is one, and says where it is.
pub(crate) fn finish_capture(plane: &Handle, path: Option<&Path>) -> Result<()> {
    let capture = plane.call(|plane| plane.plane().take_capture())?;
    let Some(capture) = capture else { return Ok(()) };
    let missed = capture.finish()?;
    errln!("capture: {}", path.unwrap_or(Path::new("")).display());
    if missed > 0 {
        errln!("{missed} frames are missing from it: they came faster than they were written");
    }
    Ok(())
}
