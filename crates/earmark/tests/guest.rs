//! Guests: programs in them behave like children of this process, and nothing is left of them.
//!
//! They need a kernel: `earmark kernel` builds one, `apt-get install user-mode-linux` another. The
//! tests of programs run on every kernel that is there.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use lab::guest::protocol::{GuestEvent, Order, OutputStream, Spawn, Status, TimedCommand};
use lab::guest::{Guest, GuestSettings};
use lab::host::Host;
use lab::kernel::{self, Needs, PACKAGED};
use lab::machine::Machine;
use lab::station::Station;
use rustix::process::{Pid, Signal, kill_process};

mod common;
use common::{EARMARK, Ended, packaged, soon};

/// Much longer than a boot takes, so that a loaded machine does not matter.
const PATIENCE: Duration = Duration::from_secs(60);

/// Every kernel of this machine that boots on it.
fn kernels() -> Vec<PathBuf> {
    let mut kernels: Vec<_> = kernel::find(Needs::VirtualTime).into_iter().collect();
    kernels.extend(Some(PathBuf::from(PACKAGED)).filter(|path| path.exists() && packaged::boots()));
    assert!(!kernels.is_empty(), "{}", kernel::find(Needs::RealTime).unwrap_err());
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

#[track_caller]
fn ask(guest: &Guest, script: &str) -> Output {
    guest.output(&mut shell(guest, script)).unwrap()
}

#[track_caller]
fn said(guest: &Guest, script: &str) -> String {
    let output = ask(guest, script);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[test]
fn boots_quickly() {
    for kernel in kernels() {
        let begin = Instant::now();
        let guest = boot(&kernel);
        let booted = begin.elapsed();
        assert_eq!(said(&guest, "uname -n"), "a");
        let ran = begin.elapsed() - booted;
        assert!(guest.power_off(PATIENCE));
        println!("{}: ready after {booted:?}, a program took {ran:?}", kernel.display());
    }
}

#[test]
fn exit_statuses_come_through() {
    for kernel in kernels() {
        let guest = boot(&kernel);
        for (script, code) in [
            ("true", 0),
            ("exit 7", 7),
            ("kill -TERM $$", 143),
            ("kill -KILL $$", 137),
            ("kill -SEGV $$", 139),
            ("no-such-program", 127),
        ] {
            assert_eq!(ask(&guest, script).status.code(), Some(code), "{script}");
        }
    }
}

#[test]
fn a_program_that_does_not_exist() {
    let guest = boot(&kernels()[0]);
    let output = guest.output(&mut guest.command("no-such-program".as_ref())).unwrap();
    assert_eq!(output.status.code(), Some(127));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("start no-such-program: No such file"), "{error}");
    let output = guest.output(&mut guest.command("/etc/passwd".as_ref())).unwrap();
    assert_eq!(output.status.code(), Some(126), "{output:?}");
}

#[test]
fn outputs_are_kept_apart() {
    for kernel in kernels() {
        let guest = boot(&kernel);
        let output = ask(&guest, "echo out; echo err >&2; printf '\\0\\377\\n\\r\\004\\021\\023'");
        assert_eq!(output.stdout, b"out\n\0\xff\n\r\x04\x11\x13");
        assert_eq!(output.stderr, b"err\n");
    }
}

#[test]
fn arguments_environment_and_directory_come_through() {
    let guest = boot(&kernels()[0]);
    let mut command = shell(&guest, "printf '%s|' \"$@\" \"$GREETING\"; pwd");
    command.args(["sh", "", "a b", "--help", "\"it's\""]).env("GREETING", "good day");
    let output = guest.output(command.current_dir("/usr/lib")).unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "|a b|--help|\"it's\"|good day|/usr/lib\n");
}

#[test]
fn megabytes_come_through_both_ways() {
    for kernel in kernels() {
        let guest = boot(&kernel);
        let mut seed = 1_u32;
        let bytes: Vec<u8> = (0..10 << 20)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 24) as u8
            })
            .collect();
        let mut command = guest.command("cat".as_ref());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let begin = Instant::now();
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
        println!("{}: 10 MiB there and back in {:?}", kernel.display(), begin.elapsed());
        assert!(cat.wait().unwrap().success());
        assert_eq!(back.len(), bytes.len());
        assert!(back == bytes, "bytes were changed on the way");
    }
}

#[test]
fn output_that_nobody_takes_stops_nobody_else() {
    for kernel in kernels() {
        let guest = boot(&kernel);
        let mut command = guest.command("yes".as_ref());
        let mut stuck = guest.spawn(command.stdout(Stdio::piped())).unwrap();
        let mut command = guest.command("yes".as_ref());
        let mut busy = guest.spawn(command.stdout(Stdio::null())).unwrap();
        assert_eq!(said(&guest, "echo through"), "through");
        // Its reader goes, and it finds the pipe broken.
        drop(stuck.stdout.take());
        assert_eq!(stuck.wait().unwrap().code(), Some(128 + signal_hook::consts::SIGPIPE));
        busy.kill().unwrap();
        busy.wait().unwrap();
        soon("the killed program is gone from the guest", || {
            !ask(&guest, "cat /proc/[0-9]*/comm 2>&-").stdout.windows(4).any(|w| w == b"yes\n")
        });
    }
}

#[test]
fn input_ends_where_ours_ends() {
    let guest = boot(&kernels()[0]);
    assert_eq!(said(&guest, "wc -c"), "0");
    let mut command = shell(&guest, "exec <&-; echo closed; exec sleep 1000");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut deaf = guest.spawn(&mut command).unwrap();
    let mut word = [0; 7];
    deaf.stdout.take().unwrap().read_exact(&mut word).unwrap();
    let mut input = deaf.stdin.take().unwrap();
    soon("the pipe is broken", || (&input).write_all(b"hello?").is_err());
    let _ = input.flush();
    deaf.kill().unwrap();
    deaf.wait().unwrap();
}

#[test]
fn signals_reach_the_program() {
    for kernel in kernels() {
        let guest = boot(&kernel);
        for (signal, code) in [(Signal::TERM, 15), (Signal::INT, 2), (Signal::HUP, 1)] {
            let script = "trap 'exit 15' TERM; trap 'exit 2' INT; trap 'exit 1' HUP; echo; \
                          while :; do sleep 0.02; done";
            let command = shell(&guest, script);
            // What is ignored, as in tests in the background, is not passed on.
            let mut heeds = Command::new("env");
            heeds.arg("--default-signal=INT,HUP,TERM").arg(command.get_program());
            heeds.args(command.get_args()).stdout(Stdio::piped());
            let mut child = guest.spawn(&mut heeds).unwrap();
            child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
            kill_process(Pid::from_child(&child), signal).unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(code), "{signal:?}");
        }
    }
}

#[test]
fn files_are_those_of_the_machine_and_cannot_be_changed() {
    for kernel in kernels() {
        let guest = boot(&kernel);
        let here = std::fs::read_to_string("/etc/os-release").unwrap();
        assert_eq!(said(&guest, "cat /etc/os-release"), here.trim_end());
        let file = common::unique("written-by-a-guest");
        for directory in ["/", "/etc", "/var/lib", "/usr"] {
            let script = format!("echo x > {directory}/{file}");
            assert!(!ask(&guest, &script).status.success(), "{directory}");
        }
        for directory in ["/tmp", "/run", "/dev/shm"] {
            assert_eq!(
                said(&guest, &format!("cd {directory} && echo x > {file}; cat {file}")),
                "x"
            );
            assert!(!Path::new(directory).join(&file).exists());
        }
        assert!(!Path::new("/tmp/x").join(&file).exists());
        assert_eq!(said(&guest, "getent hosts 10.9.0.2"), "10.9.0.2        b");
        assert_eq!(said(&guest, &format!("{EARMARK} --version | cut -d ' ' -f 1")), "earmark");
        assert_eq!(said(&guest, "cat /sys/class/net/lo/operstate"), "unknown");
        assert_eq!(said(&guest, "cat /proc/sys/net/ipv4/tcp_congestion_control"), "cubic");
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
    for kernel in kernels() {
        // Not below /tmp, of which a guest has its own.
        let directory = Path::new("/var/tmp").join(common::unique("victims"));
        std::fs::create_dir(&directory).unwrap();
        let victim = directory.join("victim");
        std::fs::write(&victim, "precious\n").unwrap();
        let mode = || std::os::unix::fs::MetadataExt::mode(&victim.metadata().unwrap());
        let before = mode();
        let guest = boot(&kernel);
        let mut command = shell(&guest, ATTEMPTS);
        let output = guest.output(command.arg(&directory)).unwrap();
        let (said, place) = (String::from_utf8(output.stdout).unwrap(), directory.display());
        let expected = format!(
            "worked: mount -o remount,rw /\nworked: mount -t hostfs none /tmp/all -o /\n\
             worked: mount -t hostfs none /tmp/one -o {place}\nprecious\nprecious\nprecious\n"
        );
        assert_eq!(said, expected);
        assert_eq!(
            (std::fs::read_to_string(&victim).unwrap(), mode()),
            ("precious\n".into(), before)
        );
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

#[test]
fn a_shell_on_a_terminal() {
    common::needs("python3", "python3");
    for kernel in kernels() {
        let guest = boot(&kernel);
        let mut command = guest.command("sh".as_ref());
        // The shell itself waits for the Ctrl-C. Were it a program of the shell, the Ctrl-C could
        // come while that is about to start: then some shells, dash 0.5.12 for one, lose it and
        // wait for the program's own end, in a guest and elsewhere.
        command.args(["-c", "tty; stty size; read word; echo got $word; read never"]);
        // A terminal of this size that types what it is told and shows the proxy's status.
        let terminal = "import os,pty,sys,fcntl,termios,struct
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
        let mut outer = Command::new("python3");
        outer.args(["-c", terminal]).arg(command.get_program());
        outer.args(command.get_args()).env("TERM", "dumb").stdin(Stdio::null());
        let output = guest.spawn(outer.stdout(Stdio::piped())).unwrap().wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).replace('\r', "");
        assert!(text.contains("/dev/pts/0\n31 97\n"), "{text}");
        assert!(text.contains("word\ngot word\n"), "{text}");
        assert!(text.ends_with("status 130\n"), "{text}");
    }
}

/// Runs a lab of guests on the packaged kernel, with one command on host a. Where that kernel does
/// not boot, this sees to it that the lab says which does, and returns nothing.
#[track_caller]
fn packaged_lab(wrapper: &[&str], script: &str) -> Option<Ended> {
    common::needs("linux.uml", "user-mode-linux");
    let name = common::unique("packaged");
    let lab = ["lab", "run", "--name", &name, "--hosts", "uml", "--on", "a", script];
    let words = [wrapper, &[EARMARK], &lab].concat();
    let mut command = Command::new(words[0]);
    let ended = common::output(command.args(&words[1..]).env(kernel::VARIABLE, PACKAGED));
    if packaged::boots() {
        return Some(ended);
    }
    ended.refused(packaged::REFUSAL);
    None
}

#[test]
fn a_driver_that_is_a_module_is_loaded() {
    common::needs("ping", "iputils-ping");
    common::needs("ethtool", "ethtool");
    // Only a module has this file.
    let look = "cat /sys/module/virtio_net/initstate; ping -q -c 2 -i 0.05 -w 60 b && \
                ethtool -c a0; ethtool -C a0 rx-usecs 393 && ethtool -c a0";
    let Some(ended) = packaged_lab(&[], look) else { return };
    let said = ended.output();
    assert!(said.starts_with("live\n"), "{ended:?}");
    let told: Vec<_> = said.lines().filter(|line| line.starts_with("rx-usecs:")).collect();
    assert_eq!(told, ["rx-usecs: 75", "rx-usecs: 393"], "{ended:?}");
}

#[test]
fn a_driver_that_is_nowhere_is_named_with_what_to_do() {
    // The machine without the modules, for this command alone.
    let hide = "mount -t tmpfs none /usr/lib/uml && exec \"$@\"";
    let wrapper = ["unshare", "--mount", "sh", "-c", hide, "sh"];
    let Some(ended) = packaged_lab(&wrapper, "true") else { return };
    ended.refused(&["load the NIC's driver virtio_net", "/usr/lib/uml/modules/", "earmark kernel"]);
}

#[test]
fn a_kernel_that_does_not_boot_says_why() {
    let kernel = &kernels()[0];
    let mut broken = settings(kernel);
    broken.init = vec!["/no/such/init".to_owned()];
    let error = start(&broken).await_ready(PATIENCE).unwrap_err();
    assert!(error.to_string().contains("its kernel has ended"), "{error}");
    assert!(error.to_string().contains("/no/such/init"), "{error}");
    // An init that fails has the last word.
    broken.init = vec![EARMARK.to_owned(), "guest-init".to_owned()];
    broken.station = Station { name: "x".repeat(100), ..Station::new("a", 1) };
    let error = start(&broken).await_ready(PATIENCE).unwrap_err().to_string();
    assert!(error.contains("guest-init: set the host name"), "{error}");
    // And a program that is no kernel at all.
    let error = start(&settings(Path::new("/bin/true"))).await_ready(PATIENCE).unwrap_err();
    assert!(error.to_string().contains("it said nothing"), "{error}");
}

fn spawn(words: &[&str]) -> Order {
    let words = words.iter().map(|&word| word.into()).collect();
    let environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
    Order::Spawn(Spawn { words, environment, ..Spawn::default() })
}

/// What the programs of a script did, one after the other, from boot to power-off.
#[track_caller]
fn play(settings: &GuestSettings) -> Vec<(u32, GuestEvent)> {
    let mut guest = start(settings);
    guest.await_ready(PATIENCE).unwrap();
    let mut events: Vec<_> = guest.events().iter().collect();
    assert!(guest.await_end(PATIENCE));
    assert_eq!(events.pop(), Some((0, GuestEvent::PoweringOff)));
    events.sort_by_key(|(program, _)| *program);
    events
}

#[test]
fn a_script_runs_by_the_guests_own_clock() {
    for kernel in kernels() {
        let mut scripted = settings(&kernel);
        let quick = spawn(&["sh", "-c", "echo quick; exit 3"]);
        scripted.script = Some(vec![
            TimedCommand {
                at_us: 2_300_000,
                program: 1,
                order: Order::Signal { number: 15, group: false },
            },
            TimedCommand { at_us: 2_000_000, program: 1, order: spawn(&["sleep", "1000"]) },
            TimedCommand { at_us: 2_100_000, program: 2, order: quick },
        ]);
        let expected = [
            (1, GuestEvent::Started),
            (1, GuestEvent::Exited(Status::Signal(15))),
            (2, GuestEvent::Started),
            (2, GuestEvent::Output(OutputStream::Output, b"quick\n".to_vec())),
            (2, GuestEvent::Exited(Status::Code(3))),
        ];
        assert_eq!(play(&scripted), expected);
    }
}

#[test]
fn virtual_time_repeats_itself() {
    // The packaged kernel has no virtual time.
    let Ok(kernel) = kernel::find(Needs::VirtualTime) else { return };
    let run = |seed: u64| {
        let mut scripted = settings(&kernel);
        scripted.seed = seed;
        scripted.parameters =
            vec!["time-travel=inf-cpu".to_owned(), "time-travel-start=0".to_owned()];
        let look = "cat /proc/sys/kernel/random/uuid /proc/sys/kernel/random/boot_id; date +%s.%N; \
                    cat /proc/uptime; sleep 1000; cat /proc/uptime; head -c 8 /dev/urandom | od -x; \
                    cat /proc/interrupts";
        let at =
            |at_us, program| TimedCommand { at_us, program, order: spawn(&["sh", "-c", look]) };
        scripted.script = Some(vec![at(5_000_000, 1), at(6_000_000, 2)]);
        play(&scripted)
    };
    let begin = Instant::now();
    let first = run(7);
    assert_eq!(first, run(7));
    assert_ne!(first, run(8));
    assert!(begin.elapsed() < Duration::from_secs(500), "1000 seconds pass in no time");
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
        let output = guest.output(&mut shell(&guest, look));
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
    common::processes().into_iter().filter(lives).collect()
}

#[test]
fn nothing_is_left() {
    for victim in ["owner", "kernel", "holder", "proxy"] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "owner_of_a_guest", "--nocapture"]);
        command.env("EARMARK_TEST_OWNER", "1").stdin(Stdio::null());
        let mut owner = common::Running::start(&mut command);
        let pids = loop {
            let line = owner.line();
            if let Some(pids) = line.strip_prefix("guest ") {
                break pids.split(' ').map(|pid| pid.parse::<u32>().unwrap()).collect::<Vec<_>>();
            }
        };
        let [holder, kernel, proxy] = pids[..] else { panic!("{pids:?}") };
        let namespace = std::fs::read_link(format!("/proc/{holder}/ns/pid")).unwrap();
        assert!(members(&namespace).len() > 3, "holder, kernel, a process of it, proxy");
        let pid = match victim {
            "owner" => owner.pid(),
            "kernel" => kernel,
            "holder" => holder,
            _ => proxy,
        };
        kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
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
