//! What the physical function does for the driver: requests of virtchnl, carried out or refused.

use super::flow::{self, outcome};
use super::receive::LONGEST;
use super::steering::{DRIVERS_KEY, DRIVERS_TABLE, HASHED};
use super::virtchnl::{PairInfo, VSI, VectorMap, VirtchnlRequest, capability, op, status};
use super::{AdminMessage, VirtualFunction, Wire};

/// The event of a link that has changed (`VIRTCHNL_EVENT_LINK_CHANGE`).
const LINK_CHANGE: u32 = 1;

/// The kind of the one VSI (`VIRTCHNL_VSI_SRIOV`).
const SRIOV: u32 = 6;

impl VirtualFunction {
    /// Carries a request out, and answers it; a reset has no answer but that it happens.
    pub(super) fn carry_out(&mut self, message: &AdminMessage) {
        let operation = message.operation;
        let request = VirtchnlRequest::parse(operation, &message.data);
        if request == Ok(VirtchnlRequest::Reset) {
            return self.reset();
        }
        let (status, data) = match request.and_then(|request| self.grant(request)) {
            Ok(data) => (status::SUCCESS, data),
            Err(status) => (status, Vec::new()),
        };
        self.state.admin.post(AdminMessage { operation, status, data });
        if operation == op::ENABLE_QUEUES && status == status::SUCCESS {
            // As physical functions do: the driver has not listened before.
            self.tell_of_link();
        }
    }

    /// Says whether the link is up, and how fast it is.
    pub(super) fn tell_of_link(&mut self) {
        let mbit = if self.link { self.properties.speed_mbit } else { 0 };
        let in_mbit = self.state.capabilities & capability::ADV_LINK_SPEED != 0;
        let speed = if in_mbit { mbit } else { named_speed(mbit) };
        let words = [LINK_CHANGE, speed, self.link.into(), 0];
        let data = words.into_iter().flat_map(u32::to_le_bytes).collect();
        self.state.admin.post(AdminMessage { operation: op::EVENT, status: status::SUCCESS, data });
    }

    /// Carries a request out; what is answered, or why it is refused.
    fn grant(&mut self, request: VirtchnlRequest<'_>) -> Result<Vec<u8>, i32> {
        let state = &mut self.state;
        let granted = |holds: bool| if holds { Ok(Vec::new()) } else { Err(status::PARAM) };
        match request {
            VirtchnlRequest::Version { minor } => {
                Ok([1, minor.min(1)].into_iter().flat_map(u32::to_le_bytes).collect())
            }
            VirtchnlRequest::Reset => Ok(Vec::new()),
            VirtchnlRequest::Resources(known) => {
                let known = known.unwrap_or(capability::L2 | capability::VLAN);
                state.capabilities = known & capability::ALL;
                Ok(self.resources())
            }
            VirtchnlRequest::ConfigureQueues(pairs) => granted(self.configure(&pairs)),
            VirtchnlRequest::MapVectors(maps) => granted(self.map(&maps)),
            VirtchnlRequest::EnableQueues(receive, transmit) => {
                granted(self.enable(receive, transmit, true))
            }
            VirtchnlRequest::DisableQueues(receive, transmit) => {
                granted(self.enable(receive, transmit, false))
            }
            VirtchnlRequest::AddAddresses(addresses)
                if !state.filters.add_addresses(&addresses) =>
            {
                Err(status::NO_MEMORY)
            }
            VirtchnlRequest::AddAddresses(_) => Ok(Vec::new()),
            VirtchnlRequest::RemoveAddresses(addresses) => {
                state.filters.remove_addresses(&addresses);
                Ok(Vec::new())
            }
            VirtchnlRequest::AddVlans(vlans) => granted(state.filters.add_vlans(&vlans)),
            VirtchnlRequest::RemoveVlans(vlans) => {
                state.filters.remove_vlans(&vlans);
                Ok(Vec::new())
            }
            VirtchnlRequest::Promiscuous(unicast, multicast) => {
                state.filters.promiscuous = unicast;
                state.filters.all_multicast = multicast;
                Ok(Vec::new())
            }
            VirtchnlRequest::Statistics => Ok(state.statistics.encode()),
            VirtchnlRequest::HashKey(key) => granted(state.steering.set_key(key)),
            VirtchnlRequest::HashTable(table) => {
                granted(state.steering.set_table(table, state.pairs.len() as u16))
            }
            VirtchnlRequest::HashedTypes => Ok(HASHED.to_le_bytes().to_vec()),
            VirtchnlRequest::HashTypes(types) => {
                state.steering.set_hashed(types);
                Ok(Vec::new())
            }
            VirtchnlRequest::StripVlan(strips) => {
                state.strips_tags = strips;
                Ok(Vec::new())
            }
            VirtchnlRequest::AddFlow(message) => self.add_flow(message),
            VirtchnlRequest::RemoveFlow(message, number) => {
                let ended = state.steering.remove(number);
                answered(message, flow::REMOVE, &[(flow::REMOVE_OUTCOME, ended)])
            }
        }
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
