//! Which NIC a guest finds, and the options of its driver.

use std::fmt;
use std::str::FromStr;

/// The NIC of a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum NicKind {
    /// A virtio-net device: the driver virtio_net.
    #[default]
    Virtio,
    /// Intel's 82574L: the driver e1000e.
    E1000e,
    /// Intel's 82545GM: the driver e1000.
    E1000,
    /// An adaptive virtual function of Intel's larger NICs: the driver iavf.
    Iavf,
}

impl NicKind {
    /// Whether it is one of Intel's, whose driver sets moderation by registers.
    pub fn is_intel(self) -> bool {
        self != Self::Virtio
    }

    /// The driver of Linux.
    pub fn driver(self) -> &'static str {
        match self {
            Self::Virtio => "virtio_net",
            Self::E1000e => "e1000e",
            Self::E1000 => "e1000",
            Self::Iavf => "iavf",
        }
    }
}

/// A parameter of a driver, as on a kernel's command line without the driver's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverOption(String);

impl FromStr for DriverOption {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let word = |part: &str, more: &str| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
        };
        match text.split_once('=') {
            Some((name, value)) if word(name, "_") && word(value, "_-") => Ok(Self(text.into())),
            _ => Err("a parameter is NAME=VALUE, as in InterruptThrottleRate=8000"),
        }
    }
}

impl fmt::Display for DriverOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_a_name_and_a_value() {
        for right in ["RxIntDelay=0", "InterruptThrottleRate=8000", "max_rate=a-b"] {
            assert_eq!(right.parse::<DriverOption>().unwrap().to_string(), right);
        }
        for wrong in ["", "RxIntDelay", "=1", "a=", "a=1 init=/bin/sh", "a b=1", "a=\"1\""] {
            assert!(wrong.parse::<DriverOption>().is_err(), "{wrong}");
        }
    }
}
