//! Names of what an endpoint keeps. A name is used once: what has ended is never confused with what
//! came later.

slotmap::new_key_type! {
    /// A peer, in one life of it: after a restart it has another name.
    pub struct PeerId;

    /// A request to send.
    pub struct SendId;

    /// A request to receive.
    pub struct ReceiveId;

    /// A message that has arrived and that no receive has taken.
    pub struct MessageId;
}
