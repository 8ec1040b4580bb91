//! Registers, by their names in Intel's "82574 GbE Controller Family Datasheet", chapter 10, and
//! the "PCI/PCI-X Family of Gigabit Ethernet Controllers Software Developer's Manual", chapter 13:
//! byte offsets behind base address register 0.

pub(super) const CTRL: u32 = 0x0000;
pub(super) const CTRL_DUP: u32 = 0x0004;
pub(super) const STATUS: u32 = 0x0008;
pub(super) const EECD: u32 = 0x0010;
pub(super) const EERD: u32 = 0x0014;
pub(super) const CTRL_EXT: u32 = 0x0018;
pub(super) const MDIC: u32 = 0x0020;
pub(super) const FCAH: u32 = 0x002C;
pub(super) const FCT: u32 = 0x0030;
pub(super) const VET: u32 = 0x0038;
pub(super) const ICR: u32 = 0x00C0;
pub(super) const ITR: u32 = 0x00C4;
pub(super) const ICS: u32 = 0x00C8;
pub(super) const IMS: u32 = 0x00D0;
pub(super) const IMC: u32 = 0x00D8;
pub(super) const EIAC: u32 = 0x00DC;
pub(super) const IAM: u32 = 0x00E0;
pub(super) const IVAR: u32 = 0x00E4;
/// One for each of five vectors.
pub(super) const EITR: u32 = 0x00E8;
pub(super) const RCTL: u32 = 0x0100;
pub(super) const FCTTV: u32 = 0x0170;
pub(super) const TXCW: u32 = 0x0178;
pub(super) const TCTL: u32 = 0x0400;
pub(super) const TIPG: u32 = 0x0410;
pub(super) const PBA: u32 = 0x1000;
pub(super) const EEMNGCTL: u32 = 0x1010;
pub(super) const FCRTH: u32 = 0x2168;
pub(super) const PSRCTL: u32 = 0x2170;
pub(super) const RDBAL: u32 = 0x2800;
pub(super) const RDBAH: u32 = 0x2804;
pub(super) const RDLEN: u32 = 0x2808;
pub(super) const RDH: u32 = 0x2810;
pub(super) const RDT: u32 = 0x2818;
pub(super) const RDTR: u32 = 0x2820;
pub(super) const RADV: u32 = 0x282C;
pub(super) const TDBAL: u32 = 0x3800;
pub(super) const TDBAH: u32 = 0x3804;
pub(super) const TDLEN: u32 = 0x3808;
pub(super) const TDH: u32 = 0x3810;
pub(super) const TDT: u32 = 0x3818;
pub(super) const TIDV: u32 = 0x3820;
pub(super) const TADV: u32 = 0x382C;
pub(super) const RXCSUM: u32 = 0x5000;
pub(super) const RFCTL: u32 = 0x5008;
/// 128 words of hashes.
pub(super) const MTA: u32 = 0x5200;
/// Pairs of low and high words.
pub(super) const RAL: u32 = 0x5400;
/// Pairs of them.
pub(super) const ADDRESSES: u32 = 16;
/// 128 words of VLANs.
pub(super) const VFTA: u32 = 0x5600;

/// Tags of VLANs are removed and inserted.
pub(super) const CTRL_VME: u32 = 1 << 30;
/// The device resets itself.
pub(super) const CTRL_RST: u32 = 1 << 26;
pub(super) const CTRL_PHY_RST: u32 = 1 << 31;
/// No more requests on the bus.
pub(super) const CTRL_GIO_MASTER_DISABLE: u32 = 1 << 2;
pub(super) const STATUS_LU: u32 = 1 << 1;
pub(super) const STATUS_GIO_MASTER_ENABLE: u32 = 1 << 19;

pub(super) const CTRL_EXT_EIAME: u32 = 1 << 24;
pub(super) const CTRL_EXT_IAME: u32 = 1 << 27;

/// Causes of interrupts: bits of `ICR`, `ICS`, `IMS` and `IMC`.
pub(super) mod cause {
    pub(in super::super) const TXDW: u32 = 1 << 0;
    pub(in super::super) const LSC: u32 = 1 << 2;
    pub(in super::super) const RXDMT0: u32 = 1 << 4;
    pub(in super::super) const RXO: u32 = 1 << 6;
    pub(in super::super) const RXT0: u32 = 1 << 7;
    pub(in super::super) const RXQ0: u32 = 1 << 20;
    pub(in super::super) const RXQ1: u32 = 1 << 21;
    pub(in super::super) const TXQ0: u32 = 1 << 22;
    pub(in super::super) const TXQ1: u32 = 1 << 23;
    pub(in super::super) const OTHER: u32 = 1 << 24;
    pub(in super::super) const INT_ASSERTED: u32 = 1 << 31;
}

pub(super) const RCTL_EN: u32 = 1 << 1;
pub(super) const RCTL_UPE: u32 = 1 << 3;
pub(super) const RCTL_MPE: u32 = 1 << 4;
/// Frames of more than 1522 bytes are received.
pub(super) const RCTL_LPE: u32 = 1 << 5;
/// Loopback in the MAC; two bits.
pub(super) const RCTL_LBM: u32 = 3 << 6;
pub(super) const RCTL_LBM_MAC: u32 = 1 << 6;
/// Descriptors have a header and pages of their own (82574).
pub(super) const RCTL_DTYP_SPLIT: u32 = 1 << 10;
pub(super) const RCTL_BAM: u32 = 1 << 15;
/// VLANs are filtered.
pub(super) const RCTL_VFE: u32 = 1 << 18;
pub(super) const RCTL_BSEX: u32 = 1 << 25;
/// The checksum of the frame is not stored.
pub(super) const RCTL_SECRC: u32 = 1 << 26;
/// Checksums of IP, of TCP and UDP are checked (`RXCSUM`).
pub(super) const RXCSUM_IPOFL: u32 = 1 << 8;
pub(super) const RXCSUM_TUOFL: u32 = 1 << 9;
pub(super) const RFCTL_EXSTEN: u32 = 1 << 15;
pub(super) const TCTL_EN: u32 = 1 << 1;
/// The valid bit of an address.
pub(super) const RAH_AV: u32 = 1 << 31;
/// What is delayed is flushed (`RDTR`, `TIDV`).
pub(super) const FLUSH_PARTIAL: u32 = 1 << 31;

/// The bits of a register that keep what is written: what the self-tests of both drivers check.
pub(super) fn writable(register: u32) -> u32 {
    /// The upper words of the addresses: address, select, valid.
    const RAH: u32 = RAH_AV | 0x3_FFFF;
    match register {
        RDTR | RADV | TIDV | TADV | ITR | FCAH | FCT | FCTTV | VET | RDH | RDT | TDH | TDT => {
            0xFFFF
        }
        RDLEN | TDLEN => 0xF_FF80,
        RDBAL | TDBAL => !0xF,
        FCRTH => 0x8000_FFF8,
        TIPG => 0x3FFF_FFFF,
        TXCW => 0xC000_FFFF,
        _ if (RAL..RAL + 8 * ADDRESSES).contains(&register) && register & 4 != 0 => RAH,
        _ => u32::MAX,
    }
}

/// The registers that only keep what is written, and those of above.
#[derive(Debug)]
pub(super) struct Registers(Box<[u32]>);

impl Registers {
    pub(super) fn new() -> Self {
        Self(vec![0; crate::model::REGISTERS as usize / 4].into_boxed_slice())
    }

    pub(super) fn get(&self, offset: u32) -> u32 {
        self.0.get(offset as usize / 4).copied().unwrap_or(0)
    }

    pub(super) fn set(&mut self, offset: u32, value: u32) {
        if let Some(register) = self.0.get_mut(offset as usize / 4) {
            *register = value;
        }
    }

    /// An address in two registers.
    pub(super) fn address(&self, low: u32, high: u32) -> u64 {
        u64::from(self.get(high)) << 32 | u64::from(self.get(low))
    }
}
