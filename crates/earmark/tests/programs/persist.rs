//! What `earmark persist --as` writes, read by the programs that it is for, in networks of our own.

use std::path::Path;

use crate::support::{Directory, Ended, in_network, needs};

/// Runs a script in a network of its own, in which settings of the device `tap` are `rx-frames 9`
/// and `gro-flush-timeout 20000`. `persist FORMAT` writes them into this directory of the machine,
/// over which an empty one is mounted; `reset` sets them to 0, and `look` prints them.
fn reads(directory: &str, script: &str) -> Ended {
    let state = Directory::new();
    in_network(
        &state,
        &format!(
            "mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs {directory}
             sysfs=/sys/class/net/tap/gro_flush_timeout
             reset() {{ ethtool -C tap rx-frames 0; echo 0 >$sysfs; }}
             look() {{ ethtool -c tap | awk '/^rx-frames:/ {{ print $2 }}'; cat $sysfs; }}
             ethtool -C tap rx-frames 9; echo 20000 >$sysfs
             soon() {{ i=0; until \"$@\"; do i=$((i + 1)); [ $i -lt 1200 ]; sleep 0.1; done; }}
             persist() {{ earmark persist tap rx-frames gro-flush-timeout --as \"$@\"; }}
             {script}"
        ),
    )
}

/// What `look` prints once both settings are back.
const BACK: &str = "9\n20000\n";

#[test]
fn udev_sets_what_a_link_file_says() {
    needs!("network", "ethtool", "udevadm");
    let ended = reads(
        "/etc/systemd/network",
        "earmark persist tap rx-frames --as link --write; reset
         udevadm test-builtin net_setup_link /sys/class/net/tap 2>&1; look",
    );
    assert!(ended.output().contains("70-earmark-tap.link"), "{ended:?}");
    assert!(ended.stdout.ends_with("\n9\n0\n"), "{ended:?}");
}

#[test]
fn udev_runs_a_rule() {
    needs!("network", "ethtool", "udevadm");
    let ended = reads(
        "/etc/udev/rules.d",
        "persist udev --write; reset
         udevadm test --action=add /sys/class/net/tap 2>&1; look",
    );
    // `udevadm test` writes attributes, and names what it would run.
    assert!(ended.output().contains("run: '/usr/sbin/ethtool -C tap rx-frames 9'"), "{ended:?}");
    assert!(ended.stdout.ends_with("\n0\n20000\n"), "{ended:?}");
}

#[test]
fn ifup_applies_a_stanza_beside_the_one_with_the_address() {
    needs!("network", "ethtool", "ifup");
    let ended = reads(
        "/etc/network/interfaces.d",
        "persist ifupdown --write; reset; mkdir /run/network
         printf 'iface tap inet static\\naddress 10.9.9.1/24\\n' >/run/interfaces
         echo 'source /etc/network/interfaces.d/*' >>/run/interfaces
         ifup -i /run/interfaces tap; ip -br address show tap; look",
    );
    assert!(ended.output().contains("10.9.9.1/24"), "{ended:?}");
    assert!(ended.stdout.ends_with(BACK), "{ended:?}");
}

#[test]
fn tuned_applies_a_profile_and_its_script() {
    needs!("network", "ethtool", "tuned");
    let ended = reads(
        "/etc/tuned",
        "mount -t tmpfs tmpfs /var/log; mkdir /run/tuned
         printf '[global]\\ndaemon = 1\\n' >/etc/tuned/tuned-main.conf
         persist tuned --write; reset
         tuned --no-dbus --profile earmark-tap >/run/log 2>&1 & trap \"kill $!\" EXIT
         soon grep -q 'static tuning from profile .* applied' /run/log; look",
    );
    assert!(ended.output().ends_with(BACK), "{ended:?}");
}

#[test]
fn the_dispatcher_of_networkmanager_runs_the_script() {
    needs!("network", "ethtool", "NetworkManager", "dbus-daemon");
    // A bus of its own for both of them; udev does not run here, so it is pretended that it has
    // seen the devices.
    let bus = "<busconfig><type>system</type><listen>unix:path=/run/dbus/system_bus_socket</listen>\
               <auth>EXTERNAL</auth><policy context=\"default\">\
               <allow send_destination=\"*\" eavesdrop=\"true\"/><allow eavesdrop=\"true\"/>\
               <allow own=\"*\"/></policy></busconfig>";
    let ended = reads(
        "/etc/NetworkManager",
        &format!(
            "mkdir -p /run/dbus /run/udev/data /etc/NetworkManager/system-connections
             for device in /sys/class/net/*; do :>/run/udev/data/n$(cat $device/ifindex); done
             mount -t tmpfs tmpfs /var/lib
             echo 20000 >/sys/class/net/one/gro_flush_timeout
             earmark persist one gro-flush-timeout --as networkmanager --write
             echo 0 >/sys/class/net/one/gro_flush_timeout
             profile=/etc/NetworkManager/system-connections/x.nmconnection
             nmcli --offline connection add type ethernet con-name x ifname one \
                 ipv4.method manual ipv4.addresses 10.8.8.1/24 ipv6.method disabled >$profile
             chmod 600 $profile
             printf '[main]\\nplugins=keyfile\\n' >/etc/NetworkManager/NetworkManager.conf
             echo '{bus}' >/run/bus.conf
             dbus-daemon --config-file=/run/bus.conf --nofork & pids=$!
             trap 'kill $pids' EXIT
             soon [ -S /run/dbus/system_bus_socket ]
             for dispatcher in /usr/lib*/NetworkManager/nm-dispatcher \
                 /usr/libexec/nm-dispatcher; do [ ! -x $dispatcher ] || break; done
             $dispatcher --persist & pids=\"$pids $!\"
             NetworkManager --no-daemon >/run/log 2>&1 & pids=\"$pids $!\"
             soon nmcli -t general status
             nmcli connection up x
             soon grep 20000 /sys/class/net/one/gro_flush_timeout"
        ),
    );
    assert!(ended.output().ends_with("\n20000\n"), "{ended:?}");
}

#[test]
fn ansible_changes_what_differs_and_nothing_the_second_time() {
    needs!("network", "ethtool", "udevadm", "ansible-playbook");
    let ended = reads(
        "/etc/udev/rules.d",
        "persist ansible --output /run/play.yaml; reset
         mkdir /run/bin; ln -s /bin/true /run/bin/udevadm
         export PATH=/run/bin:$PATH HOME=/run LC_ALL=C.UTF-8
         play() { ansible-playbook -c local -i localhost, /run/play.yaml \
                      -e ansible_python_interpreter=/usr/bin/python3 | grep 'ok='; look; }
         play; cat /etc/udev/rules.d/90-earmark-tap.rules; play",
    );
    let recaps: Vec<&str> = ended.output().lines().filter(|line| line.contains("ok=")).collect();
    assert!(recaps.len() == 2 && recaps.iter().all(|it| it.contains(" failed=0 ")), "{ended:?}");
    assert!(recaps[0].contains(" changed=4 ") && recaps[1].contains(" changed=0 "), "{ended:?}");
    assert_eq!(ended.stdout.matches(BACK).count(), 2, "{ended:?}");
    assert!(ended.stdout.contains("RUN+=\"/usr/sbin/ethtool -C tap rx-frames 9\""), "{ended:?}");
}

#[test]
fn nix_and_yaml_are_what_they_look_like() {
    needs!("network", "ethtool", "udevadm", "nix-instantiate");
    let ended = reads(
        "/etc/udev/rules.d",
        "persist nixos --output /run/module.nix
         nix-instantiate --parse /run/module.nix
         persist nmstate --output /run/state.yaml
         /usr/bin/python3 -c 'import yaml; print(yaml.safe_load(open(\"/run/state.yaml\")))'",
    );
    let rule = "RUN+=\\\"\" + (pkgs).ethtool + \"/bin/ethtool -C tap rx-frames 9\\\"";
    assert!(ended.output().contains(rule), "{ended:?}");
    let parsed = "{'interfaces': [{'name': 'tap', 'type': 'ethernet', 'state': 'up', \
                  'ethtool': {'coalesce': {'rx-frames': 9}}, 'dispatch': {'post-activation': \
                  'echo 20000 > /sys/class/net/tap/gro_flush_timeout\\n'}}]}";
    assert!(ended.stdout.contains(parsed), "{ended:?}");
}

#[test]
fn every_format_is_added_to_and_removed() {
    needs!("network", "ethtool");
    let root = Directory::new();
    let place = root.path().join("root").display().to_string();
    let ended = in_network(
        &root,
        &format!(
            "root={place}; ethtool -C tap rx-frames 9; timeout=/sys/class/net/tap/gro_flush_timeout
             for format in systemd udev networkmanager ifupdown tuned; do
                 echo 20000 >$timeout
                 earmark persist tap gro-flush-timeout --as $format --write --root $root
                 echo 30000 >$timeout
                 earmark persist tap rx-frames --as $format --write --root $root
                 echo has; grep -rhoE 'Settings:.*|gro_flush_timeout.=\"20000\"' $root | sort -u
                 [ -z \"$(find $root -name '.earmark-*')\" ]
                 earmark persist tap rx-frames --as $format --remove --root $root
                 echo left; grep -rhoE 'rx-frames|RxMax' $root || echo nothing
                 earmark persist tap --remove --root $root
                 find $root -type f; find $root -name 'earmark-*'
             done",
        ),
    );
    let said = ended.output();
    assert_eq!(said.matches("left\nnothing\n").count(), 5, "{ended:?}");
    let settings = "has\nSettings: rx-frames 9 gro-flush-timeout 20000\n";
    assert_eq!(said.matches(settings).count(), 3, "{ended:?}");
    assert_eq!(said.matches("has\ngro_flush_timeout}=\"20000\"\n").count(), 2, "{ended:?}");
    assert!(!Path::new(&format!("{place}/etc/tuned/earmark-tap")).exists());
}

#[test]
fn what_does_not_fit_is_refused_or_named() {
    needs!("network", "ethtool");
    let root = Directory::new();
    let ended = in_network(
        &root,
        "ethtool -C tap rx-frames 9; echo 20000 >/sys/class/net/tap/gro_flush_timeout
         earmark persist tap gro-flush-timeout --as link || true
         earmark persist tap rx-frames --as nmstate --write || true
         earmark persist tap rx-frames --as udev --output here || true
         echo mine >mine; earmark persist tap rx-frames --as nixos --output mine || true
         earmark persist tap rx-frames --as udev --write --root root >/dev/null
         mkdir -p root/etc/network; echo 'auto lo' >root/etc/network/interfaces
         earmark persist tap rx-frames --as ifupdown --write --root root >/dev/null
         earmark persist tap rx-frames --as nixos --output new
         earmark persist tap gro-flush-timeout --as nixos --output new
         grep -c 'rx-frames 9' new",
    );
    for words in [
        "link cannot say gro-flush-timeout; those that can: --as systemd, udev,",
        "nmstate is for a repository: --output FILE",
        "udev reads a directory: `--as udev --write` writes there",
        "mine is not one of Earmark's",
        "/etc/udev/rules.d/90-earmark-tap.rules brings back rx-frames 9, too; to end that: earmark \
         persist tap rx-frames --as udev --root root --remove",
        "/etc/network/interfaces reads no /etc/network/interfaces.d; it takes a line: source",
        "persisted before, and kept: rx-frames 9",
    ] {
        assert!(ended.stderr.contains(words), "no {words} in {ended:?}");
    }
    assert!(ended.output().ends_with("\n3\n"), "{ended:?}");
}
