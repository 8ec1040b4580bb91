//! Guests: programs in them behave like children of this process, and nothing is left of them.
//!
//! The tests of programs run on every kernel that is there: that of `earmark kernel`, and the one
//! of `apt-get install user-mode-linux`.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use lab::LabError;
use lab::guest::protocol::{GuestEvent, Order, OutputStream, Spawn, Status, TimedCommand};
use lab::guest::{Guest, GuestSettings};
use lab::host::Host;
use lab::kernel::{self, Needs, PACKAGED};
use lab::machine::Machine;
use lab::station::Station;

use super::{PACKAGED_REFUSAL, packaged_kernel_boots};
use crate::support::{EARMARK, Ended, Running, has, kill, needs, output, processes, soon, unique};

/// Much longer than a boot takes, so that a loaded machine does not matter.
const PATIENCE: Duration = Duration::from_secs(60);

/// Every kernel of this machine that boots on it.
fn kernels() -> Vec<PathBuf> {
    let mut kernels: Vec<_> = kernel::find(Needs::VirtualTime).into_iter().collect();
    let packaged = Some(PathBuf::from(PACKAGED));
    kernels.extend(packaged.filter(|path| path.exists() && packaged_kernel_boots()));
    kernels
}

fn settings(kernel: &Path) -> GuestSettings {
    GuestSettings::new(kernel, Path::new(EARMARK), Station::new("a", 1))
}

fn start(settings: &GuestSettings) -> Guest {
    let stations = [Station::new("a", 1), Station::new("b", 2)];
    let host = Host::create("a", &stations).unwrap();
    Guest::start(host, settings).unwrap()
}

#[track_caller]
fn boot(kernel: &Path) -> Guest {
    let mut guest = start(&settings(kernel));
    guest.await_ready(PATIENCE).unwrap();
    guest
}

fn shell(guest: &Guest, script: &str) -> Command {
    let mut command = guest.command("sh".as_ref());
    command.args(["-c", script]);
    command
}

/// What a command prints, and how it ends.
fn outcome(guest: &Guest, command: &mut Command) -> Result<Output, LabError> {
    let child =
        guest.spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()));
    Ok(child?.wait_with_output().unwrap())
}

#[track_caller]
fn ask(guest: &Guest, script: &str) -> Output {
    outcome(guest, &mut shell(guest, script)).unwrap()
}

/// What a script that must succeed prints.
#[track_caller]
fn prints(guest: &Guest, script: &str) -> String {
    Ended::from(ask(guest, script)).output().trim_end().to_owned()
}

#[test]
fn a_program_in_a_guest_is_like_a_child() {
    needs!("guests");
    for kernel in kernels() {
        let guest = boot(&kernel);
        for (script, code) in [
            ("true", 0),
            ("exit 7", 7),
            ("kill -TERM $$", 143),
            ("kill -KILL $$", 137),
            ("no-such-program", 127),
        ] {
            assert_eq!(ask(&guest, script).status.code(), Some(code), "{script}");
        }
        let output = outcome(&guest, &mut guest.command("no-such-program".as_ref())).unwrap();
        assert_eq!(output.status.code(), Some(127));
        has(&String::from_utf8_lossy(&output.stderr), &["start no-such-program: No such file"]);
        let output = outcome(&guest, &mut guest.command("/etc/passwd".as_ref())).unwrap();
        assert_eq!(output.status.code(), Some(126), "{output:?}");

        let output = ask(&guest, "echo out; echo err >&2; printf '\\0\\377\\n\\r\\004\\021\\023'");
        assert_eq!(output.stdout, b"out\n\0\xff\n\r\x04\x11\x13");
        assert_eq!(output.stderr, b"err\n");
        let mut command = shell(&guest, "printf '%s|' \"$@\" \"$GREETING\"; pwd");
        command.args(["sh", "", "a b", "--help", "\"it's\""]).env("GREETING", "good day");
        let output = outcome(&guest, command.current_dir("/usr/lib")).unwrap();
        let expected = "|a b|--help|\"it's\"|good day|/usr/lib\n";
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
        assert!(guest.power_off(PATIENCE));
    }
}

#[test]
fn megabytes_come_through_both_ways_and_end_where_ours_end() {
    needs!("guests");
    for kernel in kernels() {
        let guest = boot(&kernel);
        let mut prng = base::prng::Prng::new(1);
        let bytes: Vec<u8> = (0..10 << 17).flat_map(|_| prng.next_u64().to_ne_bytes()).collect();
        let mut command = guest.command("cat".as_ref());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut cat = guest.spawn(&mut command).unwrap();
        let mut input = cat.stdin.take().unwrap();
        let mut output = cat.stdout.take().unwrap();
        let back = std::thread::scope(|scope| {
            scope.spawn(|| {
                input.write_all(&bytes).unwrap();
                drop(input);
            });
            let mut back = Vec::new();
            output.read_to_end(&mut back).unwrap();
            back
        });
        assert!(cat.wait().unwrap().success());
        assert!(back == bytes, "bytes were changed on the way");

        assert_eq!(prints(&guest, "wc -c"), "0");
        let mut command = shell(&guest, "exec <&-; echo closed; exec sleep 1000");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut deaf = guest.spawn(&mut command).unwrap();
        deaf.stdout.take().unwrap().read_exact(&mut [0; 7]).unwrap();
        let mut input = deaf.stdin.take().unwrap();
        soon("the pipe is broken", || input.write_all(b"hello?").is_err());
        deaf.kill().unwrap();
        deaf.wait().unwrap();
    }
}

#[test]
fn files_are_those_of_the_machine_and_cannot_be_changed() {
    needs!("guests");
    for kernel in kernels() {
        let guest = boot(&kernel);
        let here = std::fs::read_to_string("/etc/os-release").unwrap();
        assert_eq!(prints(&guest, "cat /etc/os-release"), here.trim_end());
        let file = unique("written-by-a-guest");
        for directory in ["/", "/etc", "/var/lib", "/usr"] {
            let script = format!("echo x > {directory}/{file}");
            assert!(!ask(&guest, &script).status.success(), "{directory}");
        }
        for directory in ["/tmp", "/run", "/dev/shm"] {
            let script = format!("cd {directory} && echo x > {file}; cat {file}");
            assert_eq!(prints(&guest, &script), "x");
            assert!(!Path::new(directory).join(&file).exists());
        }
        assert_eq!(prints(&guest, "getent hosts 10.9.0.2"), "10.9.0.2        b");
        assert_eq!(prints(&guest, &format!("{EARMARK} --version | cut -d ' ' -f 1")), "earmark");
        assert_eq!(prints(&guest, "cat /sys/class/net/lo/operstate"), "unknown");
        assert_eq!(prints(&guest, "cat /proc/sys/net/ipv4/tcp_congestion_control"), "cubic");
    }
}

/// What root of a guest tries with a directory of the machine; what works is printed.
const ATTEMPTS: &str = r#"
    try() { sh -c "$1" 2> /dev/null && echo "worked: $1"; }
    try "mount -o remount,rw /"
    mkdir /tmp/all /tmp/one
    try "mount -t hostfs none /tmp/all -o /"
    try "mount -t hostfs none /tmp/one -o $0"
    for place in $0 /tmp/all$0 /tmp/one; do
        cat $place/victim
        try "echo owned > $place/victim"
        try "echo owned >> $place/victim"
        try "chmod 4755 $place/victim"
        try "chown 1 $place/victim"
        try "mv $place/victim $place/other"
        try "ln $place/victim $place/other"
        try "rm $place/victim"
        try "mkdir $place/other"
        try "mknod $place/other b 1 0"
    done
    file=/tmp/all/proc/sys/kernel/core_pattern
    try "value=\$(cat $file) && echo \"\$value\" > $file""#;

#[test]
fn root_of_a_guest_writes_no_file_of_the_machine() {
    needs!("guests", "root");
    for kernel in kernels() {
        // Not below /tmp, of which a guest has its own.
        let directory = Path::new("/var/tmp").join(unique("victims"));
        std::fs::create_dir(&directory).unwrap();
        let victim = directory.join("victim");
        std::fs::write(&victim, "precious\n").unwrap();
        let mode = || std::os::unix::fs::MetadataExt::mode(&victim.metadata().unwrap());
        let before = mode();
        let guest = boot(&kernel);
        let mut command = shell(&guest, ATTEMPTS);
        let printed = Ended::from(outcome(&guest, command.arg(&directory)).unwrap()).stdout;
        let expected = format!(
            "worked: mount -o remount,rw /\nworked: mount -t hostfs none /tmp/all -o /\n\
             worked: mount -t hostfs none /tmp/one -o {}\nprecious\nprecious\nprecious\n",
            directory.display()
        );
        assert_eq!(printed, expected);
        let after = (std::fs::read_to_string(&victim).unwrap(), mode());
        assert_eq!(after, ("precious\n".into(), before));
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

/// A terminal that types what it has to and shows the proxy's status.
const TERMINAL: &str = "import os,pty,sys,fcntl,termios,struct
pid,fd=pty.fork()
if pid==0:
    os.execvp(sys.argv[1],sys.argv[1:])
fcntl.ioctl(fd,termios.TIOCSWINSZ,struct.pack('HHHH',31,97,0,0))
os.kill(pid,28)
text=b''
typed=0
while True:
    try: piece=os.read(fd,4096)
    except OSError: break
    if not piece: break
    text+=piece
    if typed==0 and b'97' in text: os.write(fd,b'word\\r'); typed=1
    if typed==1 and b'got word' in text: os.write(fd,b'\\x03'); typed=2
status=os.waitstatus_to_exitcode(os.waitpid(pid,0)[1])
sys.stdout.buffer.write(text)
print('status',status)
";

#[test]
fn a_shell_on_a_terminal() {
    needs!("guests", "python3");
    for kernel in kernels() {
        let guest = boot(&kernel);
        let mut command = guest.command("sh".as_ref());
        // The shell itself waits for the Ctrl-C. Were it a program of the shell, the Ctrl-C could
        // come while that is about to start: then some shells, dash 0.5.12 for one, lose it and
        // wait for the program's own end, in a guest and elsewhere.
        command.args(["-c", "tty; stty size; read word; echo got $word; read never"]);
        let mut outer = Command::new("python3");
        outer.args(["-c", TERMINAL]).arg(command.get_program());
        outer.args(command.get_args()).env("TERM", "dumb").stdin(Stdio::null());
        let output = guest.spawn(outer.stdout(Stdio::piped())).unwrap().wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).replace('\r', "");
        has(&text, &["/dev/pts/0\n31 97\n", "word\ngot word\n"]);
        assert!(text.ends_with("status 130\n"), "{text}");
    }
}

/// Runs a lab of guests on the packaged kernel, with one command on host a. Where that kernel does
/// not boot, this sees to it that the lab says which does, and returns nothing.
#[track_caller]
fn packaged_lab(wrapper: &[&str], script: &str) -> Option<Ended> {
    let name = unique("packaged");
    let lab = ["lab", "run", "--name", &name, "--hosts", "uml", "--on", "a", script];
    let words = [wrapper, &[EARMARK], &lab].concat();
    let mut command = Command::new(words[0]);
    let ended = output(command.args(&words[1..]).env(kernel::VARIABLE, PACKAGED));
    if packaged_kernel_boots() {
        return Some(ended);
    }
    ended.refused(PACKAGED_REFUSAL);
    None
}

#[test]
fn a_driver_that_is_a_module_is_loaded_and_one_that_is_nowhere_is_named() {
    needs!("linux.uml", "ping", "ethtool", "unshare");
    // Only a module has this file.
    let look = "cat /sys/module/virtio_net/initstate; ping -q -c 2 -i 0.05 -w 60 b && \
                ethtool -c a0; ethtool -C a0 rx-usecs 393 && ethtool -c a0";
    let Some(ended) = packaged_lab(&[], look) else { return };
    let printed = ended.output();
    assert!(printed.starts_with("live\n"), "{ended:?}");
    let usecs: Vec<_> = printed.lines().filter(|line| line.starts_with("rx-usecs:")).collect();
    assert_eq!(usecs, ["rx-usecs: 75", "rx-usecs: 393"], "{ended:?}");
    // The machine without the modules, for this command alone.
    let hide = "mount -t tmpfs none /usr/lib/uml && exec \"$@\"";
    let wrapper = ["unshare", "--mount", "sh", "-c", hide, "sh"];
    let Some(ended) = packaged_lab(&wrapper, "true") else { return };
    ended.refused(&["load the NIC's driver virtio_net", "/usr/lib/uml/modules/", "earmark kernel"]);
}

#[test]
fn a_kernel_that_does_not_boot_says_why() {
    needs!("guests");
    let kernel = &kernels()[0];
    let mut broken = settings(kernel);
    broken.init = vec!["/no/such/init".to_owned()];
    let error = start(&broken).await_ready(PATIENCE).unwrap_err();
    has(&error.to_string(), &["its kernel has ended"]);
    has(&error.to_string(), &["/no/such/init"]);
    // An init that fails has the last word.
    broken.init = vec![EARMARK.to_owned(), "guest-init".to_owned()];
    broken.station = Station { name: "x".repeat(100), ..Station::new("a", 1) };
    let error = start(&broken).await_ready(PATIENCE).unwrap_err();
    has(&error.to_string(), &["guest-init: set the host name"]);
    // And a program that is no kernel at all.
    let error = start(&settings(Path::new("/bin/true"))).await_ready(PATIENCE).unwrap_err();
    has(&error.to_string(), &["it said nothing"]);
}

#[test]
fn a_script_runs_by_the_guests_own_clock() {
    needs!("guests");
    let spawn = |words: &[&str]| {
        let words = words.iter().map(|&word| word.into()).collect();
        let environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
        Order::Spawn(Spawn { words, environment, ..Spawn::default() })
    };
    let at = |at_us, program, order| TimedCommand { at_us, program, order };
    for kernel in kernels() {
        let mut scripted = settings(&kernel);
        scripted.script = Some(vec![
            at(2_300_000, 1, Order::Signal { number: 15, group: false }),
            at(2_000_000, 1, spawn(&["sleep", "1000"])),
            at(2_100_000, 2, spawn(&["sh", "-c", "echo quick; exit 3"])),
        ]);
        let mut guest = start(&scripted);
        guest.await_ready(PATIENCE).unwrap();
        let mut events: Vec<_> = guest.events().iter().collect();
        assert!(guest.await_end(PATIENCE));
        assert_eq!(events.pop(), Some((0, GuestEvent::PoweringOff)));
        events.sort_by_key(|(program, _)| *program);
        let expected = [
            (1, GuestEvent::Started),
            (1, GuestEvent::Exited(Status::Signal(15))),
            (2, GuestEvent::Started),
            (2, GuestEvent::Output(OutputStream::Output, b"quick\n".to_vec())),
            (2, GuestEvent::Exited(Status::Code(3))),
        ];
        assert_eq!(events, expected);
    }
}

/// Run by [`nothing_is_left`] in a process of its own: a guest with programs in it, for ever.
#[test]
fn owner_of_a_guest() {
    if std::env::var_os("EARMARK_TEST_OWNER").is_none() {
        return;
    }
    let guest = boot(&kernels()[0]);
    let mut command = shell(&guest, "setsid sleep 1000 & trap '' TERM; echo; exec sleep 1001");
    let mut child = guest.spawn(command.stdout(Stdio::piped())).unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
    println!("\nguest {} {} {}", guest.host().pid(), guest.kernel_pid(), child.id());
    child.wait().unwrap();
    // A guest that lives on ends the program when its proxy is gone.
    let look = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '";
    soon("the program is gone", || {
        let output = outcome(&guest, &mut shell(&guest, look));
        output.is_err() || !String::from_utf8_lossy(&output.unwrap().stdout).contains("sleep 1001")
    });
    println!("\nended");
    drop(guest);
    std::thread::sleep(PATIENCE);
}

/// The living processes of a PID namespace.
fn members(namespace: &Path) -> Vec<u32> {
    let lives = |pid: &u32| {
        std::fs::read_link(format!("/proc/{pid}/ns/pid")).is_ok_and(|link| link == namespace)
            && std::fs::read_to_string(format!("/proc/{pid}/stat"))
                .is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
    };
    processes().into_iter().filter(lives).collect()
}

#[test]
fn nothing_is_left() {
    needs!("guests");
    for victim in ["owner", "kernel", "holder", "proxy"] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "guest::owner_of_a_guest", "--nocapture"]);
        command.env("EARMARK_TEST_OWNER", "1").stdin(Stdio::null());
        let mut owner = Running::start(&mut command);
        let pids = loop {
            let line = owner.line();
            if let Some(pids) = line.strip_prefix("guest ") {
                break pids.split(' ').map(|pid| pid.parse::<u32>().unwrap()).collect::<Vec<_>>();
            }
        };
        let [holder, kernel, proxy] = pids[..] else { panic!("{pids:?}") };
        let namespace = std::fs::read_link(format!("/proc/{holder}/ns/pid")).unwrap();
        assert!(members(&namespace).len() > 3, "holder, kernel, a process of it, proxy");
        kill(match victim {
            "owner" => owner.pid(),
            "kernel" => kernel,
            "holder" => holder,
            _ => proxy,
        });
        if victim == "owner" {
            owner.end();
        } else {
            owner.await_line("ended");
        }
        let what = format!("{victim} was killed; nothing is left");
        // The holder itself goes when all that it held has been reaped.
        soon(&what, || members(&namespace).iter().all(|pid| *pid == holder));
    }
}
