//! Earmark on Linux: what its other crates ask of the system, each thing in a module of its own.
//!
//! | module | what |
//! |---|---|
//! | [`clock`] | time as the kernel has it |
//! | [`cpu`], [`cpus`], [`page`] | processors, sets of them as the kernel writes them, pages |
//! | [`kernel`] | whether the kernel is new enough |
//! | [`memory`] | memory that processes share, by descriptor |
//! | [`ethtool`] | what `ethtool` asks of drivers by ioctl |
//! | [`netlink`] | interfaces and their addresses |
//! | [`packet`] | packet sockets |
//! | [`peer`] | whose the other end of a Unix socket is, and servers that are asked within limits |
//! | [`stamps`] | timestamps of datagrams, by the kernel and by NICs |
//! | [`replies`] | answers that leave from the address that was asked |
//! | [`privilege`] | rights, with and without root |
//! | [`signals`], [`ctrl_c`] | which signals a command acts on, and whether one has come |
//! | [`sigint`] | SIGINT, and who gets it |
//! | [`refusals`] | which clients a service takes, and which it has refused |
//! | [`icmp`], [`wait`] | pings, and waiting for a descriptor |
//! | [`files`] | files that users name: bounded reads, writes through no link of another user |
//! | [`streams`] | all bytes of a stream by one deadline |
//! | [`seed`] | numbers that no other process has |
//!
//! ```
//! let before = sys::clock::now();
//! assert!(sys::clock::now() >= before);
//! ```

pub mod busy_poll;
pub mod clock;
pub mod cpu;
pub mod cpus;
pub mod ctrl_c;
pub mod ethtool;
pub mod files;
pub mod icmp;
pub mod kernel;
pub mod memory;
pub mod netlink;
pub mod option;
pub mod packet;
pub mod page;
pub mod peer;
pub mod privilege;
pub mod refusals;
pub mod replies;
pub mod seed;
pub mod sigint;
pub mod signals;
pub mod stamps;
pub mod streams;
pub mod wait;
