//! The index finds what a look at every message finds.

use alloc::vec::Vec;
use base::prng::Prng;
use slotmap::SlotMap;

use super::*;
use crate::matching::Match;

fn peers(count: usize) -> Vec<PeerId> {
    let mut names = SlotMap::with_key();
    (0..count).map(|_| names.insert(())).collect()
}

#[test]
fn the_first_that_fits_is_found_among_any() {
    let (mut random, peers) = (Prng::new(7), peers(4));
    let mut names = SlotMap::<MessageId, ()>::with_key();
    let (mut all, mut waiting, mut compared) = (Vec::new(), WaitingMessages::default(), 0);
    let masks = [u64::MAX, u64::MAX, 1, 0];
    for step in 0..200_000_u32 {
        let mut below = |most| random.below(most) as usize;
        // Messages become many, and few again.
        let grows = step / 2_000 % 2 == 0;
        if below(100) < if grows { 60 } else { 40 } {
            let source = peers[below(4)];
            let message =
                Waiting { message: names.insert(()), match_info: below(8) as u64, source };
            all.push(message);
            waiting.push(message);
        } else if below(200) == 0 {
            let source = peers[below(4)];
            let mut gone = Vec::new();
            waiting.remove_from(source, &mut compared, |message| {
                let is_gone = random.chance(500_000);
                gone.extend(is_gone.then_some(message));
                is_gone
            });
            all.retain(|one| !gone.contains(&one.message));
        } else {
            let mask = masks[below(4)];
            let wanted = Match { info: below(8) as u64 & mask, mask };
            let source = (below(2) == 0).then(|| peers[below(4)]);
            let pattern = Pattern { source, wanted };
            let place = all.iter().position(|one| one.fits(&pattern));
            let expected = place.map(|place| all[place].message);
            assert_eq!(waiting.find(&pattern, &mut compared), expected, "{pattern:?}");
            if below(2) == 0 {
                assert_eq!(waiting.take(&pattern, &mut compared), expected, "{pattern:?}");
                place.map(|place| all.remove(place));
            }
        }
        assert_eq!(waiting.len(), all.len() as u32);
    }
    assert!(compared > 0);
}
