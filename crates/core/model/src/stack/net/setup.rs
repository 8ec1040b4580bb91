//! Programs on their hosts, and the connections between them, which are there from the beginning.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use workload::Transport;

use super::NetStack;
use super::ip::End;
use super::program::{Conversation, SocketProgram, Sockets};
use super::tcp::{buffer, connection};
use crate::stack::Process;
use crate::stack::driver::WorkloadDriver;

/// Where the sockets of a program are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// It has a port, for all who come; several on a host that have one share its sockets.
    Port(u16),
    /// It has so many connections to a port of other hosts.
    Peers {
        /// The numbers of the hosts, at least one, which the connections go to in turn.
        hosts: Vec<usize>,
        /// Their port, where the transport has them.
        port: u16,
        /// How many connections.
        connections: usize,
    },
    /// It sends frames of its own.
    Interface,
}

/// A program, and where it runs.
pub struct ProgramSpec {
    /// The number of its host.
    pub host: usize,
    /// How it waits, and the core that it is bound to.
    pub process: Process,
    /// Over what it talks.
    pub transport: Transport,
    /// The port that it has, or its peer.
    pub binding: Binding,
    /// What it does; it keeps all of what is sent.
    pub driver: WorkloadDriver,
}

/// The stacks of `hosts` hosts with these programs, connected. Everything random follows from the
/// seed. A client whose server is not there has no connection, and its requests are lost.
pub fn stacks(hosts: usize, seed: u64, programs: Vec<ProgramSpec>) -> Vec<NetStack> {
    let mut stacks: Vec<NetStack> = (0..hosts).map(NetStack::new).collect();
    let mut listeners = BTreeMap::new();
    let mut clients = Vec::new();
    for ProgramSpec { host, process, transport, binding, driver } in programs {
        let stack = &mut stacks[host];
        let number = stack.programs.len();
        let shared = match &binding {
            Binding::Port(port) => stack.ports.get(&(transport, *port)).copied(),
            _ => None,
        };
        let sockets = shared.map_or(stack.sockets.len(), |first| stack.programs[first].sockets);
        if shared.is_none() {
            stack.sockets.push(Sockets::new(transport));
        }
        stack.processes.push(process);
        stack.programs.push(SocketProgram::new(driver, sockets));
        match binding {
            Binding::Port(_) if shared.is_some() => {}
            Binding::Port(port) => {
                stack.ports.insert((transport, port), number);
                listeners.insert((transport, host, port), number);
            }
            Binding::Peers { hosts, port, connections } => {
                let servers = hosts.iter().map(|server| (*server, port)).cycle();
                clients.push((host, number, servers.take(connections).collect()));
            }
            Binding::Interface => drop(stack.sockets[sockets].add(Conversation::Frames)),
        }
    }
    connect(&mut stacks, seed, &listeners, &clients);
    for stack in &mut stacks {
        if stack.processes.is_empty() {
            stack.processes.push(Process { core: 0, blocks: true });
        }
    }
    stacks
}

/// A client: its host and its number there, and its connections.
type Client = (usize, usize, Vec<End>);

/// Connects clients, over TCP with the listener that there is at a port of a host.
fn connect(
    stacks: &mut [NetStack],
    seed: u64,
    listeners: &BTreeMap<(Transport, usize, u16), usize>,
    clients: &[Client],
) {
    let bytes = buffer(clients.iter().map(|(.., servers)| servers.len()).sum());
    let mut made = 0;
    for &(host, number, ref servers) in clients {
        for &server in servers {
            made += 1;
            let port = stacks[host].next_port();
            let sockets = stacks[host].programs[number].sockets;
            let transport = stacks[host].sockets[sockets].transport;
            let listener = listeners.get(&(transport, server.0, server.1)).copied();
            let sockets = &mut stacks[host].sockets[sockets];
            match (transport, listener) {
                (Transport::Tcp, Some(listener)) => {
                    let client = (host, port);
                    let [from, to] =
                        connection([client, server], bytes, seed.wrapping_add(2 * made));
                    stacks[host].add_stream(from, number, port, server);
                    stacks[server.0].add_stream(to, listener, server.1, client);
                }
                (Transport::Icmp, _) => drop(sockets.add(Conversation::Echoes(port, server.0))),
                _ => drop(sockets.add(Conversation::Datagrams(port, server))),
            }
            stacks[host].ports.insert((transport, port), number);
        }
    }
}
