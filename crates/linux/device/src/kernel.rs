//! The kernel's files, wherever they come from: below `/` of this machine, or from a report of
//! another one.

use std::io;

/// Files below `sys/` and `proc/`, by paths such as `proc/interrupts`.
pub trait KernelFiles {
    /// The bytes of a file, `most` of them at most.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    fn bytes(&self, path: &str, most: u64) -> io::Result<Vec<u8>>;

    /// The names in a directory, in no order.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;

    /// Whether there is such a file or directory.
    fn has(&self, path: &str) -> bool;

    /// The last part of what a link leads to, such as the driver of `device/driver`.
    fn link_name(&self, path: &str) -> Option<String>;

    /// The text of a file. What is not UTF-8 is replaced.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    fn text(&self, path: &str) -> io::Result<String> {
        self.bytes(path, u64::MAX).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The text of a file without space around it; `None` if it is missing, empty or not readable.
    fn word(&self, path: &str) -> Option<String> {
        let text = self.text(path).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// The number in a file; `None` if it is missing, not readable or no such number.
    fn number(&self, path: &str) -> Option<u64> {
        self.word(path)?.parse().ok()
    }
}

/// The directory of a network device; `None`: no device has such a name.
pub fn directory_of(device: &str) -> Option<String> {
    let is_name = (1..16).contains(&device.len()) && !device.contains(['/', '\0']);
    (is_name && device != "." && device != "..").then(|| format!("sys/class/net/{device}"))
}
