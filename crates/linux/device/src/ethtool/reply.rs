//! What the family answers about a device: each message as a struct that takes its attributes, by
//! their numbers in `ethtool_netlink_generated.h`. Those that are not known here are passed over.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::tlv::{Malformed, Reply, Tlv};

/// Numbers of queues with an interrupt of their own, as `ethtool -l` has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Channels {
    /// Queues that only receive.
    pub rx: Option<u32>,
    /// The most of them.
    pub rx_max: Option<u32>,
    /// Queues that only send.
    pub tx: Option<u32>,
    /// The most of them.
    pub tx_max: Option<u32>,
    /// For something else, such as the link's state.
    pub other: Option<u32>,
    /// Queues that do both.
    pub combined: Option<u32>,
    /// The most of them.
    pub combined_max: Option<u32>,
}

/// Number of combined channels (`ETHTOOL_A_CHANNELS_COMBINED_COUNT`).
pub const COMBINED: u16 = 9;

impl Channels {
    /// How many receive.
    pub fn receiving(&self) -> u32 {
        self.rx.unwrap_or(0).saturating_add(self.combined.unwrap_or(0))
    }
}

impl Reply for Channels {
    fn take(&mut self, attribute: &Tlv<'_>) -> Result<(), Malformed> {
        let field = match attribute.kind {
            2 => &mut self.rx_max,
            3 => &mut self.tx_max,
            5 => &mut self.combined_max,
            6 => &mut self.rx,
            7 => &mut self.tx,
            8 => &mut self.other,
            COMBINED => &mut self.combined,
            _ => return Ok(()),
        };
        *field = Some(attribute.word()?);
        Ok(())
    }
}

/// The sizes of rings, as `ethtool -g` has them. Descriptors, unless they say otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rings {
    /// Of each receive ring.
    pub rx: Option<u32>,
    /// The most that a receive ring may have.
    pub rx_max: Option<u32>,
    /// Of each ring for small packets.
    pub rx_mini: Option<u32>,
    /// Of each ring for large packets.
    pub rx_jumbo: Option<u32>,
    /// Of each transmit ring.
    pub tx: Option<u32>,
    /// The most that a transmit ring may have.
    pub tx_max: Option<u32>,
    /// Bytes of each receive buffer.
    pub rx_buf_len: Option<u32>,
    /// Bytes of each completion entry.
    pub cqe_size: Option<u32>,
}

impl Reply for Rings {
    fn take(&mut self, attribute: &Tlv<'_>) -> Result<(), Malformed> {
        let field = match attribute.kind {
            2 => &mut self.rx_max,
            5 => &mut self.tx_max,
            6 => &mut self.rx,
            7 => &mut self.rx_mini,
            8 => &mut self.rx_jumbo,
            9 => &mut self.tx,
            10 => &mut self.rx_buf_len,
            12 => &mut self.cqe_size,
            _ => return Ok(()),
        };
        *field = Some(attribute.word()?);
        Ok(())
    }
}

/// Energy-Efficient Ethernet, a link that sleeps while it is idle, as `ethtool --show-eee` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Eee {
    /// Whether this link does it: both ends have offered it for the link's speed.
    pub active: bool,
    /// Whether this end offers it.
    pub enabled: bool,
    /// Whether this end lets its transmitter sleep. That of the far end is not known here.
    pub tx_lpi_enabled: bool,
    /// After how many idle microseconds it does.
    pub tx_lpi_timer_us: u32,
}

impl Eee {
    /// For how long a transmitter that has slept waits before it sends, in microseconds, at a
    /// speed in megabits per second; `None` where it depends on more than the speed.
    ///
    /// `Tw_sys_tx` of IEEE 802.3, table 78-4, for 100BASE-TX and 1000BASE-T. Linux has the same
    /// numbers in `mvneta_mac_enable_tx_lpi`. The two ends may agree on more by LLDP.
    pub fn wake_us(speed_mbps: u32) -> Option<f64> {
        match speed_mbps {
            100 => Some(30.0),
            1_000 => Some(16.5),
            _ => None,
        }
    }
}

impl Reply for Eee {
    fn take(&mut self, attribute: &Tlv<'_>) -> Result<(), Malformed> {
        match attribute.kind {
            4 => self.active = attribute.word()? != 0,
            5 => self.enabled = attribute.word()? != 0,
            6 => self.tx_lpi_enabled = attribute.word()? != 0,
            7 => self.tx_lpi_timer_us = attribute.word()?,
            _ => {}
        }
        Ok(())
    }
}

/// The link, as `ethtool DEV` has it. The driver need not know any of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Megabits per second.
    pub speed_mbps: Option<u32>,
    /// Whether both sides may send at once.
    pub is_full_duplex: Option<bool>,
    /// Whether there is a link. It comes in a message of its own, [`LinkState`].
    pub is_up: Option<bool>,
}

impl Reply for Link {
    fn take(&mut self, attribute: &Tlv<'_>) -> Result<(), Malformed> {
        match attribute.kind {
            // `SPEED_UNKNOWN` is -1.
            5 => self.speed_mbps = Some(attribute.word()?).filter(|speed| *speed != u32::MAX),
            6 => {
                let duplex = attribute.word()?;
                self.is_full_duplex = (duplex < 2).then_some(duplex == 1);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Whether there is a link, if the driver says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkState(pub Option<bool>);

impl Reply for LinkState {
    fn take(&mut self, attribute: &Tlv<'_>) -> Result<(), Malformed> {
        if attribute.kind == 2 {
            self.0 = Some(attribute.word()? != 0);
        }
        Ok(())
    }
}

/// What device and stack do for many packets at once, and else: features by the names of `ethtool
/// -k`, such as `rx-gro`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Features {
    /// Those that are on.
    pub active: BTreeSet<String>,
    /// Those that the device could have on.
    pub changeable: BTreeSet<String>,
}

impl Features {
    /// Whether a feature is on.
    pub fn is_on(&self, name: &str) -> bool {
        self.active.contains(name)
    }

    /// Whether a feature is on, or could be.
    pub fn is_offered(&self, name: &str) -> bool {
        self.is_on(name) || self.changeable.contains(name)
    }
}

impl Reply for Features {
    fn take(&mut self, attribute: &Tlv<'_>) -> Result<(), Malformed> {
        match attribute.kind {
            2 => self.changeable = names_of_set_bits(attribute)?,
            4 => self.active = names_of_set_bits(attribute)?,
            _ => {}
        }
        Ok(())
    }
}

/// Which timestamps device and stack make, by the names of `ethtool -T`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Timestamps {
    /// Such as `hardware-receive` and `software-transmit`.
    pub capabilities: BTreeSet<String>,
    /// When the device stamps what is sent, such as `on`.
    pub tx_types: BTreeSet<String>,
    /// Which packets it stamps as they come, such as `all`.
    pub rx_filters: BTreeSet<String>,
    /// The number of the device's clock, as in `/dev/ptp0`; `None` if it has none.
    pub phc_index: Option<u32>,
}

impl Timestamps {
    /// Whether the device itself stamps packets as they come.
    pub fn has_hardware_receive(&self) -> bool {
        self.capabilities.contains("hardware-receive")
    }

    /// Whether the device itself stamps packets as they go.
    pub fn has_hardware_transmit(&self) -> bool {
        self.capabilities.contains("hardware-transmit")
    }
}

impl Reply for Timestamps {
    fn take(&mut self, attribute: &Tlv<'_>) -> Result<(), Malformed> {
        match attribute.kind {
            2 => self.capabilities = names_of_set_bits(attribute)?,
            3 => self.tx_types = names_of_set_bits(attribute)?,
            4 => self.rx_filters = names_of_set_bits(attribute)?,
            5 => self.phc_index = Some(attribute.word()?),
            _ => {}
        }
        Ok(())
    }
}

/// A set of named bits, in its long form: `ETHTOOL_A_BITSET_...`.
#[derive(Default)]
struct Bits {
    /// All bits in the list are set (`..._NOMASK`).
    is_list: bool,
    bits: Vec<Bit>,
}

/// One of its bits: `ETHTOOL_A_BITSET_BIT_...`.
#[derive(Default)]
struct Bit {
    name: String,
    is_set: bool,
}

impl Reply for Bits {
    fn take(&mut self, attribute: &Tlv<'_>) -> Result<(), Malformed> {
        match attribute.kind {
            1 => self.is_list = true,
            3 => {
                for bit in attribute.nested().of_kind(1)? {
                    self.bits.push(bit.nested().read()?);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl Reply for Bit {
    fn take(&mut self, attribute: &Tlv<'_>) -> Result<(), Malformed> {
        match attribute.kind {
            2 => self.name = attribute.text(),
            3 => self.is_set = true,
            _ => {}
        }
        Ok(())
    }
}

fn names_of_set_bits(attribute: &Tlv<'_>) -> Result<BTreeSet<String>, Malformed> {
    let Bits { is_list, bits } = attribute.nested().read()?;
    let set = bits.into_iter().filter(|bit| (is_list || bit.is_set) && !bit.name.is_empty());
    Ok(set.map(|bit| bit.name).collect())
}

/// The strings of all sets in an answer, in order: the names of a driver's own counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strings(pub Vec<String>);

/// Of the request and the answer: the sets (`ETHTOOL_A_STRSET_STRINGSETS`), and one of them.
pub const SETS: u16 = 2;
/// One of the sets (`ETHTOOL_A_STRINGSETS_STRINGSET`).
pub const SET: u16 = 1;

impl Reply for Strings {
    fn take(&mut self, attribute: &Tlv<'_>) -> Result<(), Malformed> {
        if attribute.kind != SETS {
            return Ok(());
        }
        let mut found = attribute.nested().of_kind(SET)?;
        // `ETHTOOL_A_STRINGSET_STRINGS`, `ETHTOOL_A_STRINGS_STRING`, `ETHTOOL_A_STRING_VALUE`
        for kind in [3, 1, 2] {
            let within = found.iter().map(|outer| outer.nested().of_kind(kind));
            found = within.collect::<Result<Vec<_>, _>>()?.concat();
        }
        self.0.extend(found.iter().map(|text| text.text().trim().to_owned()));
        Ok(())
    }
}
