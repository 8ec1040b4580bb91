//! The kernel for guests that distributions package.

/// What to say where it cannot boot.
pub(crate) const REFUSAL: &[&str] = &["its kernel has ended", "try another kernel: earmark kernel"];

/// Whether it boots on this machine's processor: it is Linux 6.1, which has no room for the
/// registers of AMX.
pub(crate) fn boots() -> bool {
    !std::fs::read_to_string("/proc/cpuinfo").unwrap().contains(" amx_tile")
}
