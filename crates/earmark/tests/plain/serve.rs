//! `earmark nic serve`, and frontends that connect to it.

use std::path::Path;
use std::time::Instant;

use rustix::process::Signal;
use vhost::driver::{DriverSettings, VirtioDriver};

use crate::support::{Directory, Ended, PATIENCE, Running, earmark, run, soon, unique};

/// A NIC that is served.
pub(crate) struct ServedNic {
    pub(crate) name: String,
    pub(crate) directory: Directory,
    serve: Running,
}

impl ServedNic {
    pub(crate) fn start(options: &[&str]) -> Self {
        let (name, directory) = (unique("served"), Directory::new());
        let sockets = [directory.file("a.sock"), directory.file("b.sock")];
        let words = ["nic", "serve", &sockets[0], &sockets[1], "--name", &name];
        let mut serve = Running::start(&mut earmark(&[&words, options].concat()));
        let line = serve.line();
        assert!(line.contains(&sockets[0]), "{line}");
        Self { name, directory, serve }
    }

    pub(crate) fn socket(&self, port: char) -> String {
        self.directory.file(&format!("{port}.sock"))
    }

    pub(crate) fn driver(&self, port: char) -> VirtioDriver {
        VirtioDriver::connect(self.socket(port).as_ref(), DriverSettings::default()).unwrap()
    }

    pub(crate) fn nic(&self, words: &[&str]) -> Ended {
        run(&[&["nic", "--lab", &self.name], words].concat())
    }

    pub(crate) fn attachment(&self, port: &str) -> serde_json::Value {
        self.nic(&["show", port, "--json"]).json()["ports"][0]["attachment"].clone()
    }

    /// Sends SIGINT; both files are gone then.
    pub(crate) fn end(self) {
        self.serve.signal(Signal::INT);
        self.serve.end().output();
        assert!(self.directory.names().iter().all(|name| !name.ends_with(".sock")));
    }
}

#[test]
fn a_frontend_is_evicted_and_the_next_one_may_come() {
    let nic = ServedNic::start(&[]);
    nic.nic(&["evict", "a0"]).refused(&["nothing is connected to port a0"]);
    nic.nic(&["evict", "c0"]).refused(&["no port c0; there are a0, b0"]);
    let stubborn = nic.driver('a');
    soon("a frontend connects", || nic.attachment("a0")["connected"] == true);
    nic.nic(&["evict", "a0"]).says(&["another frontend may connect"]);
    assert!(stubborn.check().is_err());
    let attachment = nic.attachment("a0");
    assert_eq!((&attachment["connected"], &attachment["lost"]), (&false.into(), &"evicted".into()));
    nic.driver('a').check().unwrap();
}

#[test]
fn drivers_meet_on_a_served_nic() {
    let nic = ServedNic::start(&["--strategy", "disabled", "--queues", "2"]);
    nic.nic(&["show"]).says(&["guest: none yet"]);
    let (mut a, mut b) = (nic.driver('a'), nic.driver('b'));
    let frame = [[0x0B; 6], [0x0A; 6], [0x88; 6]].concat();
    assert!(a.send(&frame).unwrap());
    a.flush();
    let mut came = Vec::new();
    let begin = Instant::now();
    while came.is_empty() {
        assert!(begin.elapsed() < PATIENCE, "no frame came");
        b.receive(8, |frame| came.push(frame.to_vec())).unwrap();
    }
    assert_eq!(came, [frame]);
    nic.nic(&["set", "b0", "strategy", "delay:50"]).output();
    let shown = nic.nic(&["show", "--json"]).json()["ports"].take();
    assert_eq!(shown[1]["queues"][0]["setting"], "delay:50");
    let expected = serde_json::json!(
        {"connected": true, "lost": null, "queue_pairs": 2, "queue_pairs_used": 1}
    );
    assert_eq!(shown[0]["attachment"], expected);
    assert_eq!(shown[0]["counters"]["tx-too-long"], 0);
    nic.nic(&["show"]).says(&["guest: connected, uses 1 of 2 queue pairs"]);
    drop(a);
    soon("a is gone", || nic.attachment("a0")["lost"] == "the guest has disconnected");
    nic.nic(&["show", "a0"]).says(&["the last one was lost: the guest has"]);
    assert_eq!(nic.attachment("b0")["connected"], true);
    nic.end();
}

#[test]
fn stale_sockets_are_replaced_and_live_ones_are_not() {
    let directory = Directory::new();
    let [a, b, c] = ["a.sock", "b.sock", "c.sock"].map(|name| directory.file(name));
    let start = |paths: [&str; 2]| earmark(&["nic", "serve", paths[0], paths[1]]);
    let mut killed = Running::start(&mut start([&a, &b]));
    killed.line();
    run(&["nic", "serve", &c, &b]).refused(&["another program listens there", "b.sock"]);
    assert!(!Path::new(&c).exists(), "what a refusal has made, it removes");
    run(&["nic", "serve", &c, &c]).refused(&["another program listens there"]);
    killed.signal(Signal::KILL);
    killed.end();
    assert!(Path::new(&a).exists(), "no one has removed it");
    let mut next = Running::start(&mut start([&a, &b]));
    assert!(next.line().contains("a.sock"));
    next.signal(Signal::TERM);
    next.end().output();
    assert!(directory.names().is_empty());
    let file = directory.write("file", "precious");
    run(&["nic", "serve", &file, &b]).refused(&["no socket", "choose another path"]);
    run(&["nic", "serve", &a, "/nowhere/b.sock"]).refused(&["listen on /nowhere/b.sock"]);
}
