//! A message over UDP, from one process to another. Without an argument it waits for one:
//!
//! ```console
//! $ cargo run -p earmark-mx-io --example message_over_udp
//! waiting at 7f:00:00:01:a6:3c/1
//! $ cargo run -p earmark-mx-io --example message_over_udp -- 7f:00:00:01:a6:3c/1
//! ```

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use mx::config::Config;
use mx::matching::Match;
use mx_io::discovery::Peers;
use mx_io::endpoint::{Endpoint, EndpointOptions};
use mx_io::port;

const TIMEOUT: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn Error>> {
    let port = port::open(&"udp:127.0.0.1".parse()?, 1)?;
    let (config, options) = (Config::default(), EndpointOptions::default());
    let endpoint = Endpoint::<Bytes, Vec<u8>>::open(port, config, options)?;
    if let Some(peer) = std::env::args().nth(1) {
        let address = endpoint.resolve(&peer.parse()?, &Peers::default(), TIMEOUT)?;
        let peer = endpoint.connect(address, 0, TIMEOUT)?;
        let send = endpoint.isend(peer, 7, Bytes::from_static(b"hello"))?;
        endpoint.wait(send, Some(TIMEOUT))?.ok_or("timeout")?.status.result?;
    } else {
        println!("waiting at {}", endpoint.address());
        let receive = endpoint.irecv(None, Match::exact(7), vec![0; 1024])?;
        let received = endpoint.wait(receive, None)?.ok_or("woken up")?;
        received.status.result?;
        let memory = received.sink.ok_or("not a receive")?;
        let message = &memory[..received.status.transferred as usize];
        println!("received: {}", String::from_utf8_lossy(message));
    }
    Ok(endpoint.close(TIMEOUT)?)
}
