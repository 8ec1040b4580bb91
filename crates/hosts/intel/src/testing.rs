//! Memory for tests.

use std::cell::RefCell;

use vhost::transport::memory::MemoryError;

use crate::dma::Dma;

/// Memory from address 0 on.
pub(crate) struct Bytes(RefCell<Vec<u8>>);

impl Bytes {
    pub(crate) fn new(size: usize) -> Self {
        Self(RefCell::new(vec![0; size]))
    }
}

fn range(address: u64, length: usize, size: usize) -> Result<std::ops::Range<usize>, MemoryError> {
    let outside = MemoryError::Address(address, length as u64);
    let start = usize::try_from(address).ok().filter(|start| *start <= size);
    match start {
        // As the guest's: nothing is nowhere.
        Some(start) if (1..=size - start).contains(&length) => Ok(start..start + length),
        _ => Err(outside),
    }
}

impl Dma for Bytes {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), MemoryError> {
        let memory = self.0.borrow();
        bytes.copy_from_slice(&memory[range(address, bytes.len(), memory.len())?]);
        Ok(())
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        let mut memory = self.0.borrow_mut();
        let range = range(address, bytes.len(), memory.len())?;
        memory[range].copy_from_slice(bytes);
        Ok(())
    }
}
