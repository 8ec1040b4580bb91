//! Files below `/sys` and `/proc`.

use netdev::aspm::Aspm;
use netdev::deferral::Deferral;
use netdev::interrupts::irqbalance;
use netdev::netdev::Direction;
use netdev::{DeviceFiles, list_devices, read_device};

use crate::tree::Tree;

fn device(tree: &str, name: &str) -> DeviceFiles {
    read_device(&Tree::unpack(tree).root(), name).unwrap_or_else(|error| panic!("{error}"))
}

fn numbers(device: &DeviceFiles) -> Vec<u32> {
    device.interrupts.iter().map(|(interrupt, _)| interrupt.number).collect()
}

#[test]
fn igb__a_vector_for_each_queue() {
    let device = device("igb", "enp1s0f0");
    assert_eq!((device.driver.as_deref(), device.bus.as_deref()), (Some("igb"), Some("pci")));
    assert_eq!(
        (device.speed_mbps, device.mtu, device.numa_node),
        (Some(1000), Some(1500), Some(0))
    );
    assert_eq!(numbers(&device), [125, 126, 127]);
    let (first, affinity) = &device.interrupts[1];
    assert_eq!((first.total(), first.handlers.join(" ")), (1205, "enp1s0f0-TxRx-0".into()));
    assert_eq!(affinity.allowed.as_deref(), Some(&[0, 1, 2, 3][..]));
    assert_eq!(affinity.effective.as_deref(), Some(&[0][..]));
    assert_eq!(device.interrupts[2].1.allowed, None);

    let steered: Vec<_> = device.steering.iter().map(|one| (one.direction, one.flows)).collect();
    assert_eq!(steered, [(Direction::Rx, 0), (Direction::Rx, 4096), (Direction::Tx, 0)]);
    assert_eq!(device.steering[1].cpus, [2, 3]);
    assert_eq!(device.statistics["rx_missed_errors"], 17);
    let squeezes: Vec<_> = device.softnet.iter().map(|one| (one.cpu, one.squeezed)).collect();
    assert_eq!(squeezes, [(0, 3), (3, 0)]);
    assert_eq!(device.softnet[1].backlog, Some(2));
    assert_eq!((device.limits.netdev_budget, device.limits.busy_read), (Some(300), Some(50)));
    assert_eq!(device.limits.busy_poll, None);
}

#[test]
fn igb__what_its_processors_do() {
    let device = device("igb", "enp1s0f0");
    let names: Vec<_> = device.idle.states.iter().map(|state| &*state.name).collect();
    assert_eq!(names, ["POLL", "C6", "C10"], "state10 comes after state2");
    let deepest = device.idle.deepest().unwrap();
    assert_eq!((&*deepest.name, deepest.latency_us, deepest.entered), ("C6", 133, 5_000_000));
    assert_eq!(device.idle.driver.as_deref(), Some("intel_idle"));
    let governors: Vec<_> = device.frequency.governors.iter().map(String::as_str).collect();
    assert_eq!(governors, ["performance", "powersave"]);
    assert_eq!(device.frequency.min_khz, Some(800_000));
    let machine = device.virtualisation;
    assert_eq!((machine.is_guest, machine.container), (Some(false), None));
    assert_eq!(machine.product.as_deref(), Some("Dell Inc. PowerEdge R430"));
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
    assert_eq!(device("mlx5", "eth2").aspm, None, "where the kernel shows none");
    assert_eq!(irqbalance(&tree.root()), Some(812));
    assert_eq!(irqbalance(&Tree::unpack("mlx5").root()), None);
}

#[test]
fn mlx5__vectors_of_a_function_with_two_ports() {
    // Nothing says which port a vector is for, so both have them all, and no other function's.
    for port in ["eth2", "eth3"] {
        assert_eq!(numbers(&device("mlx5", port)), [170, 171]);
    }
    let deferral = device("mlx5", "eth2").deferral;
    let expected = Deferral {
        gro_flush_timeout: Some(20_000),
        napi_defer_hard_irqs: Some(2),
        threaded: Some(1),
    };
    assert_eq!(deferral, expected);
    assert_eq!(list_devices(&Tree::unpack("mlx5").root()).unwrap(), ["bond0", "eth2", "eth3"]);
    let bond = device("mlx5", "bond0");
    assert_eq!(
        (bond.lower, bond.bus, bond.interrupts.len()),
        (vec!["eth2".into(), "eth3".into()], None, 0)
    );
}

#[test]
fn ena__in_a_virtual_machine_and_a_container() {
    let device = device("ena", "eth0");
    assert_eq!(numbers(&device), [27, 28]);
    assert_eq!((device.deferral.threaded, device.numa_node), (None, None));
    assert_eq!((device.idle.driver, device.idle.states.len()), (None, 0));
    assert_eq!(device.softnet[1].cpu, 1);
    assert_eq!(device.softnet[1].backlog, Some(0));
    let machine = device.virtualisation;
    assert_eq!((machine.is_guest, machine.container.as_deref()), (Some(true), Some("docker")));
}

#[test]
fn e1000e__of_an_old_kernel_that_shares_its_wire() {
    let device = device("e1000e", "em1");
    assert_eq!(device.deferral, Deferral::default());
    assert_eq!(numbers(&device), [16]);
    assert_eq!(device.interrupts[0].0.handlers, ["uhci_hcd:usb3", "em1"]);
    assert_eq!(device.interrupts[0].1.effective, None);
    assert_eq!((device.softnet[0].squeezed, device.softnet[0].backlog), (10, None));
    assert!(device.steering.is_empty() && device.statistics.is_empty());
    assert_eq!(device.virtualisation.is_guest, None);
}

#[test]
fn stmmac__on_a_platform_without_a_bus_that_numbers() {
    let device = device("stmmac", "end0");
    assert_eq!(numbers(&device), [41, 42]);
    assert_eq!(device.bus.as_deref(), Some("platform"));
    assert_eq!(device.idle.deepest().unwrap().latency_us, 220);
    assert_eq!(device.idle.governor.as_deref(), Some("menu"));
    assert_eq!(device.virtualisation.is_guest, None);
}

#[test]
fn virtio_net__in_user_mode_linux() {
    let device = device("uml", "a0");
    assert_eq!((numbers(&device), device.interrupts[0].0.total()), (vec![11], 5));
    assert_eq!(device.driver.as_deref(), Some("virtio_net"));
}

#[test]
fn malformed__is_left_out() {
    let tree = Tree::unpack("malformed");
    tree.add("sys/class/net/eth0/tx_queue_len", b"\xff\xfe");
    tree.add("proc/cpuinfo", b"flags\xff: \xff hypervisor \xfe\n");
    tree.add("sys/hypervisor/type", b"\xff\n");
    let device = read_device(&tree.root(), "eth0").unwrap();
    assert_eq!((device.mtu, device.speed_mbps, device.state.as_ref()), (None, None, None));
    assert_eq!(device.deferral, Deferral::default());
    assert_eq!(device.statistics.len(), 1);
    assert_eq!(device.statistics["tx_packets"], u64::MAX);
    assert_eq!(device.steering.len(), 1);
    assert!(device.steering[0].cpus.is_empty());
    assert!(device.softnet.is_empty() && device.idle.states.is_empty());
    assert_eq!(numbers(&device), [1], "the count is no number, and the handler is what follows");
    assert_eq!(device.virtualisation.hypervisor.as_deref(), Some("\u{fffd}"));
    assert_eq!(device.virtualisation.is_guest, Some(true));

    for name in ["eth1", "eth2", "..", "../../../proc"] {
        assert!(read_device(&tree.root(), name).is_err(), "{name}");
    }
    assert_eq!(list_devices(&tree.root()).unwrap(), ["eth0", "eth1"]);
}
