//! Without root: the same hosts, through a user namespace, and a way out of every refusal.
//!
//! The tests run the example as user 65534 without any capability. They need root themselves, to
//! become that user and to give it a `/dev/net/tun` that it may open; both in a mount namespace of
//! their own.

use std::process::{Command, Output};

use crate::common::{ok, two_hosts};

/// Runs the example as user 65534, after `prepare` (as root, in a private mount namespace).
fn as_unprivileged(prepare: &str, program: &[&str]) -> Output {
    // The example is copied because that user may have no access to the build directory.
    let script = format!(
        "set -e; mount -t tmpfs tmpfs /mnt; cp \"$0\" /mnt/two_hosts; cd /; {prepare}; \
         exec setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all \
         --inh-caps=-all /mnt/two_hosts \"$@\""
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).arg(two_hosts()).args(program);
    ok(command.output())
}

const OPEN_TUN: &str =
    "mknod /mnt/tun c 10 200; chmod 666 /mnt/tun; mount --bind /mnt/tun /dev/net/tun";

#[track_caller]
fn assert_works(output: &Output) {
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(9), "{stdout}{stderr}");
    assert!(stderr.contains("UserNamespace"), "{stderr}");
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines, ["a", "0", "10.9.0.2", "hosts", "answered"], "{stderr}");
}

/// Needs only tools that every system has: a TCP connection that is refused crossed the wire twice.
const LOOK: &str = "uname -n; id -u; getent ahostsv4 b | head -n 1 | cut -d ' ' -f 1; \
                    ls -p /run | grep -v /; bash -c '</dev/tcp/10.9.0.2/9' 2>&1 | grep -q refused && echo answered; exit 9";

#[test]
fn lab__works_without_root() {
    assert_works(&as_unprivileged(OPEN_TUN, &["sh", "-c", LOOK]));
}

#[test]
fn lab__works_where_proc_is_masked() {
    // As container runtimes do; the kernel then refuses a fresh /proc inside a user namespace.
    let masked = format!("{OPEN_TUN}; mount -t tmpfs -o ro tmpfs /proc/tty");
    assert_works(&as_unprivileged(&masked, &["sh", "-c", LOOK]));
}

#[test]
fn lab__works_where_sysctls_are_read_only() {
    let read_only =
        format!("{OPEN_TUN}; mount --bind /proc/sys /proc/sys; mount -o remount,ro,bind /proc/sys");
    assert_works(&as_unprivileged(&read_only, &["sh", "-c", LOOK]));
}

#[track_caller]
fn assert_refused(output: &Output, operation: &str, remedy: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{stderr}");
    assert!(stderr.contains(operation) && stderr.contains(remedy), "{stderr}");
}

#[test]
fn refusal__tun_may_not_be_opened() {
    let closed = OPEN_TUN.replace("666", "600");
    let output = as_unprivileged(&closed, &["true"]);
    assert_refused(&output, "open /dev/net/tun for host a", "sudo chmod 666 /dev/net/tun");
}

#[test]
fn refusal__no_tun() {
    let output = as_unprivileged("mount -t tmpfs tmpfs /dev/net", &["true"]);
    assert_refused(&output, "open /dev/net/tun for host a", "sudo modprobe tun");
}

#[test]
fn refusal__user_namespaces_are_used_up() {
    // The limit belongs to a user namespace, so a test can set one without touching the machine's.
    let script = "echo 0 > /proc/sys/user/max_user_namespaces; \
                  exec setpriv --bounding-set=-all --inh-caps=-all \"$0\" true";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", script]).arg(two_hosts());
    let output = ok(command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").output());
    assert_refused(&output, "create a user namespace", "sysctl -w user.max_user_namespaces");
}
