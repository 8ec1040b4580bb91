//! The numbers of system calls that send and receive, for filters on `raw_syscalls`.

/// Calls that send, or may.
pub const SENDING: [i64; 5] = [
    libc::SYS_sendto as i64,
    libc::SYS_sendmsg as i64,
    libc::SYS_sendmmsg as i64,
    libc::SYS_write as i64,
    libc::SYS_writev as i64,
];

/// Calls that receive, or may.
pub const RECEIVING: [i64; 5] = [
    libc::SYS_recvfrom as i64,
    libc::SYS_recvmsg as i64,
    libc::SYS_recvmmsg as i64,
    libc::SYS_read as i64,
    libc::SYS_readv as i64,
];

/// A filter that lets these calls pass.
#[must_use]
pub fn filter(calls: &[i64]) -> String {
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
