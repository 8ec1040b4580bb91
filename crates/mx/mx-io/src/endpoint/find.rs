//! Discovery through an endpoint.

use std::time::{Duration, Instant};

use mx::address::Address;
use mx::buffers::{Sink, Source};

use super::Endpoint;
use super::error::MxError;
use crate::discovery::{Asker, DiscoveredEndpoint, NAP, Peers, Target};
use sys::clock;
use sys::seed::seed;

impl<S: Source + Send + 'static, R: Sink + Send + 'static> Endpoint<S, R> {
    /// The endpoints of a host, or of all, that answer within `timeout`, in the order of addresses;
    /// this one is not among them.
    pub fn discover(
        &self,
        host: Option<&str>,
        timeout: Duration,
    ) -> Result<Vec<DiscoveredEndpoint>, MxError> {
        self.ask(host, timeout, |_, _| false)
    }

    /// The address of an endpoint: from its name, the file, or those who answer within `timeout`.
    ///
    /// # Errors
    /// If no host answers, or the port is broken.
    pub fn resolve(
        &self,
        target: &Target,
        peers: &Peers,
        timeout: Duration,
    ) -> Result<Address, MxError> {
        if let Some(address) = target.known(peers) {
            return Ok(address);
        }
        let not_found = || MxError::Resolve { target: target.clone() };
        let Target::Named { host, endpoint } = target else { return Err(not_found()) };
        let is_enough = |asker: &Asker, nonce| asker.knows(nonce, *endpoint);
        let found = self.ask(Some(host), timeout, is_enough)?;
        target.among(&found).ok_or_else(not_found)
    }

    /// Answers to `name` instead of the name of this host, from now on; false if it is none: 1 to
    /// 80 letters, digits, dots, hyphens and underscores.
    pub fn set_host_name(&self, name: &str) -> bool {
        self.shared.lock().asker.rename(name)
    }

    fn ask(
        &self,
        host: Option<&str>,
        timeout: Duration,
        is_enough: impl Fn(&Asker, u64) -> bool,
    ) -> Result<Vec<DiscoveredEndpoint>, MxError> {
        let (nonce, start) = (seed(), Instant::now());
        self.core()?.asker.begin(clock::now(), nonce, host);
        loop {
            let mut core = self.shared.lock();
            let advanced = core.check().and_then(|()| core.advance());
            let is_over = start.elapsed() >= timeout || is_enough(&core.asker, nonce);
            if is_over || advanced.is_err() {
                let found = core.asker.end(nonce);
                return advanced.map(|_| found);
            }
            drop(core);
            std::thread::sleep(NAP);
        }
    }
}
