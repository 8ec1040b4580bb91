//! No thread sleeps through a frame: ports that arm and sleep at random moments.

use base::prng::Prng;
use mx_io::port::{Port, Transmitted};
use rustix::event::PollFlags;

use super::frames::{To, read, send, sleep};
use super::kinds::each;

const ROUNDS: u32 = 10_000;

/// Receives the frame with this number; sleeps when there is none, or the generator says so.
fn receive(port: &mut dyn Port, number: u32, random: &mut Prng) {
    let own = port.endpoint();
    let mut came = false;
    while !came {
        if random.below(4) > 0 && !port.arm().unwrap() {
            assert!(sleep(port, PollFlags::IN), "slept through frame {number}");
            port.clear().unwrap();
        }
        port.receive(1 + random.below(40) as usize, &mut |_, frame: &[u8]| {
            assert_eq!(read(frame, own, 60), number);
            came = true;
        })
        .unwrap();
    }
}

#[test]
fn no_thread_sleeps_through_a_frame() {
    each(|pair| {
        let (to_a, to_b) = (To::port(&*pair.a), To::port(&*pair.b));
        let (a, b) = (&mut pair.a, &mut pair.b);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = Prng::new(1);
                for number in 0..ROUNDS {
                    receive(&mut **b, number, &mut random);
                    send(&mut **b, to_a, &[(number, 60)]);
                }
            });
            let mut random = Prng::new(2);
            for number in 0..ROUNDS {
                send(&mut **a, to_b, &[(number, 60)]);
                receive(&mut **a, number, &mut random);
            }
        });
    });
}

#[test]
fn nothing_to_send_is_drained() {
    each(|pair| {
        let outcome = pair.a.transmit(&mut |room: &mut [u8]| {
            assert!(room.len() >= 576);
            None
        });
        assert_eq!(outcome.unwrap(), Transmitted::Drained);
        assert_eq!(pair.a.counters().calls_out, 0);
    });
}
