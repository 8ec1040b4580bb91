//! Guests that send more than is taken.

use std::io::Write;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;

use super::super::channel::GREETING;
use super::super::protocol::OutputStream;
use super::*;

/// More than may wait anywhere, in bytes.
const FLOOD: usize = 256 << 20;

/// A guest that is no more than its console.
struct Guest {
    /// The guest's end of the console.
    console: UnixStream,
    _owner: UnixStream,
    _kernel: UnixStream,
    address: SocketAddr,
    events: Receiver<(u32, GuestEvent)>,
    hub: JoinHandle<()>,
}

fn guest(name: &str) -> Guest {
    let [(console, ours), (owner, theirs), (kernel, pidfd)] =
        [(); 3].map(|()| UnixStream::pair().unwrap());
    let name = format!("earmark-hub-{}-{name}", std::process::id());
    let address = SocketAddr::from_abstract_name(name).unwrap();
    let (sender, events) = events();
    let ends = Ends {
        kernel: pidfd.into(),
        from_guest: ours.try_clone().unwrap().into(),
        to_guest: ours.into(),
        listener: UnixListener::bind_addr(&address).unwrap(),
        owner: theirs,
        events: sender,
    };
    let hub = start("test", ends).unwrap();
    (&console).write_all(GREETING).unwrap();
    Guest { console, _owner: owner, _kernel: kernel, address, events, hub }
}

/// A frame with the output `bytes` of a program.
fn output(program: u32, bytes: &[u8]) -> Vec<u8> {
    let event = GuestEvent::Output(OutputStream::Output, bytes.to_vec());
    let message = postcard::to_allocvec(&event).unwrap();
    let length = message.len() as u32 + 4;
    [&length.to_le_bytes()[..], &program.to_le_bytes(), &message].concat()
}

#[test]
fn events_that_are_not_taken_wait_in_the_guest_and_none_is_lost() {
    let guest = guest("events");
    // It takes nothing for so long: it is waited for.
    guest.console.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut sent = 0_u32;
    let rest = loop {
        let bytes = sent.to_le_bytes().repeat(1_000);
        let frame = output(7, &bytes);
        let mut written = 0;
        while written < frame.len()
            && let Ok(count) = (&guest.console).write(&frame[written..])
        {
            written += count;
        }
        assert!((sent as usize) * frame.len() < FLOOD, "no bound");
        sent += 1;
        if written < frame.len() {
            break frame[written..].to_vec();
        }
    };
    let Guest { mut console, events, hub, .. } = guest;
    console.set_write_timeout(None).unwrap();
    let end = thread::spawn(move || console.write_all(&rest));
    for number in 0..sent {
        let (program, event) = events.recv().unwrap();
        let bytes = number.to_le_bytes().repeat(1_000);
        assert_eq!((program, event), (7, GuestEvent::Output(OutputStream::Output, bytes)));
    }
    end.join().unwrap().unwrap();
    assert!(events.recv().is_err(), "the console is closed");
    hub.join().unwrap();
}

#[test]
fn program_that_sends_more_than_its_connection_takes_is_given_up() {
    let guest = guest("output");
    let mut stopped = UnixStream::connect_addr(&guest.address).unwrap();
    let order = postcard::to_allocvec(&Order::CloseInput).unwrap();
    stopped.write_all(&(order.len() as u32 + 4).to_le_bytes()).unwrap();
    stopped.write_all(&[&0_u32.to_le_bytes()[..], &order].concat()).unwrap();
    let mut orders = Channel::new(
        guest.console.try_clone().unwrap().into(),
        guest.console.try_clone().unwrap().into(),
    )
    .unwrap();
    let mut heard = || {
        orders.fill().unwrap();
        let (program, bytes) = orders.next().unwrap()?;
        Some((program, message::<Order>(&bytes).unwrap()))
    };
    let first = std::iter::repeat_with(&mut heard).flatten().next();
    assert_eq!(first, Some((1, Order::CloseInput)));
    let frame = output(1, &[0; 4_000]);
    let (mut sent, mut at) = (0, 0);
    let answer = loop {
        assert!(sent < FLOOD, "no bound");
        if let Some(answer) = heard() {
            break answer;
        }
        match (&guest.console).write(&frame[at..]) {
            Ok(count) => (sent, at) = (sent + count, (at + count) % frame.len()),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    };
    assert_eq!(answer, (1, Order::Abandon));
    // What it had taken is there, and then its end.
    io::copy(&mut stopped, &mut io::sink()).unwrap();
}
