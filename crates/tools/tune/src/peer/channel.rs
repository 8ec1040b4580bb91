//! The control connection: TCP, and on it the Noise protocol with the pairing code.
//!
//! The handshake is `Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s` (noiseprotocol.org): one message from
//! `tune`, one from `serve`, after which each side knows that the other one has the code, and all
//! that follows is encrypted, in order, and by the other one. A recorded first message can be sent
//! again, and starts nothing: keys are new each time.
//!
//! A message is two bytes of length, in network order, and as many bytes. Where the code is another
//! one, `serve` answers with [`WRONG_CODE`]; other connections that it does not want it closes.
//! No answer is longer than what it answers until the other side has sent more than its greeting.

#[cfg(any(test, feature = "checks"))]
pub mod checks;

use std::io::{self, ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use snow::{Builder, HandshakeState, StatelessTransportState};
use sys::streams::{read_full, write_full};

use super::code::Code;

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";

/// Both sides have to agree on it; another version is another protocol.
const PROLOGUE: &[u8] = b"earmark serve 1";

/// The longest text of one message, in bytes.
pub(super) const MAX_TEXT: usize = 16_384;

/// Bytes by which a message is longer than its text.
const TAG: usize = 16;

/// Bytes of each message of a handshake, the longest there are: an ephemeral key and a tag.
const MAX_HANDSHAKE: usize = 48;

/// Instead of the second message of the handshake.
const WRONG_CODE: &[u8] = b"?";

/// How long the other side may take to accept a message, however little of it at a time.
const SEND_WITHIN: Duration = Duration::from_secs(10);

pub(super) struct Sender {
    stream: TcpStream,
    keys: Arc<StatelessTransportState>,
    sent: u64,
}

pub(super) struct Receiver {
    stream: TcpStream,
    keys: Arc<StatelessTransportState>,
    received: u64,
}

/// Pairs with the `earmark serve` at the other end.
pub(super) fn greet(stream: TcpStream, code: &Code, until: Instant) -> Result<(Sender, Receiver)> {
    let mut handshake = builder(&code.key())?.build_initiator()?;
    step(&stream, &mut handshake)?;
    let refused = "it closed the connection: is this address among its --allow, and is it busy?";
    let is_closed = |error: &io::Error| error.kind() != ErrorKind::TimedOut;
    let answer = receive(&stream, Some(until), MAX_HANDSHAKE)
        .map_err(|error| match error.downcast_ref::<io::Error>() {
            Some(cause) if is_closed(cause) => error.context(refused),
            _ => error.context("it does not answer as `earmark serve` does"),
        })?
        .context(refused)?;
    ensure!(answer != WRONG_CODE, "its pairing code is another one; `earmark serve` prints it");
    let read = handshake.read_message(&answer, &mut []);
    read.map_err(|error| anyhow!("it is no `earmark serve` with this code: {error}"))?;
    split(stream, handshake)
}

/// Pairs with the `earmark tune` at the other end; nothing if its code is another one.
pub(super) fn answer(
    stream: TcpStream,
    code: &Code,
    until: Instant,
) -> Result<Option<(Sender, Receiver)>> {
    let mut handshake = builder(&code.key())?.build_responder()?;
    let greeting = receive(&stream, Some(until), MAX_HANDSHAKE)?.context("it said nothing")?;
    // A shorter one would get an answer that is longer than it.
    ensure!(greeting.len() == MAX_HANDSHAKE, "{} bytes are no greeting", greeting.len());
    if handshake.read_message(&greeting, &mut []).is_err() {
        send(&stream, WRONG_CODE)?;
        return Ok(None);
    }
    step(&stream, &mut handshake)?;
    split(stream, handshake).map(Some)
}

fn builder(key: &[u8; 32]) -> Result<Builder<'_>> {
    Ok(Builder::new(PATTERN.parse()?).prologue(PROLOGUE)?.psk(0, key)?)
}

fn step(stream: &TcpStream, handshake: &mut HandshakeState) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut message = [0; MAX_HANDSHAKE];
    let length = handshake.write_message(&[], &mut message)?;
    Ok(send(stream, &message[..length])?)
}

fn split(stream: TcpStream, handshake: HandshakeState) -> Result<(Sender, Receiver)> {
    let keys = Arc::new(handshake.into_stateless_transport_mode()?);
    let receiver = Receiver { stream: stream.try_clone()?, keys: Arc::clone(&keys), received: 0 };
    Ok((Sender { stream, keys, sent: 0 }, receiver))
}

impl Sender {
    pub(super) fn send(&mut self, text: &[u8]) -> io::Result<()> {
        for part in text.chunks(MAX_TEXT) {
            let mut message = vec![0; part.len() + TAG];
            let written = self.keys.write_message(self.sent, part, &mut message);
            let length = written.map_err(io::Error::other)?;
            self.sent += 1;
            send(&self.stream, &message[..length])?;
        }
        Ok(())
    }

    /// Sends what is read until its end, each word at once.
    pub(super) fn carry(&mut self, from: &mut impl Read) -> io::Result<()> {
        let mut chunk = [0; 4_096];
        loop {
            match from.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(read) => self.send(&chunk[..read])?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Says that nothing more will come.
    pub(super) fn finish(&self) {
        // A connection that has broken needs no end.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Ends the connection, and with it what the [`Receiver`] waits for.
    pub(super) fn close(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Receiver {
    /// The next text; nothing at the end of the connection.
    pub(super) fn receive(&mut self, until: Option<Instant>) -> Result<Option<Vec<u8>>> {
        let Some(message) = receive(&self.stream, until, MAX_TEXT + TAG)? else { return Ok(None) };
        let mut text = vec![0; message.len()];
        let read = self.keys.read_message(self.received, &message, &mut text);
        text.truncate(read.context("a message is not from the paired host")?);
        self.received += 1;
        Ok(Some(text))
    }
}

fn send(stream: &TcpStream, message: &[u8]) -> io::Result<()> {
    let length = u16::try_from(message.len()).expect("messages are shorter than 65536 bytes");
    let message = [&length.to_be_bytes(), message].concat();
    write_full(stream, &message, Instant::now() + SEND_WITHIN)
}

/// One message; nothing at the end of the connection.
fn receive(stream: &TcpStream, until: Option<Instant>, longest: usize) -> Result<Option<Vec<u8>>> {
    let mut length = [0; 2];
    if !fill(stream, &mut length, until)? {
        return Ok(None);
    }
    let length = usize::from(u16::from_be_bytes(length));
    ensure!(length <= longest, "a message of {length} bytes is too long");
    let mut message = vec![0; length];
    if length > 0 && !fill(stream, &mut message, until)? {
        bail!("the connection ended in the middle of a message");
    }
    Ok(Some(message))
}

/// Reads until `buffer` is full: false if the connection ends before the first byte. However slowly
/// bytes come, `until` is the end.
fn fill(stream: &TcpStream, buffer: &mut [u8], until: Option<Instant>) -> Result<bool> {
    let filled = read_full(stream, buffer, until)?;
    ensure!(
        filled == 0 || filled == buffer.len(),
        "the connection ended in the middle of a message"
    );
    Ok(filled > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(30)
    }

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (here, listener.accept().unwrap().0)
    }

    #[test]
    fn hosts_with_one_code_understand_each_other() {
        let (here, there) = pair();
        let code = Code::random().unwrap();
        let same = code.clone();
        let far = thread::spawn(move || {
            let (mut sender, mut receiver) = answer(there, &same, soon()).unwrap().unwrap();
            while let Some(text) = receiver.receive(Some(soon())).unwrap() {
                sender.send(&text).unwrap();
            }
        });
        let (mut sender, mut receiver) = greet(here, &code, soon()).unwrap();
        let long = vec![7; MAX_TEXT + 5];
        sender.send(b"short").unwrap();
        sender.send(&long).unwrap();
        sender.finish();
        let mut heard = Vec::new();
        while let Some(text) = receiver.receive(Some(soon())).unwrap() {
            heard.extend(text);
        }
        assert_eq!(heard, [&b"short"[..], &long].concat());
        far.join().unwrap();
    }

    #[test]
    fn another_code_is_refused_with_fewer_bytes_than_it_took_to_ask() {
        let (here, there) = pair();
        let far = thread::spawn(move || answer(there, &Code::random().unwrap(), soon()));
        let Err(refusal) = greet(here, &Code::random().unwrap(), soon()) else { panic!() };
        assert!(refusal.to_string().contains("pairing code is another one"), "{refusal}");
        assert!(far.join().unwrap().unwrap().is_none());
        assert!(WRONG_CODE.len() < MAX_HANDSHAKE);
    }
}
