//! A delay, of whatever cause.

use schemars::JsonSchema;
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Delay {
    /// What it is: `coalescing`, `napi-deferral`, `idle-state` and so on.
    pub cause: &'static str,
    /// For how long at most, in microseconds; `None` if nothing says so, or nothing limits it.
    pub up_to_us: Option<f64>,
    /// Whether nothing limits it: it lasts until other packets come.
    pub endless: bool,
    pub what: String,
}

impl Delay {
    pub(crate) fn new(cause: &'static str, up_to_us: Option<f64>, what: impl Into<String>) -> Self {
        Self { cause, up_to_us, endless: false, what: what.into() }
    }
}
