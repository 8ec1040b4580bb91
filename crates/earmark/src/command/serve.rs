//! `earmark nic serve`: a NIC for frontends that speak vhost-user.

use std::io::{Write, stdout};
use std::path::Path;

use anyhow::{Context, Result};
use signal_hook::iterator::Signals;
use sys::signals::{ENDING, register};

use bench::applicability::{HostKind, Use};
use bench::experiment::USUAL_SETTING;
use bench::options::NicOptions;
use worlds::served::Served;
use worlds::setup;

/// Serves the NIC until a signal ends it.
pub(crate) fn run(sockets: [&Path; 2], options: &NicOptions) -> Result<()> {
    options.check_taken(&[Use { experiment: None, place: HostKind::Served }])?;
    setup::check(options)?;
    // Before the sockets, so that no signal leaves their files behind.
    let mut signals = register(ENDING, Signals::new).context("take signals")?;
    let moderation = options.only_setting(USUAL_SETTING)?;
    let served = Served::start(sockets, options, moderation)?;
    let name = served.name();
    let [a, b] = sockets.map(Path::display);
    let text = format!(
        "\
Port a0 is {a}, port b0 is {b}; {moderation}.
Connect a vhost-user frontend to each, for example:

  QEMU 10  -machine q35,memory-backend=m0 -object memory-backend-memfd,id=m0,size=256M,share=on
           -chardev socket,id=c0,path={a} -netdev vhost-user,id=n0,chardev=c0
           -device virtio-net-pci,netdev=n0
  DPDK     --in-memory --single-file-segments --no-pci --vdev=net_virtio_user0,path={a}
  UML      virtio_uml.device={a}:1

This NIC is lab {name}: `earmark nic --lab {name} show` prints who is there, and `earmark nic --lab
{name} set b0 rx-usecs 50` changes a port. Ctrl-C ends it.
"
    );
    // Standard output may be closed, which is no reason to end.
    let _ = stdout().write_all(text.as_bytes()).and_then(|()| stdout().flush());
    signals.forever().next();
    served.finish()
}
