#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

/// An enumeration whose values have names.
macro_rules! named {
    ($(#[$about:meta])* pub enum $Type:ident {
        $($(#[$what:meta])* $value:ident $(= $number:literal)? => $name:literal,)+
    }) => {
        $(#[$about])*
        pub enum $Type {
            $($(#[$what])* $value $(= $number)?,)+
        }

        impl $Type {
            /// All of them, in order.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            /// Its name in counters, settings and captures.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }
        }
    };
}

pub mod address;
pub mod buffers;
pub mod config;
pub mod counters;
pub mod endpoint;
pub mod ids;
mod large;
pub mod matching;
pub mod outgoing;
mod peer;
pub mod seq;
pub mod status;
mod waiting;
pub mod wire;
