//! What the commands do, one file each.

pub mod adaptive;
pub mod apply;
pub mod bench;
pub mod calibrate;
pub mod explain;
pub mod exporter;
pub mod guest;
pub mod kernel;
pub mod lab;
pub mod lane;
pub(crate) mod merged;
pub mod mpirun;
pub mod mx;
pub mod nic;
pub mod persist;
pub mod probe;
pub mod reproduce;
pub mod schema;
pub mod serve;
pub mod show;
pub mod tune;
pub mod watch;
