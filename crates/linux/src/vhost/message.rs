//! The messages of the vhost-user protocol: bytes to values and back, without sockets.
//!
//! Numbers and layouts are those of the vhost-user specification, section "Communication"
//! (<https://qemu-project.gitlab.io/qemu/interop/vhost-user.html>), in the byte order of the
//! machine. Whatever comes from a socket is untrusted: [`Header::parse`] bounds the payload before
//! it is read, [`Request::parse`] takes any bytes and never panics.
//!
//! A payload may be longer than its fields, because Linux in user mode always sends a memory table
//! of two regions (`arch/um/drivers/vhost_user.h`); it must not be shorter.

use std::fmt;

/// Bytes of a header.
pub const HEADER: usize = 12;

/// The longest payload that is read. The longest that is known is a memory table of
/// [`MAX_REGIONS`], 264 bytes.
pub const MAX_PAYLOAD: usize = 1_024;

/// Memory regions in one table, and file descriptors in one message
/// (`VHOST_MEMORY_BASELINE_NREGIONS`).
pub const MAX_REGIONS: usize = 8;

/// The longest configuration space that a message carries (`VHOST_USER_MAX_CONFIG_SIZE`).
pub const MAX_CONFIG: usize = 256;

/// The protocol version, in the two lowest bits of a header's flags.
const VERSION: u32 = 1;
const VERSION_MASK: u32 = 3;
const FLAG_REPLY: u32 = 1 << 2;
const FLAG_NEED_REPLY: u32 = 1 << 3;

/// The backend can speak of protocol features (`VHOST_USER_F_PROTOCOL_FEATURES`, a bit among the
/// virtio features).
pub const F_PROTOCOL_FEATURES: u64 = 1 << 30;

/// More than one queue pair (`VHOST_USER_PROTOCOL_F_MQ`).
pub const PROTOCOL_F_MQ: u64 = 1 << 0;
/// A sender may ask for an acknowledgement of any message (`VHOST_USER_PROTOCOL_F_REPLY_ACK`).
pub const PROTOCOL_F_REPLY_ACK: u64 = 1 << 3;
/// A channel for messages of the backend (`VHOST_USER_PROTOCOL_F_BACKEND_REQ`).
pub const PROTOCOL_F_BACKEND_REQ: u64 = 1 << 5;
/// The configuration space is the backend's (`VHOST_USER_PROTOCOL_F_CONFIG`).
pub const PROTOCOL_F_CONFIG: u64 = 1 << 9;
/// The device can be reset (`VHOST_USER_PROTOCOL_F_RESET_DEVICE`).
pub const PROTOCOL_F_RESET_DEVICE: u64 = 1 << 13;
/// Kicks and calls are messages (`VHOST_USER_PROTOCOL_F_INBAND_NOTIFICATIONS`).
pub const PROTOCOL_F_INBAND_NOTIFICATIONS: u64 = 1 << 14;
/// The frontend tells the device status (`VHOST_USER_PROTOCOL_F_STATUS`).
pub const PROTOCOL_F_STATUS: u64 = 1 << 16;

/// The backend interrupts a ring in-band (`VHOST_USER_BACKEND_VRING_CALL`).
const BACKEND_VRING_CALL: u32 = 4;

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Another version of the protocol.
    #[error("a vhost-user message has flags {0:#x}: not version 1 of the protocol")]
    Version(u32),
    /// A payload longer than [`MAX_PAYLOAD`].
    #[error("vhost-user message {request} announces {size} bytes; the longest known has 264")]
    TooLong {
        /// The number of the request.
        request: u32,
        /// The announced length.
        size: u32,
    },
    /// A payload that ends before its last field.
    #[error("vhost-user message {request} has {size} bytes, too few for its fields")]
    TooShort {
        /// The number of the request.
        request: u32,
        /// The length of the payload.
        size: usize,
    },
    /// A memory table with no region, or with more than [`MAX_REGIONS`].
    #[error("a vhost-user memory table has {0} regions; 1 to {MAX_REGIONS} are possible")]
    Regions(u32),
    /// More configuration than there is.
    #[error("a vhost-user message is about {0} bytes of configuration; {MAX_CONFIG} at most")]
    Config(u32),
}

/// What precedes every payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The number of the request, or of what is replied to.
    pub request: u32,
    flags: u32,
    /// Bytes that follow.
    pub size: u32,
}

impl Header {
    /// Reads a header; its payload has at most [`MAX_PAYLOAD`] bytes.
    ///
    /// # Errors
    /// If it is of another version, or announces more.
    pub fn parse(bytes: &[u8; HEADER]) -> Result<Self, MessageError> {
        let field = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let header = Self { request: field(0), flags: field(4), size: field(8) };
        if header.flags & VERSION_MASK != VERSION {
            return Err(MessageError::Version(header.flags));
        }
        if header.size as usize > MAX_PAYLOAD {
            return Err(MessageError::TooLong { request: header.request, size: header.size });
        }
        Ok(header)
    }

    /// Whether the sender waits for an acknowledgement.
    #[must_use]
    pub fn needs_reply(&self) -> bool {
        self.flags & FLAG_NEED_REPLY != 0
    }

    /// Whether this is a reply.
    #[must_use]
    pub fn is_reply(&self) -> bool {
        self.flags & FLAG_REPLY != 0
    }
}

fn with_header(request: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER + payload.len());
    for field in [request, VERSION | flags, payload.len() as u32] {
        message.extend(field.to_ne_bytes());
    }
    message.extend(payload);
    message
}

/// A reply to `request`, whole.
#[must_use]
pub fn reply(request: u32, payload: &[u8]) -> Vec<u8> {
    with_header(request, FLAG_REPLY, payload)
}

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
    /// Which ring.
    pub index: u32,
    /// The number.
    pub number: u32,
}

/// Where the parts of a ring are, as addresses of the frontend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VringAddress {
    /// Which ring.
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
    /// Which ring.
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

/// What a frontend can ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// Which virtio features there are.
    GetFeatures,
    /// Which of them the driver wants.
    SetFeatures(u64),
    /// The sender is the owner of this session.
    SetOwner,
    /// It no longer is; deprecated.
    ResetOwner,
    /// The guest's memory; a file descriptor for each region comes with it.
    SetMemTable(Vec<Region>),
    /// A ring's size.
    SetVringNum(VringState),
    /// A ring's addresses.
    SetVringAddr(VringAddress),
    /// The available index at which a ring begins.
    SetVringBase(VringState),
    /// Stops a ring and asks how far it came.
    GetVringBase(VringState),
    /// How the driver notifies the device.
    SetVringKick(VringFd),
    /// How the device notifies the driver.
    SetVringCall(VringFd),
    /// How the device would tell of an error.
    SetVringErr(VringFd),
    /// Which protocol features there are.
    GetProtocolFeatures,
    /// Which of them the frontend wants.
    SetProtocolFeatures(u64),
    /// How many queue pairs there can be.
    GetQueueNum,
    /// Whether a ring passes packets.
    SetVringEnable(VringState),
    /// The channel for messages of the backend; its descriptor comes with it.
    SetBackendReqFd,
    /// A piece of the configuration space.
    GetConfig(Config),
    /// A write to the configuration space.
    SetConfig(Config),
    /// All rings stop and features are forgotten.
    ResetDevice,
    /// A kick, in-band.
    VringKick(VringState),
    /// The virtio device status.
    SetStatus(u64),
    /// Asks for it.
    GetStatus,
    /// A request that nobody here knows.
    Unknown(u32),
}

impl Request {
    /// Reads the payload of the message that `header` began.
    ///
    /// # Errors
    /// If the payload is too short, or a count in it out of range.
    pub fn parse(header: &Header, payload: &[u8]) -> Result<Self, MessageError> {
        let request = header.request;
        let mut fields = Fields { rest: payload, request, size: payload.len() };
        Ok(match request {
            1 => Self::GetFeatures,
            2 => Self::SetFeatures(fields.u64()?),
            3 => Self::SetOwner,
            4 => Self::ResetOwner,
            5 => Self::SetMemTable(fields.regions()?),
            8 => Self::SetVringNum(fields.vring_state()?),
            9 => Self::SetVringAddr(fields.vring_address()?),
            10 => Self::SetVringBase(fields.vring_state()?),
            11 => Self::GetVringBase(fields.vring_state()?),
            12 => Self::SetVringKick(fields.vring_fd()?),
            13 => Self::SetVringCall(fields.vring_fd()?),
            14 => Self::SetVringErr(fields.vring_fd()?),
            15 => Self::GetProtocolFeatures,
            16 => Self::SetProtocolFeatures(fields.u64()?),
            17 => Self::GetQueueNum,
            18 => Self::SetVringEnable(fields.vring_state()?),
            21 => Self::SetBackendReqFd,
            24 => Self::GetConfig(fields.config()?),
            25 => Self::SetConfig(fields.config()?),
            34 => Self::ResetDevice,
            35 => Self::VringKick(fields.vring_state()?),
            39 => Self::SetStatus(fields.u64()?),
            40 => Self::GetStatus,
            _ => Self::Unknown(request),
        })
    }

    /// The number in the header.
    #[must_use]
    pub fn number(&self) -> u32 {
        match self {
            Self::GetFeatures => 1,
            Self::SetFeatures(_) => 2,
            Self::SetOwner => 3,
            Self::ResetOwner => 4,
            Self::SetMemTable(_) => 5,
            Self::SetVringNum(_) => 8,
            Self::SetVringAddr(_) => 9,
            Self::SetVringBase(_) => 10,
            Self::GetVringBase(_) => 11,
            Self::SetVringKick(_) => 12,
            Self::SetVringCall(_) => 13,
            Self::SetVringErr(_) => 14,
            Self::GetProtocolFeatures => 15,
            Self::SetProtocolFeatures(_) => 16,
            Self::GetQueueNum => 17,
            Self::SetVringEnable(_) => 18,
            Self::SetBackendReqFd => 21,
            Self::GetConfig(_) => 24,
            Self::SetConfig(_) => 25,
            Self::ResetDevice => 34,
            Self::VringKick(_) => 35,
            Self::SetStatus(_) => 39,
            Self::GetStatus => 40,
            Self::Unknown(request) => *request,
        }
    }

    /// The whole message, as a frontend sends it; `acknowledged` asks for a reply where there is
    /// none anyway.
    #[must_use]
    pub fn encode(&self, acknowledged: bool) -> Vec<u8> {
        let mut payload = Vec::new();
        match self {
            Self::SetFeatures(number)
            | Self::SetProtocolFeatures(number)
            | Self::SetStatus(number) => payload.extend(number.to_ne_bytes()),
            Self::SetMemTable(regions) => put_regions(&mut payload, regions),
            Self::SetVringNum(state)
            | Self::SetVringBase(state)
            | Self::GetVringBase(state)
            | Self::SetVringEnable(state)
            | Self::VringKick(state) => payload.extend(state.encode()),
            Self::SetVringAddr(address) => put_address(&mut payload, address),
            Self::SetVringKick(fd) | Self::SetVringCall(fd) | Self::SetVringErr(fd) => {
                payload.extend((u64::from(fd.index) | u64::from(fd.none) << 8).to_ne_bytes());
            }
            Self::GetConfig(config) | Self::SetConfig(config) => payload = config.encode(),
            _ => {}
        }
        with_header(self.number(), if acknowledged { FLAG_NEED_REPLY } else { 0 }, &payload)
    }
}

impl VringState {
    /// The eight bytes of a payload.
    #[must_use]
    pub fn encode(&self) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&self.index.to_ne_bytes());
        bytes[4..].copy_from_slice(&self.number.to_ne_bytes());
        bytes
    }

    /// Reads a payload, as the reply to [`Request::GetVringBase`].
    ///
    /// # Errors
    /// If it is too short.
    pub fn parse(header: &Header, payload: &[u8]) -> Result<Self, MessageError> {
        Fields { rest: payload, request: header.request, size: payload.len() }.vring_state()
    }
}

impl Config {
    /// The bytes of a payload.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(12 + self.bytes.len());
        for field in [self.offset, self.bytes.len() as u32, self.flags] {
            payload.extend(field.to_ne_bytes());
        }
        payload.extend(&self.bytes);
        payload
    }

    /// Reads a payload, as the reply to [`Request::GetConfig`].
    ///
    /// # Errors
    /// If it is too short or announces too much.
    pub fn parse(header: &Header, payload: &[u8]) -> Result<Self, MessageError> {
        Fields { rest: payload, request: header.request, size: payload.len() }.config()
    }
}

/// Reads a reply that is one number.
///
/// # Errors
/// If it is too short.
pub fn parse_u64(header: &Header, payload: &[u8]) -> Result<u64, MessageError> {
    Fields { rest: payload, request: header.request, size: payload.len() }.u64()
}

/// The message that interrupts ring `index` in-band; the frontend acknowledges it with a number.
#[must_use]
pub fn vring_call(index: u32, acknowledged: bool) -> Vec<u8> {
    let flags = if acknowledged { FLAG_NEED_REPLY } else { 0 };
    with_header(BACKEND_VRING_CALL, flags, &VringState { index, number: 0 }.encode())
}

/// Reads a message of the backend: the ring that it interrupts, if that is what it does.
///
/// # Errors
/// If the payload is too short.
pub fn parse_vring_call(header: &Header, payload: &[u8]) -> Result<Option<u32>, MessageError> {
    if header.request != BACKEND_VRING_CALL {
        return Ok(None);
    }
    VringState::parse(header, payload).map(|state| Some(state.index))
}

fn put_regions(payload: &mut Vec<u8>, regions: &[Region]) {
    payload.extend((regions.len() as u32).to_ne_bytes());
    payload.extend([0; 4]);
    for region in regions {
        for field in [region.guest_address, region.size, region.user_address, region.file_offset] {
            payload.extend(field.to_ne_bytes());
        }
    }
}

fn put_address(payload: &mut Vec<u8>, address: &VringAddress) {
    payload.extend(address.index.to_ne_bytes());
    payload.extend(address.flags.to_ne_bytes());
    for field in [address.descriptors, address.used, address.available, address.log] {
        payload.extend(field.to_ne_bytes());
    }
}

/// What is left of a payload.
struct Fields<'a> {
    rest: &'a [u8],
    request: u32,
    size: usize,
}

impl Fields<'_> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        let too_short = MessageError::TooShort { request: self.request, size: self.size };
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(too_short)?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn u32(&mut self) -> Result<u32, MessageError> {
        self.bytes().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Result<u64, MessageError> {
        self.bytes().map(u64::from_ne_bytes)
    }

    fn vring_state(&mut self) -> Result<VringState, MessageError> {
        Ok(VringState { index: self.u32()?, number: self.u32()? })
    }

    fn vring_fd(&mut self) -> Result<VringFd, MessageError> {
        let number = self.u64()?;
        Ok(VringFd { index: (number & 0xFF) as u8, none: number & 0x100 != 0 })
    }

    fn vring_address(&mut self) -> Result<VringAddress, MessageError> {
        Ok(VringAddress {
            index: self.u32()?,
            flags: self.u32()?,
            descriptors: self.u64()?,
            used: self.u64()?,
            available: self.u64()?,
            log: self.u64()?,
        })
    }

    fn regions(&mut self) -> Result<Vec<Region>, MessageError> {
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

    fn config(&mut self) -> Result<Config, MessageError> {
        let (offset, size, flags) = (self.u32()?, self.u32()?, self.u32()?);
        if size as usize > MAX_CONFIG {
            return Err(MessageError::Config(size));
        }
        let too_short = MessageError::TooShort { request: self.request, size: self.size };
        let bytes = self.rest.get(..size as usize).ok_or(too_short)?.to_vec();
        Ok(Config { offset, flags, bytes })
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `SetVringNum(VringState { .. })` without the payload: what a user looks up.
        let text = format!("{self:?}");
        let end = text.find(['(', ' ']).unwrap_or(text.len());
        write!(f, "{} ({})", &text[..end], self.number())
    }
}

#[cfg(test)]
mod tests;
