//! Orders of messages.
