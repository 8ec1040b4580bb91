//! What messages carry: regions, numbers of rings, pieces of the configuration space.
//!
//! Whatever is read is checked against its bounds first.

use super::header::{Header, MAX_CONFIG, MAX_REGIONS, MessageError};

/// One region of guest memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// Where the guest sees it.
    pub guest_address: u64,
    /// Its length in bytes.
    pub size: u64,
    /// Where the frontend sees it: ring addresses are given in these terms.
    pub user_address: u64,
    /// Where it begins in its file.
    pub file_offset: u64,
}

/// A number that belongs to a ring: its size, its base, whether it is enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VringState {
    /// Number of the ring, from 0.
    pub index: u32,
    /// Value; the request says what it is.
    pub number: u32,
}

/// Where the parts of a ring are, as addresses of the frontend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VringAddress {
    /// Number of the ring, from 0.
    pub index: u32,
    /// Bit 0 asks for a log of used writes.
    pub flags: u32,
    /// The descriptor table.
    pub descriptors: u64,
    /// The used ring.
    pub used: u64,
    /// The available ring.
    pub available: u64,
    /// Where used writes are logged; nothing here does so.
    pub log: u64,
}

/// Which ring a file descriptor is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VringFd {
    /// Number of the ring, from 0.
    pub index: u8,
    /// No descriptor comes with the message (`VHOST_USER_VRING_NOFD_MASK`).
    pub none: bool,
}

/// A piece of the configuration space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where it begins.
    pub offset: u32,
    /// 1: the write belongs to a live migration.
    pub flags: u32,
    /// What is there, or what to write; a question carries zeros.
    pub bytes: Vec<u8>,
}

impl VringState {
    /// The eight bytes of a payload.
    pub fn encode(&self) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&self.index.to_ne_bytes());
        bytes[4..].copy_from_slice(&self.number.to_ne_bytes());
        bytes
    }

    /// Reads a payload, as the reply to
    /// [`FrontendRequest::GetVringBase`](super::FrontendRequest::GetVringBase).
    pub fn parse(header: &Header, payload: &[u8]) -> Result<Self, MessageError> {
        Fields::new(header, payload).vring_state()
    }
}

impl Config {
    /// The bytes of a payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(12 + self.bytes.len());
        for field in [self.offset, self.bytes.len() as u32, self.flags] {
            payload.extend(field.to_ne_bytes());
        }
        payload.extend(&self.bytes);
        payload
    }

    /// Reads a payload, as the reply to
    /// [`FrontendRequest::GetConfig`](super::FrontendRequest::GetConfig).
    pub fn parse(header: &Header, payload: &[u8]) -> Result<Self, MessageError> {
        Fields::new(header, payload).config()
    }
}

pub(super) fn put_regions(payload: &mut Vec<u8>, regions: &[Region]) {
    payload.extend((regions.len() as u32).to_ne_bytes());
    payload.extend([0; 4]);
    for region in regions {
        for field in [region.guest_address, region.size, region.user_address, region.file_offset] {
            payload.extend(field.to_ne_bytes());
        }
    }
}

pub(super) fn put_address(payload: &mut Vec<u8>, address: &VringAddress) {
    payload.extend(address.index.to_ne_bytes());
    payload.extend(address.flags.to_ne_bytes());
    for field in [address.descriptors, address.used, address.available, address.log] {
        payload.extend(field.to_ne_bytes());
    }
}

/// What is left of a payload.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    request: u32,
    size: usize,
}

impl<'a> Fields<'a> {
    /// Those of the message that `header` began.
    pub(super) fn new(header: &Header, payload: &'a [u8]) -> Self {
        Self { rest: payload, request: header.request, size: payload.len() }
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        let too_short = MessageError::TooShort(self.request, self.size);
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(too_short)?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn u32(&mut self) -> Result<u32, MessageError> {
        self.bytes().map(u32::from_ne_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, MessageError> {
        self.bytes().map(u64::from_ne_bytes)
    }

    pub(super) fn vring_state(&mut self) -> Result<VringState, MessageError> {
        Ok(VringState { index: self.u32()?, number: self.u32()? })
    }

    pub(super) fn vring_fd(&mut self) -> Result<VringFd, MessageError> {
        let number = self.u64()?;
        Ok(VringFd { index: (number & 0xFF) as u8, none: number & 0x100 != 0 })
    }

    pub(super) fn vring_address(&mut self) -> Result<VringAddress, MessageError> {
        Ok(VringAddress {
            index: self.u32()?,
            flags: self.u32()?,
            descriptors: self.u64()?,
            used: self.u64()?,
            available: self.u64()?,
            log: self.u64()?,
        })
    }

    pub(super) fn regions(&mut self) -> Result<Vec<Region>, MessageError> {
        let count = self.u32()?;
        if !(1..=MAX_REGIONS as u32).contains(&count) {
            return Err(MessageError::Regions(count));
        }
        self.u32()?;
        let region = |_| {
            Ok(Region {
                guest_address: self.u64()?,
                size: self.u64()?,
                user_address: self.u64()?,
                file_offset: self.u64()?,
            })
        };
        (0..count).map(region).collect()
    }

    pub(super) fn config(&mut self) -> Result<Config, MessageError> {
        let (offset, size, flags) = (self.u32()?, self.u32()?, self.u32()?);
        if size as usize > MAX_CONFIG {
            return Err(MessageError::Config(size));
        }
        let too_short = MessageError::TooShort(self.request, self.size);
        let bytes = self.rest.get(..size as usize).ok_or(too_short)?.to_vec();
        Ok(Config { offset, flags, bytes })
    }
}
