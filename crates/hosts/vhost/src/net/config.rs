//! The configuration space of the device (virtio 1.3, section 5.1.4), and the features it offers.

use base::time::Duration;
use hostside::processor::Costs;
use nic::rss::{HashTypes, KEY_LENGTH, TABLE_LENGTH};
use virtio_bindings::virtio_config::VIRTIO_F_VERSION_1;
use virtio_bindings::virtio_net::{
    VIRTIO_NET_F_CTRL_VQ, VIRTIO_NET_F_MAC, VIRTIO_NET_F_MQ, VIRTIO_NET_F_MRG_RXBUF,
    VIRTIO_NET_F_MTU, VIRTIO_NET_F_NOTF_COAL, VIRTIO_NET_F_RSS, VIRTIO_NET_F_SPEED_DUPLEX,
    VIRTIO_NET_F_STATUS, VIRTIO_NET_F_VQ_NOTF_COAL, VIRTIO_NET_S_LINK_UP,
};
use virtio_bindings::virtio_ring::{VIRTIO_RING_F_EVENT_IDX, VIRTIO_RING_F_INDIRECT_DESC};

use crate::transport::message::{
    F_PROTOCOL_FEATURES, PROTOCOL_F_BACKEND_REQ, PROTOCOL_F_CONFIG,
    PROTOCOL_F_INBAND_NOTIFICATIONS, PROTOCOL_F_MQ, PROTOCOL_F_REPLY_ACK, PROTOCOL_F_RESET_DEVICE,
    PROTOCOL_F_STATUS,
};
use crate::transport::session::SessionSettings;

/// A packet may lie in several receive buffers.
pub const MRG_RXBUF: u64 = 1 << VIRTIO_NET_F_MRG_RXBUF;
/// There is a control queue.
pub const CTRL_VQ: u64 = 1 << VIRTIO_NET_F_CTRL_VQ;
/// There can be more than one pair of queues.
pub const MQ: u64 = 1 << VIRTIO_NET_F_MQ;
/// The guest sets the key and the table by which packets are spread.
pub const RSS: u64 = 1 << VIRTIO_NET_F_RSS;

/// How a device is made.
#[derive(Clone, Debug)]
pub struct DeviceSettings {
    /// The guest's address.
    pub mac: [u8; 6],
    /// The MTU that the guest is advised to use.
    pub mtu: u16,
    /// Pairs of queues, 1 to 64; as many as the port has queues.
    pub pairs: u16,
    /// With several pairs, the guest sets how packets are spread over them, as by `ethtool -X`.
    /// Drivers choose their key at random.
    pub rss: bool,
    /// Kicks and interrupts are messages, and interrupts wait for
    /// [`send_irqs`](hostside::VirtualHost::send_irqs): for guests in virtual time.
    pub inband: bool,
    /// The answer to "how many queues" is a number of rings: so User-Mode Linux understands it, in
    /// 7.3 at least (`vu_find_vqs`), and has no NIC with fewer than three. To QEMU and DPDK it is
    /// one of pairs.
    pub counts_rings: bool,
    /// How long an interrupt takes from the NIC to the guest. Only where it is a message: a
    /// descriptor is written at once.
    pub interrupt_latency: Duration,
    /// What its kernel costs the guest's processor. In virtual time only: elsewhere it costs what
    /// it costs.
    pub costs: Costs,
    /// The owner looks at the rings all the time, so that guests need not kick.
    pub polled: bool,
    /// The speed that the guest sees, in Mbit/s; 0: unknown.
    pub speed_mbit: u32,
}

impl Default for DeviceSettings {
    fn default() -> Self {
        Self {
            mac: [2, 0, 0, 0, 0, 1],
            mtu: 1_500,
            pairs: 1,
            rss: false,
            inband: false,
            counts_rings: false,
            interrupt_latency: Duration::ZERO,
            costs: Costs::default(),
            polled: false,
            speed_mbit: 0,
        }
    }
}

impl DeviceSettings {
    /// The virtio features of such a device. There are no offloads: packets are packets.
    pub fn features(&self) -> u64 {
        let always = [
            VIRTIO_F_VERSION_1,
            VIRTIO_RING_F_INDIRECT_DESC,
            VIRTIO_RING_F_EVENT_IDX,
            VIRTIO_NET_F_MAC,
            VIRTIO_NET_F_MTU,
            VIRTIO_NET_F_STATUS,
            VIRTIO_NET_F_MRG_RXBUF,
            VIRTIO_NET_F_CTRL_VQ,
            VIRTIO_NET_F_NOTF_COAL,
            VIRTIO_NET_F_VQ_NOTF_COAL,
            VIRTIO_NET_F_SPEED_DUPLEX,
        ];
        let features = always.iter().fold(F_PROTOCOL_FEATURES, |bits, bit| bits | 1 << bit);
        match (self.pairs > 1, self.rss) {
            (true, true) => features | MQ | RSS,
            (true, false) => features | MQ,
            (false, _) => features,
        }
    }

    /// The protocol features of such a device.
    pub fn protocol_features(&self) -> u64 {
        let features = PROTOCOL_F_MQ
            | PROTOCOL_F_REPLY_ACK
            | PROTOCOL_F_BACKEND_REQ
            | PROTOCOL_F_CONFIG
            | PROTOCOL_F_RESET_DEVICE
            | PROTOCOL_F_STATUS;
        if self.inband { features | PROTOCOL_F_INBAND_NOTIFICATIONS } else { features }
    }

    /// What such a device offers to its frontends.
    pub fn session(&self) -> SessionSettings {
        let rings = 2 * self.pairs + 1;
        SessionSettings {
            features: self.features(),
            protocol: self.protocol_features(),
            rings: rings.into(),
            queue_number: if self.counts_rings { rings } else { self.pairs },
            config: self.config().to_vec(),
        }
    }

    /// `struct virtio_net_config` (`include/uapi/linux/virtio_net.h`).
    pub fn config(&self) -> [u8; 24] {
        let mut config = [0; 24];
        config[..6].copy_from_slice(&self.mac);
        config[6..8].copy_from_slice(&(VIRTIO_NET_S_LINK_UP as u16).to_le_bytes());
        config[8..10].copy_from_slice(&self.pairs.to_le_bytes());
        config[10..12].copy_from_slice(&self.mtu.to_le_bytes());
        let speed = if self.speed_mbit == 0 { u32::MAX } else { self.speed_mbit };
        config[12..16].copy_from_slice(&speed.to_le_bytes());
        config[16] = 1; // full duplex
        if self.features() & RSS != 0 {
            config[17] = KEY_LENGTH as u8;
            config[18..20].copy_from_slice(&(TABLE_LENGTH as u16).to_le_bytes());
            config[20..].copy_from_slice(&HashTypes::ALL.bits().to_le_bytes());
        }
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_is_laid_out_as_in_the_header_file() {
        let settings = DeviceSettings { pairs: 2, speed_mbit: 10_000, ..DeviceSettings::default() };
        let expected = [2, 0, 0, 0, 0, 1, 1, 0, 2, 0, 0xDC, 5, 0x10, 0x27, 0, 0, 1];
        assert_eq!(settings.config(), [&expected[..], &[0; 7]].concat()[..]);
        assert_eq!(settings.features() & (MQ | RSS), MQ);
        let rss = DeviceSettings { rss: true, ..settings };
        assert_eq!(rss.config()[17..], [40, 128, 0, 0x3F, 0, 0, 0]);
        assert_eq!(rss.features() & (MQ | RSS), MQ | RSS);
        let single = DeviceSettings { pairs: 1, speed_mbit: 0, ..rss };
        assert_eq!(single.features() & (MQ | RSS), 0);
        assert_eq!(single.config()[12..16], [0xFF; 4]);
    }
}
