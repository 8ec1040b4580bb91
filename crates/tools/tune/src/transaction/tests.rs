//! Changes that are undone, kept, refused, rounded and ignored, on a device that pretends.

use super::*;
use crate::testing::{FakeDevice, Scratch};

fn begin<'a>(device: &'a FakeDevice, place: &Scratch) -> Transaction<'a> {
    Transaction::prepare(device, &place.store(), "test", Vec::new(), false).unwrap()
}

fn settings(device: &FakeDevice) -> String {
    device.read().unwrap().to_string()
}

#[test]
fn what_the_guard_has_undone_since_the_process_was_stopped_is_neither_kept_nor_true() {
    type End = fn(Transaction<'_>) -> Result<()>;
    let ends: [End; 4] = [
        |transaction| transaction.keep(),
        |transaction| transaction.keep_for(600.0),
        |transaction| transaction.undo(),
        |mut transaction| transaction.check_in_force(),
    ];
    for end in ends {
        let place = Scratch::new();
        let device = FakeDevice::new("eth0", "rx-usecs 3");
        let mut transaction = begin(&device, &place);
        transaction.guard = Some(Guard::that_has_undone());
        transaction.change(&"rx-usecs 50".parse().unwrap()).unwrap();
        let error = end(transaction).unwrap_err().to_string();
        assert!(error.contains("put back as it was while this process was stopped"), "{error}");
        assert_eq!(settings(&device), "rx-usecs 3");
        assert!(place.store().read(device.identity()).unwrap().is_none());
    }
}

#[test]
fn half_of_a_request_is_undone_when_the_other_half_is_refused() {
    let place = Scratch::new();
    let mut device = FakeDevice::new("eth0", "rx-usecs 3 rx-frames 0");
    device.refuses = Some(Setting::RxFrames);
    let mut transaction = begin(&device, &place);
    let change: Change = "rx-usecs 50 rx-frames 8".parse().unwrap();
    assert!(transaction.change(&change).unwrap_err().to_string().contains("rx-frames 8 on eth0"));
    assert_eq!(settings(&device), "rx-usecs 50 rx-frames 0");
    drop(transaction);
    assert_eq!(settings(&device), "rx-usecs 3 rx-frames 0");
}

#[test]
fn what_cannot_be_undone_stays_in_the_journal() {
    let place = Scratch::new();
    let mut device = FakeDevice::new("eth0", "rx-usecs 3");
    let mut transaction = begin(&device, &place);
    transaction.change(&"rx-usecs 50".parse().unwrap()).unwrap();
    std::mem::forget(transaction.guard.take());
    transaction.open = false; // as if it had been killed
    drop(transaction);
    device.ignores = Some(Setting::RxUsecs);
    let held = place.store().hold(device.identity()).unwrap();
    let mut journal = current(&place.store(), &device).unwrap();
    let error = undo(&device, &place.store(), &held, &mut journal).unwrap_err().to_string();
    assert!(error.contains("ethtool -C eth0 rx-usecs 3"), "{error}");
    assert!(place.store().read(device.identity()).unwrap().unwrap().trying.is_some());
    // The next one that is able to undoes it first.
    drop(held);
    device.ignores = None;
    drop(begin(&device, &place));
    assert_eq!(settings(&device), "rx-usecs 3");
}

#[test]
fn what_the_device_really_took_is_reported() {
    let place = Scratch::new();
    let mut device = FakeDevice::new("eth0", "adaptive-rx off rx-usecs 3 rx-frames 0 tx-usecs 0");
    device.quantum = 20;
    device.ignores = Some(Setting::RxFrames);
    let mut transaction = begin(&device, &place);
    let mut change_to = |change: &str| -> Vec<String> {
        let took = transaction.change(&change.parse().unwrap()).unwrap();
        took.iter().map(SettingResult::describe).collect()
    };
    assert_eq!(change_to("rx-usecs 40"), ["rx-usecs 3 -> 40"]);
    assert_eq!(change_to("rx-usecs 50"), ["rx-usecs 40 -> 60: the device made 60 of 50"]);
    assert_eq!(
        change_to("rx-frames 9"),
        ["rx-frames is still 0: the device said yes to 9 and ignored it"]
    );
    assert_eq!(change_to("tx-usecs 0"), ["tx-usecs 0, as it was"]);
    let overridden = change_to("adaptive-rx on rx-usecs 80");
    assert!(overridden[1].contains("add adaptive-rx off"), "{overridden:?}");
}
