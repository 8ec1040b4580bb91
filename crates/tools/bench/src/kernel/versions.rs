//! How versions of kernels compare.

/// The numbers in a version, by which versions compare.
pub(super) fn numbers(version: &str) -> Vec<u64> {
    let digits = version.split(|c: char| !c.is_ascii_digit());
    digits.filter_map(|digits| digits.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_their_numbers() {
        assert!(numbers("linux-source-6.12") > numbers("linux-source-6.2"));
        assert!(numbers("6.12.117-1") > numbers("6.12.99-2"));
    }
}
