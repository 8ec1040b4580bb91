//! An endpoint as a queue of ends, for layers above that have their own requests.
//!
//! Such a layer gives each request a context and takes ends in the order in which they come, all of
//! them: it must not use the calls that wait for one request.

use mx::buffers::{Sink, Source};
use mx::status::Refusal;
use nic::time::Instant;

use super::ended::Want;
use super::{Completed, Endpoint, MxError};

impl<S: Source + Send + 'static, R: Sink + Send + 'static> Endpoint<S, R> {
    /// Asks the engine for something, and sends what that makes. The endpoint is locked meanwhile.
    ///
    /// # Errors
    /// What the engine refuses; or the port is broken.
    pub fn with_engine<T>(
        &self,
        ask: impl FnOnce(&mut mx::endpoint::Endpoint<S, R>, Instant) -> Result<T, Refusal>,
    ) -> Result<T, MxError> {
        self.request(ask)
    }

    /// Passes ends to `take`, in their order, `most` at most, and says how many there were. Frames
    /// are received first if no end is known. The endpoint is locked meanwhile: `take` must not
    /// call it.
    ///
    /// # Errors
    /// If the port is broken.
    pub fn drain(&self, most: usize, mut take: impl FnMut(Completed<R>)) -> Result<usize, MxError> {
        const ANY: Want = Want::Any(0, 0);
        let mut core = self.shared.lock();
        if !core.ended.has(ANY) {
            core.check()?;
            core.advance()?;
            core.driven_at = core.now();
        }
        let mut taken = 0;
        while taken < most
            && let Some(completed) = core.ended.take(ANY)
        {
            take(completed);
            taken += 1;
        }
        Ok(taken)
    }
}
