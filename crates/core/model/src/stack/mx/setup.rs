//! Endpoints before the beginning: made, connected, with receives posted.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use base::time::{Duration, Instant};
use mx::address::Address;
use mx::config::ConfigError;
use mx::endpoint::Endpoint;
use mx::matching::Match;

use super::local::LocalInbox;
use super::{Channel, EndpointSpec, MxStack, STANDING, SizedMessage, nic_of};
use crate::machine::{Machine, MxSide};
use crate::stack::Process;

/// The stacks of `hosts` hosts of a machine with these endpoints, connected.
///
/// # Errors
/// A setting of an endpoint that is out of range.
pub fn stacks(
    hosts: usize,
    machine: &Machine,
    endpoints: Vec<EndpointSpec>,
) -> Result<Vec<MxStack>, ConfigError> {
    let address = |spec: &EndpointSpec| Address { nic: nic_of(spec.host), endpoint: spec.endpoint };
    let addresses: Vec<Address> = endpoints.iter().map(address).collect();
    let in_kernel = machine.mx == MxSide::Kernel;
    let mut stacks: Vec<MxStack> = (0..hosts)
        .map(|host| MxStack {
            nic: nic_of(host),
            processes: Vec::new(),
            channels: Vec::new(),
            in_kernel,
            place: Vec::new(),
        })
        .collect();
    let mut names = Vec::new();
    for (number, spec) in endpoints.into_iter().enumerate() {
        let stack = &mut stacks[spec.host];
        names.push((spec.host, stack.channels.len(), spec.peers.clone()));
        let mut engine = Endpoint::new(spec.config, addresses[number], 7 + number as u64)?;
        let (count, bytes) = spec.receives;
        for _ in 0..count {
            // It is not closing, and the match is one.
            let _ =
                engine.irecv(Instant::ZERO, None, Match::ANY, SizedMessage::of(bytes), STANDING);
        }
        stack.processes.push(Process { core: spec.core, blocks: !in_kernel });
        stack.channels.push(Channel {
            engine,
            number: spec.endpoint,
            peers: Vec::new(),
            numbers: BTreeMap::new(),
            program: spec.program,
            ring: VecDeque::new(),
            local: LocalInbox::new(count > 0),
            kernel_sends: false,
            process_sends: false,
            outstanding: 0,
            sent: 0,
            pages: 0,
            notifies: VecDeque::new(),
            looks: 0,
            is_awake: false,
            has_handled: false,
        });
    }
    connect(&mut stacks, &names, &addresses);
    Ok(stacks)
}

/// Connects the endpoints, which takes no time.
fn connect(stacks: &mut [MxStack], names: &[(usize, usize, Vec<usize>)], addresses: &[Address]) {
    let now = Instant::ZERO;
    for (host, channel, peers) in names {
        let Channel { engine, peers: known, numbers, local, .. } =
            &mut stacks[*host].channels[*channel];
        for (of, process, _) in peers.iter().map(|to| &names[*to]) {
            local.add_peer((of == host).then_some(*process));
        }
        let second = Duration::from_millis(1_000);
        known.extend(
            peers.iter().filter_map(|to| engine.connect(now, addresses[*to], 0, second).ok()),
        );
        numbers.extend(known.iter().copied().zip(0..));
    }
    let places: BTreeMap<_, _> = addresses.iter().zip(names).collect();
    let mut frame = [0; 1 << 14];
    let mut was_quiet = false;
    while !was_quiet {
        was_quiet = true;
        for (host, channel, _) in names {
            while let Some(out) = stacks[*host].channels[*channel].engine.transmit(now, &mut frame)
            {
                was_quiet = false;
                let from = stacks[*host].nic;
                let to = Address { nic: out.to, endpoint: out.endpoint };
                let Some((host, channel, _)) = places.get(&to) else { continue };
                let engine = &mut stacks[*host].channels[*channel].engine;
                engine.handle_frame(now, from, &frame[..out.length]);
            }
        }
    }
    let channels = stacks.iter_mut().flat_map(|stack| &mut stack.channels);
    channels.for_each(|channel| while channel.engine.poll_event().is_some() {});
}
