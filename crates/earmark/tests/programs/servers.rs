//! Real programs on the two hosts, unmodified.

use serde_json::Value;

use crate::support::{Directory, lab_run, needs, once_ready};

#[test]
fn iperf3() {
    needs!("lab", "iperf3");
    let directory = Directory::new();
    let ready = directory.file("ready");
    let server = format!("exec iperf3 -s --forceflush >{ready}");
    let client = once_ready(&ready, "iperf3 -c b -t 1 -J");
    let ended = lab_run(&["--on", "b", &server, "--on", "a", &client]);
    let report: Value = serde_json::from_str(ended.output()).unwrap();
    let received = &report["end"]["sum_received"];
    assert!(received["bits_per_second"].as_f64().unwrap() > 0.0, "{received}");
}

#[test]
fn chrony_on_both_hosts() {
    needs!("lab", "chronyd");
    let directory = Directory::new();
    let common = |side: &str| {
        let files = ["pid", "drift"].map(|name| directory.file(&format!("{side}.{name}")));
        format!("pidfile {}\ndriftfile {}\ncmdport 0\nbindcmdaddress /\n", files[0], files[1])
    };
    let server = "local stratum 1\nallow\n".to_owned() + &common("server");
    let client = "server b iburst minpoll -2 maxpoll -2\n".to_owned() + &common("client");
    let server = directory.write("server.conf", &server);
    let client = directory.write("client.conf", &client);
    // -x leaves the clock alone, -Q asks, prints how far it is off, and ends.
    let ended = lab_run(&[
        "--on",
        "b",
        &format!("exec chronyd -x -d -u root -f {server} 2>/dev/null"),
        "--on",
        "a",
        &format!("exec chronyd -x -Q -t 60 -u root -f {client} 2>&1"),
    ]);
    let offset = ended.output().split("System clock wrong by ").nth(1);
    let offset =
        offset.and_then(|rest| rest.split(' ').next()).unwrap_or_else(|| panic!("{ended:?}"));
    // Both hosts read one clock; half a round trip remains, and chronyd takes none above 3 s.
    assert!(offset.parse::<f64>().unwrap().abs() <= 1.5, "{ended:?}");
}
