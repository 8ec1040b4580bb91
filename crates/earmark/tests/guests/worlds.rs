//! The model world says what guests in virtual time say, if a look at the clock costs as much.

use serde_json::Value;

use crate::support::results::{TICK_US, number};
use crate::support::{needs, run_line};

const SETTINGS: &str = "disabled,delay:75,throttle:125,periodic:75,quiet:20/75,itr:3,marked:75";

/// What a world says of every setting.
fn results(world: &str, words: &str) -> Vec<Value> {
    let always = "--duration 0.02 --warmup 0.01 --rounds 1 --seed 1 --json";
    let ended = run_line(&format!("bench --world {world} {always} {words}"));
    ended.json()["results"].as_array().unwrap().clone()
}

/// Requires that both worlds give the same means, within a look at the clock.
#[track_caller]
fn agree(words: &str) {
    let model = results("model --machine ideal,clock=256", words);
    let guests = results("virtual", words);
    assert_eq!(model.len(), guests.len());
    for (ours, theirs) in model.iter().zip(&guests) {
        let [ours_us, theirs_us] =
            [ours, theirs].map(|result| number(&result["latency_us"], "mean"));
        let what = format!("{words}, {}: {ours_us} us, guests {theirs_us}", ours["setting"]);
        assert!((ours_us - theirs_us).abs() <= TICK_US, "{what}");
    }
}

#[test]
fn model_and_guests_agree_about_round_trips() {
    needs!("guests");
    for experiment in ["udp-rr", "tcp-rr", "mx-pingpong", "mx-misorder"] {
        agree(&format!("{experiment} --compare {SETTINGS}"));
    }
    agree("udp-rr --rate 5000 --compare disabled,delay:75");
    // From the middle on, so that both decide from the same packets.
    agree("udp-rr --strategy disabled --change-to adaptive");
}

#[test]
fn model_and_guests_agree_about_hosts_that_cost_time() {
    needs!("guests");
    for costs in [
        "--interrupt-cost 191 --packet-cost 774 --send-cost 500",
        "--interrupt-cost 0,3000 --wakeup-cost 5000,0 --idle-after 20000",
    ] {
        agree(&format!("ping --compare disabled,throttle:125,quiet:20/75 {costs}"));
    }
}
