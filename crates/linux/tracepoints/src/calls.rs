//! The numbers of system calls that send and receive, for filters on `raw_syscalls`.

use std::ffi::c_long;

/// Calls that send, or may.
pub const SENDING: [c_long; 5] =
    [libc::SYS_sendto, libc::SYS_sendmsg, libc::SYS_sendmmsg, libc::SYS_write, libc::SYS_writev];

/// Calls that receive, or may.
pub const RECEIVING: [c_long; 5] =
    [libc::SYS_recvfrom, libc::SYS_recvmsg, libc::SYS_recvmmsg, libc::SYS_read, libc::SYS_readv];

/// A filter that lets these calls pass.
pub fn filter(calls: &[c_long]) -> String {
    let terms: Vec<String> = calls.iter().map(|call| format!("id == {call}")).collect();
    terms.join(" || ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn filters_name_each_call() {
        assert_eq!(super::filter(&[1, 44]), "id == 1 || id == 44");
    }
}
