//! Messages there and back, and bytes that are none.

use super::payload::put_regions;
use super::*;

fn parse(bytes: &[u8]) -> Result<FrontendRequest, MessageError> {
    let (header, payload) = bytes.split_first_chunk().unwrap();
    let header = Header::parse(header)?;
    assert_eq!(header.size as usize, payload.len());
    FrontendRequest::parse(&header, payload)
}

#[test]
fn what_was_encoded_is_parsed() {
    let state = VringState { index: 1, number: 256 };
    let fd = VringFd { index: 3, none: true };
    let region = Region { guest_address: 1, size: 2, user_address: 3, file_offset: u64::MAX };
    let config = Config { offset: 2, flags: 1, bytes: vec![1, 2, 3] };
    let address =
        VringAddress { index: 1, flags: 0, descriptors: 2, used: 3, available: 4, log: 5 };
    for request in [
        FrontendRequest::GetFeatures,
        FrontendRequest::SetFeatures(1 << 63 | 1),
        FrontendRequest::SetOwner,
        FrontendRequest::ResetOwner,
        FrontendRequest::SetMemTable(vec![region; MAX_REGIONS]),
        FrontendRequest::SetVringNum(state),
        FrontendRequest::SetVringAddr(address),
        FrontendRequest::SetVringBase(state),
        FrontendRequest::GetVringBase(state),
        FrontendRequest::SetVringKick(fd),
        FrontendRequest::SetVringCall(fd),
        FrontendRequest::SetVringErr(fd),
        FrontendRequest::GetProtocolFeatures,
        FrontendRequest::SetProtocolFeatures(5),
        FrontendRequest::GetQueueNum,
        FrontendRequest::SetVringEnable(state),
        FrontendRequest::SetBackendReqFd,
        FrontendRequest::GetConfig(config.clone()),
        FrontendRequest::SetConfig(config),
        FrontendRequest::ResetDevice,
        FrontendRequest::VringKick(state),
        FrontendRequest::SetStatus(15),
        FrontendRequest::GetStatus,
        FrontendRequest::Unknown(99),
    ] {
        assert_eq!(parse(&request.encode(true)), Ok(request));
    }
}

#[test]
fn memory_table_may_be_longer_than_its_regions() {
    // arch/um/drivers/vhost_user.h: room for two regions, whatever is in use.
    let mut payload = Vec::new();
    put_regions(&mut payload, &[Region::default()]);
    payload.resize(72, 0);
    let message = with_header(5, 0, &payload);
    assert_eq!(parse(&message), Ok(FrontendRequest::SetMemTable(vec![Region::default()])));
}

#[test]
fn short_and_long_payloads_are_refused() {
    let request = FrontendRequest::SetVringAddr(VringAddress::default()).encode(false);
    for length in 0..request.len() - HEADER {
        let message = with_header(9, 0, &request[HEADER..HEADER + length]);
        assert_eq!(parse(&message), Err(MessageError::TooShort(9, length)));
    }
    let mut header = [0; HEADER];
    header[4] = 1;
    header[8..].copy_from_slice(&(MAX_PAYLOAD as u32 + 1).to_ne_bytes());
    assert_eq!(Header::parse(&header), Err(MessageError::TooLong(0, 1_025)));
    header[4] = 2;
    assert_eq!(Header::parse(&header), Err(MessageError::Version(2)));
}

#[test]
fn counts_are_bounded() {
    for count in [0, MAX_REGIONS as u32 + 1, u32::MAX] {
        let mut payload = count.to_ne_bytes().to_vec();
        payload.resize(MAX_PAYLOAD, 0);
        assert_eq!(parse(&with_header(5, 0, &payload)), Err(MessageError::Regions(count)));
    }
    let config = Config { offset: 0, flags: 0, bytes: vec![0; MAX_CONFIG + 1] };
    let refused = parse(&FrontendRequest::GetConfig(config).encode(false));
    assert_eq!(refused, Err(MessageError::Config(MAX_CONFIG as u32 + 1)));
}

#[test]
fn requests_are_shown_by_name_and_number() {
    assert_eq!(
        FrontendRequest::SetVringEnable(VringState { index: 0, number: 0 }).to_string(),
        "SetVringEnable (18)"
    );
}
