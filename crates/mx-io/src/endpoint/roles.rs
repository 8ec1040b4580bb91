//! Who drives an endpoint, and who sleeps on its port.

use std::time::Duration;

/// While the application has driven the endpoint within this time, the progress thread leaves it to
/// the application.
pub(super) const LEASE: Duration = Duration::from_micros(500);

/// Who sleeps on the port: a thread of the application, or the progress thread.
pub(super) const LEADER: usize = 0;
pub(super) const PROGRESS: usize = 1;
