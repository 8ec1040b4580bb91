//! Names of numbers below `/proc/sys/net`, as `sysctl(8)` has them.

use std::fmt;
use std::str::FromStr;

const LONGEST: usize = 95;

/// A name such as `net.core.netdev_budget`: a path below `/proc/sys` with dots for slashes, and
/// slashes for the dots in it, as in `net.ipv4.conf.eth0/100.rp_filter`. It leads nowhere else.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sysctl {
    bytes: [u8; LONGEST],
    length: u8,
}

impl Sysctl {
    pub(crate) fn path(&self) -> String {
        format!("proc/sys/{}", swapped(self.as_str()))
    }

    fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..usize::from(self.length)).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

/// Dots for slashes, and slashes for dots.
fn swapped(name: &str) -> String {
    let swap = |letter| match letter {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    name.chars().map(swap).collect()
}

impl FromStr for Sysctl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Whichever separates the first two words, separates all.
        let is_path = text.find(['.', '/']).is_some_and(|at| text.as_bytes()[at] == b'/');
        let name = if is_path { swapped(text) } else { text.to_owned() };
        let refuse = |why: &str| Err(format!("sysctl:{text}: {why}"));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-:@./".contains(c);
        if !name.starts_with("net.") {
            return refuse(
                "the names begin with net. (what is below /proc/sys/net), as in \
                           sysctl:net.core.netdev_budget",
            );
        }
        let path = swapped(&name);
        if !path.split('/').all(|word| !["", ".", ".."].contains(&word)) {
            return refuse("a word between two dots is missing");
        }
        if !name.chars().all(is_plain) || name.len() > LONGEST {
            return refuse("a name has letters, digits and _-:@ alone, 95 at most");
        }
        let mut bytes = [0; LONGEST];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        // No more than LONGEST.
        Ok(Self { bytes, length: name.len() as u8 })
    }
}

impl fmt::Display for Sysctl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Sysctl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
