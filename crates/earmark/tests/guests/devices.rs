//! Settings of a guest's own driver: shown, watched, changed, and put back.

use serde_json::Value;

use crate::support::{EARMARK, Lab, lab_run, needs};

#[test]
fn show_and_watch__of_a_guests_nic__know_its_queues() {
    needs!("guests", "ethtool", "ping");
    let mut lab = Lab::start(&["--hosts", "uml", "--queues", "2", "--strategy", "delay:75"]);
    lab.does("ethtool -L a0 combined 2");
    lab.does("ethtool --per-queue a0 queue_mask 0x2 --coalesce rx-usecs 500");
    let shown: Value =
        serde_json::from_str(&lab.does(&format!("{EARMARK} show a0 --json"))).unwrap();
    let device = &shown["devices"][0];
    assert_eq!(device["coalescing"]["parameters"]["rx-usecs"], 75, "{device}");
    assert_eq!(device["queue_coalescing"].as_array().unwrap().len(), 1, "{device}");
    assert_eq!(device["queue_coalescing"][0]["queue"], 1);
    assert_eq!(device["queue_coalescing"][0]["coalesce"]["parameters"]["rx-usecs"], 500);
    assert_eq!(device["delays"][0]["up_to_us"], 500.0, "{device}");
    assert_eq!(device["channels"]["combined"], 2);
    assert_eq!(device["bus"], "virtio");

    let watch =
        format!("ping -q -i 0.01 b >/dev/null & {EARMARK} watch a0 --json --count 1 && kill $!");
    let line: Value = serde_json::from_str(&lab.does(&watch)).unwrap();
    let number = |name: &str| line[name].as_f64().unwrap();
    assert!(number("rx_packets_per_s") > 1.0, "{line}");
    // This guest has another virtio device, and nothing says which interrupt is whose.
    assert_eq!(line["rx_packets_per_interrupt"], Value::Null, "{line}");
    let queues = line["queues"].as_array().unwrap();
    let packets = |queue: &Value| queue["packets_per_s"].as_f64().unwrap();
    let received: f64 = queues.iter().filter(|it| it["direction"] == "rx").map(packets).sum();
    assert_eq!(queues.len(), 4, "{line}");
    assert!(received > 1.0, "{line}");
    lab.end().output();
}

#[test]
fn queues_and_profiles_of_a_guests_own_driver_are_changed_and_put_back() {
    needs!("guests", "ethtool");
    // Linux's virtio-net again, with two queues.
    let script = format!(
        "export EARMARK_STATE_DIR=/run/tune
         ethtool -L a0 combined 2
         usecs() {{ ethtool --per-queue a0 queue_mask 3 --show-coalesce | sed -n 's/^rx-usecs:.//p'; }}
         {EARMARK} apply a0 queue:1:rx-usecs 0 rx-profile 1,n,n_2,n,n_3,n,n_4,n,n_5,n,n | head -2
         usecs
         {EARMARK} apply a0 rx-usecs 40 2>&1 | tail -1
         {EARMARK} apply a0 rx-usecs 40 queue:1:rx-usecs 9 >/dev/null; usecs
         {EARMARK} apply a0 rx-profile 1,n,n 2>&1 | tail -1
         {EARMARK} apply a0 queue:2:rx-usecs 5 2>&1 | tail -1
         {EARMARK} rollback; usecs
         for step in $(seq 1 4 60); do
             if EARMARK_KILL_AT=$step {EARMARK} apply a0 queue:1:rx-usecs 0 >/dev/null 2>&1; then
                 echo end at $step; exit
             fi
             {EARMARK} rollback >/dev/null 2>&1; usecs
         done"
    );
    let options = ["--hosts", "uml", "--queues", "2", "--strategy", "delay:75", "--on", "a"];
    let ended = lab_run(&[&options[..], &[&script]].concat());
    let profile = "rx-profile 1,256,n_8,256,n_64,256,n_128,256,n_256,256,n";
    let changed = [
        "a0: queue:1:rx-usecs 75 -> 0".to_owned(),
        format!("a0: {profile} -> 1,256,n_2,256,n_3,256,n_4,256,n_5,256,n"),
        "75\n0".into(),
    ];
    let said = ended.output();
    assert!(said.starts_with(&changed.join("\n")), "{ended:?}");
    for words in [
        "the queues of a0 have rx-usecs of their own (ethtool -Q)",
        "nothing was changed\n40\n9\n",
        "the rx-profile of a0 has 5 steps, not 1; nothing was changed",
        "a0 has no queue 2: there are 2, from 0 on",
        &format!("a0 is as it was: rx-usecs 75 {profile} queue:1:rx-usecs 75\n75\n75\n"),
    ] {
        assert!(said.contains(words), "no {words} in {ended:?}");
    }
    let (_, killed) = said.rsplit_once("queue:1:rx-usecs 75\n").unwrap();
    let (values, _) = killed.split_once("end at ").unwrap();
    assert!(values.lines().count() >= 8 && values.lines().all(|it| it == "75"), "{ended:?}");
}
