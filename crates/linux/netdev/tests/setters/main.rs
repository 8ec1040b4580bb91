//! Trees of files of every program, and what counts in the end.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use netdev::setters::{Program, Setter, Setters, Traits, foreign, read_setters, settings_in};
use sys::files::Tree;

/// A tree in a directory of its own, which goes with it.
struct Files {
    root: PathBuf,
}

impl Files {
    fn new() -> Self {
        let name = format!("earmark-setters-{:x}", sys::seed::seed());
        Self { root: std::env::temp_dir().join(name) }
    }

    fn add(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn tree(&self) -> Tree {
        Tree::at(&self.root)
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

/// As `trees.txt` has it.
fn line(setter: &Setter) -> String {
    let pairs = setter.settings.iter().map(|(name, value)| {
        let again = if setter.overridden.contains(name) { "!" } else { "" };
        let or = if setter.contested.contains(name) { "~" } else { "" };
        format!(" {name} {value}{again}{or}")
    });
    let sure = if setter.is_certain { "" } else { "?" };
    format!("{:?}{sure} {}:{}\n", setter.by, setter.path, pairs.collect::<String>())
}

#[test]
fn each_tree_has_the_setters_that_count() {
    for case in include_str!("trees.txt").split("\n== ").skip(1) {
        let (name, rest) = case.split_once('\n').unwrap();
        let (parts, expected) = rest.split_once("=>").unwrap();
        let files = Files::new();
        for part in parts.split("-- ").skip(1) {
            let (path, text) = part.split_once('\n').unwrap();
            files.add(path, text);
        }
        let Setters { found, unread } = read_setters(&files.tree(), &device());
        assert_eq!(unread, [], "{name}");
        assert_eq!(found.iter().map(line).collect::<String>().trim(), expected.trim(), "{name}");
    }
}

#[test]
fn conditions_are_evaluated_or_left_open() {
    let run = "RUN+=\"/usr/sbin/ethtool --coalesce $name rx-usecs 2\"";
    for case in include_str!("conditions.txt").lines().skip(1) {
        let (test, expected) = case.split_once(" => ").unwrap();
        let (program, part) = test.split_once(' ').unwrap();
        let part = part.replace("\\n", "\n");
        let (program, text) = match program {
            "udev" if part.contains("RUN+") => (Program::Udev, part),
            "udev" => (Program::Udev, part.replace("RUN", run)),
            "link" => (Program::Link, format!("[Match]\n{part}\n[Link]\nX=1\n")),
            _ => {
                let begin = "[connection]\nuuid=u\ntype=ethernet\n";
                let end = "[ethtool]\ncoalesce-rx-usecs=4\n";
                (Program::NetworkManager, format!("{begin}{part}\n{end}"))
            }
        };
        let mut found = settings_in(program, &text, &device());
        found.retain(|(_, settings)| program != Program::NetworkManager || !settings.is_empty());
        let matches = found.into_iter().map(|(matches, _)| matches).max();
        let matches = matches.map_or("nothing".into(), |matches| format!("{matches:?}"));
        assert_eq!(matches, expected, "{case}");
    }
}

#[test]
fn what_cannot_be_read_is_listed_and_the_rest_is_read() {
    let files = Files::new();
    files.add("etc/modprobe.d/a.conf", "options e1000e RxIntDelay=0\n");
    files.add("etc/udev/rules.d/b.rules", "");
    let rules = files.root.join("etc/udev/rules.d/a.rules");
    symlink("/nowhere", &rules).unwrap();
    let setters = read_setters(&files.tree(), &device());
    assert_eq!(setters.found.len(), 1);
    let [unread] = &setters.unread[..] else { panic!("{setters:?}") };
    let said = unread.to_string();
    assert!(said.starts_with(&format!("read {}; move it away: ", rules.display())), "{said}");
    assert!(said.contains("leads nowhere in this tree") && !unread.is_denied, "{said}");
}

#[test]
fn link_files_are_read_by_name_and_etc_hides_the_rest() {
    let files = Files::new();
    let text = |line: &str| format!("[Match]\nOriginalName=*\n[Link]\n{line}\n");
    files.add("usr/lib/systemd/network/99-default.link", &text("NamePolicy=keep"));
    files.add("usr/lib/systemd/network/10-lan.link", &text("MTUBytes=9000"));
    files.add("run/systemd/network/50-other.link", "[Match]\nOriginalName=wl*\n[Link]\nX=1\n");
    files.add("run/systemd/network/99-default.link.d/1.conf", "[Link]\nNamePolicy=path\n");
    let found = || foreign(&files.tree(), &device());
    let all = found().unwrap();
    let names: Vec<&str> = all.iter().map(|file| file.path.as_str()).collect();
    let lib = "/usr/lib/systemd/network";
    assert_eq!(names, [format!("{lib}/10-lan.link"), format!("{lib}/99-default.link")]);
    assert_eq!(all[1].lines, ["NamePolicy=keep", "NamePolicy=path"]);
    files.add("etc/systemd/network/10-lan.link", "");
    assert_eq!(found().unwrap().len(), 1, "hidden by an empty file of the same name");
    // By one that leads nowhere it may be hidden or not.
    let link = |target: &str| {
        let hidden = files.root.join("etc/systemd/network/10-lan.link");
        fs::remove_file(&hidden).unwrap();
        symlink(target, hidden).unwrap();
    };
    link("/dev/zero");
    let refusal = found().unwrap_err().to_string();
    assert!(refusal.contains("10-lan.link` is a link that leads nowhere in this tree"));
    link("/dev/null");
    assert_eq!(found().unwrap().len(), 1);
}
