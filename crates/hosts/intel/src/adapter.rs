//! Which of Intel's NICs a guest finds.

use super::card::Card;
use super::function::PciFunction;
use super::model::Model;
use super::vf::{MAX_PAIRS, Properties, VirtualFunction};

/// One of Intel's NICs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adapter {
    /// A gigabit card.
    Card(Model),
    /// An adaptive virtual function, as those of 700 and 800 series NICs: Linux's `iavf`.
    Virtual,
}

impl Adapter {
    /// The most queue pairs that it has.
    pub fn max_pairs(self) -> u16 {
        match self {
            Self::Card(_) => 1,
            Self::Virtual => MAX_PAIRS,
        }
    }

    /// The largest packet that its driver sends and receives, in bytes, without the Ethernet
    /// header.
    pub fn max_mtu(self) -> u16 {
        match self {
            Self::Card(model) => model.max_mtu(),
            Self::Virtual => 9_702,
        }
    }

    pub(crate) fn function(
        self,
        mac: [u8; 6],
        pairs: u16,
        speed_mbit: u32,
    ) -> Box<dyn PciFunction> {
        match self {
            Self::Card(model) => Box::new(Card::new(model, mac)),
            Self::Virtual => {
                let properties = Properties { pairs, mac, speed_mbit };
                Box::new(VirtualFunction::new(properties))
            }
        }
    }
}
