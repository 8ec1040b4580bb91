//! The messages of PCI over virtio (`include/uapi/linux/virtio_pcidev.h`).
//!
//! The guest's bus sends a command on ring 0: 16 bytes, then data to write, or room for what is
//! read. The device sends interrupts on ring 1, in buffers that the guest has posted there.

/// Bytes before the data of a message (`struct virtio_pcidev_msg`).
pub(crate) const HEADER: usize = 16;

/// The most data of one command: what `memcpy_fromio` might ask for at once, and bounded work.
pub(crate) const MAX_DATA: usize = 4_096;

const CFG_READ: u8 = 1;
const CFG_WRITE: u8 = 2;
const MMIO_READ: u8 = 3;
const MMIO_WRITE: u8 = 4;
const MMIO_MEMSET: u8 = 5;
const INT: u8 = 6;
const MSI: u8 = 7;

/// What the guest's bus asks for; sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BusCommand<'a> {
    ReadConfiguration {
        offset: u64,
        size: usize,
    },
    WriteConfiguration {
        offset: u64,
        data: &'a [u8],
    },
    /// Of registers or memory behind a base address register, as those below.
    Read {
        bar: u8,
        offset: u64,
        size: usize,
    },
    Write {
        bar: u8,
        offset: u64,
        data: &'a [u8],
    },
    Fill {
        bar: u8,
        offset: u64,
        size: usize,
        value: u8,
    },
}

impl<'a> BusCommand<'a> {
    /// The command in what a guest sent; `None` if it is none, or about too much.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (header, data) = bytes.split_first_chunk::<HEADER>()?;
        let bar = header[1];
        let size = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
        let offset = u64::from_le_bytes(*header.last_chunk()?);
        // Base address registers are 32 bits long.
        if size > MAX_DATA || offset > u32::MAX.into() {
            return None;
        }
        Some(match header[0] {
            CFG_READ => Self::ReadConfiguration { offset, size },
            // Always with eight bytes behind it, of which `size` count.
            CFG_WRITE => Self::WriteConfiguration { offset, data: data.get(..size)? },
            MMIO_READ => Self::Read { bar, offset, size },
            MMIO_WRITE => Self::Write { bar, offset, data: data.get(..size)? },
            MMIO_MEMSET => Self::Fill { bar, offset, size, value: *data.first()? },
            _ => return None,
        })
    }
}

/// An interrupt as the guest's bus gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Pin A of the device.
    Intx,
    /// A message, as the guest wrote it into the MSI-X table.
    Msix { address: u64, data: u32 },
}

impl Signal {
    /// The message for ring 1.
    pub(crate) fn encode(self) -> Vec<u8> {
        let (op, address, data) = match self {
            Self::Intx => (INT, 1, Vec::new()),
            Self::Msix { address, data } => (MSI, address, data.to_le_bytes().to_vec()),
        };
        let mut message = vec![op, 0, 0, 0];
        message.extend((data.len() as u32).to_le_bytes());
        message.extend(address.to_le_bytes());
        message.extend(data);
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(op: u8, size: u32) -> Vec<u8> {
        let mut bytes = vec![op, 3, 0, 0];
        bytes.extend(size.to_le_bytes());
        bytes.extend(0x100_u64.to_le_bytes());
        bytes
    }

    #[test]
    fn commands_are_laid_out_as_in_the_header_file() {
        let read = header(MMIO_READ, 4);
        let expected = BusCommand::Read { bar: 3, offset: 0x100, size: 4 };
        assert_eq!(BusCommand::parse(&read), Some(expected));
        let mut write = header(CFG_WRITE, 2);
        write.extend([1, 2, 3, 4, 5, 6, 7, 8]);
        let expected = BusCommand::WriteConfiguration { offset: 0x100, data: &[1, 2] };
        assert_eq!(BusCommand::parse(&write), Some(expected));
    }

    #[test]
    fn what_is_no_command_is_none() {
        for bytes in [
            Vec::new(),
            vec![MMIO_READ; HEADER - 1],
            header(MMIO_WRITE, 4),
            header(MMIO_MEMSET, 4),
            header(MMIO_READ, MAX_DATA as u32 + 1),
            header(99, 4),
            [&header(MMIO_READ, 4)[..8], &[0xFF; 8]].concat(),
        ] {
            assert_eq!(BusCommand::parse(&bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn signals_are_laid_out_as_in_the_header_file() {
        let message = Signal::Msix { address: 0xA_0000, data: 42 }.encode();
        assert_eq!(message, [7, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0xA, 0, 0, 0, 0, 0, 42, 0, 0, 0]);
        assert_eq!(Signal::Intx.encode().len(), HEADER);
    }
}
