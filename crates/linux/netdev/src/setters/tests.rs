//! Trees of files of every program, and what counts in the end.

use std::fs;
use std::path::PathBuf;

use super::*;

/// A tree in a directory of its own, which goes with it.
struct Files {
    root: PathBuf,
}

impl Files {
    fn new(test: &str, files: &[(&str, &str)]) -> Self {
        let root = format!("earmark-setters-{test}-{}", std::process::id());
        let tree = Self { root: std::env::temp_dir().join(root) };
        let _ = fs::remove_dir_all(&tree.root);
        fs::create_dir(&tree.root).unwrap();
        files.iter().for_each(|(path, text)| tree.add(path, text));
        tree
    }

    fn add(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Each setter as `PROGRAM FILE: NAME VALUE ...`, with `?` if it is not certain, `!` after what
    /// a later one sets again, and `~` after what another one sets in no order.
    fn setters(&self) -> Vec<String> {
        let Setters { found, unread } = read_setters(&Tree::at(&self.root), &device());
        assert_eq!(unread, []);
        let text = |setter: &Setter| {
            let pairs = setter.settings.iter().map(|(name, value)| {
                let again = if setter.overridden.contains(name) { "!" } else { "" };
                let or = if setter.contested.contains(name) { "~" } else { "" };
                format!(" {name} {value}{again}{or}")
            });
            let sure = if setter.is_certain { "" } else { "?" };
            format!("{:?}{sure} {}:{}", setter.by, setter.path, pairs.collect::<String>())
        };
        found.iter().map(text).collect()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn device() -> Traits {
    let (address, driver) = (Some("02:00:00:00:00:0a".into()), Some("e1000e".into()));
    Traits { name: "enp1s0".into(), address, driver, number: Some(7) }
}

#[track_caller]
fn are(test: &str, files: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(Files::new(test, files).setters(), expected);
}

const PROFILE: &str = "etc/NetworkManager/system-connections/lan.nmconnection";

#[test]
fn the_last_one_at_boot_wins() {
    let modprobe =
        ("etc/modprobe.d/a.conf", "options e1000e InterruptThrottleRate=8000 RxIntDelay=0\n");
    let link = (
        "etc/systemd/network/10-a.link",
        "[Match]\nOriginalName=enp*\n[Link]\nRxCoalesceSec=1us\nTxCoalesceSec=1ms\n",
    );
    let udev = (
        "etc/udev/rules.d/a.rules",
        "ACTION==\"add\", NAME==\"enp1s0\", RUN+=\"/sbin/ethtool -C $name rx-usecs 2 rx-frames 2\"\n",
    );
    let ifupdown =
        ("etc/network/interfaces", "iface enp1s0 inet dhcp\n hardware-irq-coalesce-rx-usecs 3\n");
    let manager =
        (PROFILE, "[connection]\ninterface-name=enp1s0\n[ethtool]\ncoalesce-rx-usecs=4\n");
    let tuned = ("etc/tuned/low/tuned.conf", "[net]\ncoalesce=rx-usecs 5\n");
    let active = ("etc/tuned/active_profile", "low\n");
    let all = [modprobe, link, udev, ifupdown, manager, tuned, active];
    let expected = [
        "Modprobe /etc/modprobe.d/a.conf: InterruptThrottleRate 8000! RxIntDelay 0",
        "Link /etc/systemd/network/10-a.link: rx-usecs 1! tx-usecs 1000",
        "Udev /etc/udev/rules.d/a.rules: rx-frames 2 rx-usecs 2!",
        "Ifupdown /etc/network/interfaces: rx-usecs 3!",
        &format!("NetworkManager /{PROFILE}: rx-usecs 4~"),
        "Tuned /etc/tuned/low/tuned.conf: rx-usecs 5~",
    ];
    are("all", &all, &expected);
    // TuneD waits for ifupdown, and not for NetworkManager.
    let without = [&all[..4], &all[5..]].concat();
    let without_manager =
        [&expected[..4], &["Tuned /etc/tuned/low/tuned.conf: rx-usecs 5"]].concat();
    are("without", &without, &without_manager);
    // Without the last, the one before it wins, down to the first.
    for last in 1..6 {
        let found = Files::new("fewer", &all[..last]).setters();
        let expected: Vec<String> = expected[..last].iter().map(ToString::to_string).collect();
        assert_eq!(found[..last - 1], expected[..last - 1]);
        assert_eq!(found[last - 1], expected[last - 1].replace(['!', '~'], ""));
    }
}

#[test]
fn udev_runs_what_its_conditions_allow() {
    let of = |rule: &str| {
        let found = settings_in(Program::Udev, rule, &device());
        found.into_iter().map(|(matches, _)| matches).max()
    };
    let run = "RUN+=\"/usr/sbin/ethtool --coalesce $name rx-usecs 2\"";
    let with = |conditions: &str| of(&format!("{conditions}, {run}\n"));
    assert_eq!(with("SUBSYSTEM==\"net\", ACTION==\"add|change\""), Some(Matches::Yes));
    assert_eq!(with("ACTION==\"remove\""), Some(Matches::No));
    assert_eq!(with("SUBSYSTEM==\"block\""), Some(Matches::No));
    assert_eq!(with("NAME==\"enp*\", DRIVERS==\"e1000*\""), Some(Matches::Yes));
    assert_eq!(with("DRIVERS!=\"e1000e\""), Some(Matches::No));
    assert_eq!(with("ATTR{address}==\"02:00:00:00:00:0A\""), Some(Matches::Yes));
    assert_eq!(with("ATTR{address}==\"02:00:00:00:00:0b\""), Some(Matches::No));
    assert_eq!(with("ATTR{speed}==\"1000\""), Some(Matches::Perhaps));
    assert_eq!(with("KERNEL==\"eth0\""), Some(Matches::Perhaps), "udev may have renamed it");
    assert_eq!(with("KERNEL==\"wl*\""), Some(Matches::No));
    assert_eq!(of(&run.replace("$name", "eth0")), Some(Matches::No), "another device");
    assert_eq!(of(&format!("# {run}")), None);
    assert_eq!(
        of("NAME==\"enp1s0\", RUN+=\"/bin/sh -c 'ip link; ethtool -C %k rx-usecs 9'\""),
        Some(Matches::Yes)
    );
    assert_eq!(of("RUN+=\"ethtool -K $name gro off\""), None, "something else");
    // Rules that are jumped over.
    let jump = |condition: &str| of(&format!("{condition}, GOTO=\"end\"\n{run}\nLABEL=\"end\"\n"));
    assert_eq!(jump("KERNEL!=\"enp*\""), Some(Matches::Yes));
    assert_eq!(jump("NAME!=\"eth0\""), Some(Matches::No));
    assert_eq!(jump("ATTR{speed}!=\"1000\""), Some(Matches::Perhaps));
    assert_eq!(of(&format!("GOTO=\"a\"\nLABEL=\"b\"\nLABEL=\"a\"\n{run}\n")), Some(Matches::Yes));
    // One file hides another of the same name.
    let certain =
        "SUBSYSTEM==\"net\", RUN+=\"ethtool -C enp1s0 adaptive-rx off \\\n rx-usecs 4\"\n";
    let files = [("etc/udev/rules.d/a.rules", ""), ("lib/udev/rules.d/a.rules", certain)];
    are("hidden", &files, &[]);
    are("udev", &files[1..], &["Udev /lib/udev/rules.d/a.rules: adaptive-rx off rx-usecs 4"]);
}

#[test]
fn a_link_file_is_the_one_that_udev_knows() {
    let text = |usecs: &str| format!("[Match]\nType=ether\n[Link]\nRxCoalesceSec={usecs}\n");
    let (first, second) = (text("1us"), text("2us"));
    let files = [
        ("usr/lib/systemd/network/10-a.link", first.as_str()),
        ("usr/lib/systemd/network/20-b.link", second.as_str()),
        ("usr/lib/systemd/network/20-b.link.d/x.conf", "[Link]\nUseAdaptiveRxCoalesce=no\n"),
    ];
    let either = [
        "Link? /usr/lib/systemd/network/10-a.link: rx-usecs 1",
        "Link? /usr/lib/systemd/network/20-b.link: adaptive-rx off rx-usecs 2",
    ];
    are("link", &files, &either);
    let known = ("run/udev/data/n7", "E:ID_NET_LINK_FILE=/lib/systemd/network/20-b.link\n");
    let all = [files[0], files[1], files[2], known];
    are("known", &all, &[&either[1].replace('?', "")]);
    // One that certainly matches counts only if the one before it does not.
    let certain = text("2us").replace("Type=ether", "Driver=e1000e");
    are("before", &[files[0], (files[1].0, &certain), files[2]], &either);
}

#[test]
fn profiles_of_network_manager_are_for_devices() {
    let profile = |lines: &str| {
        let text = format!(
            "[connection]\nuuid=u\ntype=ethernet\n{lines}\n[ethtool]\ncoalesce-rx-usecs=4\n"
        );
        settings_in(Program::NetworkManager, &text, &device())[0].0
    };
    assert_eq!(profile("interface-name=enp1s0"), Matches::Yes);
    assert_eq!(profile("interface-name=enp1s0\nautoconnect=false"), Matches::Perhaps);
    assert_eq!(profile("interface-name=eth0"), Matches::No);
    assert_eq!(profile(""), Matches::Perhaps, "any that is free");
    assert_eq!(profile("[ethernet]\nmac-address=02:00:00:00:00:0A"), Matches::Yes);
    assert_eq!(profile("[ethernet]\nmac-address=02:00:00:00:00:0B"), Matches::No);
    assert_eq!(profile("[match]\ninterface-name=eth*;wl*;"), Matches::No);
    // Two that it may take; then the one that it has taken.
    let text = |uuid: &str| {
        format!(
            "[connection]\nuuid={uuid}\ninterface-name=enp1s0\n[ethtool]\ncoalesce-adaptive-rx=1\n"
        )
    };
    let (one, two) = (text("1"), text("2"));
    let other = "run/NetworkManager/system-connections/x.nmconnection";
    let files = [(PROFILE, one.as_str()), (other, two.as_str())];
    let either = [PROFILE, other].map(|path| format!("NetworkManager? /{path}: adaptive-rx on"));
    are("two", &files, &either.each_ref().map(String::as_str));
    let taken = ("run/NetworkManager/devices/7", "[device]\nconnection-uuid=2\n");
    are("taken", &[files[0], files[1], taken], &[&either[1].replace('?', "")]);
    let older = "DEVICE=enp1s0\nETHTOOL_OPTS=\"-K ${DEVICE} gro off; -C ${DEVICE} rx-usecs 8\"\n";
    let path = "etc/sysconfig/network-scripts/ifcfg-enp1s0";
    are("ifcfg", &[(path, older)], &[&format!("NetworkManager /{path}: rx-usecs 8")]);
    // A dispatcher script for the moment at which a device goes is none.
    let script = "case \"$1 $2\" in \"enp1s0 up\") ethtool -C \"$1\" rx-usecs 7;; esac\n";
    let dispatcher = "etc/NetworkManager/dispatcher.d";
    let files =
        [(format!("{dispatcher}/10-a"), script), (format!("{dispatcher}/pre-down.d/b"), script)];
    let files = files.each_ref().map(|(path, text)| (path.as_str(), *text));
    are("script", &files, &["NetworkManager? /etc/NetworkManager/dispatcher.d/10-a: rx-usecs 7"]);
}

#[test]
fn ifupdown_reads_what_its_file_names() {
    let main = "source interfaces.d/*.cfg\nsource-directory /etc/more\nauto enp1s0\n\
                iface enp2s0 inet dhcp\n hardware-irq-coalesce-rx-usecs 9\n";
    let stanza = "iface enp1s0 inet static\n  address 10.0.0.1/24\n  hardware-irq-coalesce-rx-usecs 0\n  \
                  up ethtool -C $IFACE rx-frames 1 || true\niface enp1s0 inet6 auto\n";
    let files = [
        ("etc/network/interfaces", main),
        ("etc/network/interfaces.d/a.cfg", stanza),
        ("etc/network/interfaces.d/b", stanza),
        ("etc/more/c", "iface enp* inet manual\n ethtool-coalesce-adaptive-rx off\n"),
        ("etc/network/if-up.d/nic", "#!/bin/sh\nethtool -C enp1s0 tx-usecs 8\n"),
        // The script of Debian's package names no device.
        ("etc/network/if-up.d/ethtool", "$ETHTOOL --coalesce \"$IFACE\" $SETTINGS\n"),
    ];
    let expected = [
        "Ifupdown /etc/network/interfaces.d/a.cfg: rx-frames 1 rx-usecs 0",
        "Ifupdown /etc/more/c: adaptive-rx off",
        "Ifupdown /etc/network/if-up.d/nic: tx-usecs 8",
    ];
    are("ifupdown", &files, &expected);
    // One that names itself.
    are("circle", &[("etc/network/interfaces", "source /etc/network/interfaces\n")], &[]);
}

#[test]
fn profiles_of_tuned_have_what_they_include() {
    // What was pasted, with the profile that it includes.
    let pasted = "[main]\nsummary=low latency\ninclude=network-latency\n[net]\ndevices=enp1s0\n\
                  coalesce=rx-usecs 0 tx-usecs 0\n";
    let base = "[sysctl]\nnet.core.busy_read=50\n[net]\ncoalesce=rx-usecs 9, rx-frames: 9\n";
    let files = [
        ("etc/tuned/active_profile", "lowlat\n"),
        ("etc/tuned/lowlat/tuned.conf", pasted),
        ("usr/lib/tuned/network-latency/tuned.conf", base),
    ];
    are("pasted", &files, &["Tuned /etc/tuned/lowlat/tuned.conf: rx-usecs 0 tx-usecs 0"]);
    let inherits = ("etc/tuned/lowlat/tuned.conf", "[main]\ninclude=network-latency\n");
    are(
        "inherits",
        &[files[0], inherits, files[2]],
        &["Tuned /usr/lib/tuned/network-latency/tuned.conf: rx-frames 9 rx-usecs 9"],
    );
    are("inactive", &files[1..], &[]);
    // The first unit that takes a device has it; a profile in /etc may include its own name.
    let units = "[main]\ninclude=lowlat\n[a]\ntype=net\ndevices=!enp1s0\ncoalesce=rx-usecs 1\n[b]\ntype=net\ndevices=enp*\n\
                 coalesce=rx-usecs 2\n[c]\ntype=script\nscript=${i:PROFILE_DIR}/x.sh\n";
    let files = [
        files[0],
        ("etc/tuned/profiles/lowlat/tuned.conf", units),
        ("etc/tuned/profiles/lowlat/x.sh", "ethtool -C enp1s0 rx-frames 3\n"),
        ("usr/lib/tuned/profiles/lowlat/tuned.conf", "[net]\ncoalesce=rx-usecs 7\ndevices=eth0\n"),
    ];
    let expected = [
        "Tuned /etc/tuned/profiles/lowlat/tuned.conf: rx-usecs 2",
        "Tuned /etc/tuned/profiles/lowlat/x.sh: rx-frames 3",
    ];
    are("units", &files, &expected);
}

#[test]
fn options_of_other_drivers_and_other_options_are_left_out() {
    let text = "options e1000e RxIntDelay=0,0 Debug=1 \\\n TxIntDelay=8\noptions igb RxIntDelay=9\n\
                # options e1000e RxAbsIntDelay=1\nblacklist e1000e\n";
    let expected = ["Modprobe /usr/lib/modprobe.d/x.conf: RxIntDelay 0,0 TxIntDelay 8"];
    are("modprobe", &[("usr/lib/modprobe.d/x.conf", text)], &expected);
}

#[test]
fn what_cannot_be_read_is_listed_and_the_rest_is_read() {
    let files = Files::new("unread", &[("etc/modprobe.d/a.conf", "options e1000e RxIntDelay=0\n")]);
    files.add("etc/udev/rules.d/b.rules", "");
    let rules = files.root.join("etc/udev/rules.d/a.rules");
    std::os::unix::fs::symlink("/nowhere", &rules).unwrap();
    let setters = read_setters(&Tree::at(&files.root), &device());
    assert_eq!(setters.found.len(), 1);
    let [unread] = &setters.unread[..] else { panic!("{setters:?}") };
    let said = unread.to_string();
    assert!(said.starts_with(&format!("read {}; move it away: ", rules.display())), "{said}");
    assert!(said.contains("leads nowhere in this tree") && !unread.is_denied, "{said}");
}
