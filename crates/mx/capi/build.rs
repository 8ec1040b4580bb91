//! Gives the shared library the name that programs remember when they are linked with it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libearmark.so.0");
}
