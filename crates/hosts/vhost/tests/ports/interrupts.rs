//! No driver sleeps through a frame: drivers that arm and sleep at random moments.

use std::time::Duration;

use base::prng::Prng;
use lab::wait::Waiting;
use vhost::driver::{DriverSettings, VirtioDriver};

use super::nic::{Nic, NicSettings};
use super::traffic::frame;

/// Frames that go one way, and then back, in one run.
const FRAMES: u32 = 20_000;

/// Frames that are on their way at once: fewer than the smallest ring has room for, so that none is
/// dropped.
const IN_FLIGHT: u32 = 60;

/// Far longer than any interrupt takes, and no use to who has lost one.
const LONG: Duration = Duration::from_secs(300);

/// Receives all frames in order, and sends each back. Sleeps whenever there is nothing to do, or
/// the generator says so.
fn reflect(mut driver: VirtioDriver, mut random: Prng) {
    let mut next = 0;
    while next < FRAMES {
        let mut batch = Vec::new();
        let budget = 1 + random.below(40) as usize;
        let taken = driver.receive(budget, |frame| batch.push(frame.to_vec())).unwrap();
        for back in &batch {
            assert_eq!(*back, frame(next, 60 + (next % 100) as usize));
            send(&mut driver, back);
            next += 1;
        }
        driver.flush();
        if next < FRAMES && (taken == 0 || random.below(4) == 0) && !driver.arm() {
            assert!(driver.wait(LONG).unwrap(), "slept through frame {next}");
        }
    }
    // What was sent last is still to be taken by the device.
    super::traffic::until("the end", || driver.arm_send().unwrap());
    let _ = driver.wait(Duration::from_millis(200));
}

fn send(driver: &mut VirtioDriver, frame: &[u8]) {
    while !driver.send(frame).unwrap() {
        if !driver.arm_send().unwrap() {
            assert!(driver.wait(LONG).unwrap(), "slept through room to send");
        }
    }
}

/// Sends all frames in bursts, and receives them back.
fn originate(driver: &mut VirtioDriver, mut random: Prng) {
    let (mut sent, mut came) = (0, 0);
    while came < FRAMES {
        let burst = (1 + random.below(40) as u32).min(FRAMES - sent);
        for _ in 0..burst {
            if sent - came >= IN_FLIGHT {
                break;
            }
            send(driver, &frame(sent, 60 + (sent % 100) as usize));
            sent += 1;
        }
        driver.flush();
        let taken = driver
            .receive(64, |back| {
                assert_eq!(back, frame(came, 60 + (came % 100) as usize));
                came += 1;
            })
            .unwrap();
        let idle = taken == 0 && (sent == FRAMES || sent - came >= IN_FLIGHT);
        let sleep = came < FRAMES && sent > came && (idle || random.below(4) == 0);
        if sleep && !driver.arm() {
            assert!(driver.wait(LONG).unwrap(), "slept through frame {came}");
        }
    }
}

#[test]
fn no_driver_loses_an_interrupt() {
    for (seed, setting) in (0..).zip(["disabled", "delay:30", "delay:50+frames:8", "marked:20"]) {
        for waiting in [Waiting::Sleep, Waiting::Spin] {
            println!("{setting}, {waiting}, seed {seed}");
            let nic = Nic::start(NicSettings {
                moderation: setting.parse().unwrap(),
                waiting,
                ..NicSettings::default()
            });
            let settings = DriverSettings { ring_size: 64 << (seed % 3), ..Default::default() };
            let mut a = nic.driver_with(0, settings);
            let b = nic.driver_with(1, settings);
            let mirror = std::thread::spawn(move || reflect(b, Prng::new(seed)));
            originate(&mut a, Prng::new(seed + 100));
            mirror.join().unwrap();
        }
    }
}
