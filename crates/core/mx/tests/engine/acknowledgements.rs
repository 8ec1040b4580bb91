//! What happens when nothing else does: acknowledgements that wait for company in vain.

use crate::support::{EnginePair, pattern, secs};
use base::time::Duration;
use mx::config::Config;
use mx::wire::FrameType;

#[test]
fn an_acknowledgement_that_nothing_takes_along_goes_out_when_it_is_due() {
    let (mut pair, [to, _]) = EnginePair::connected(Config::default());
    pair.ends[0].isend(pair.now, to, 1, pattern(8), 0).unwrap();
    let acks = |pair: &EnginePair| pair.ends[1].counters().sent[FrameType::Ack.index()];
    pair.run(secs(0));
    let before = acks(&pair);
    pair.run(Duration::from_micros(500));
    assert_eq!(acks(&pair), before + 1);
    pair.run(secs(10));
    assert_eq!((acks(&pair), pair.ends[0].counters().resent), (before + 1, 0));
    assert!(pair.ends.iter_mut().all(|end| end.deadline().is_none()), "nothing is left to do");
}
