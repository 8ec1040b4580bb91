//! What many drivers and kernels say of their devices, recorded or written after the kernel's
//! source: files and answers of netlink in `tests/samples/`, each beside what is read of it; and
//! answers put together here.
#![allow(non_snake_case, reason = "test names are subject__case")]

mod recorded;
mod settings;
mod tree;

use std::fmt::Debug;
use std::fs;
use std::path::Path;

use netdev::aspm::Aspm;
use netdev::ethtool::{
    Channels, Coalesce, Eee, Ethtool, Features, Link, LinkState, Rings, Strings, Timestamps,
    parse_flow_rule, parse_rss,
};
use netdev::interrupts::irqbalance;
use netdev::netdev::{parse_napi, parse_queue, parse_queue_counters};
use netdev::tlv::parse;
use netdev::{list_devices, read_device};

use crate::tree::Tree;

/// Holds what was read of a sample against `tests/samples/SAMPLE.read`.
#[track_caller]
fn is_as_before(sample: &str, now: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/samples/{sample}.read"));
    let before = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(now, before, "\n== {}\n{now}==", path.display());
}

#[test]
fn trees__are_read_as_before() {
    for name in ["e1000e", "ena", "igb", "malformed", "mlx5", "stmmac", "uml"] {
        let tree = Tree::unpack(name);
        if name == "malformed" {
            tree.add("sys/class/net/eth0/tx_queue_len", b"\xff\xfe");
            tree.add("proc/cpuinfo", b"flags\xff: \xff hypervisor \xfe\n");
            tree.add("sys/hypervisor/type", b"\xff\n");
            for wrong in ["eth1", "eth2", "..", "../../../proc"] {
                assert!(read_device(&tree.root(), wrong).is_err(), "{wrong}");
            }
        }
        let devices = list_devices(&tree.root()).unwrap();
        let text = |device: &String| match read_device(&tree.root(), device) {
            Ok(files) => format!("{device}: {files:#?}\n"),
            Err(_) => format!("{device}: cannot be read\n"),
        };
        is_as_before(&format!("{name}.tree"), &devices.iter().map(text).collect::<String>());
    }
}

#[test]
fn igb__its_link_to_memory_sleeps() {
    let tree = Tree::unpack("igb");
    let aspm = || read_device(&tree.root(), "enp1s0f0").unwrap().aspm;
    let policy = Some("default".to_owned());
    let unread = Aspm { policy, states: vec!["L1"], l1_exit_us: None };
    assert_eq!(aspm(), Some(unread.clone()), "without root");
    // The slower end counts: `L1 <16us` of the device, `L1 <64us` of the port.
    let config = |code: u32| {
        let mut config = [0; 256];
        (config[0x06], config[0x34], config[0xa0]) = (0x10, 0xa0, 0x10);
        config[0xac..0xb0].copy_from_slice(&(code << 15).to_le_bytes());
        config
    };
    tree.add("sys/bus/0000:01:00.0/config", &config(4));
    assert_eq!(aspm(), Some(unread.clone()), "of one end alone");
    tree.add("sys/bus/config", &config(6));
    assert_eq!(aspm(), Some(Aspm { l1_exit_us: Some(64), ..unread.clone() }));
    tree.add("sys/bus/0000:01:00.0/link/l1_2_aspm", b"1\n");
    assert_eq!(aspm(), Some(Aspm { states: vec!["L1", "L1.2"], ..unread }));
    assert_eq!(irqbalance(&tree.root()), Some(812));
    assert_eq!(irqbalance(&Tree::unpack("mlx5").root()), None);
}

#[test]
fn answers__are_read_as_before() {
    for driver in ["iavf", "igb", "ixgbe", "veth", "virtio_net"] {
        let read = |(request, bytes): (String, Vec<u8>)| match parsed(&request, &bytes) {
            Ok(said) => format!("{request}: {said}\n"),
            Err(why) => panic!("{driver}, {request}: {why}"),
        };
        is_as_before(
            &format!("{driver}.replies"),
            &recorded::all(driver).map(read).collect::<String>(),
        );
    }
}

/// What an answer says.
fn parsed(request: &str, bytes: &[u8]) -> Result<String, String> {
    fn text<T: Debug, E: ToString>(read: Result<T, E>) -> Result<String, String> {
        read.map(|said| format!("{said:?}")).map_err(|why| why.to_string())
    }
    let words = |bytes: &[u8]| -> Vec<u32> {
        bytes.chunks_exact(4).map(|it| u32::from_ne_bytes(it.try_into().unwrap())).collect()
    };
    match request {
        "coalesce" => text(parse::<Coalesce>(bytes)),
        "rings" => text(parse::<Rings>(bytes)),
        "channels" => text(parse::<Channels>(bytes)),
        "link_modes" => text(parse::<Link>(bytes)),
        "link_state" => text(parse::<LinkState>(bytes)),
        "eee" => text(parse::<Eee>(bytes)),
        "features" => text(parse::<Features>(bytes)),
        "timestamps" => text(parse::<Timestamps>(bytes)),
        "strings" => text(parse::<Strings>(bytes)),
        "napi" => text(parse_napi(bytes)),
        "queues" => text(parse_queue(bytes)),
        "queue_counters" => text(parse_queue_counters(bytes)),
        "rss" => Ok(format!("{:?}", parse_rss(&words(bytes)))),
        // Those that cannot be said are none.
        "rule" => Ok(parse_flow_rule(bytes).map_or("none".into(), |rule| rule.to_string())),
        other => Err(format!("{other} is no request")),
    }
}

#[test]
fn no_such_device__every_reader_says_so() {
    let ethtool = Ethtool::open().unwrap();
    for name in ["no-such", "", "a-name-that-is-far-too-long", "../lo"] {
        assert!(ethtool.coalesce(name).expect_err("there is none").is_no_device(), "{name}");
        assert!(ethtool.driver(name).expect_err("there is none").is_no_device(), "{name}");
        assert!(ethtool.features(name).expect_err("there is none").is_no_device(), "{name}");
    }
    let error = ethtool.rings("no-such").expect_err("there is none").to_string();
    let begin = "read the rings of no-such: No such device (os error 19)";
    assert!(error.starts_with(begin), "{error}");
    assert!(error.ends_with("; list the devices with: ip link"), "{error}");
}
