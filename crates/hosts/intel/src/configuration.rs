//! The configuration space of a PCI function (PCI Local Bus 3.0, chapter 6), and its MSI-X table.

use super::message::Signal;

/// PCI Express has this much of it.
const SIZE: usize = 4_096;

const COMMAND: usize = 0x04;
const BARS: usize = 0x10;
const INTERRUPT_LINE: usize = 0x3C;

/// Where the capabilities are, if there are any.
const CAPABILITIES: usize = 0x34;
const MSIX: usize = 0xA0;
const EXPRESS: usize = 0xE0;

/// Message control of MSI-X: enabled.
const MSIX_ENABLED: u8 = 0x80;
/// Message control of MSI-X: all vectors masked.
const MSIX_MASKED: u8 = 0x40;

/// The base address register behind which the MSI-X table is, and how much there is.
pub(crate) const MSIX_BAR: u8 = 3;
const MSIX_SIZE: u32 = 0x4000;
/// Where the pending bits are behind it.
const PENDING_BITS: u32 = 0x2000;

/// Bytes of one entry: address, data, control.
const ENTRY: usize = 16;
/// Vector control: masked.
const MASKED: u32 = 1;

/// What a function says of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub device: u16,
    pub revision: u8,
    pub subsystem: u16,
    /// Bytes behind base address register 0.
    pub registers: u32,
    /// MSI-X vectors; none: pin A.
    pub vectors: u8,
}

/// PCI vendor ID of Intel.
pub(crate) const INTEL: u16 = 0x8086;

/// Network controller, Ethernet.
const ETHERNET: u8 = 0x02;

/// The configuration space and the MSI-X table of one function.
#[derive(Debug)]
pub(crate) struct Configuration {
    bytes: Box<[u8]>,
    identity: Identity,
    table: Vec<u8>,
    /// A bit for each vector whose message is due and masked.
    pending: u64,
}

impl Configuration {
    pub(crate) fn new(identity: Identity) -> Self {
        let mut bytes = vec![0; SIZE].into_boxed_slice();
        let mut put = |at: usize, what: &[u8]| bytes[at..at + what.len()].copy_from_slice(what);
        put(0x00, &INTEL.to_le_bytes());
        put(0x02, &identity.device.to_le_bytes());
        put(0x08, &[identity.revision, 0, 0, ETHERNET]);
        put(0x2C, &INTEL.to_le_bytes());
        put(0x2E, &identity.subsystem.to_le_bytes());
        put(INTERRUPT_LINE + 1, &[1]);
        if identity.vectors > 0 {
            // Status: there is a list of capabilities.
            put(0x06, &[0x10]);
            put(CAPABILITIES, &[MSIX as u8]);
            put(MSIX, &[0x11, EXPRESS as u8, identity.vectors - 1, 0]);
            put(MSIX + 4, &u32::from(MSIX_BAR).to_le_bytes());
            put(MSIX + 8, &(PENDING_BITS | u32::from(MSIX_BAR)).to_le_bytes());
            // An endpoint of PCI Express, with a link of one lane at 2.5 GT/s.
            put(EXPRESS, &[0x10, 0, 1, 0]);
            put(EXPRESS + 0x0C, &0x11_u32.to_le_bytes());
            put(EXPRESS + 0x12, &0x11_u16.to_le_bytes());
        }
        let mut table = vec![0; ENTRY * usize::from(identity.vectors)];
        table.chunks_exact_mut(ENTRY).for_each(|entry| entry[12] = MASKED as u8);
        Self { bytes, identity, table, pending: 0 }
    }

    /// Reads; what is not there reads as ones, as on a bus.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) {
        for (at, byte) in (offset..).zip(into) {
            let found = usize::try_from(at).ok().and_then(|at| self.bytes.get(at));
            *byte = found.copied().unwrap_or(0xFF);
        }
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) {
        for (at, &byte) in (offset..).zip(data) {
            let Ok(at) = usize::try_from(at) else { return };
            let mask = self.writable(at);
            if let Some(old) = self.bytes.get_mut(at) {
                *old = *old & !mask | byte & mask;
            }
        }
    }

    /// Which bits of a byte the guest sets.
    fn writable(&self, at: usize) -> u8 {
        match at {
            COMMAND | INTERRUPT_LINE => 0xFF,
            _ if at == COMMAND + 1 => 0xFF,
            _ if (BARS..BARS + 24).contains(&at) => {
                let size = match (at - BARS) / 4 {
                    0 => self.identity.registers,
                    3 if self.identity.vectors > 0 => MSIX_SIZE,
                    _ => return 0,
                };
                // The bits below the size stay 0, which is how the guest finds it.
                (!(size - 1)).to_le_bytes()[at % 4]
            }
            _ if self.identity.vectors == 0 => 0,
            _ if at == MSIX + 3 => MSIX_ENABLED | MSIX_MASKED,
            // Device control and link control of PCI Express.
            _ if [0x08, 0x09, 0x10, 0x11].contains(&(at.wrapping_sub(EXPRESS))) => 0xFF,
            _ => 0,
        }
    }

    pub(crate) fn uses_msix(&self) -> bool {
        self.bytes[MSIX + 3] & MSIX_ENABLED != 0
    }

    pub(crate) fn read_table(&self, offset: u64, into: &mut [u8]) {
        let pending = self.pending.to_le_bytes();
        for (at, byte) in (offset..).zip(into) {
            let bits = at.checked_sub(PENDING_BITS.into());
            let bytes = if bits.is_some() { &pending[..] } else { &self.table[..] };
            let found = usize::try_from(bits.unwrap_or(at)).ok().and_then(|at| bytes.get(at));
            *byte = found.copied().unwrap_or(0);
        }
    }

    pub(crate) fn write_table(&mut self, offset: u64, data: &[u8]) {
        for (at, &byte) in (offset..).zip(data) {
            let found = usize::try_from(at).ok().and_then(|at| self.table.get_mut(at));
            found.into_iter().for_each(|old| *old = byte);
        }
    }

    /// The message of a vector, which is due. While the vector is masked there is none, and its
    /// pending bit is set.
    pub(crate) fn message(&mut self, vector: u8) -> Option<Signal> {
        let message = self.unmasked(vector);
        if message.is_none() && vector < self.identity.vectors {
            self.pending |= 1 << vector;
        }
        message
    }

    /// The messages of pending vectors that are not masked any more.
    pub(crate) fn take_unmasked(&mut self) -> Vec<Signal> {
        if !self.uses_msix() {
            self.pending = 0;
        }
        let mut messages = Vec::new();
        for vector in 0..self.identity.vectors {
            let is_pending = self.pending >> vector & 1 != 0;
            if let Some(message) = self.unmasked(vector).filter(|_| is_pending) {
                self.pending &= !(1 << vector);
                messages.push(message);
            }
        }
        messages
    }

    /// The message of a vector; `None` while it is masked.
    fn unmasked(&self, vector: u8) -> Option<Signal> {
        let entry = self.table.chunks_exact(ENTRY).nth(vector.into())?;
        let word = |at: usize| -> u32 {
            u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]])
        };
        let masked = word(12) & MASKED != 0 || self.bytes[MSIX + 3] & MSIX_MASKED != 0;
        let address = u64::from(word(4)) << 32 | u64::from(word(0));
        (!masked).then_some(Signal::Msix { address, data: word(8) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: Identity =
        Identity { device: 0x10D3, revision: 0, subsystem: 0, registers: 0x2_0000, vectors: 5 };

    fn read(configuration: &Configuration, offset: u64) -> u32 {
        let mut bytes = [0; 4];
        configuration.read(offset, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    #[test]
    fn the_guest_finds_sizes_and_capabilities() {
        let mut configuration = Configuration::new(IDENTITY);
        assert_eq!(read(&configuration, 0), 0x10D3_8086);
        configuration.write(0x10, &[0xFF; 24]);
        assert_eq!(read(&configuration, 0x10), 0xFFFE_0000);
        assert_eq!(read(&configuration, 0x14), 0);
        assert_eq!(read(&configuration, 0x1C), 0xFFFF_C000);
        assert_eq!(read(&configuration, 0x34), 0xA0);
        assert_eq!(read(&configuration, 0xA0), 0x0004_E011);
        assert_eq!(read(&configuration, 0x1_0000), 0xFFFF_FFFF);
        configuration.write(0, &[0; 4]);
        assert_eq!(read(&configuration, 0), 0x10D3_8086, "it is read-only");
    }

    #[test]
    fn a_vector_is_silent_while_it_is_masked() {
        let mut configuration = Configuration::new(IDENTITY);
        assert!(!configuration.uses_msix());
        configuration.write(0xA2, &[0, MSIX_ENABLED]);
        assert!(configuration.uses_msix());
        assert_eq!(configuration.message(1), None);
        configuration.write_table(16, &0xA_0000_u64.to_le_bytes());
        configuration.write_table(24, &[9, 0, 0, 0, 0, 0, 0, 0]);
        let message = Signal::Msix { address: 0xA_0000, data: 9 };
        assert_eq!(configuration.message(1), Some(message));
        configuration.write(0xA2, &[0, MSIX_ENABLED | MSIX_MASKED]);
        assert_eq!(configuration.message(1), None);
        assert_eq!(configuration.message(200), None);
        let pending = |configuration: &Configuration| {
            let mut bits = [0; 8];
            configuration.read_table(PENDING_BITS.into(), &mut bits);
            bits
        };
        assert_eq!(pending(&configuration), [2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(configuration.take_unmasked(), []);
        configuration.write(0xA2, &[0, MSIX_ENABLED]);
        assert_eq!(configuration.take_unmasked(), [message]);
        assert_eq!((pending(&configuration), configuration.take_unmasked()), ([0; 8], vec![]));
        configuration.write_table(28, &[1]);
        assert_eq!(configuration.message(1), None);
        configuration.write(0xA2, &[0, 0]);
        assert_eq!(configuration.take_unmasked(), []);
        assert_eq!(pending(&configuration), [0; 8], "MSI-X is off");
        configuration.write(0xA2, &[0, MSIX_ENABLED]);
        configuration.write_table(0xFFFF_FFFF, &[1, 2]);
    }
}
