//! Clients and servers of abstract Unix sockets: whose the other end is, and what it may take.
//!
//! An abstract name belongs to the process that binds it first, whatever its user. A client
//! therefore asks the kernel for the user of the server (`SO_PEERCRED`) before it sends or reads a
//! byte, and talks with its own user's processes and root's only. All of an exchange has one
//! deadline, however the bytes come; their number is for the caller to bound ([`Read::take`]).

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};
use std::{fmt, fs, thread};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::Pid;

use crate::option;
use crate::streams::{is_lack, time_left};

/// How long no client is accepted after one that could not be.
const PAUSE: Duration = Duration::from_millis(100);

/// The longest name, without its prefix, that is listed.
const MAX_NAME: usize = 64;

/// A user of this machine, as this process sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User(pub u32);

impl User {
    /// The user of this process.
    pub fn own() -> Self {
        Self(rustix::process::geteuid().as_raw())
    }

    fn name(self) -> Option<String> {
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        users.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)?.parse() == Ok(self.0)).then(|| name.to_owned())
        })
    }

    /// What `sudo -u` takes for this user.
    pub fn for_sudo(self) -> String {
        self.name().unwrap_or_else(|| format!("'#{}'", self.0))
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name().unwrap_or_else(|| self.0.to_string()))
    }
}

/// Who made the other end of a Unix socket: the one who connected, or who listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Its process; none if it cannot be seen from here.
    pub process: Option<Pid>,
    /// The user whose process it is.
    pub user: User,
}

impl Credentials {
    /// Asks the kernel.
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        let [process, user, _] = option::words(socket, libc::SOL_SOCKET, libc::SO_PEERCRED)?;
        Ok(Self { process: Pid::from_raw(process.cast_signed()), user: User(user) })
    }

    /// Whether it is the user of this process, or root.
    pub fn are_trusted(&self) -> bool {
        self.user == User::own() || self.user == User(0)
    }
}

/// Why a server is not asked.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// There is none, or it takes no connection.
    #[error(transparent)]
    Connect(#[from] io::Error),
    /// It is that of another user.
    #[error("it belongs to user {0}; ask as that user: sudo -u {option} ...", option = .0.for_sudo())]
    Foreign(User),
}

impl From<PeerError> for io::Error {
    fn from(error: PeerError) -> Self {
        match error {
            PeerError::Connect(error) => error,
            PeerError::Foreign(_) => Self::new(ErrorKind::PermissionDenied, error.to_string()),
        }
    }
}

/// A connection to a server of this user or of root, with a deadline.
#[derive(Debug)]
pub struct LocalServer {
    stream: UnixStream,
    user: User,
    until: Instant,
}

impl LocalServer {
    /// Connects to the abstract socket `name`; all of the exchange has to be over `within` so long.
    pub fn connect(name: &str, within: Duration) -> Result<Self, PeerError> {
        let until = Instant::now() + within;
        let stream = open(name, Some(within))?;
        let Credentials { user, .. } = trusted(&stream)?;
        Ok(Self { stream, user, until })
    }

    /// The user whose process it is.
    pub fn user(&self) -> User {
        self.user
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        time_left(self.until).map(Some)
    }
}

fn trusted(stream: &UnixStream) -> Result<Credentials, PeerError> {
    let credentials = Credentials::of(stream)?;
    if credentials.are_trusted() {
        Ok(credentials)
    } else {
        Err(PeerError::Foreign(credentials.user))
    }
}

/// Connects; without `within`, only if that needs no waiting.
fn open(name: &str, within: Option<Duration>) -> io::Result<UnixStream> {
    let flags = match within {
        Some(_) => SocketFlags::CLOEXEC,
        None => SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
    };
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // A server that accepts no connection keeps clients waiting.
    set_socket_timeout(&socket, Timeout::Send, within)?;
    connect(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
    Ok(socket.into())
}

/// The user who listens at the abstract socket `name`.
pub fn owner(name: &str) -> io::Result<User> {
    Ok(Credentials::of(open(name, None)?)?.user)
}

impl Read for LocalServer {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer).map_err(in_time)
    }
}

impl Write for LocalServer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes).map_err(in_time)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The kernel's error for a time-out is that of a call that would block.
fn in_time(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::WouldBlock { ErrorKind::TimedOut.into() } else { error }
}

/// The next client of `listener`; none once the socket is shut down.
pub fn accept(listener: &UnixListener) -> Option<UnixStream> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => return Some(stream),
            Err(error) if error.kind() == ErrorKind::InvalidInput => return None,
            Err(error) if is_lack(&error) => thread::sleep(PAUSE),
            Err(_) => {}
        }
    }
}

/// The abstract sockets of this network namespace on which somebody listens, whose names begin with
/// `prefix` and go on with 1 to 64 visible characters of ASCII: what follows the prefix, in order.
/// Any user can have a name listed that is not there.
pub fn listening(prefix: &str) -> io::Result<Vec<String>> {
    Ok(parse(&fs::read("/proc/net/unix")?, prefix))
}

/// Names may have any bytes, line ends as well: what does not look like one of ours is left out,
/// and what does need not be there.
fn parse(table: &[u8], prefix: &str) -> Vec<String> {
    /// `__SO_ACCEPTCON`, the flag of a socket that listens.
    const LISTENS: &str = "00010000";
    let lines = table.split(|byte| *byte == b'\n').filter_map(|line| str::from_utf8(line).ok());
    let listening = |line: &str| {
        let mut fields = line.split_ascii_whitespace().skip(3);
        let is_listening = fields.next()? == LISTENS;
        let name = fields.nth(3)?.strip_prefix('@')?.strip_prefix(prefix)?;
        let is_ours = (1..=MAX_NAME).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_graphic());
        (is_listening && is_ours && fields.next().is_none()).then(|| name.to_owned())
    };
    let mut found: Vec<_> = lines.filter_map(listening).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;

    const LONG: Duration = Duration::from_secs(120);

    fn bind(test: &str) -> (String, UnixListener) {
        let name = format!("earmark-test/{}/{test}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        (name, UnixListener::bind_addr(&address).unwrap())
    }

    #[test]
    fn own_server_is_asked() {
        let (name, listener) = bind("own");
        let mut server = LocalServer::connect(&name, LONG).unwrap();
        let mut client = accept(&listener).unwrap();
        assert!(Credentials::of(&client).unwrap().are_trusted());
        assert_eq!((server.user(), owner(&name).unwrap()), (User::own(), User::own()));
        server.write_all(b"what?").unwrap();
        client.read_exact(&mut [0; 5]).unwrap();
        client.write_all(b"that").unwrap();
        drop(client);
        let mut answer = String::new();
        server.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "that");
    }

    #[test]
    fn server_of_another_user_is_named_before_a_byte_is_read() {
        assert_eq!(User::own(), User(0), "this test needs root");
        let (sender, names) = std::sync::mpsc::channel();
        let (done, until) = std::sync::mpsc::channel::<()>();
        let stranger = thread::spawn(move || {
            // SAFETY: the system call changes the user of this thread alone, and no memory.
            unsafe { libc::syscall(libc::SYS_setresuid, 4_242, 4_242, 4_242) };
            let (name, _listener) = bind("foreign");
            sender.send(name).unwrap();
            let _ = until.recv();
        });
        let name = names.recv().unwrap();
        assert_eq!(owner(&name).unwrap(), User(4_242));
        let refused = LocalServer::connect(&name, LONG).unwrap_err();
        assert!(matches!(refused, PeerError::Foreign(User(4_242))), "{refused:?}");
        assert!(refused.to_string().contains("sudo -u '#4242'"), "{refused}");
        drop(done);
        stranger.join().unwrap();
    }

    #[test]
    fn bytes_that_keep_coming_do_not_move_the_deadline() {
        let (stream, mut far) = UnixStream::pair().unwrap();
        far.write_all(&[b' '; 100]).unwrap();
        let mut server = LocalServer { stream, user: User::own(), until: Instant::now() + LONG };
        assert_eq!(server.read(&mut [0; 1]).unwrap(), 1);
        server.until = Instant::now();
        assert_eq!(server.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::TimedOut);
        assert_eq!(server.write(&[0]).unwrap_err().kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn server_that_accepts_no_client_is_not_waited_for_without_end() {
        let (name, listener) = bind("full");
        rustix::net::listen(&listener, 0).unwrap();
        let _first = open(&name, None).unwrap();
        assert_eq!(owner(&name).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(LocalServer::connect(&name, Duration::from_millis(1)).is_err());
    }

    #[test]
    fn accepting_ends_with_the_socket() {
        let (_, listener) = bind("ends");
        rustix::net::shutdown(&listener, rustix::net::Shutdown::Both).unwrap();
        assert!(accept(&listener).is_none());
    }

    #[test]
    fn only_names_that_can_be_ours_are_listed() {
        let row = |flags: &str, inode: u64, name: &[u8]| {
            let start = format!("0000000000000000: 00000002 00000000 {flags} 0001 01 {inode} ");
            [start.as_bytes(), name, b"\n"].concat()
        };
        let table = [
            row("00010000", 7, b"@earmark/lab/second"),
            row("00010000", 6, b"@earmark/lab/first"),
            row("00000000", 9, b"@earmark/lab/first"),
            row("00010000", 8, b"@earmark/lab/first"),
            row("00000000", 10, b"@earmark/lab/connected"),
            row("00010000", 11, b"@earmark/lab/\x1b[2Jclear"),
            row("00010000", 12, b"@earmark/lab/\xff\xfe"),
            row("00010000", 13, b"@earmark/lab/two words"),
            row("00010000", 14, b"@earmark/lab/"),
            row("00010000", 15, b"@earmark/lab/a\n: \xff"),
            row("00010000", 16, &[b"@earmark/lab/".as_slice(), &[b'x'; 65]].concat()),
            row("00010000", 17, b"/run/ @earmark/lab/path"),
        ];
        assert_eq!(parse(&table.concat(), "earmark/lab/"), ["a", "first", "second"]);
    }
}
