//! Tests of the command with guests: kernels of their own, most of them in virtual time.
#![allow(non_snake_case, reason = "test names are subject__case")]

#[path = "../support/mod.rs"]
mod support;

mod costs;
mod devices;
mod ethtool;
mod experiments;
mod faults;
mod guest;
mod intel;
mod intel_card;
mod intel_commands;
mod lane;
mod lane_nic;
mod mx;
mod polling;
mod probe;
mod repeat;
mod reproduce;
mod settings;
mod suspension;
mod worlds;

/// How a lab refuses the packaged kernel where that cannot boot.
const PACKAGED_REFUSAL: &[&str] = &["its kernel has ended", "try another kernel: earmark kernel"];

/// Whether the kernel for guests that distributions package boots on this machine's processor: it
/// is Linux 6.1, which has no room for the registers of AMX.
fn packaged_kernel_boots() -> bool {
    !std::fs::read_to_string("/proc/cpuinfo").unwrap().contains(" amx_tile")
}
