//! MX for MPI: a libfabric provider called `earmark`.
//!
//! libfabric loads `libearmark-fi.so` from `FI_PROVIDER_PATH` and calls [`fi_prov_ini`], the only
//! function of this library; all others are in tables that its objects point to. An MPI sees
//! endpoints of type `FI_EP_RDM` with tagged and untagged messages and with remote memory. They
//! travel as MX messages ([`mx_io`]).
//!
//! To run a program of Open MPI or MPICH with it (not a test here: it needs an MPI and a port):
//!
//! ```sh
//! FI_PROVIDER_PATH=target/release FI_PROVIDER=earmark EARMARK_PORT=packet:eth0 mpirun ./program
//! ```
//!
//! | libfabric | MX |
//! |---|---|
//! | a tag of 63 bits, or none | match information: the top bit says which (`bits.rs`) |
//! | remote CQ data | a header of 9 bytes before the message, which announcements take along |
//! | writing to and reading from remote memory | requests, and messages with the bytes (`rma.rs`) |
//! | the buffer of a send | read in place, or copied if it is short (`memory.rs`) |
//! | a receive buffer for several messages | one receive after the other |
//! | an address | six bytes of interface, the number of the endpoint, and a mark (`address.rs`) |
//! | progress, manual or automatic | a thread of the endpoint's, while no other reads a queue |
//!
//! Everything may be called from any thread. The MX endpoint has a lock around the engine, under
//! which ends are passed on, and each queue has one; they are taken in this order.

mod abi;
mod address;
mod av;
mod bits;
mod bound;
#[cfg(any(test, feature = "checks"))]
#[doc(hidden)]
pub mod checks;
mod cntr;
mod cq;
mod domain;
mod endpoint;
mod eq;
mod fabric;
mod fault;
mod info;
mod memory;
mod message;
mod mr;
mod regions;
mod rma;
mod settings;

use std::ptr;

use abi::constants::API_VERSION;
pub use abi::info::Provider;

/// What libfabric keeps of this provider. It never moves, and libfabric alone writes to it.
struct Registered(std::cell::UnsafeCell<Provider>);

// SAFETY: libfabric alone accesses it; it changes it as it loads providers, in one thread.
// JUSTIFICATION: libfabric wants a structure that it may write to, for the life of the process.
unsafe impl Sync for Registered {}

static PROVIDER: Registered = Registered(std::cell::UnsafeCell::new(Provider {
    version: info::VERSION,
    fi_version: API_VERSION,
    context: [ptr::null_mut(); 4],
    name: c"earmark".as_ptr(),
    getinfo: info::getinfo,
    fabric: fabric::open,
    cleanup,
}));

extern "C" fn cleanup() {}

/// What libfabric calls when it has loaded this library.
// SAFETY: no other library that libfabric loads into its own scope is asked for this name.
// JUSTIFICATION: it is the name that libfabric looks up.
#[unsafe(no_mangle)]
pub extern "C" fn fi_prov_ini() -> *mut Provider {
    PROVIDER.0.get()
}
