//! What a device does over time.
