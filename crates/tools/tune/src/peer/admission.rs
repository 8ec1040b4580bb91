//! How many connections and agents `earmark serve` has at once, in all and of one address.
//!
//! A connection that has not shown the code yet holds a slot for as long as the handshake may
//! take. There is always a slot for the newest: where all are taken, the oldest of its address,
//! or the oldest of all, loses its own. So slow connections, however many, keep out no host that
//! has the code. An agent holds its slot until it has ended, and more of them are refused.

use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, ensure};

use sys::refusals::counted_as;

/// Connections at once that have not shown the code.
const MAX_PENDING: usize = 32;

/// Those of one address.
const MAX_PENDING_PER_ADDRESS: usize = 8;

/// Agents at once.
pub(super) const MAX_AGENTS: usize = 16;

/// Those of one address.
const MAX_AGENTS_PER_ADDRESS: usize = 8;

/// Threads at once. A connection that has lost its slot needs a moment to notice.
const MAX_THREADS: usize = 2 * MAX_PENDING + MAX_AGENTS;

#[derive(Debug, Default)]
pub(super) struct Admission(Mutex<Slots>);

#[derive(Debug, Default)]
struct Slots {
    next: u64,
    threads: usize,
    pending: Vec<Pending>,
    agents: Vec<IpAddr>,
}

#[derive(Debug)]
struct Pending {
    number: u64,
    from: IpAddr,
    stream: TcpStream,
}

#[derive(Debug)]
pub(super) struct AdmissionSlot {
    admission: Arc<Admission>,
    from: IpAddr,
    number: u64,
    is_agent: bool,
}

impl Admission {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot for a new connection; nothing if there are too many threads.
    pub(super) fn enter(
        self: &Arc<Self>,
        from: IpAddr,
        stream: &TcpStream,
    ) -> std::io::Result<Option<AdmissionSlot>> {
        let (from, stream) = (counted_as(from), stream.try_clone()?);
        let mut slots = self.slots();
        if slots.threads >= MAX_THREADS {
            return Ok(None);
        }
        let pending = &mut slots.pending;
        let same = pending.iter().filter(|one| one.from == from).count();
        let oldest = if same >= MAX_PENDING_PER_ADDRESS {
            pending.iter().position(|one| one.from == from)
        } else {
            (pending.len() >= MAX_PENDING).then_some(0)
        };
        if let Some(oldest) = oldest {
            // Its thread notices that the connection has ended.
            let _ = pending.remove(oldest).stream.shutdown(Shutdown::Both);
        }
        let number = slots.next;
        slots.next += 1;
        slots.threads += 1;
        slots.pending.push(Pending { number, from, stream });
        drop(slots);
        Ok(Some(AdmissionSlot { admission: Arc::clone(self), from, number, is_agent: false }))
    }
}

impl AdmissionSlot {
    pub(super) fn start_agent(&mut self) -> Result<()> {
        let mut slots = self.admission.slots();
        let same = slots.agents.iter().filter(|from| **from == self.from).count();
        ensure!(
            same < MAX_AGENTS_PER_ADDRESS,
            "{MAX_AGENTS_PER_ADDRESS} agents are at work for this address; wait until some have \
             ended"
        );
        ensure!(
            slots.agents.len() < MAX_AGENTS,
            "{MAX_AGENTS} agents are at work; wait until some have ended"
        );
        slots.pending.retain(|one| one.number != self.number);
        slots.agents.push(self.from);
        drop(slots);
        self.is_agent = true;
        Ok(())
    }
}

impl Drop for AdmissionSlot {
    fn drop(&mut self) {
        let mut slots = self.admission.slots();
        slots.threads -= 1;
        slots.pending.retain(|one| one.number != self.number);
        if self.is_agent {
            let agents = &mut slots.agents;
            if let Some(at) = agents.iter().position(|from| *from == self.from) {
                agents.swap_remove(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Connections with an address that is made up.
    struct Door {
        listener: TcpListener,
        admission: Arc<Admission>,
    }

    impl Door {
        fn enter(&self, from: &str) -> Option<(TcpStream, AdmissionSlot)> {
            let stream = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
            let (far, _) = self.listener.accept().unwrap();
            let slot = self.admission.enter(from.parse().unwrap(), &far).unwrap()?;
            Some((stream, slot))
        }
    }

    #[test]
    fn agents_are_limited_by_address_and_in_all() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let door = Door { listener, admission: Arc::default() };
        let mut all = Vec::new();
        let mut started = |from: &str| {
            let mut one = door.enter(from).unwrap();
            let started = one.1.start_agent();
            all.push(one);
            started.map_err(|error| error.to_string())
        };
        for _ in 0..MAX_AGENTS_PER_ADDRESS {
            assert_eq!(started("fd00::1"), Ok(()));
        }
        assert!(started("fd00::2").unwrap_err().contains("for this address"));
        for _ in MAX_AGENTS_PER_ADDRESS..MAX_AGENTS {
            assert_eq!(started("10.0.0.1"), Ok(()));
        }
        assert!(started("10.0.0.2").unwrap_err().contains("wait until some have ended"));
        drop(all);
        assert!(door.admission.slots().agents.is_empty());
        assert!(door.enter("10.0.0.2").unwrap().1.start_agent().is_ok());
    }
}
