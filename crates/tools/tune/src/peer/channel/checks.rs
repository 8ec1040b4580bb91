//! What a host says to `earmark serve`, in any bytes: without the code, and after it has shown it.
//!
//! The first byte says which side is attacked and how; see [`replay`].

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bench::agent::AgentSpec;
use rustix::net::sockopt::set_socket_linger;
use snow::{HandshakeState, StatelessTransportState};
use workload::Transport;

use super::super::allowed::allowed;
use super::super::code::Code;
use super::{MAX_HANDSHAKE, MAX_TEXT, Sender, TAG, answer, builder, greet};

/// What is said at most: the kernel keeps it, as it is not read meanwhile.
const LONGEST: usize = 60_000;

const CODE: &str = "0123-4567-89AB-CDEF-GHJK";

/// Who asks, and who is asked.
const ASKER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 7));
const OWN: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 9));

/// Does what the first byte says:
///
/// | byte modulo 4 | |
/// |---|---|
/// | 0 | the rest instead of a greeting; or a good greeting, one byte of which may be another |
/// | 1 | the rest instead of the answer to a greeting |
/// | 2 | messages after a good handshake: texts, and what is none |
/// | 3 | the rest as an order for an agent |
///
/// # Panics
/// If a promise is not kept.
pub fn replay(bytes: &[u8]) {
    let Some((how, rest)) = bytes.split_first() else { return };
    match how % 4 {
        0 => greeted(how / 4, rest),
        1 => {
            let (mut here, there) = pair();
            say(&mut here, rest);
            assert!(greet(there, &code(), soon()).is_err(), "that host has not the code");
        }
        2 => paired(rest),
        _ => ordered(rest),
    }
}

/// No answer to a host without the code is longer than what it said.
fn greeted(how: u8, bytes: &[u8]) {
    let (mut here, there) = pair();
    let mut greeting = initiator().1;
    let is_good = match how {
        0 => {
            greeting = bytes[..bytes.len().min(LONGEST)].to_vec();
            false
        }
        _ => {
            let [at, change, ..] = *bytes else { return };
            let at = usize::from(at) % greeting.len();
            greeting[at] ^= change;
            change == 0
        }
    };
    say(&mut here, &greeting);
    let answered = answer(there, &code(), soon());
    assert_eq!(matches!(answered, Ok(Some(_))), is_good);
    drop(answered);
    let back = hear(&mut here).len();
    assert!(back <= greeting.len(), "{back} bytes back for {}", greeting.len());
}

/// Texts come whole and in order, up to the first message that is none; the first is an order.
fn paired(mut bytes: &[u8]) {
    let (mut here, there) = pair();
    let (mut handshake, greeting) = initiator();
    here.write_all(&greeting).expect("the kernel takes it");
    let (mut sender, mut receiver) =
        answer(there, &code(), soon()).expect("it is good").expect("it has the code");
    let mut reply = [0; 2 + MAX_HANDSHAKE];
    here.read_exact(&mut reply).expect("it was sent");
    handshake.read_message(&reply[2..], &mut []).expect("it has the code, too");
    let keys = handshake.into_stateless_transport_mode().expect("it is done");
    let (mut said, mut texts, mut is_whole) = (Vec::new(), Vec::new(), true);
    while let [what, length, ref rest @ ..] = *bytes
        && said.len() < LONGEST
    {
        let (text, rest) = rest.split_at(usize::from(length).min(rest.len()));
        bytes = rest;
        let text = text.repeat(usize::from(what / 8) + 1);
        let mut message = encrypted(&keys, texts.len() as u64, &text);
        match what % 8 {
            0 => message = framed(&text),
            1 => message = encrypted(&keys, u64::from(length), &text),
            2 => *message.last_mut().expect("it has a tag") ^= length | 1,
            3 => message.truncate(usize::from(length)),
            4 => message[0] ^= length,
            _ => {}
        }
        if message.is_empty() {
            continue;
        }
        let is_next = message == encrypted(&keys, texts.len() as u64, &text);
        said.extend(message);
        is_whole &= is_next;
        if is_whole {
            texts.push(text);
        }
    }
    say(&mut here, &said);
    let mut heard = Vec::new();
    while let Ok(Some(text)) = receiver.receive(Some(soon())) {
        assert!(text.len() <= MAX_TEXT);
        heard.push(text);
    }
    assert!(heard == texts, "{} texts instead of {}", heard.len(), texts.len());
    if let Some(order) = heard.first() {
        ordered(order);
    }
    back(&mut sender, &heard.concat());
    drop((sender, receiver));
    assert!(understood(&keys, &hear(&mut here)) == heard.concat());
}

/// Whatever is ordered, what is played is within its bounds, and for the host that asks alone.
fn ordered(text: &[u8]) {
    let Ok(played) = allowed(text, ASKER, OWN) else { return };
    assert!(played.run <= Duration::from_secs(3_600), "{:?}", played.run);
    let spec = AgentSpec::parse(&played.json).expect("we have written it");
    assert!(spec.transport() == Transport::Tcp && spec.for_host == Some(ASKER));
    let address = spec.socket_address().expect("it has one");
    assert_eq!(address.ip(), if spec.workload.is_server() { OWN } else { ASKER });
    assert!(address.port() >= 1_024);
    let again = allowed(played.json.as_bytes(), ASKER, OWN).expect("it was allowed");
    assert_eq!(again.json, played.json);
}

fn code() -> Code {
    CODE.parse().expect("it is one")
}

/// The end is that of the connection; this is for what hangs.
fn soon() -> Instant {
    Instant::now() + Duration::from_secs(300)
}

fn pair() -> (TcpStream, TcpStream) {
    static LISTENER: OnceLock<TcpListener> = OnceLock::new();
    let listener =
        LISTENER.get_or_init(|| TcpListener::bind("127.0.0.1:0").expect("there are ports"));
    let here = TcpStream::connect(listener.local_addr().expect("it listens")).expect("it listens");
    // It leaves nothing behind in the kernel.
    set_socket_linger(&here, Some(Duration::ZERO)).expect("it takes it");
    let (there, from) = listener.accept().expect("it has connected");
    assert_eq!(Some(from), here.local_addr().ok(), "one at a time connects");
    (here, there)
}

/// A host with the code, and what it says first.
fn initiator() -> (HandshakeState, Vec<u8>) {
    let built = builder(&code().key()).and_then(|builder| Ok(builder.build_initiator()?));
    let mut handshake = built.expect("it is possible");
    let mut greeting = [0; MAX_HANDSHAKE];
    let length = handshake.write_message(&[], &mut greeting).expect("there is room");
    (handshake, framed(&greeting[..length]))
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes()[..], message].concat()
}

fn encrypted(keys: &StatelessTransportState, number: u64, text: &[u8]) -> Vec<u8> {
    let mut message = vec![0; text.len() + TAG];
    keys.write_message(number, text, &mut message).expect("there is room");
    framed(&message)
}

/// The texts of messages, one after the other.
fn understood(keys: &StatelessTransportState, mut bytes: &[u8]) -> Vec<u8> {
    let (mut texts, mut number) = (Vec::new(), 0);
    while let [high, low, ref rest @ ..] = *bytes {
        let (message, rest) = rest.split_at(usize::from(u16::from_be_bytes([high, low])));
        let mut text = vec![0; message.len()];
        let length =
            keys.read_message(number, message, &mut text).expect("it is of the other side");
        texts.extend_from_slice(&text[..length]);
        (bytes, number) = (rest, number + 1);
    }
    texts
}

/// Says all, and that nothing more will come. The other side may have hung up.
fn say(here: &mut TcpStream, bytes: &[u8]) {
    let _ = here.write_all(&bytes[..bytes.len().min(LONGEST)]);
    let _ = here.shutdown(Shutdown::Write);
}

/// All that the other side has said; it has hung up.
fn hear(here: &mut TcpStream) -> Vec<u8> {
    let mut heard = Vec::new();
    match here.read_to_end(&mut heard) {
        // It has not read all.
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
        _ => heard,
    }
}

fn back(sender: &mut Sender, text: &[u8]) {
    sender.send(text).expect("the kernel takes it");
    sender.finish();
}

#[cfg(test)]
#[path = "../../../../../../fuzz/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    use super::replay::replay_corpus;

    #[test]
    fn serve_channel() {
        assert!(replay_corpus("serve_channel", super::replay) > 10);
    }
}
