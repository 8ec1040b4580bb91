//! The kernel's `netdev` family: NAPI instances, queues, and what each queue has counted.
//!
//! Numbers of commands and attributes: Linux, `include/uapi/linux/netdev.h`; their meaning:
//! `Documentation/netlink/specs/netdev.yaml` and `Documentation/networking/napi.rst`. The family
//! came with Linux 6.3, NAPI and queues with 6.8, counters with 6.10, deferral per NAPI with 6.13,
//! `threaded` with 6.17.

pub use device::napi::{
    Direction, Napi, NapiChange, Queue, QueueCounters, Threaded, encode_napi, parse_napi,
    parse_queue, parse_queue_counters,
};

use super::error::DeviceError;
use super::genl::{About, Failure, Family, failed};
use super::tlv::{Malformed, Writer};
use sys::ethtool::Control;

/// Numbers of the requests (`NETDEV_CMD_...`).
const QUEUE_GET: u8 = 10;
const NAPI_GET: u8 = 11;
const QSTATS_GET: u8 = 12;
const NAPI_SET: u8 = 14;

/// In a request, the device (`NETDEV_A_NAPI_IFINDEX`) or the instance (`NETDEV_A_NAPI_ID`).
mod napi {
    pub(super) const IFINDEX: u16 = 1;
    pub(super) const ID: u16 = 2;
}

/// In a request for counters (`NETDEV_A_QSTATS_...`).
mod qstats {
    pub(super) const IFINDEX: u16 = 1;
    pub(super) const SCOPE: u16 = 4;
    /// Each queue for itself (`NETDEV_QSTATS_SCOPE_QUEUE`).
    pub(super) const EACH_QUEUE: u64 = 1;
}

/// Speaks to the kernel about the devices in the network of the thread that opened it.
///
/// Reading takes no rights; changing takes `CAP_NET_ADMIN`.
#[derive(Debug)]
pub struct Netdev {
    family: Family,
    control: Control,
}

impl Netdev {
    /// Opens a socket in the network of this thread.
    ///
    /// # Errors
    /// If the kernel is older than 6.3 ([`DeviceError::is_unsupported`]), or the process may not
    /// have another socket.
    pub fn open() -> Result<Self, DeviceError> {
        let control = Control::open();
        let control = control.map_err(|cause| DeviceError::Family("netdev", cause))?;
        Ok(Self { family: Family::open("netdev")?, control })
    }

    /// The NAPI instances of a device that is up; none for drivers without.
    ///
    /// # Errors
    /// If there is no such device, or the kernel is older than 6.8.
    pub fn napis(&self, device: &str) -> Result<Vec<Napi>, DeviceError> {
        let action = "read the NAPI instances of";
        let request = self.about(action, device, napi::IFINDEX)?;
        self.dump(NAPI_GET, &request, parse_napi).map_err(|failure| failed(failure, action, device))
    }

    /// The queues of a device that is up.
    ///
    /// # Errors
    /// If there is no such device, or the kernel is older than 6.8.
    pub fn queues(&self, device: &str) -> Result<Vec<Queue>, DeviceError> {
        let action = "read the queues of";
        // `NETDEV_A_QUEUE_IFINDEX`
        let request = self.about(action, device, 2)?;
        self.dump(QUEUE_GET, &request, parse_queue)
            .map_err(|failure| failed(failure, action, device))
    }

    /// What each queue of a device has counted; none if its driver does not tell queues apart.
    ///
    /// # Errors
    /// If there is no such device, the kernel is older than 6.10, or the driver lacks it.
    pub fn queue_counters(&self, device: &str) -> Result<Vec<QueueCounters>, DeviceError> {
        let action = "read the counters of the queues of";
        let mut request = self.about(action, device, qstats::IFINDEX)?;
        request.put_u64(qstats::SCOPE, qstats::EACH_QUEUE);
        self.dump(QSTATS_GET, &request, parse_queue_counters)
            .map_err(|failure| failed(failure, action, device))
    }

    /// Changes a NAPI instance by its number.
    ///
    /// # Errors
    /// If there is none, the rights are missing, or the kernel is older than 6.13.
    pub fn set_napi(&self, id: u32, change: &NapiChange) -> Result<(), DeviceError> {
        let mut request = Writer::default();
        request.put_u32(napi::ID, id);
        encode_napi(change, &mut request);
        let outcome = self.family.ask(NAPI_SET, About::One, &request);
        outcome
            .map(drop)
            .map_err(|failure| failed(failure, "change", &format!("NAPI instance {id}")))
    }

    fn about(&self, action: &'static str, device: &str, kind: u16) -> Result<Writer, DeviceError> {
        let index = self.control.index(device);
        let index = index.map_err(|cause| failed(cause.into(), action, device))?;
        let mut request = Writer::default();
        request.put_u32(kind, index);
        Ok(request)
    }

    fn dump<T>(
        &self,
        command: u8,
        request: &Writer,
        parse: impl Fn(&[u8]) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Failure> {
        let answers = self.family.ask(command, About::All, request)?;
        Ok(answers.iter().map(|answer| parse(answer)).collect::<Result<_, _>>()?)
    }
}
