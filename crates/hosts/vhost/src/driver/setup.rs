//! From a connected socket to running rings: what is agreed with the device, and in which order.
//!
//! The order is that of Linux in user mode (`arch/um/drivers/virtio_uml.c`): owner, features,
//! protocol features, configuration, the features that are wanted, memory, and then ring by ring
//! its size, base, addresses, descriptors, and that it is enabled.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use virtio_bindings::virtio_config::VIRTIO_F_VERSION_1;
use virtio_bindings::virtio_net::{
    VIRTIO_NET_F_MAC, VIRTIO_NET_F_MRG_RXBUF, VIRTIO_NET_F_MTU, VIRTIO_NET_F_STATUS,
};
use virtio_bindings::virtio_ring::VIRTIO_RING_F_EVENT_IDX;

use super::DriverSettings;
use super::error::DriverError;
use super::frontend::Frontend;
use super::layout::{self, BUFFER_BASE, QueueLayout, RING_BASE};
use super::receive::Receiver;
use super::ring::{MAX_RING, Ring};
use super::transmit::Transmitter;
use crate::transport::message::{
    F_PROTOCOL_FEATURES, FrontendRequest, PROTOCOL_F_CONFIG, PROTOCOL_F_REPLY_ACK, Region,
    VringAddress, VringFd, VringState,
};
use sys::memory::{Layout, SharedMemory};

/// The features that are wanted if there are any.
const WANTED: [u32; 6] = [
    VIRTIO_F_VERSION_1,
    VIRTIO_RING_F_EVENT_IDX,
    VIRTIO_NET_F_MAC,
    VIRTIO_NET_F_MTU,
    VIRTIO_NET_F_MRG_RXBUF,
    VIRTIO_NET_F_STATUS,
];

/// Bytes of `virtio_net_config` (`include/uapi/linux/virtio_net.h`) up to and with `mtu`, and where
/// its fields are.
const CONFIGURATION: usize = 12;

/// The features whose values are in the configuration.
const CONFIGURED: [u32; 3] = [VIRTIO_NET_F_MAC, VIRTIO_NET_F_MTU, VIRTIO_NET_F_STATUS];

/// The configuration of a device that has none: an address without an owner.
const UNCONFIGURED: [u8; CONFIGURATION] = [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const MTU_AT: usize = 10;

/// The smallest MTU of IPv4, and of a virtio device (virtio 1.2, section 5.1.4.1).
const MIN_MTU: u16 = 68;

/// The MTU if neither side has one.
const USUAL_MTU: u16 = 1500;

#[derive(Clone, Copy, Debug)]
pub(super) struct Agreement {
    features: u64,
    pub mac: [u8; 6],
    pub mtu: u16,
}

impl Agreement {
    pub(super) fn has(&self, bit: u32) -> bool {
        self.features >> bit & 1 == 1
    }

    pub(super) fn largest_frame(&self) -> usize {
        usize::from(self.mtu) + layout::FRAMING
    }

    pub(super) fn reach(
        frontend: &mut Frontend,
        settings: &DriverSettings,
    ) -> Result<Self, DriverError> {
        check(settings)?;
        frontend.request("become the owner of the port", &FrontendRequest::SetOwner, &[])?;
        let offered = frontend.ask("read the NIC's features", &FrontendRequest::GetFeatures)?;
        if offered & F_PROTOCOL_FEATURES == 0 {
            return Err(DriverError::Lacks("vhost-user protocol features"));
        }
        let protocol = frontend
            .ask("read the NIC's protocol features", &FrontendRequest::GetProtocolFeatures)?;
        let protocol = protocol & (PROTOCOL_F_REPLY_ACK | PROTOCOL_F_CONFIG);
        let request = FrontendRequest::SetProtocolFeatures(protocol);
        frontend.request("choose protocol features", &request, &[])?;
        if protocol & PROTOCOL_F_REPLY_ACK != 0 {
            frontend.expect_acknowledgements();
        }
        let bits = |bits: &[u32]| bits.iter().fold(0_u64, |all, bit| all | 1 << bit);
        let mut features = offered & bits(&WANTED);
        let is_configured = protocol & PROTOCOL_F_CONFIG != 0;
        if !is_configured {
            // What its fields would say is for the one who starts both, as with DPDK's ports.
            features &= !bits(&CONFIGURED);
        }
        let read = is_configured.then_some(|length| frontend.configuration(length));
        let agreement = Self::from_configuration(features, settings, read)?;
        let request = FrontendRequest::SetFeatures(features | F_PROTOCOL_FEATURES);
        frontend.request("choose features", &request, &[])?;
        Ok(agreement)
    }

    fn from_configuration(
        features: u64,
        settings: &DriverSettings,
        read: Option<impl FnOnce(usize) -> Result<Vec<u8>, DriverError>>,
    ) -> Result<Self, DriverError> {
        let mut agreement = Self { features, mac: [0; 6], mtu: USUAL_MTU };
        if !agreement.has(VIRTIO_F_VERSION_1) {
            return Err(DriverError::Lacks("virtio version 1"));
        }
        if read.is_some() && !agreement.has(VIRTIO_NET_F_MAC) {
            return Err(DriverError::Lacks("a MAC address"));
        }
        let bytes = read.map_or(Ok(UNCONFIGURED.into()), |read| read(CONFIGURATION))?;
        agreement.mac.copy_from_slice(&bytes[..6]);
        let limit = agreement
            .has(VIRTIO_NET_F_MTU)
            .then(|| u16::from_le_bytes([bytes[MTU_AT], bytes[MTU_AT + 1]]).max(MIN_MTU));
        agreement.mtu = match (settings.mtu, limit) {
            (Some(asked), Some(limit)) => asked.min(limit),
            (asked, limit) => asked.or(limit).unwrap_or(USUAL_MTU),
        };
        Ok(agreement)
    }
}

fn check(settings: &DriverSettings) -> Result<(), DriverError> {
    let DriverSettings { ring_size, mtu } = *settings;
    let wrong = |what: String, range: String| Err(DriverError::Setting(what, range));
    if !ring_size.is_power_of_two() || !(2..=MAX_RING).contains(&ring_size) {
        return wrong(format!("rings of {ring_size}"), format!("a power of two, 2 to {MAX_RING}"));
    }
    match mtu {
        Some(mtu) if mtu < MIN_MTU => wrong(format!("MTU {mtu}"), format!("{MIN_MTU} to 65535")),
        _ => Ok(()),
    }
}

/// Makes memory and both rings, and passes them to the device; with what it interrupts by.
pub(super) fn start(
    frontend: &mut Frontend,
    agreement: &Agreement,
    ring_size: u16,
) -> Result<(Receiver, Transmitter, OwnedFd), DriverError> {
    let mut layout = Layout::default();
    let largest = agreement.largest_frame();
    let merges = agreement.has(VIRTIO_NET_F_MRG_RXBUF);
    let room = layout::receive_room(largest, merges);
    let receive = QueueLayout::take(&mut layout, ring_size, room);
    let transmit = QueueLayout::take(&mut layout, ring_size, layout::HEADER + largest);
    let memory = SharedMemory::new(layout.bytes())
        .map_err(|cause| DriverError::System("share memory with the NIC", cause))?;
    let region = Region {
        guest_address: BUFFER_BASE,
        size: memory.bytes() as u64,
        user_address: RING_BASE,
        file_offset: 0,
    };
    let table = FrontendRequest::SetMemTable(vec![region]);
    frontend.request("share memory with the NIC", &table, &[memory.file()])?;
    let interrupt = event()?;
    let mut ring = |index: u32, place: &QueueLayout| -> Result<Ring, DriverError> {
        let event_index = agreement.has(VIRTIO_RING_F_EVENT_IDX);
        let ring = Ring::new(&memory, place.ring, event()?, event_index);
        pass(frontend, index, place, &ring, &interrupt)?;
        Ok(ring)
    };
    let mut receiver = Receiver::new(&memory, &receive, ring(0, &receive)?, merges, largest);
    let transmitter = Transmitter::new(&memory, &transmit, ring(1, &transmit)?);
    // The buffers that frames come into.
    receiver.ring().flush();
    Ok((receiver, transmitter, interrupt))
}

/// Passes ring `index` to the device, which interrupts through `interrupt`.
fn pass(
    frontend: &mut Frontend,
    index: u32,
    place: &QueueLayout,
    ring: &Ring,
    interrupt: &OwnedFd,
) -> Result<(), DriverError> {
    let at = |offset: usize| RING_BASE + offset as u64;
    let state = |number| VringState { index, number };
    let fd = VringFd { index: index as u8, none: false };
    let address = VringAddress {
        index,
        flags: 0,
        descriptors: at(place.ring.descriptors),
        used: at(place.ring.used),
        available: at(place.ring.available),
        log: 0,
    };
    for (request, fds) in [
        (FrontendRequest::SetVringNum(state(place.ring.size.into())), &[][..]),
        (FrontendRequest::SetVringBase(state(0)), &[]),
        (FrontendRequest::SetVringAddr(address), &[]),
        (FrontendRequest::SetVringCall(fd), &[interrupt.as_fd()]),
        (FrontendRequest::SetVringKick(fd), &[ring.kick_fd().as_fd()]),
        (FrontendRequest::SetVringEnable(state(1)), &[]),
    ] {
        frontend.request("start a ring", &request, fds)?;
    }
    Ok(())
}

/// What one side makes readable for the other.
fn event() -> Result<OwnedFd, DriverError> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    eventfd(0, flags).map_err(DriverError::system("make an event descriptor"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 1 << VIRTIO_F_VERSION_1 | 1 << VIRTIO_NET_F_MAC;

    fn reach(features: u64, settings: DriverSettings) -> Result<Agreement, DriverError> {
        // MAC, status, 4 pairs, MTU 9000.
        let configuration = vec![2, 0, 0, 0, 0, 10, 1, 0, 4, 0, 0x28, 0x23];
        let read = |length| {
            assert_eq!(length, configuration.len());
            Ok(configuration)
        };
        Agreement::from_configuration(features, &settings, Some(read))
    }

    #[test]
    fn device_without_a_configuration_has_an_address_without_an_owner() {
        let features = 1 << VIRTIO_F_VERSION_1;
        let read = None::<fn(usize) -> Result<Vec<u8>, DriverError>>;
        let agreement = Agreement::from_configuration(features, &DriverSettings::default(), read);
        let Agreement { mac, mtu, .. } = agreement.unwrap();
        assert_eq!((mac, mtu), ([2, 0, 0, 0, 0, 0], USUAL_MTU));
    }

    #[test]
    fn smaller_mtu_of_both_is_taken() {
        let mtu = |features, mtu| {
            reach(features, DriverSettings { mtu, ..DriverSettings::default() }).unwrap().mtu
        };
        let has_mtu = BASE | 1 << VIRTIO_NET_F_MTU;
        assert_eq!(
            [mtu(has_mtu, None), mtu(has_mtu, Some(1500)), mtu(has_mtu, Some(65_535))],
            [9000, 1500, 9000]
        );
        assert_eq!([mtu(BASE, None), mtu(BASE, Some(4000))], [1500, 4000]);
    }

    #[test]
    fn device_that_lacks_something_is_refused() {
        let settings = DriverSettings::default();
        assert!(matches!(reach(0, settings), Err(DriverError::Lacks("virtio version 1"))));
        let no_mac = 1 << VIRTIO_F_VERSION_1;
        assert!(matches!(reach(no_mac, settings), Err(DriverError::Lacks("a MAC address"))));
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let good = DriverSettings::default();
        assert!(check(&good).is_ok());
        for bad in [
            DriverSettings { ring_size: 1, ..good },
            DriverSettings { ring_size: 100, ..good },
            DriverSettings { ring_size: 0x8000, ..good },
            DriverSettings { mtu: Some(67), ..good },
        ] {
            assert!(check(&bad).is_err(), "{bad:?}");
        }
    }
}
