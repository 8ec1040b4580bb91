//! Two devices, two ports and a wire without delay, served by one thread: as much of the data plane
//! as these tests need.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use linux::clock;
use linux::hostside::{HostSide, Service};
use linux::trace::Watch;
use linux::vhost::config::DeviceSettings;
use linux::vhost::device::Device;
use linux::vhost::driver::{Driver, DriverSettings};
use linux::wait::Waiting;
use nic::moderation::Moderation;
use nic::port::{Port, PortSettings};
use nic::time::{Duration, Instant};
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};

/// Frames taken from one host before the other has its turn.
const BATCH: usize = 64;

/// Rounds between two looks at descriptors, if the NIC spins: rings are looked at in each.
const LOOK_EVERY: u32 = 256;

/// What the epoll reports.
const WAKE: u64 = 0;
const DEVICE: u64 = 1;

/// What both ports are like.
#[derive(Clone, Copy)]
pub(crate) struct NicSettings {
    pub(crate) queues: u16,
    pub(crate) mtu: u16,
    pub(crate) moderation: Moderation,
    pub(crate) waiting: Waiting,
}

impl Default for NicSettings {
    fn default() -> Self {
        let moderation = Moderation::DISABLED;
        Self { queues: 1, mtu: 1500, moderation, waiting: Waiting::Sleep }
    }
}

type Command = Box<dyn FnOnce(&mut Plane) + Send>;

/// A running NIC with two ports. It stops when this is dropped.
pub(crate) struct Nic {
    directory: PathBuf,
    wake: Arc<OwnedFd>,
    commands: Option<Sender<Command>>,
    thread: Option<JoinHandle<Plane>>,
}

/// What the NIC's thread works on.
pub(crate) struct Plane {
    devices: [Device; 2],
    ports: [Port<Vec<u8>>; 2],
    watches: [Watch; 2],
    pool: Vec<Vec<u8>>,
    frame: Vec<u8>,
    commands: Receiver<Command>,
    wake: Arc<OwnedFd>,
    waiting: Waiting,
    epoll: OwnedFd,
    round: u32,
    stopped: bool,
}

impl Nic {
    pub(crate) fn start(settings: NicSettings) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("earmark-vhost-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let wake = Arc::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap());
        let (sender, commands) = channel();
        let device = |number| device(&socket(&directory, number), number as u8, &settings);
        let port = || {
            let NicSettings { queues, moderation, .. } = settings;
            Port::new(PortSettings { queues, moderation, ..Default::default() }, clock::now())
        };
        let devices = [device(0), device(1)];
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let watch = |fd: BorrowedFd<'_>, token| {
            epoll::add(&epoll, fd, epoll::EventData::new_u64(token), epoll::EventFlags::IN)
                .unwrap();
        };
        devices.iter().flat_map(HostSide::fds).for_each(|fd| watch(fd, DEVICE));
        watch(wake.as_fd(), WAKE);
        let plane = Plane {
            devices,
            ports: [port(), port()],
            watches: [Watch::new(), Watch::new()],
            pool: Vec::new(),
            frame: Vec::new(),
            commands,
            wake: Arc::clone(&wake),
            waiting: settings.waiting,
            epoll,
            round: 0,
            stopped: false,
        };
        let thread = Some(std::thread::spawn(move || plane.run()));
        Self { directory, wake, commands: Some(sender), thread }
    }

    /// Stops the thread and hands over what it worked on, for a caller who plays its part.
    #[allow(dead_code, reason = "a benchmark does so")]
    pub(crate) fn halt(mut self) -> Plane {
        self.stop().expect("it has run until now").expect("the NIC does not panic")
    }

    fn stop(&mut self) -> Option<std::thread::Result<Plane>> {
        let thread = self.thread.take()?;
        let stop: Command = Box::new(|plane| plane.stopped = true);
        let _ = self.commands.take().unwrap().send(stop);
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        Some(thread.join())
    }

    /// The socket of a port.
    pub(crate) fn path(&self, number: usize) -> PathBuf {
        socket(&self.directory, number)
    }

    /// A driver with one pair of queues.
    pub(crate) fn driver(&self, number: usize) -> Driver {
        self.driver_with(number, DriverSettings::default())
    }

    /// A driver. The port may still have the last one, which is gone, so there are several tries.
    pub(crate) fn driver_with(&self, number: usize, settings: DriverSettings) -> Driver {
        let mut driver = None;
        super::traffic::until("attach a driver", || {
            driver = Driver::connect(&self.path(number), settings).ok();
            driver.is_some()
        });
        driver.unwrap()
    }

    /// Why the last frontend of a port was cut off.
    pub(crate) fn reason(&self, number: usize) -> String {
        let lost = self.call(move |plane| plane.devices[number].lost().map(str::to_owned));
        lost.unwrap_or_default()
    }

    /// `rx-usecs` and `rx-frames` of each queue of a port.
    pub(crate) fn moderation(&self, number: usize) -> Vec<(u32, u32)> {
        self.call(move |plane| {
            let settings = plane.ports[number].queues().iter().map(|queue| *queue.moderation());
            settings.map(|setting| (setting.rx_usecs, setting.rx_frames)).collect()
        })
    }

    fn call<T: Send + 'static>(&self, command: impl FnOnce(&mut Plane) -> T + Send + 'static) -> T {
        let (answer, answered) = channel();
        let command: Command = Box::new(move |plane| drop(answer.send(command(plane))));
        self.commands.as_ref().unwrap().send(command).unwrap();
        rustix::io::write(&self.wake, &1_u64.to_ne_bytes()).unwrap();
        answered.recv().expect("the NIC runs")
    }
}

impl Drop for Nic {
    fn drop(&mut self) {
        let ended = self.stop();
        let _ = std::fs::remove_dir_all(&self.directory);
        if !std::thread::panicking() {
            let _ = ended.transpose().expect("the NIC does not panic");
        }
    }
}

fn socket(directory: &Path, number: usize) -> PathBuf {
    directory.join(format!("port{number}.sock"))
}

fn device(path: &Path, number: u8, settings: &NicSettings) -> Device {
    let settings = DeviceSettings {
        mac: [2, 0, 0, 0, 0, 10 + number],
        mtu: settings.mtu,
        pairs: settings.queues,
        inband: false,
        polled: settings.waiting == Waiting::Spin,
        speed_mbit: 0,
    };
    Device::new(UnixListener::bind(path).unwrap(), settings).unwrap()
}

impl Plane {
    fn run(mut self) -> Self {
        let mut events = Vec::with_capacity(8);
        while !self.stopped {
            let ready = self.wait(&mut events);
            self.round(ready);
        }
        self
    }

    /// Lets everybody have a turn; `ready` says that a device's descriptor can be read.
    pub(crate) fn round(&mut self, ready: bool) {
        let now = clock::now();
        for number in 0..2 {
            let Self { devices, ports, watches, .. } = self;
            devices[number].attend(now, ready, &mut ports[number], &mut watches[number]);
        }
        self.carry(now);
        for number in 0..2 {
            let Self { devices, ports, watches, pool, .. } = self;
            let (port, watch) = (&mut ports[number], &mut watches[number]);
            port.advance(now, watch);
            let (delivered, delivering) = (&mut |_: &_, _: &_| (), &mut Duration::default());
            let mut service = Service { port, watch, pool, delivered, delivering };
            devices[number].serve(now, &mut service).unwrap();
        }
    }

    fn carry(&mut self, now: Instant) {
        for from in 0..2 {
            for _ in 0..BATCH {
                if !self.devices[from].transmit(now, 0, &mut self.frame).unwrap() {
                    break;
                }
                let next = self.pool.pop().unwrap_or_default();
                let frame = std::mem::replace(&mut self.frame, next);
                if let Err(dropped) = self.ports[1 - from].receive(now, frame) {
                    self.pool.push(dropped.into_frame());
                }
            }
        }
    }

    /// Waits for whoever wants something, and obeys commands; whether a device is among them.
    fn wait(&mut self, events: &mut Vec<epoll::Event>) -> bool {
        self.round = self.round.wrapping_add(1);
        let spins = self.waiting == Waiting::Spin;
        if spins && !self.round.is_multiple_of(LOOK_EVERY) {
            return false;
        }
        let ports = self.ports.iter().filter_map(Port::deadline);
        let deadline = ports.chain(self.devices.iter().filter_map(Device::deadline)).min();
        let nanos = deadline.map(|deadline| deadline.since(clock::now()).as_nanos());
        let timeout = if spins { Some(0) } else { nanos }.map(|nanos| Timespec {
            tv_sec: (nanos / 1_000_000_000) as i64,
            tv_nsec: (nanos % 1_000_000_000) as i64,
        });
        events.clear();
        let room = rustix::buffer::spare_capacity(events);
        let _ = epoll::wait(&self.epoll, room, timeout.as_ref());
        let is = |token| events.iter().any(|event| event.data.u64() == token);
        let (woken, ready) = (is(WAKE), is(DEVICE));
        if woken {
            let _ = rustix::io::read(&*self.wake, &mut [0_u8; 8]);
            while let Ok(command) = self.commands.try_recv() {
                command(self);
            }
        }
        ready
    }
}
