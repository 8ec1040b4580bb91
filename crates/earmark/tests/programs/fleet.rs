//! The lines of docs/fleet.md for ClusterShell, run by ClusterShell itself; instead of by ssh, it
//! runs them on this host, in a network of our own.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Directory, EARMARK, Ended, in_network, needs, read};

/// The lines of the page that begin with `clush`, for four hosts.
fn lines() -> Vec<String> {
    let text = read("docs/fleet.md");
    let lines = text.lines().filter_map(|line| line.strip_prefix("$ clush "));
    let local = |line: &str| format!("clush -R exec {}", line.replace("node[1-40]", "node[1-4]"));
    lines.map(local).collect()
}

/// Runs a line where `earmark` is found; the status is that of the line.
fn run(files: &Directory, line: &str) -> Ended {
    let programs = Path::new(EARMARK).parent().unwrap().display();
    in_network(
        files,
        &format!("export HOME=$PWD PATH={programs}:$PATH; ethtool -C tap rx-frames 9; {line}"),
    )
}

#[test]
fn the_status_of_a_check_is_the_largest_of_all_hosts() {
    needs!("network", "clush", "ethtool");
    let line = lines().into_iter().find(|line| line.contains(" -S ")).unwrap();
    let files = Directory::new();
    let policy = |node: u32, frames: u32| {
        let text = format!("[taps]\nmatch = {{ driver = \"tun\" }}\nrx-frames = {frames}\n");
        files.write(&format!("node{node}.toml"), &text);
    };
    (1..=4).for_each(|node| policy(node, 9));
    // %h is the name of the host.
    let line = line.replace("low-latency", "%h.toml");
    let kept = run(&files, &line);
    assert!(kept.output().contains("\nnode[1-4]"), "{kept:?}");
    assert!(kept.stdout.contains("1 hold, 0 broken, 0 unknown"), "{kept:?}");
    policy(3, 8);
    let broken = run(&files, &line);
    assert_eq!(broken.code, 3, "{broken:?}");
    let said = &broken.stdout;
    assert!(said.contains("\nnode[1-2,4]") && said.contains("\nnode3\n"), "{broken:?}");
    assert!(said.contains("tap: rx-frames is 9, not 8 [taps]; earmark apply"), "{broken:?}");
}

#[test]
fn the_settings_of_all_hosts_are_a_file_for_each() {
    needs!("network", "clush", "ethtool");
    for (line, directory) in lines().iter().filter_map(|line| {
        let (_, rest) = line.split_once("--outdir ")?;
        Some((line, rest.split(' ').next()?))
    }) {
        let files = Directory::new();
        run(&files, line).output();
        for node in ["node1", "node4"] {
            let text = fs::read_to_string(files.file(&format!("{directory}/{node}"))).unwrap();
            let json: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(json["devices"].as_array().unwrap().len(), 3, "{json}");
            assert_eq!(json["devices"][1]["name"], "tap", "{json}");
        }
    }
    assert_eq!(lines().len(), 3);
}
