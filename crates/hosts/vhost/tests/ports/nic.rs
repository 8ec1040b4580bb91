//! A NIC with vhost-user ports and cables without delay between them, as any owner has it.

use std::io::ErrorKind;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use hostside::Attachment;
use lab::dataplane::{DataPlane, Handle};
use lab::plane::PortPlan;
use lab::snapshot::PortSnapshot;
use lab::wait::Waiting;
use network::link::LinkSettings;
use nic::moderation::Moderation;
use nic::port::PortSettings;
use vhost::Device;
use vhost::DeviceSettings;
use vhost::driver::{DriverSettings, VirtioDriver};

#[derive(Clone, Copy)]
pub(crate) struct NicSettings {
    pub(crate) ports: usize,
    pub(crate) queues: u16,
    pub(crate) mtu: u16,
    pub(crate) moderation: Moderation,
    pub(crate) waiting: Waiting,
}

impl Default for NicSettings {
    fn default() -> Self {
        let moderation = Moderation::DISABLED;
        Self { ports: 2, queues: 1, mtu: 1500, moderation, waiting: Waiting::Sleep }
    }
}

/// Sockets in a directory of their own, which is removed when this is dropped.
pub(crate) struct Sockets(PathBuf);

impl Sockets {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("earmark-vhost-{}-{number}", std::process::id());
            let directory = std::env::temp_dir().join(name);
            match std::fs::create_dir(&directory) {
                Ok(()) => return Self(directory),
                // A process of the same number was killed before it could tidy up.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => panic!("make {}: {error}", directory.display()),
            }
        }
    }

    pub(crate) fn path(&self, number: usize) -> PathBuf {
        self.0.join(format!("port{number}.sock"))
    }

    /// A port with a device behind each socket.
    pub(crate) fn plans(&self, settings: &NicSettings) -> Vec<PortPlan> {
        let NicSettings { queues, moderation, .. } = *settings;
        let plan = |number| PortPlan {
            name: format!("{}0", ['a', 'b', 'c'][number]),
            host: Box::new(device(&self.path(number), number as u8, settings)),
            settings: PortSettings { queues, moderation, ..PortSettings::default() },
            link: LinkSettings::default(),
        };
        (0..settings.ports).map(plan).collect()
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) struct Nic {
    plane: Handle,
    sockets: Sockets,
}

impl Nic {
    pub(crate) fn start(settings: NicSettings) -> Self {
        let sockets = Sockets::new();
        let plane = Handle::start(sockets.plans(&settings), settings.waiting, None);
        Self { plane: plane.unwrap(), sockets }
    }

    pub(crate) fn path(&self, number: usize) -> PathBuf {
        self.sockets.path(number)
    }

    /// A driver with one pair of queues.
    pub(crate) fn driver(&self, number: usize) -> VirtioDriver {
        self.driver_with(number, DriverSettings::default())
    }

    /// A driver. The port may still have the last one, which is gone, so there are several tries.
    pub(crate) fn driver_with(&self, number: usize, settings: DriverSettings) -> VirtioDriver {
        let mut driver = None;
        super::traffic::until("attach a driver", || {
            driver = VirtioDriver::connect(&self.path(number), settings).ok();
            driver.is_some()
        });
        driver.unwrap()
    }

    /// How the frontend of a port stands.
    pub(crate) fn attachment(&self, number: usize) -> Attachment {
        self.port(number).attachment.expect("a port that frontends connect to")
    }

    /// Why the last frontend of a port was cut off.
    pub(crate) fn reason(&self, number: usize) -> String {
        self.attachment(number).lost.unwrap_or_default()
    }

    pub(crate) fn evict(&self, number: usize) -> bool {
        self.plane.call(move |plane: &mut DataPlane| plane.plane().evict(number)).unwrap()
    }

    fn port(&self, number: usize) -> PortSnapshot {
        let mut snapshot = self.plane.call(|plane: &mut DataPlane| plane.snapshot()).unwrap();
        snapshot.ports.swap_remove(number)
    }
}

fn device(path: &Path, number: u8, settings: &NicSettings) -> Device {
    let settings = DeviceSettings {
        mac: [2, 0, 0, 0, 0, 10 + number],
        mtu: settings.mtu,
        pairs: settings.queues,
        polled: settings.waiting == Waiting::Spin,
        ..DeviceSettings::default()
    };
    Device::new(UnixListener::bind(path).unwrap(), settings).unwrap()
}
