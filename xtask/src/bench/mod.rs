//! What a packet costs: instructions, decisions per second, frames per second.
