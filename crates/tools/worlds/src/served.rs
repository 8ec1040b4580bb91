//! A NIC for guests that others start: two vhost-user ports and a cable between them.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use lab;
use lab::dataplane::Handle;
use lab::station::Station;
use nic::moderation::Moderation;
use vhost::Device;

use crate::live::start_plane;
use crate::setup;
use bench::options::{NicOptions, Ports};
use lab::control::Server;

/// A NIC that waits for guests.
pub struct Served {
    // Dropped in this order: who asks the plane, the plane, and last the files.
    control: Server,
    plane: Arc<Handle>,
    pcap: Option<PathBuf>,
    _sockets: Vec<Socket>,
}

impl Served {
    /// Listens on the sockets of ports a0 and b0; `moderation` is in force on those that take it.
    pub fn start(paths: [&Path; 2], options: &NicOptions, moderation: Moderation) -> Result<Self> {
        setup::in_real_time(options)?;
        let mtu = setup::mtu(options)?;
        let stations = Station::all(&lab::names(paths.len()));
        let (mut sockets, mut plans) = (Vec::new(), Vec::new());
        for (number, (path, station)) in paths.into_iter().zip(&stations).enumerate() {
            let (socket, listener) = Socket::listen(path)?;
            sockets.push(socket);
            let device = Device::new(listener, setup::device(options, number, station.mac, mtu))
                .with_context(|| format!("make the port behind {}", path.display()))?;
            plans.push(setup::port_plan(options, number, station.interface(), Box::new(device))?);
        }
        let plane = start_plane(plans, options)?;
        let (ports, lanes) = (options.ports.unwrap_or(Ports::Both), options.lanes(moderation));
        plane.call(move |plane| setup::set(plane, ports, moderation, &lanes))?;
        let control = Server::start(options.name.as_deref(), &plane, &[])?;
        Ok(Self { control, plane, pcap: options.pcap.clone(), _sockets: sockets })
    }

    /// What `earmark nic --lab` calls it.
    pub fn name(&self) -> &str {
        self.control.name()
    }

    /// Ends the NIC; the capture, if there is one, is complete afterwards.
    pub fn finish(self) -> Result<()> {
        setup::finish_capture(&self.plane, self.pcap.as_deref())
    }
}

/// The file of a socket, removed when this is dropped.
#[derive(Debug)]
struct Socket {
    path: PathBuf,
    /// Device and inode: somebody may have put something else there.
    file: (u64, u64),
}

impl Socket {
    fn listen(path: &Path) -> Result<(Self, UnixListener)> {
        let bind = || UnixListener::bind(path);
        let listener = match bind() {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                remove_stale(path)?;
                bind()
            }
            bound => bound,
        };
        let shown = path.display();
        let listener = listener.with_context(|| format!("listen on {shown}"))?;
        let file = fs::symlink_metadata(path).with_context(|| format!("look at {shown}"))?;
        Ok((Self { path: path.to_owned(), file: (file.dev(), file.ino()) }, listener))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let found = fs::symlink_metadata(&self.path).map(|file| (file.dev(), file.ino()));
        if found.is_ok_and(|found| found == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes a socket that no process listens on any more, and nothing else.
fn remove_stale(path: &Path) -> Result<()> {
    let shown = path.display();
    let file = fs::symlink_metadata(path).with_context(|| format!("look at {shown}"))?;
    ensure!(
        file.file_type().is_socket(),
        "listen on {shown}: there is a file that is no socket; choose another path, or remove it"
    );
    // A socket of another type sees whether there is a listener, and disturbs none.
    let probe = UnixDatagram::unbound().and_then(|socket| socket.connect(path));
    match probe {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path)
            .with_context(|| format!("remove {shown}, on which no process listens")),
        _ => bail!(
            "listen on {shown}: another program listens there; end it, or choose another path"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sockets_without_a_listener_are_replaced() {
        let directory = std::env::temp_dir().join(format!("earmark-served-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("port.sock");
        drop(UnixListener::bind(&path).unwrap());
        let (socket, listener) = Socket::listen(&path).unwrap();
        let error = Socket::listen(&path).unwrap_err().to_string();
        assert!(error.contains("another program listens there"), "{error}");
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "looking for a listener does not connect to it");
        drop(socket);
        assert!(!path.exists());
        fs::write(&path, "precious").unwrap();
        let error = Socket::listen(&path).unwrap_err().to_string();
        assert!(error.contains("no socket"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"precious");
        fs::remove_dir_all(&directory).unwrap();
    }
}
