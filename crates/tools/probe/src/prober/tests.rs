use super::*;
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;

#[test]
fn ntp_times_are_nanoseconds_since_1970() {
    let mut packet = ntp_request(9);
    assert_eq!(ntp_answer(&packet), None, "a request is no answer");
    packet[0] = 0x24;
    packet.copy_within(40..48, 24);
    let stamp = ((NTP_EPOCH + 3) << 32) | (1 << 31);
    packet[32..40].copy_from_slice(&stamp.to_be_bytes());
    packet[40..48].copy_from_slice(&stamp.to_be_bytes());
    let far = Far { received: 3_500_000_000, sent: 3_500_000_000 };
    assert_eq!(ntp_answer(&packet), Some((9, Some(far))));
    assert_eq!(ntp_answer(&packet[..30]), None);
}

/// Time for what hangs if it is wrong.
const PATIENCE: Duration = Duration::from_secs(120);

/// What comes of a search for an echo of this kind where a server sends `words` again and
/// again, and reads nothing.
fn found_at_endless(kind: EchoKind, words: &'static [u8]) -> String {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        while stream.write_all(words).is_ok() {}
    });
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let found = Prober::find("127.0.0.1", Some(kind), Some(port));
        sender.send(found.map(drop).unwrap_err().to_string())
    });
    receiver.recv_timeout(PATIENCE).expect("it ends")
}

#[test]
fn a_server_that_never_stops_is_no_echo() {
    for (kind, words) in [
        (EchoKind::Tcp, &[b'x'; 65_536][..]),
        (EchoKind::Memcached, &[b'x'; 65_536]),
        (EchoKind::Memcached, b"VERSION 1\r\nVERSION 1\r\nVERSION 1\r\n"),
        (EchoKind::Memcached, b"\n\n\n\n"),
    ] {
        let why = found_at_endless(kind, words);
        assert!(why.contains(UNASKED), "{kind:?}: {why}");
    }
}

#[test]
fn datagrams_that_are_no_answers_are_passed_over_but_not_without_end() {
    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut prober = Prober::open(far.local_addr().unwrap(), EchoKind::Udp).unwrap();
    prober.request(7, 0, Length::Short).unwrap();
    let (_, here) = far.recv_from(&mut [0; 64]).unwrap();
    // All of a batch that the socket has room for is one call of `receive`.
    let mut send = |words: &[u8], count: u32| {
        (0..count).for_each(|_| assert!(far.send_to(words, here).is_ok()));
        prober.receive()
    };
    let mut sent = 0;
    while sent + 64 <= MAX_UNASKED {
        assert!(send(b"no answer", 64).unwrap().is_none());
        sent += 64;
    }
    let answer = send(&echo::request(7, 0), 1).unwrap().unwrap();
    assert_eq!(answer.number, 7);
    let refusal = send(b"no answer", 64).unwrap_err().to_string();
    assert_eq!(refusal, UNASKED);
}

#[test]
fn a_server_that_does_not_read_is_given_up_once_for_all() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut stream = TcpStream::connect(server.local_addr().unwrap()).unwrap();
    stream.set_nonblocking(true).unwrap();
    let words = vec![0; 64 << 20];
    let mut patience = Duration::from_millis(50);
    for _ in 0..2 {
        let late = write_whole(&mut stream, &words, &mut patience).unwrap_err();
        assert_eq!((late.kind(), patience), (ErrorKind::TimedOut, Duration::ZERO));
    }
}
