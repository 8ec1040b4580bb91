//! `earmark persist`: files that bring settings back at each boot, below a root of the test's own.

use crate::support::{Directory, Ended, in_network, needs};

/// Runs a script in a network of its own, with `$root` for `--root`; that root, which is gone then.
fn below_a_root(script: &str) -> (Ended, String) {
    let state = Directory::new();
    let root = state.path().join("root").display().to_string();
    (in_network(&state, &format!("root={root}\n{script}")), root)
}

#[test]
fn writes_its_own_files_and_removes_them() {
    needs!("network");
    let (ended, _) = below_a_root(
        "earmark persist one 2>&1 || true
         earmark apply one gro-flush-timeout 20us >/dev/null
         earmark persist one
         earmark persist one --write --root $root
         earmark persist one --write --root $root >/dev/null
         cat $root/etc/udev/rules.d/90-earmark-one.rules
         echo 'hello' > $root/etc/udev/rules.d/90-earmark-one.rules
         earmark persist one --write --root $root 2>&1 || true
         earmark persist one --remove --root $root 2>&1 || true
         rm $root/etc/udev/rules.d/90-earmark-one.rules
         earmark persist one --write --root $root >/dev/null
         earmark persist one --remove --root $root
         earmark persist one --remove --root $root
         earmark persist one rx-usecs 2>&1 || true
         earmark persist one rx-usecs=50 2>&1 || true",
    );
    for words in [
        "Earmark has changed nothing of one; apply something first",
        "# /etc/udev/rules.d/90-earmark-one.rules\n# Written by `earmark persist`",
        "way back: earmark persist one --root",
        "NAME==\"one\", ATTR{gro_flush_timeout}=\"20000\"\n",
        "90-earmark-one.rules is not one of Earmark's; move it away",
        "\nremoved: ",
        "\nnothing of one is persisted below",
        "one (driver veth) has no rx-usecs",
        "rx-usecs=50: name the setting alone, as `rx-usecs`",
    ] {
        assert!(ended.output().contains(words), "no {words} in {ended:?}");
    }
}

#[test]
fn adds_to_what_it_wrote_and_finds_it_without_a_journal() {
    needs!("network");
    let (ended, root) = below_a_root(
        "rules=$root/etc/udev/rules.d/90-earmark-one.rules
         earmark apply one gro-flush-timeout 20us napi-defer-hard-irqs 2 >/dev/null
         earmark persist one gro-flush-timeout --write --root $root >/dev/null
         earmark apply one gro-flush-timeout 30us >/dev/null
         earmark persist one napi-defer-hard-irqs --write --root $root >/dev/null
         cat $rules
         rm $EARMARK_STATE_DIR/*.journal; ip link del one
         earmark persist one napi-defer-hard-irqs --remove --root $root
         grep -c gro_flush_timeout $rules; grep -c napi_defer $rules || true
         earmark persist one --remove --root $root
         find $root -type f",
    );
    let rules = format!("{root}/etc/udev/rules.d/90-earmark-one.rules");
    let both = "ATTR{gro_flush_timeout}=\"20000\", ATTR{napi_defer_hard_irqs}=\"2\"\n";
    assert!(ended.output().contains(both), "{ended:?}");
    assert!(ended.stderr.contains("persisted before, and kept: gro-flush-timeout 20000"));
    let rest = format!("written: {rules}\n2\n0\nremoved: {rules}\n");
    assert!(ended.stdout.ends_with(&rest), "{ended:?}");
}

#[test]
fn sees_the_link_files_of_others_below_a_root() {
    needs!("network");
    let (ended, _) = below_a_root(
        "mkdir -p $root/etc/systemd/network $root/usr/lib/systemd/network
         mkdir $root/run && cd $root/usr/lib/systemd/network
         printf '[Match]\nOriginalName=*\n[Link]\nNamePolicy=keep path\n' > 99-default.link
         mkdir 70-earmark-tap.link.d
         printf '[Link]\nRxMaxCoalescedFrames=1\n' > 70-earmark-tap.link.d/x.conf
         printf '[Match]\nType=ether\n[Link]\nMTUBytes=9000\n' > 20-type.link
         earmark apply tap rx-frames 8 >/dev/null
         earmark persist tap --write --root $root >/dev/null
         cat $root/etc/systemd/network/70-earmark-tap.link
         printf '[Match]\nOriginalName=ta*\n[Link]\nWakeOnLan=off\n' > 10-lan.link
         earmark persist tap --write --root $root || true
         ln -s /dev/null $root/etc/systemd/network/10-lan.link
         earmark persist tap --write --root $root >/dev/null",
    );
    let text = "[Link]\nNamePolicy=keep path\nRxMaxCoalescedFrames=8\n";
    assert!(ended.output().contains(text), "{ended:?}");
    for words in [
        "20-type.link may be for tap, which cannot be determined here",
        "99-default.link is for tap, too: 70-earmark-tap.link counts before it",
        "70-earmark-tap.link.d/x.conf says RxMaxCoalescedFrames=1: that wins over",
        "/usr/lib/systemd/network/10-lan.link counts for tap before a file of ours would",
    ] {
        assert!(ended.stderr.contains(words), "no {words} in {ended:?}");
    }
}

#[test]
fn names_what_other_programs_set_and_which_wins() {
    needs!("network");
    let (ended, _) = below_a_root(
        "mkdir -p $root/etc/udev/rules.d $root/etc/tuned/lan
         run='RUN+=\"/usr/sbin/ethtool -C $name rx-frames 2\"'
         echo \"SUBSYSTEM==\\\"net\\\", $run\" > $root/etc/udev/rules.d/50-lan.rules
         echo \"ENV{ID_PATH}==\\\"x\\\", $run\" > $root/etc/udev/rules.d/95-perhaps.rules
         echo lan > $root/etc/tuned/active_profile
         printf '[net]\ndevices=t*\ncoalesce=rx-frames 5 rx-usecs 9\n' > $root/etc/tuned/lan/tuned.conf
         for format in link udev tuned networkmanager; do
           echo $format:; earmark persist tap rx-frames --as $format --root $root 2>&1 >/dev/null
         done",
    );
    let (udev, tuned) = ("udev sets rx-frames 2", "TuneD sets rx-frames 5");
    let after = "after that, and wins";
    let before = "before that, and is overridden";
    let (rules, profile) = ("(/etc/udev/rules.d/50-lan.rules)", "(/etc/tuned/lan/tuned.conf)");
    let perhaps = "udev may set rx-frames 2, too (/etc/udev/rules.d/95-perhaps.rules), which cannot \
                   be determined here\n";
    let expected = format!(
        "link:\n{udev} {after} {rules}\n{perhaps}{tuned} {after} {profile}\n\
         udev:\n{udev} {before} {rules}\n{perhaps}{tuned} {after} {profile}\n\
         tuned:\n{udev} {before} {rules}\n{perhaps}{tuned} {before} {profile}\n\
         networkmanager:\n{udev} {before} {rules}\n{perhaps}{tuned} in no order with that: the last \
         one wins {profile}\n"
    );
    assert_eq!(ended.stdout, expected, "{ended:?}");
}

/// The tree may be another user's, who puts anything into it.
#[test]
fn nothing_in_a_tree_leads_out_of_it_or_never_ends() {
    needs!("network");
    let (ended, root) = below_a_root(
        "mkdir outside; echo precious >victim; umask 077
         rules=$root/etc/udev/rules.d/90-earmark-one.rules
         persist() { echo \"$1:\"; shift; earmark persist \"$@\" --root $root 2>&1 || true; }
         anew() { rm -rf $root; mkdir -p $root/etc/udev/rules.d $root/etc/systemd/network; }
         anew; ln -s $PWD/victim $rules
         persist link one gro-flush-timeout --write; persist link one --remove
         anew; mkfifo $rules
         persist pipe one gro-flush-timeout --write; persist pipe one --remove
         anew; ln -s /dev/zero $rules
         persist zero one gro-flush-timeout --write; persist zero one --remove
         anew; rmdir $root/etc/udev/rules.d; ln -s $PWD/outside $root/etc/udev/rules.d
         persist directory one gro-flush-timeout --write
         anew; mkfifo $root/etc/systemd/network/10-x.link
         persist linkfile tap rx-frames --write
         anew; persist written one gro-flush-timeout --write
         stat -c 'mode %a' $rules
         cat victim; ls outside; find $root -type f",
    );
    let rules = format!("{root}/etc/udev/rules.d/90-earmark-one.rules");
    let nowhere = "`90-earmark-one.rules` is a link that leads nowhere in this tree";
    let pipe = "it is a device or a pipe, and no file";
    let read = |what: &str, path: &str, why: &str| {
        format!("{what}:\nearmark: read {path}; move it away: {why}\n")
    };
    let twice = |what: &str, why: &str| read(what, &rules, why).repeat(2);
    let output = ended.output();
    for words in [
        twice("link", nowhere),
        twice("pipe", pipe),
        twice("zero", nowhere),
        "directory:\nearmark: read ".into(),
        read("linkfile", &format!("{root}/etc/systemd/network/10-x.link"), pipe),
        format!("written:\nwritten: {rules}\n"),
        format!("mode 644\nprecious\n{rules}\n"),
    ] {
        assert!(output.contains(&words), "no {words} in {output}");
    }
}
