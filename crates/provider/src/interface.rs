//! The address of an interface: `udp:eth0` means the same on each host of a cluster, where
//! addresses differ.

use std::ffi::CStr;
use std::net::Ipv4Addr;
use std::ptr;

use libc::{AF_INET, ifaddrs, sockaddr_in};

use crate::abi::theirs;

/// The first IPv4 address of an interface; `None` if it has none.
pub(crate) fn ipv4_of(interface: &str) -> Option<Ipv4Addr> {
    let mut list = ptr::null_mut();
    // SAFETY: `list` is a variable for the result.
    // JUSTIFICATION: rustix does not list addresses.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return None;
    }
    let found = search(list, interface);
    // SAFETY: `getifaddrs` made the list, and nobody looks at it after this.
    // JUSTIFICATION: nobody else frees it.
    unsafe { libc::freeifaddrs(list) };
    found
}

fn search(list: *const ifaddrs, interface: &str) -> Option<Ipv4Addr> {
    let mut next = theirs!(list);
    while let Some(entry) = next {
        next = theirs!(entry.ifa_next.cast_const());
        // SAFETY: the system names every interface.
        // JUSTIFICATION: C passes text by its address.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) };
        let Some(address) = theirs!(entry.ifa_addr) else { continue };
        if name.to_bytes() == interface.as_bytes() && i32::from(address.sa_family) == AF_INET {
            let address = theirs!(entry.ifa_addr.cast::<sockaddr_in>())?;
            return Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_its_address() {
        assert_eq!(ipv4_of("lo"), Some(Ipv4Addr::LOCALHOST));
        assert_eq!(ipv4_of("no-such-interface"), None);
    }
}
