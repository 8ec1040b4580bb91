//! Guests and the NIC between them: what the live and the virtual world build alike.
//!
//! Each guest is a host with a User-Mode Linux in it. The sockets of its NIC and of its clock are
//! bound inside that host and vanish with it.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use hostside::HostSide;
use lab::calendar::Calendar;
use lab::guest::protocol::{PROGRAM, TimedCommand};
use lab::guest::{Guest, GuestNic, GuestSettings};
use lab::host::Host;
use lab::plane::PortPlan;
use lab::station::Station;
use nic::lanes::Lanes;
use nic::moderation::Moderation;
use vhost::Device;

use crate::setup;
use bench::options::{NicOptions, Ports, Text};
use lab::kernel::{self, Needs};

const NIC_SOCKET: &str = "/run/nic.sock";

const CALENDAR_SOCKET: &str = "/run/calendar.sock";

/// A guest that has everything but a running kernel.
struct Prepared {
    host: Host,
    settings: GuestSettings,
}

/// Guests before they boot, and the ports that they will find.
pub(crate) struct Guests {
    pub(crate) boot_list: BootList,
    /// A port for each guest, in their order.
    pub(crate) plans: Vec<PortPlan>,
    /// Their clocks, in virtual time.
    pub(crate) calendar: Calendar,
    pub(crate) kernel: PathBuf,
}

/// In what time guests live.
pub(crate) enum GuestTime {
    /// The machine's: they take orders.
    Real,
    /// The calendar's: each follows its script. The kernels' randomness comes from `seed`.
    Virtual {
        /// A script for each guest.
        scripts: Vec<Vec<TimedCommand>>,
        /// Where everything random comes from.
        seed: u64,
    },
}

impl Guests {
    /// Prepares a guest for each of `names`. Their drivers will believe `moderation` to be in force
    /// on the ports that take it.
    pub(crate) fn prepare(
        names: &[String],
        options: &NicOptions,
        moderation: Option<Moderation>,
        time: GuestTime,
    ) -> Result<Self> {
        let (needs, scripts, seed) = match time {
            GuestTime::Real => (Needs::RealTime, None, options.seed.unwrap_or(1)),
            GuestTime::Virtual { scripts, seed } => (Needs::VirtualTime, Some(scripts), seed),
        };
        let mtu = setup::mtu(options)?;
        let kernel = kernel::find(needs)?;
        let program = std::env::current_exe().context("find the earmark program itself")?;
        let stations = Station::all(names);
        let nic = options.nic.unwrap_or_default();
        let is_virtio = !options.is_intel();
        let is_virtual = scripts.is_some();
        let mut scripts = scripts.unwrap_or_default().into_iter();
        let cpu = if is_virtual { sys::cpu::of_this_process() } else { None };
        let (mut prepared, mut plans, mut clocks) = (Vec::new(), Vec::new(), Vec::new());
        for (number, station) in stations.iter().enumerate() {
            let host = Host::create(&station.name, &stations)?;
            // Where a kernel's command line is another one, so is its course.
            host.enter(|| symlink(&program, PROGRAM))?.context("link the earmark program")?;
            let mut settings = GuestSettings::new(&kernel, PROGRAM.as_ref(), station.clone());
            settings.nic = Some(GuestNic {
                socket: NIC_SOCKET.into(),
                driver: nic.driver().to_owned(),
                is_pci: !is_virtio,
            });
            let parameters = options.driver_options.iter().flatten();
            settings.parameters.extend(parameters.map(|Text(it)| format!("{}.{it}", nic.driver())));
            settings.mtu = Some(mtu.into());
            settings.seed = seed.wrapping_mul(1_000).wrapping_add(number as u64);
            settings.script = scripts.next();
            let ports = options.ports.unwrap_or(Ports::Both).numbers(names.len());
            let ours = moderation.filter(|_| ports.contains(&number) && is_virtio);
            settings.coalescing = ours.and_then(drivers_numbers);
            settings.channels = options.queues.filter(|_| is_virtio);
            let lanes = ours.map_or(Lanes::NONE, |moderation| options.lanes(moderation));
            settings.prompt_queues = lanes.queues(options.queues.unwrap_or(1));
            settings.cpu = cpu;
            if is_virtual {
                settings.calendar_socket = Some(CALENDAR_SOCKET.into());
                // The kernel's generator is seeded with its command line, among others.
                settings.parameters.push(format!("earmark.seed={}", settings.seed));
                clocks.push((station.name.clone(), host.listen(CALENDAR_SOCKET)?));
            }
            let listener = host.listen(NIC_SOCKET)?;
            let device: io::Result<Box<dyn HostSide>> = match setup::intel(options) {
                None => {
                    let mut device = setup::device(options, number, station.mac, mtu);
                    device.inband = is_virtual;
                    device.counts_rings = true;
                    device.polled &= !is_virtual;
                    Device::new(listener, device).map(|device| Box::new(device) as _)
                }
                Some(adapter) => {
                    let mut settings = setup::adapter(options, number, station.mac, adapter)?;
                    settings.inband = is_virtual;
                    intel::Device::new(listener, settings).map(|device| Box::new(device) as _)
                }
            };
            let device =
                device.with_context(|| format!("make the NIC of guest {}", station.name))?;
            let name = station.interface();
            plans.push(setup::port_plan(options, number, name, device)?);
            prepared.push(Prepared { host, settings });
        }
        let calendar = Calendar::new(clocks).context("prepare the calendar")?;
        Ok(Self { boot_list: BootList(prepared), plans, calendar, kernel })
    }
}

/// The `rx-usecs` and `rx-frames` that a guest's driver sets so that it believes in what is in
/// force: none if they would change the setting.
fn drivers_numbers(setting: Moderation) -> Option<(u32, u32)> {
    let numbers = (setting.rx_usecs, setting.rx_frames);
    (vhost::coalesce(setting, numbers.0, numbers.1) == Ok(setting)).then_some(numbers)
}

pub(crate) struct BootList(Vec<Prepared>);

impl BootList {
    /// Boots them; the process that owns their ports must run.
    pub(crate) fn boot(self) -> Result<Vec<Guest>> {
        let boot = |Prepared { host, settings }| Ok(Guest::start(host, &settings)?);
        self.0.into_iter().map(boot).collect()
    }
}

/// The version of a kernel, as far as its file name tells.
pub(crate) fn kernel_name(kernel: &Path) -> String {
    kernel.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
