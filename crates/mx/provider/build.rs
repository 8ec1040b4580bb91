//! How the provider is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // libfabric unloads its providers when a process ends; threads of an endpoint that was never
    // closed would then run in memory that is gone.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
