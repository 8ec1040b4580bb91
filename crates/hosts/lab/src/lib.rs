//! A lab: hosts made of namespaces or guests, and the data plane that joins them through ports of
//! the `nic` crate, in real time and in virtual time.
//!
//! There are two kinds of hosts. A [`host::Host`] is a set of namespaces; the frames that it sends
//! are read from its [`tap::Tap`], and a driver in software ([`napi`]) delivers to it. A
//! [`guest::Guest`] is a Linux in user mode, whose port is a vhost-user device (crate `vhost`); its
//! time may be ours ([`calendar`]). A [`dataplane::Handle`] joins their ports with links and a
//! switch ([`plane`]), in a thread of its own.
//!
//! ```no_run
//! // Not run with the tests of documentation: it makes namespaces and interfaces.
//! use std::process::Command;
//!
//! use lab::dataplane::Handle;
//! use lab::napi::NapiDriver;
//! use lab::plane::PortPlan;
//! use lab::wait::Waiting;
//! use lab::{Lab, LabSettings};
//! use network::link::LinkSettings;
//! use nic::port::PortSettings;
//!
//! sys::privilege::become_capable()?; // before the first thread
//! let lab = Lab::create(&LabSettings::default())?;
//! let mut plans = Vec::new();
//! for (tap, name) in lab.taps.into_iter().zip(["a0", "b0"]) {
//!     plans.push(PortPlan {
//!         name: name.into(),
//!         host: Box::new(NapiDriver::new(tap)),
//!         settings: PortSettings { moderation: "delay:75".parse()?, ..PortSettings::default() },
//!         link: LinkSettings::default(),
//!     });
//! }
//! let plane = Handle::start(plans, Waiting::Sleep, None)?;
//! lab.hosts[0].spawn(Command::new("ping").args(["-c", "3", "b"]))?.wait()?;
//! println!("{} packets", plane.call(|plane| plane.snapshot())?.ports[1].counters.packets);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`host`], [`tap`] | hosts made of namespaces, and their interfaces |
//! | [`station`] | names and addresses of hosts |
//! | [`guest`], [`machine`] | hosts made of Linux in user mode; either kind |
//! | [`kernel`] | the kernel of guests, found or built |
//! | [`plane`], [`napi`] | the ports, their links and the switch; a driver for hosts without one |
//! | [`dataplane`], [`wait`] | the thread that owns them, in real and in virtual time |
//! | [`calendar`] | the clocks of guests in virtual time |
//! | [`capture`], [`snapshot`] | packets in a file, counters |
//! | [`control`] | the socket of a running lab |

pub mod calendar;
pub mod capture;
#[cfg(any(test, feature = "checks"))]
#[doc(hidden)]
pub mod checks;
pub mod control;
pub mod dataplane;
mod error;
pub mod guest;
pub mod host;
pub mod kernel;
mod lab;
pub mod machine;
pub mod napi;
pub mod plane;
pub mod snapshot;
pub mod station;
pub mod tap;
pub mod wait;

pub use error::LabError;
pub use lab::{Lab, LabSettings, check_mtu};
pub use network::station::{MAX_HOSTS, names};
