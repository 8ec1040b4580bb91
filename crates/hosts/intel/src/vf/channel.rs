//! What the physical function does for the driver: requests of virtchnl, carried out or refused.

use super::flow::{self, outcome};
use super::receive::LONGEST;
use super::steering::{DRIVERS_KEY, DRIVERS_TABLE, HASHED};
use super::virtchnl::{self, Fields, PairInfo, VSI, VectorMap, capability, op, status};
use super::{AdminMessage, ResetState, VirtualFunction, Wire};

/// The event of a link that has changed (`VIRTCHNL_EVENT_LINK_CHANGE`).
const LINK_CHANGE: u32 = 1;

/// The kind of the one VSI (`VIRTCHNL_VSI_SRIOV`).
const SRIOV: u32 = 6;

impl VirtualFunction {
    /// Carries a request out, and answers it; a reset has no answer but that it happens.
    pub(super) fn carry_out(&mut self, message: &AdminMessage) {
        let operation = message.operation;
        if operation == op::RESET_VF {
            return self.reset();
        }
        let (status, data) = match self.grant(operation, Fields(&message.data)) {
            Ok(data) => (status::SUCCESS, data),
            Err(status) => (status, Vec::new()),
        };
        self.state.admin.post(AdminMessage { operation, status, data });
        if operation == op::ENABLE_QUEUES && status == status::SUCCESS {
            // As physical functions do: the driver has not listened before.
            self.announce_link();
        }
    }

    /// Says whether the link is up, and how fast it is.
    pub(super) fn announce_link(&mut self) {
        let mbit = if self.link { self.properties.speed_mbit } else { 0 };
        let in_mbit = self.state.capabilities & capability::ADV_LINK_SPEED != 0;
        let speed = if in_mbit { mbit } else { named_speed(mbit) };
        let words = [LINK_CHANGE, speed, self.link.into(), 0];
        let data = words.into_iter().flat_map(u32::to_le_bytes).collect();
        self.state.admin.post(AdminMessage { operation: op::EVENT, status: status::SUCCESS, data });
    }

    /// Carries a request out; the answer, or the status of its refusal.
    fn grant(&mut self, operation: u32, fields: Fields<'_>) -> Result<Vec<u8>, i32> {
        let state = &mut self.state;
        let is_granted = match operation {
            op::VERSION => {
                fields.word(0)?;
                let version = [1, fields.word(4)?.min(1)];
                return Ok(version.into_iter().flat_map(u32::to_le_bytes).collect());
            }
            op::GET_VF_RESOURCES => {
                let is_known = !fields.0.is_empty();
                let known = if is_known { fields.word(0)? } else { capability::DEFAULT };
                state.capabilities = known & capability::ALL;
                return Ok(self.resources());
            }
            op::CONFIG_VSI_QUEUES => {
                let pairs = fields.of_vsi()?.elements(2, 8, 64)?.map(virtchnl::pair);
                self.configure(&pairs.collect::<Result<Vec<_>, _>>()?)
            }
            op::CONFIG_IRQ_MAP => {
                let maps = fields.elements(0, 2, 12)?.map(virtchnl::map);
                self.map(&maps.collect::<Result<Vec<_>, _>>()?)
            }
            op::ENABLE_QUEUES | op::DISABLE_QUEUES => {
                let (receive, transmit) = (fields.of_vsi()?.word(4)?, fields.word(8)?);
                self.enable(receive, transmit, operation == op::ENABLE_QUEUES)
            }
            op::ADD_ETH_ADDR => {
                if !state.filters.add_addresses(&virtchnl::addresses(fields)?) {
                    return Err(status::NO_MEMORY);
                }
                true
            }
            op::DEL_ETH_ADDR => {
                state.filters.remove_addresses(&virtchnl::addresses(fields)?);
                true
            }
            op::ADD_VLAN => state.filters.add_vlans(&virtchnl::vlans(fields)?),
            op::DEL_VLAN => {
                state.filters.remove_vlans(&virtchnl::vlans(fields)?);
                true
            }
            op::CONFIG_PROMISCUOUS_MODE => {
                let flags = fields.of_vsi()?.half(2)?;
                state.filters.promiscuous = flags & 1 != 0;
                state.filters.all_multicast = flags & 2 != 0;
                true
            }
            op::GET_STATS => {
                fields.of_vsi()?;
                return Ok(state.statistics.encode());
            }
            op::ENABLE_VLAN_STRIPPING | op::DISABLE_VLAN_STRIPPING => {
                state.strips_tags = operation == op::ENABLE_VLAN_STRIPPING;
                true
            }
            _ => return self.steer(operation, fields),
        };
        if is_granted { Ok(Vec::new()) } else { Err(status::PARAM) }
    }

    /// The same for requests about the queues of received frames.
    fn steer(&mut self, operation: u32, fields: Fields<'_>) -> Result<Vec<u8>, i32> {
        let ResetState { steering, pairs, .. } = &mut self.state;
        let is_granted = match operation {
            op::CONFIG_RSS_KEY => steering.set_key(virtchnl::bytes(fields)?),
            op::CONFIG_RSS_LUT => steering.set_table(virtchnl::bytes(fields)?, pairs.len() as u16),
            op::GET_RSS_HENA_CAPS => return Ok(HASHED.to_le_bytes().to_vec()),
            op::SET_RSS_HENA => {
                steering.set_hashed(fields.long(0)?);
                true
            }
            op::ADD_FDIR_FILTER => return self.add_flow(fields.of_vsi()?.0),
            op::DEL_FDIR_FILTER => {
                let ended = steering.remove(fields.of_vsi()?.word(4)?);
                return answered(fields.0, flow::REMOVE, &[(flow::REMOVE_OUTCOME, ended)]);
            }
            _ => return Err(status::NOT_SUPPORTED),
        };
        if is_granted { Ok(Vec::new()) } else { Err(status::PARAM) }
    }

    /// `struct virtchnl_vf_resource`, with one VSI.
    fn resources(&self) -> Vec<u8> {
        let pairs = self.properties.pairs;
        let halves = [1, pairs, pairs + 1, LONGEST as u16].into_iter().flat_map(u16::to_le_bytes);
        let words = [self.state.capabilities, DRIVERS_KEY as u32, DRIVERS_TABLE as u32];
        let mut bytes: Vec<u8> = halves.collect();
        bytes.extend(words.into_iter().flat_map(u32::to_le_bytes));
        bytes.extend([VSI, pairs].into_iter().flat_map(u16::to_le_bytes));
        bytes.extend(SRIOV.to_le_bytes());
        bytes.extend([0, 0]);
        bytes.extend(self.properties.mac);
        bytes
    }

    fn configure(&mut self, infos: &[PairInfo]) -> bool {
        let mut each = infos.iter().map(|info| {
            let pair = self.state.pairs.get_mut(usize::from(info.number));
            pair.is_some_and(|pair| pair.receive.configure(info) && pair.transmit.configure(info))
        });
        each.all(|done| done)
    }

    fn map(&mut self, maps: &[VectorMap]) -> bool {
        let pairs = usize::from(self.properties.pairs);
        let exists = |map: &VectorMap| {
            usize::from(map.vector) <= pairs
                && u32::from(map.receive | map.transmit) >> pairs == 0
                && map.receive_index <= 3
                && map.transmit_index <= 3
        };
        if !maps.iter().all(exists) {
            return false;
        }
        for map in maps {
            let wire = |index: u16| Some(Wire { vector: map.vector.into(), index: index.into() });
            for (number, pair) in self.state.pairs.iter_mut().enumerate() {
                if map.receive >> number & 1 != 0 {
                    pair.receive_wire = wire(map.receive_index);
                }
                if map.transmit >> number & 1 != 0 {
                    pair.transmit_wire = wire(map.transmit_index);
                }
            }
        }
        true
    }

    fn enable(&mut self, receive: u32, transmit: u32, enabled: bool) -> bool {
        if (receive | transmit) >> self.properties.pairs != 0 {
            return false;
        }
        let mut done = true;
        for (number, pair) in self.state.pairs.iter_mut().enumerate() {
            if receive >> number & 1 != 0 {
                done &= pair.receive.enable(enabled);
            }
            if transmit >> number & 1 != 0 {
                done &= pair.transmit.enable(enabled);
            }
        }
        done
    }

    fn add_flow(&mut self, message: &[u8]) -> Result<Vec<u8>, i32> {
        let pairs = self.properties.pairs;
        let added = match flow::parse(message) {
            Some((rule, only_checked)) => self.state.steering.add(rule, only_checked, pairs),
            None => Err(outcome::INVALID),
        };
        let (number, ended) = match added {
            Ok(number) => (number, outcome::SUCCESS),
            Err(ended) => (0, ended),
        };
        let fields = [(flow::ADD_NUMBER, number), (flow::ADD_OUTCOME, ended)];
        answered(message, flow::ADD, &fields)
    }
}

/// The message again, of the length that it should have, with these words in it.
fn answered(message: &[u8], length: usize, words: &[(usize, u32)]) -> Result<Vec<u8>, i32> {
    let mut answer = message.get(..length).ok_or(status::OPCODE_MISMATCH)?.to_vec();
    for (at, word) in words {
        answer[*at..*at + 4].copy_from_slice(&word.to_le_bytes());
    }
    Ok(answer)
}

/// A speed as drivers had it before it was a number (`enum virtchnl_link_speed`); 0 for others.
fn named_speed(mbit: u32) -> u32 {
    match mbit {
        2_500 => 1 << 0,
        100 => 1 << 1,
        1_000 => 1 << 2,
        10_000 => 1 << 3,
        40_000 => 1 << 4,
        20_000 => 1 << 5,
        25_000 => 1 << 6,
        5_000 => 1 << 7,
        _ => 0,
    }
}
