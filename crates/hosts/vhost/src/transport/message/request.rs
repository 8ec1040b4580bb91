//! What a frontend asks for.

use std::fmt;

use super::header::{FLAG_NEED_REPLY, Header, MessageError, with_header};
use super::payload::{Config, Fields, Region, VringAddress, VringFd, VringState};
use super::payload::{put_address, put_regions};

/// What a frontend can ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrontendRequest {
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
    /// How the device would report an error.
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
    /// An unknown request.
    Unknown(u32),
}

impl FrontendRequest {
    /// Reads the payload of the message that `header` began.
    pub fn parse(header: &Header, payload: &[u8]) -> Result<Self, MessageError> {
        let request = header.request;
        let mut fields = Fields::new(header, payload);
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

impl fmt::Display for FrontendRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `SetVringNum(VringState { .. })` without the payload: what a user looks up.
        let text = format!("{self:?}");
        let end = text.find(['(', ' ']).unwrap_or(text.len());
        write!(f, "{} ({})", &text[..end], self.number())
    }
}
