//! Messages of virtchnl, as `include/linux/avf/virtchnl.h` lays them out: bytes to values.
//!
//! Messages are little-endian, and may be longer than what they hold: structures that end in an
//! array once had one element in them.

/// Why a request was refused, or that it was not (`enum virtchnl_status_code`).
pub(super) mod status {
    pub(in super::super) const SUCCESS: i32 = 0;
    pub(in super::super) const PARAM: i32 = -5;
    pub(in super::super) const NO_MEMORY: i32 = -18;
    pub(in super::super) const OPCODE_MISMATCH: i32 = -38;
    pub(in super::super) const NOT_SUPPORTED: i32 = -64;
}

/// Operations (`enum virtchnl_ops`).
pub(super) mod op {
    pub(in super::super) const VERSION: u32 = 1;
    pub(in super::super) const RESET_VF: u32 = 2;
    pub(in super::super) const GET_VF_RESOURCES: u32 = 3;
    pub(in super::super) const CONFIG_VSI_QUEUES: u32 = 6;
    pub(in super::super) const CONFIG_IRQ_MAP: u32 = 7;
    pub(in super::super) const ENABLE_QUEUES: u32 = 8;
    pub(in super::super) const DISABLE_QUEUES: u32 = 9;
    pub(in super::super) const ADD_ETH_ADDR: u32 = 10;
    pub(in super::super) const DEL_ETH_ADDR: u32 = 11;
    pub(in super::super) const ADD_VLAN: u32 = 12;
    pub(in super::super) const DEL_VLAN: u32 = 13;
    pub(in super::super) const CONFIG_PROMISCUOUS_MODE: u32 = 14;
    pub(in super::super) const GET_STATS: u32 = 15;
    pub(in super::super) const EVENT: u32 = 17;
    pub(in super::super) const CONFIG_RSS_KEY: u32 = 23;
    pub(in super::super) const CONFIG_RSS_LUT: u32 = 24;
    pub(in super::super) const GET_RSS_HENA_CAPS: u32 = 25;
    pub(in super::super) const SET_RSS_HENA: u32 = 26;
    pub(in super::super) const ENABLE_VLAN_STRIPPING: u32 = 27;
    pub(in super::super) const DISABLE_VLAN_STRIPPING: u32 = 28;
    pub(in super::super) const ADD_FDIR_FILTER: u32 = 47;
    pub(in super::super) const DEL_FDIR_FILTER: u32 = 48;
}

/// Bits of the capabilities (`VIRTCHNL_VF_OFFLOAD_*`).
pub(super) mod capability {
    pub(in super::super) const L2: u32 = 1 << 0;
    pub(in super::super) const WB_ON_ITR: u32 = 1 << 5;
    pub(in super::super) const ADV_LINK_SPEED: u32 = 1 << 7;
    pub(in super::super) const VLAN: u32 = 1 << 16;
    pub(in super::super) const RSS_PF: u32 = 1 << 19;
    pub(in super::super) const USO: u32 = 1 << 25;
    pub(in super::super) const FDIR_PF: u32 = 1 << 28;
    /// What a driver knows that does not say.
    pub(in super::super) const DEFAULT: u32 = L2 | VLAN;
    /// All that are offered.
    pub(in super::super) const ALL: u32 =
        L2 | WB_ON_ITR | ADV_LINK_SPEED | VLAN | RSS_PF | USO | FDIR_PF;
}

/// The driver's one port of the switch inside the NIC.
pub(super) const VSI: u16 = 1;

/// A pair of queues, as the driver has allocated it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PairInfo {
    pub number: u16,
    pub transmit_length: u32,
    pub transmit_base: u64,
    pub receive_length: u32,
    pub receive_base: u64,
    /// Bytes of a receive buffer.
    pub buffer: u32,
    /// Bytes of the longest frame.
    pub longest: u32,
}

/// Which queues interrupt by a vector, and with which intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VectorMap {
    pub vector: u16,
    pub receive: u16,
    pub transmit: u16,
    pub receive_index: u16,
    pub transmit_index: u16,
}

/// A structure of a message.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn part(self, at: usize, length: usize) -> Result<&'a [u8], i32> {
        let end = at.checked_add(length).ok_or(status::OPCODE_MISMATCH)?;
        self.0.get(at..end).ok_or(status::OPCODE_MISMATCH)
    }

    fn array<const N: usize>(self, at: usize) -> Result<[u8; N], i32> {
        self.part(at, N)?.try_into().map_err(|_| status::OPCODE_MISMATCH)
    }

    pub(super) fn half(self, at: usize) -> Result<u16, i32> {
        self.array(at).map(u16::from_le_bytes)
    }

    pub(super) fn word(self, at: usize) -> Result<u32, i32> {
        self.array(at).map(u32::from_le_bytes)
    }

    pub(super) fn long(self, at: usize) -> Result<u64, i32> {
        self.array(at).map(u64::from_le_bytes)
    }

    /// The structures of `size` bytes in an array at `at`, as many as the number at `count` says.
    pub(super) fn elements(
        self,
        count: usize,
        at: usize,
        size: usize,
    ) -> Result<impl Iterator<Item = Fields<'a>>, i32> {
        let count = usize::from(self.half(count)?);
        if count == 0 {
            return Err(status::OPCODE_MISMATCH);
        }
        Ok(self.part(at, count * size)?.chunks_exact(size).map(Fields))
    }

    /// Checks that the message is about the one VSI there is.
    pub(super) fn of_vsi(self) -> Result<Self, i32> {
        if self.half(0)? == VSI { Ok(self) } else { Err(status::PARAM) }
    }
}

/// Decodes `struct virtchnl_queue_pair_info`.
pub(super) fn pair(fields: Fields<'_>) -> Result<PairInfo, i32> {
    let receive = Fields(fields.part(24, 40)?);
    let number = fields.half(2)?;
    // Head write-back and header split are of the time before these devices.
    let is_odd = fields.half(6)? != 0 || receive.half(10)? != 0 || receive.half(2)? != number;
    if is_odd || receive.half(0)? != VSI || fields.half(0)? != VSI {
        return Err(status::PARAM);
    }
    Ok(PairInfo {
        number,
        transmit_length: fields.half(4)?.into(),
        transmit_base: fields.long(8)?,
        receive_length: receive.word(4)?,
        receive_base: receive.long(24)?,
        buffer: receive.word(12)?,
        longest: receive.word(16)?,
    })
}

/// Decodes `struct virtchnl_vector_map`.
pub(super) fn map(fields: Fields<'_>) -> Result<VectorMap, i32> {
    Ok(VectorMap {
        vector: fields.of_vsi()?.half(2)?,
        receive: fields.half(4)?,
        transmit: fields.half(6)?,
        receive_index: fields.half(8)?,
        transmit_index: fields.half(10)?,
    })
}

pub(super) fn addresses(fields: Fields<'_>) -> Result<Vec<[u8; 6]>, i32> {
    fields.of_vsi()?.elements(2, 4, 8)?.map(|element| element.array(0)).collect()
}

pub(super) fn vlans(fields: Fields<'_>) -> Result<Vec<u16>, i32> {
    fields.of_vsi()?.elements(2, 4, 2)?.map(|element| element.half(0)).collect()
}

pub(super) fn bytes(fields: Fields<'_>) -> Result<&[u8], i32> {
    let length = fields.of_vsi()?.half(2)?;
    fields.part(4, length.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_linux_sends_them() {
        // One element more than there are, as `virtchnl_struct_size` makes them.
        let message = [&[1, 0, 1, 0, 2, 0, 0, 0, 0, 7, 1, 0][..], &[0; 8]].concat();
        assert_eq!(addresses(Fields(&message)), Ok(vec![[2, 0, 0, 0, 0, 7]]));
        let vector = [[1, 0], [2, 0], [3, 0], [4, 0], [0, 0], [1, 0]].concat();
        let expected =
            VectorMap { vector: 2, receive: 3, transmit: 4, receive_index: 0, transmit_index: 1 };
        assert_eq!(map(Fields(&vector)), Ok(expected));
        assert_eq!(bytes(Fields(&[1, 0, 2, 0, 8, 9, 0])), Ok(&[8, 9][..]));
    }

    #[test]
    fn a_pair_of_queues_has_its_fields_where_they_are() {
        let mut message = vec![0_u8; 64];
        (message[0], message[2], message[4]) = (1, 3, 64);
        message[8..16].copy_from_slice(&0x1_2000_u64.to_le_bytes());
        (message[24], message[26], message[28]) = (1, 3, 32);
        message[36..40].copy_from_slice(&2_048_u32.to_le_bytes());
        message[40..44].copy_from_slice(&1_522_u32.to_le_bytes());
        message[48..56].copy_from_slice(&0x3_4000_u64.to_le_bytes());
        let expected = PairInfo {
            number: 3,
            transmit_length: 64,
            transmit_base: 0x1_2000,
            receive_length: 32,
            receive_base: 0x3_4000,
            buffer: 2_048,
            longest: 1_522,
        };
        assert_eq!(pair(Fields(&message)), Ok(expected));
        message[26] = 2;
        assert_eq!(pair(Fields(&message)), Err(status::PARAM));
    }

    #[test]
    fn what_is_malformed_has_a_status() {
        for (data, refused) in [
            (&[1, 0, 0, 0][..], status::OPCODE_MISMATCH),
            (&[1, 0, 255, 255, 0, 0], status::OPCODE_MISMATCH),
            (&[2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0], status::PARAM),
        ] {
            assert_eq!(addresses(Fields(data)), Err(refused));
        }
        assert_eq!(bytes(Fields(&[1, 0, 9, 0, 1])), Err(status::OPCODE_MISMATCH));
    }
}
