//! A message from one endpoint to another, with a loop in place of a wire.

use base::time::{Duration, Instant};
use bytes::Bytes;
use mx::address::{Address, NicId};
use mx::config::Config;
use mx::endpoint::Endpoint;
use mx::matching::Match;
use mx::status::{Event, Refusal};

fn main() -> Result<(), Refusal> {
    let at = |number| Address { nic: NicId([2, 0, 0, 0, 0, number]), endpoint: 0 };
    let open = |number: u8| Endpoint::new(Config::default(), at(number), number.into());
    let mut ends = [1, 2].map(|number| open(number).expect("the default is valid"));
    let now = Instant::ZERO;

    let peer = ends[0].connect(now, at(2), 0, Duration::from_millis(100))?;
    ends[0].isend(now, peer, 42, Bytes::from_static(b"message"), 0)?;
    ends[1].irecv(now, None, Match::exact(42), vec![0; 100], 0)?;

    let mut frame = [0; 1500];
    let mut is_quiet = false;
    while !is_quiet {
        is_quiet = true;
        for from in [0, 1] {
            while let Some(outgoing) = ends[from].transmit(now, &mut frame) {
                println!("{} bytes from endpoint {from}", outgoing.length);
                let sender = ends[from].address().nic;
                ends[1 - from].handle_frame(now, sender, &frame[..outgoing.length]);
                is_quiet = false;
            }
        }
    }
    while let Some(event) = ends[1].poll_event() {
        if let Event::Received(_, status, place) = event {
            let message = &place[..status.transferred as usize];
            println!("received: {}", String::from_utf8_lossy(message));
        }
    }
    Ok(())
}
