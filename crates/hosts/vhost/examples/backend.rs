//! How a hypervisor embeds the device: a vhost-user backend on a socket, with our NIC in it.
//!
//! A port with `marked:50` decides when to interrupt: short frames are marked and interrupt at
//! once, others wait for at most 50 us. [`Backend`] is all that a hypervisor needs. The rest is a
//! small frontend that plays the guest, and time that is a number, so that this runs by itself:
//!
//! ```console
//! $ cargo run -p earmark-vhost --example backend
//! ```
//!
//! QEMU connects to such a socket by `-chardev socket,path=...` and `-netdev vhost-user`.

use std::error::Error;
use std::fmt;
use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;

use base::time::{Duration, Instant};
use nic::observer::Delivered;
use nic::port::PortSettings;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use vhost::driver::{Driver, DriverSettings};
use vhost::{Device, DeviceSettings, Fetched, HostPort};

/// A device behind a socket, and the port of the NIC that it belongs to.
struct Backend {
    port: HostPort<Device>,
    /// Buffers to use again.
    pool: Vec<Vec<u8>>,
    /// Frames that the guest has sent: they go onto the wire.
    sent: Vec<Vec<u8>>,
    /// Packets that the guest has received.
    delivered: Vec<Delivered>,
}

impl Backend {
    fn bind(path: &Path, setting: &str, rules: &str) -> Result<Self, Box<dyn Error>> {
        let device = Device::new(UnixListener::bind(path)?, DeviceSettings::default())?;
        let settings = PortSettings {
            moderation: setting.parse()?,
            rules: rules.parse()?,
            ..PortSettings::default()
        };
        let port = HostPort::new(Box::new(device), settings, Instant::ZERO);
        Ok(Self { port, pool: Vec::new(), sent: Vec::new(), delivered: Vec::new() })
    }

    /// Waits in real time until the guest wants something. A backend whose time is real waits no
    /// longer than until `port.deadline()`.
    fn wait(&self, timeout: Duration) -> io::Result<bool> {
        use vhost::HostSide as _;
        let fds = self.port.host.fds();
        let mut fds: Vec<_> =
            fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        let timeout = Timespec { tv_sec: 0, tv_nsec: timeout.as_nanos().cast_signed() };
        Ok(poll(&mut fds, Some(&timeout))? > 0)
    }

    /// One round; `frame` comes off the wire in it.
    fn round(&mut self, now: Instant, ready: bool, frame: Option<&[u8]>) -> io::Result<()> {
        self.port.sync(now, ready);
        let mut buffer = self.pool.pop().unwrap_or_default();
        loop {
            match self.port.transmit(now, 0, &mut buffer)? {
                Fetched::Frame => self.sent.push(std::mem::take(&mut buffer)),
                Fetched::Dropped => {}
                // Only where sending costs time does a frame leave later.
                Fetched::Nothing | Fetched::Later(_) => break,
            }
        }
        if let Some(frame) = frame {
            self.port.make_room();
            buffer.clear();
            buffer.extend_from_slice(frame);
            if let Err(dropped) = self.port.receive(now, buffer) {
                self.pool.push(dropped.into_frame());
            }
        }
        self.port.advance(now);
        let delivered = &mut |packet: &Delivered, _: &[u8]| self.delivered.push(*packet);
        self.port.serve(now, &mut self.pool, delivered)
    }
}

/// What became of a frame.
#[derive(Debug, PartialEq)]
pub(crate) struct Received {
    pub(crate) length: usize,
    pub(crate) marked: bool,
    pub(crate) came_at: Instant,
    pub(crate) interrupt_at: Instant,
    pub(crate) hold: Duration,
}

impl fmt::Display for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { length, marked, came_at, interrupt_at, hold } = self;
        let micros = |at: &Instant| at.since(Instant::ZERO).as_micros();
        let kind = if *marked { "marked" } else { "unmarked" };
        let (came, interrupt, hold) = (micros(came_at), micros(interrupt_at), hold.as_micros());
        write!(
            f,
            "{length:>5} bytes, {kind:<8}  came at {came:>4} us, interrupt at {interrupt:>4} us, \
             held {hold:>3} us"
        )
    }
}

/// The guest receives a frame that comes at `came_at`: it sleeps until it is interrupted, polls
/// until there is nothing, and re-arms.
fn receive(
    backend: &mut Backend,
    guest: &mut Driver,
    came_at: Instant,
    frame: &[u8],
) -> Result<Received, Box<dyn Error>> {
    let mut now = came_at;
    backend.round(now, true, Some(frame))?;
    while !guest.wait(0, std::time::Duration::ZERO)? {
        // A real backend would sleep until then.
        let deadline = backend.port.deadline().filter(|at| *at > now);
        now = deadline.ok_or("the guest is never interrupted")?;
        backend.round(now, true, None)?;
    }
    let mut length = 0;
    while guest.receive(0, 64, |frame| length += frame.len())? > 0 || guest.arm(0)? {}
    // Here the device sees that the guest has re-armed.
    backend.round(now, true, None)?;
    let Delivered { descriptor, hold, .. } = backend.delivered.pop().ok_or("nothing came")?;
    Ok(Received { length, marked: descriptor.marked, came_at, interrupt_at: now, hold })
}

/// What the frames met, and how many frames the guest has sent.
pub(crate) fn run(path: &Path) -> Result<(Vec<Received>, usize), Box<dyn Error>> {
    let mut backend = Backend::bind(path, "marked:50", "length<=100")?;

    // The frontend waits for the backend's answers while it connects, so it does that elsewhere.
    let mut guest = std::thread::scope(|scope| {
        let guest = scope.spawn(|| Driver::connect(path, DriverSettings::default()));
        while !guest.is_finished() {
            let ready = backend.wait(Duration::from_micros(1_000))?;
            backend.round(Instant::ZERO, ready, None)?;
        }
        let guest = guest.join().expect("connecting does not panic");
        guest.map_err(Box::<dyn Error>::from)
    })?;

    guest.arm(0)?;
    let frames = [(100, 1_000), (300, 60)];
    let received = frames.map(|(micros, length)| {
        receive(&mut backend, &mut guest, Instant::from_micros(micros), &vec![0; length])
    });

    guest.send(0, &[0xFF; 60])?;
    guest.flush(0)?;
    backend.round(Instant::from_micros(400), true, None)?;
    Ok((received.into_iter().collect::<Result<_, _>>()?, backend.sent.len()))
}

#[allow(dead_code, reason = "a test calls `run`")]
fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("earmark-backend-{}", std::process::id()));
    let outcome = run(&path);
    std::fs::remove_file(&path)?;
    let (received, sent) = outcome?;
    for frame in &received {
        println!("{frame}");
    }
    println!("{sent} frame from the guest, {} interrupts", received.len());
    Ok(())
}
