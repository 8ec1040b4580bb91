//! A vhost-user virtio-net device with our NIC in it, and a driver for such devices.
//!
//! For authors of hypervisors and of backends: a [`Device`] listens on a socket, a *frontend*
//! (QEMU, Linux in user mode, DPDK's `virtio_user`) connects and hands over the memory of its
//! *guest* and the addresses of its rings. From then on packets pass through shared memory, and the
//! two sides wake each other by *kicks* (to the device) and *calls* (interrupts). A [`HostPort`]
//! joins the device with a port of the crate `nic`, whose moderation decides when to call.
//!
//! ```
//! use base::time::Instant;
//! use nic::port::PortSettings;
//! use std::os::unix::net::UnixListener;
//! use vhost::driver::{Driver, DriverSettings};
//! use vhost::{Device, DeviceSettings, HostPort};
//!
//! # let path = std::env::temp_dir().join(format!("earmark-front-page-{}", std::process::id()));
//! let device = Device::new(UnixListener::bind(&path)?, DeviceSettings::default())?;
//! let moderation = "delay:75".parse()?;
//! let settings = PortSettings { moderation, ..PortSettings::default() };
//! let mut port = HostPort::new(Box::new(device), settings, Instant::ZERO);
//!
//! // A guest in this process; it waits for the answers of the device while it connects.
//! # let socket = path.clone();
//! let guest = std::thread::spawn(move || Driver::connect(&socket, DriverSettings::default()));
//! while !guest.is_finished() {
//!     port.sync(Instant::ZERO, true);
//! }
//! let mut guest = guest.join().unwrap()?;
//!
//! // A frame comes off the wire, and is held for 75 us: the guest can see it already.
//! guest.arm(0)?;
//! port.sync(Instant::ZERO, true);
//! port.make_room();
//! port.receive(Instant::ZERO, vec![0; 60]).expect("the guest has room");
//! for now in [Instant::ZERO, Instant::from_micros(75)] {
//!     port.advance(now);
//!     port.serve(now, &mut Vec::new(), &mut |_, _| ())?;
//! }
//! assert!(guest.wait(0, std::time::Duration::ZERO)?, "it is interrupted");
//! assert_eq!(guest.receive(0, 64, |frame| assert_eq!(frame.len(), 60))?, 1);
//! # std::fs::remove_file(path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/backend.rs` is a whole backend with `marked:50`. [`HostPort`] has the order of calls.
//!
//! | module | what |
//! |---|---|
//! | [`driver`] | the other side: a virtio-net driver in an ordinary process |
//!
//! # Inside the device
//!
//! ```text
//!   frontend ── socket ──▶ connection ─▶ message ─▶ session: features, memory, rings
//!   guest ── control ring ──▶ control ─▶ coalesce ─▶ the moderation of the port's queues
//!   guest ── transmit ring ──▶ send ─▶ the wire
//!   guest ◀── receive ring, call ── receive ◀── queue of the port ◀── the wire
//! ```
//!
//! Everything that comes from the other side is checked where it is read (`message`, `memory`,
//! `ring`, `session`); a guest that breaks a rule loses its port, its owner learns why, and the
//! next may connect. Nothing a guest does makes the data plane wait: only eventfds, sockets of this
//! machine and files of memory are taken; they are written to without waiting (`signal`) and closed
//! in another thread (`reaper`); memory that a guest takes away is replaced (`sigbus`); and what is
//! done for one port in a round is bounded.
//!
//! # Moderation meets virtio
//!
//! In the live world the data plane plays the driver: it is interrupted, polls and re-arms. Here
//! the guest's own driver polls, without a message. The queue of the port still decides when to
//! interrupt, so the device has to find out what the guest does:
//!
//! | the queue's contract | a guest |
//! |---|---|
//! | a packet's DMA completes | it is copied to the guest, and *shown* in the used ring |
//! | an interrupt is raised | a call, if the guest asks for one |
//! | packets are taken | at the call, all that were shown before: the guest *will* look at them |
//! | packets are found by a poll | shown while the guest polls: taken at that moment, held 0 us |
//! | the interrupt is re-armed | the guest's `used_event` is at or after what was signalled |
//!
//! So a packet stays in the queue until it has been *signalled* to the guest, and `signalled` is an
//! index of the used ring: the guest looks at everything before it without a further interrupt. The
//! ring of the queue is as large as what was not signalled yet and the buffers that the guest has
//! posted.
//!
//! ## Why no interrupt is lost
//!
//! Linux ends a poll by writing the index up to which it has looked into `used_event`, and then,
//! after a full fence, looks at the used index again (`virtqueue_enable_cb_prepare`,
//! `virtqueue_poll`). The device stores the used index and then, after a full fence, loads
//! `used_event` (`Ring::flush_used`, `Ring::driver_event`). At least one of the two
//! therefore sees what the other wrote. Consider a packet that was just shown.
//!
//! - `used_event` lies between `signalled` and the used index: the guest has re-armed. What it had
//!   not looked at is handed to the queue as *unseen*; the strategy interrupts now or sets its
//!   timer.
//! - It does not: the guest has not re-armed yet, and when it does, it sees the packet and polls
//!   on. It needs no interrupt, and `signalled` moves on to the used index.
//! - The queue is armed, and its interrupt is raised later: the same load shows whether the guest
//!   asks for a call. If it does not, it is polling, for the packet was shown before the load.
//!
//! The device looks before packets arrive as well, so that a guest which had re-armed is never
//! taken for one that polls. Moderation is then exact: an interrupt, its mask and the re-arm are
//! those of the strategy, up to the moment at which the data plane looks.
//!
//! Switching calls off, Linux writes 0 into `used_event` ("TODO: this is a hack"). If 0 happens to
//! lie in the range, once in 65536 packets or so, the device sees a re-arm that was none; it then
//! interrupts once for nothing. An index that has not been touched for 65536 packets costs the
//! same.
//!
//! Without event indices there is only a flag, which a guest that was called sets *when it gets to
//! it*. A clear flag is taken for a re-arm, since the guest may have polled and re-armed between
//! two looks. That loses nothing, but a packet that comes before the guest reacts may be called for
//! again.
//!
//! A guest that polls without having been interrupted, and never writes `used_event`, shows by the
//! buffers that it posts what it has taken.
//!
//! # Transmission
//!
//! Frames are taken from the ring without their header, and their buffers are given back at once.
//! Calls for that are moderated by a [`nic::vector::Vector`] for each ring, by the guest's
//! `tx-usecs` and `tx-frames`; at first each completion that the guest asks for is signalled at
//! once. A driver may ask far ahead (`virtqueue_enable_cb_delayed`): the vector counts as masked
//! until what it asked for is there.
//!
//! A guest has a vector of its own for each ring. With a port's `transmit_interrupts`, a frame that
//! was taken from it asks the vector of its first receive queue for an interrupt as well. There is
//! nothing for the guest to look at then and it is not called, but the interrupt has been used up:
//! under a throttle, the next one is a gap away.
//!
//! A guest is asked to kick when a ring was found empty, and the ring is then looked at once more.
//! Receive rings need no kicks: buffers are counted in every round.
//!
//! # In-band notifications
//!
//! A guest in virtual time must not act while the device does, so its kicks and calls are messages
//! with acknowledgements (protocol feature 14). A kick is acknowledged when the frames that it
//! announced have been taken. Calls are collected until the owner, who runs guests in turn, has
//! them sent.

mod coalesce;
mod command;
#[doc(hidden)]
pub mod config;
mod connection;
mod control;
mod costs;
mod device;
pub mod driver;
#[doc(hidden)]
pub mod frontend;
#[doc(hidden)]
pub mod memory;
#[doc(hidden)]
pub mod message;
mod notify;
#[doc(hidden)]
pub mod reaper;
mod receive;
#[doc(hidden)]
pub mod ring;
mod send;
#[doc(hidden)]
pub mod session;
mod sigbus;
mod signal;

pub use coalesce::coalesce;
pub use config::DeviceSettings;
pub use device::Device;
pub use hostside::{Attachment, Fetched, HostPort, HostSide, VirtualHost};
