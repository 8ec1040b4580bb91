//! A vhost-user backend with moderated interrupts: a NIC whose wire leads back to the guest.
//!
//! Short frames are marked and interrupt at once, others wait for at most 50 us. It prints how long
//! each was held.
//!
//! ```console
//! $ cargo run -p earmark-vhost --example backend -- nic.sock
//! ```
//!
//! QEMU connects by `-chardev socket,id=nic,path=nic.sock` and `-netdev vhost-user,chardev=nic`.

use std::error::Error;
use std::os::unix::net::UnixListener;

use base::time::{Duration, Instant};
use nic::port::PortSettings;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use vhost::{Device, DeviceSettings, Fetched, HostPort, HostSide as _};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("use: backend SOCKET")?;
    let device = Device::new(UnixListener::bind(path)?, DeviceSettings::default())?;
    let (moderation, rules) = ("marked:50".parse()?, "length<=100".parse()?);
    let settings = PortSettings { moderation, rules, ..PortSettings::default() };
    let begin = std::time::Instant::now();
    let mut port = HostPort::new(Box::new(device), settings, Instant::ZERO);
    let (mut pool, mut ready) = (Vec::new(), false);
    loop {
        let now = Instant::ZERO + Duration::from(begin.elapsed());
        port.sync(now, ready);
        loop {
            let mut frame = pool.pop().unwrap_or_default();
            match port.transmit(now, 0, &mut frame)? {
                Fetched::Frame => {
                    port.make_room();
                    let back = port.receive(now, frame);
                    pool.extend(back.err().map(nic::port::RejectedFrame::into_frame));
                }
                Fetched::Dropped => {}
                Fetched::Nothing | Fetched::Later(_) => break,
            }
        }
        port.advance(now);
        port.serve(now, &mut pool, &mut |packet, frame| {
            println!("{} bytes, held {}", frame.len(), packet.hold);
        })?;
        let left = port.deadline().map(|at| std::time::Duration::from(at.since(now)));
        let left = left.map(Timespec::try_from).transpose()?;
        let fds = port.host.fds().into_iter();
        let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        ready = poll(&mut fds, left.as_ref())? > 0;
    }
}
