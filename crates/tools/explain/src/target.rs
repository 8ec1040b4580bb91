//! What is traced.

/// Who is traced.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// Threads of this process that have a name; of the network only a device, if one is named.
    Threads {
        /// The name.
        name: String,
        /// The device.
        device: Option<String>,
    },
    /// A program that is started later (`Tracer::follow`), under this name.
    Program(String),
    /// Everything that a device receives.
    Device(String),
}
