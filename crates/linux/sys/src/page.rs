//! The size of pages of memory.

use std::sync::OnceLock;

/// Bytes of a page, as the C library knows them: rustix looks for them where valgrind has nothing.
pub fn size() -> usize {
    /// What every machine has at least.
    const LEAST: usize = 4096;
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| {
        // SAFETY: it takes a number and touches no memory.
        // JUSTIFICATION: rustix does not get this from the C library.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(size).map_or(LEAST, |size| size.max(LEAST))
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn pages_are_a_power_of_two() {
        assert!(super::size().is_power_of_two());
    }
}
