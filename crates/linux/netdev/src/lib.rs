//! What the kernel says of a network device, and how to change it.
//!
//! Three sources, each with a file for each subject: one pure parser over bytes or text that never
//! panics, and a thin reader.
//!
//! ```text
//! ethtool/   the driver's settings: coalescing, rings, features    generic netlink, ioctl
//! netdev.rs  NAPI instances, queues and their counters             generic netlink
//! the rest   interrupts, steering, softirqs, idle states           files below /sys and /proc
//! ```
//!
//! ```
//! use netdev::{Root, list_devices, read_device};
//!
//! let root = Root::here();
//! for device in list_devices(&root)? {
//!     let files = read_device(&root, &device)?;
//!     println!("{device}: {:?}", files.deferral);
//! }
//! # Ok::<(), netdev::DeviceError>(())
//! ```
//!
//! The readers of files take a [`Root`], so that trees recorded elsewhere can be read. Netlink
//! sockets belong to the network of the thread that opened them; [`Root::here`] shows the files of
//! that network. Nothing here changes anything except what begins with `set_` or `write_`.
//!
//! The message layer ([`sys::netlink`]) is our own: `netlink-packet-core` does not read the
//! sentences in which the kernel says why it refused.

#![forbid(unsafe_code)]

pub mod deferral;
mod error;
pub mod ethtool;
mod files;
mod genl;
pub mod interrupts;
mod names;
pub mod netdev;
mod root;
pub mod routes;
pub mod setters;
pub mod softnet;
pub mod statistics;
pub mod steering;

pub use device::{aspm, drivers, frequency, idle, preemption, queue_names, virtualisation};
pub use error::DeviceError;
pub use files::{DeviceFiles, list_devices, read_device, read_machine};
pub use names::{device_name, illegible_devices};
pub use root::{Root, names_in_proc_net_dev};
pub use sys::netlink::{message, tlv};
