//! Registers of a virtual function, as Linux's `iavf_register.h` names them: byte offsets behind
//! base address register 0.

/// The queue pairs and their vectors that the registers have room for.
pub(crate) const MAX_PAIRS: u16 = 16;

/// One for each transmit queue.
pub(super) const QTX_TAIL: u32 = 0x0000;
/// One for each receive queue.
pub(super) const QRX_TAIL: u32 = 0x2000;
/// Three for each vector of queues, those with the same index side by side.
pub(super) const ITRN: u32 = 0x2800;
/// One for each vector of queues.
pub(super) const DYN_CTLN: u32 = 0x3800;
pub(super) const ICR0: u32 = 0x4800;
pub(super) const ICR0_ENA: u32 = 0x5000;
pub(super) const DYN_CTL0: u32 = 0x5C00;
pub(super) const ARQBAH: u32 = 0x6000;
pub(super) const ATQH: u32 = 0x6400;
pub(super) const ATQLEN: u32 = 0x6800;
pub(super) const ARQBAL: u32 = 0x6C00;
pub(super) const ARQT: u32 = 0x7000;
pub(super) const ARQH: u32 = 0x7400;
pub(super) const ATQBAH: u32 = 0x7800;
pub(super) const ATQBAL: u32 = 0x7C00;
pub(super) const ARQLEN: u32 = 0x8000;
pub(super) const ATQT: u32 = 0x8400;
pub(super) const RSTAT: u32 = 0x8800;

/// The admin queue has a message (`ICR0`, `ICR0_ENA`).
pub(super) const ADMINQ: u32 = 1 << 30;

/// The function is not being reset, and the other side answers (`RSTAT`).
pub(super) const VFACTIVE: u32 = 2;

/// Which of an array of `count` registers from `first` on, 4 bytes apart, is at `at`.
pub(super) fn index(at: u32, first: u32, count: u16) -> Option<usize> {
    let number = at.checked_sub(first)? / 4;
    (number < count.into()).then_some(number as usize)
}
