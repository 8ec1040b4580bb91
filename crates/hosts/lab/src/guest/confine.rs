//! What the kernel of a guest can do to the machine: read its files.
//!
//! User-Mode Linux is a process of the machine, and root of a guest can have it open any file in
//! any way: hostfs can be mounted anywhere, and writable. What it does, it does with the rights of
//! that process, so these are given up before it begins, for good:
//!
//! - **Mounts.** It has mounts of its own, all of them read-only, without devices (but two) and
//!   set-user-ID programs: `/proc`, `/sys` and cgroups among them, which user 0 could write without
//!   any capability. Only the host's `/run`, which is memory, can be written. `/tmp` and `/dev/shm`
//!   are empty, but for the programs that the guest begins with: no socket in them can be reached.
//! - **Capabilities.** One is left, to read what root may read (`CAP_DAC_READ_SEARCH`), and no
//!   program brings others.
//! - **System calls** that make or join namespaces, mount, or use keyrings are refused, and sockets
//!   but Unix sockets, by which it has its NIC. In a user namespace of its own the process would
//!   have all capabilities again, and could mount cgroups.
//!
//! The thread that starts the kernel confines itself, and its child inherits all of it.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::ptr;

use rustix::fs::CWD;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind,
    mount_change, move_mount, open_tree,
};
use rustix::thread::{
    CapabilitySet, UnshareFlags, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs, unshare_unsafe,
};

/// Devices that User-Mode Linux opens: for the consoles that it does not have, and where the kernel
/// of a distribution takes randomness from.
const DEVICES: [&CStr; 2] = [c"/dev/null", c"/dev/random"];

/// Directories of the machine that a guest has of its own.
const HIDDEN: [&str; 2] = ["/tmp", "/dev/shm"];

/// Confines this thread and all that it starts. `programs` can be read wherever they are.
pub(super) fn confine(programs: &[&Path]) -> io::Result<()> {
    own_mounts(programs)?;
    give_up_capabilities().map_err(doing("give up capabilities"))?;
    filter_calls().map_err(doing("filter system calls"))
}

fn doing<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> io::Error {
    move |cause| {
        let cause = cause.into();
        io::Error::new(cause.kind(), format!("{what}: {cause}"))
    }
}

fn own_mounts(programs: &[&Path]) -> io::Result<()> {
    // SAFETY: the call is unsafe because CLONE_FILES would part threads from each other's
    // descriptors; CLONE_NEWNS parts this thread from their mounts only. There is no safe call.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.map_err(doing("copy the mounts"))?;
    // What the machine mounts later would come writable.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(doing("make the mounts private"))?;
    HIDDEN.iter().try_for_each(|directory| hide(Path::new(directory), programs))?;
    // They get mounts of their own, in which devices can be opened.
    for device in DEVICES {
        mount_bind(device, device).map_err(doing("keep a device"))?;
    }
    let harmless = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
    set_attributes(c"/", libc::AT_RECURSIVE, harmless, 0)?;
    let keep = |device| set_attributes(device, 0, 0, libc::MOUNT_ATTR_NODEV);
    DEVICES.into_iter().try_for_each(keep)?;
    set_attributes(c"/run", 0, 0, libc::MOUNT_ATTR_RDONLY)
}

/// Mounts an empty directory over `directory`, with those of `programs` that are in it.
fn hide(directory: &Path, programs: &[&Path]) -> io::Result<()> {
    if !directory.is_dir() {
        return Ok(());
    }
    // By the path that it is started by, which may be a link, and by the one that it leads to.
    let paths = programs.iter().flat_map(|program| {
        [std::path::absolute(program), program.canonicalize()].into_iter().flatten()
    });
    let mut kept: Vec<PathBuf> = paths.filter(|path| path.starts_with(directory)).collect();
    kept.sort();
    kept.dedup();
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    // One that is not there is missed when it is started.
    let kept: Vec<_> =
        kept.iter().filter_map(|path| Some((path, open_tree(CWD, path, flags).ok()?))).collect();
    let plain = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", directory, "tmpfs", plain, c"mode=1777").map_err(doing("hide /tmp"))?;
    for (path, tree) in kept {
        fs::create_dir_all(path.parent().unwrap_or(directory))?;
        File::create_new(path)?;
        move_mount(tree, c"", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
            .map_err(doing("keep the guest's programs"))?;
    }
    Ok(())
}

/// `struct mount_attr` of the kernel.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

fn set_attributes(path: &CStr, flags: libc::c_int, set: u64, clear: u64) -> io::Result<()> {
    let attributes = MountAttributes { set, clear, propagation: 0, user_namespace: 0 };
    let size = size_of::<MountAttributes>();
    // SAFETY: the path ends with a NUL, and the kernel reads `size` bytes of the attributes.
    // JUSTIFICATION: rustix has no such call.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size,
        )
    };
    if outcome == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ENOSYS) {
        return Err(io::Error::other("mount_setattr is missing; guests need Linux 5.12 or newer"));
    }
    Err(doing("make the mounts read-only")(error))
}

fn give_up_capabilities() -> rustix::io::Result<()> {
    let kept = CapabilitySet::DAC_READ_SEARCH;
    let known = (0..u64::BITS).map(|bit| CapabilitySet::from_bits_retain(1 << bit));
    for capability in known.filter(|capability| *capability != kept) {
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // Beyond the last one that this kernel knows.
            Err(rustix::io::Errno::INVAL) => break,
            Err(error) => return Err(error),
        }
    }
    clear_ambient_capability_set()?;
    let mut sets = capabilities(None)?;
    sets.inheritable = CapabilitySet::empty();
    set_capabilities(None, sets)?;
    set_no_new_privs(true)
}

const REFUSED: [libc::c_long; 15] = [
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
];

/// Flags of `clone` that make namespaces.
const NEW_NAMESPACES: libc::c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWCGROUP;

/// The calls of x86-64, `AUDIT_ARCH_X86_64`, and the bit of those of x32.
const X86_64: u32 = 0xC000_003E;
const X32: u32 = 0x4000_0000;

/// Places in `struct seccomp_data`; of an argument, the lower half where bytes go up.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;

/// The filter, as an address in it is read, compared and acted upon.
fn filter() -> Vec<libc::sock_filter> {
    let load = |place| instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, place, 0, 0);
    let answer = |action| instruction(libc::BPF_RET | libc::BPF_K, action, 0, 0);
    let refuse = |errno: libc::c_int| answer(libc::SECCOMP_RET_ERRNO | errno as u32);
    let jump = |test, value, then, or| instruction(libc::BPF_JMP | test, value, then, or);
    let mut filter = Vec::new();
    if cfg!(target_arch = "x86_64") {
        // Calls of the other kinds have other numbers.
        filter.extend([
            load(ARCHITECTURE),
            jump(libc::BPF_JEQ, X86_64, 1, 0),
            refuse(libc::EPERM),
            load(NUMBER),
            jump(libc::BPF_JGE, X32, 0, 1),
            refuse(libc::EPERM),
        ]);
    }
    filter.push(load(NUMBER));
    for call in REFUSED {
        filter.extend([jump(libc::BPF_JEQ, call as u32, 0, 1), refuse(libc::EPERM)]);
    }
    filter.extend([
        // Its flags are in memory, where no filter looks; C libraries use `clone` without it.
        jump(libc::BPF_JEQ, libc::SYS_clone3 as u32, 0, 1),
        refuse(libc::ENOSYS),
        jump(libc::BPF_JEQ, libc::SYS_clone as u32, 0, 3),
        load(FIRST_ARGUMENT),
        jump(libc::BPF_JSET, NEW_NAMESPACES as u32, 0, 5),
        refuse(libc::EPERM),
        jump(libc::BPF_JEQ, libc::SYS_socket as u32, 0, 3),
        load(FIRST_ARGUMENT),
        jump(libc::BPF_JEQ, libc::AF_UNIX as u32, 1, 0),
        refuse(libc::EPERM),
        answer(libc::SECCOMP_RET_ALLOW),
    ]);
    filter
}

fn instruction(code: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt, jf, k }
}

fn filter_calls() -> io::Result<()> {
    let mut filter = filter();
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: `program` says where the instructions are and how many, and the kernel copies them.
    // JUSTIFICATION: rustix has no such call.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            // Guests need no slower processor for it.
            libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
            ptr::from_ref(&program),
        )
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::host::Host;

    /// What user 0 of the machine would try; what works is printed.
    const ATTEMPTS: &str = r#"
        try() { sh -c "$1" >> /run/said 2>&1 && echo "worked: $1"; }
        try ': >> victim'
        try ': > new-file'
        try 'chmod u+x victim'
        try 'ln victim new-name'
        try 'mount -o remount,rw /'
        try 'mount -t tmpfs none /mnt'
        try 'umount /run'
        try 'unshare --user --map-root-user true'
        try 'unshare --mount true'
        try 'nsenter --target 1 --mount true'
        try 'cat /proc/1/root/etc/passwd'
        try 'value=$(cat /proc/sys/kernel/core_pattern) && echo "$value" > /proc/sys/kernel/core_pattern'
        try ': >> /dev/full'
        try 'mknod /run/device c 1 3'
        try 'mkdir /sys/fs/cgroup/new-group && rmdir /sys/fs/cgroup/new-group'
        try 'ping -c 1 -W 1 127.0.0.1'
        try ': > /run/own'
        try 'cat victim'
        echo "in /tmp: $(ls -A /tmp)"
        grep -E '^(CapPrm|CapBnd|NoNewPrivs)' /proc/self/status"#;

    #[test]
    fn what_is_confined_reads_and_writes_only_its_own() {
        let host = Host::create("confined", &[]).unwrap();
        // The victim where guests see it, and a program in a directory that is hidden.
        let own = format!("earmark-test-{}", std::process::id());
        let victims = Path::new("/var/tmp").join(&own);
        let directory = std::env::temp_dir().join(&own);
        for directory in [&victims, &directory] {
            fs::create_dir(directory).unwrap();
        }
        fs::write(victims.join("victim"), "precious").unwrap();
        let shell = directory.join("shell");
        fs::copy("/bin/sh", &shell).unwrap();
        let mut command = Command::new(&shell);
        command.args(["-c", ATTEMPTS]).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.current_dir(&victims);
        let child = host.spawn_confined(&mut command, || confine(&[&shell])).unwrap();
        let output = child.wait_with_output().unwrap();
        for directory in [&victims, &directory] {
            fs::remove_dir_all(directory).unwrap();
        }
        let said = String::from_utf8(output.stdout).unwrap();
        let mut expected = "worked: : > /run/own\nworked: cat victim\n".to_owned();
        if let Ok(inside) = directory.strip_prefix("/tmp") {
            expected += &format!("in /tmp: {}\n", inside.display());
        }
        assert!(said.starts_with(&expected), "{said}");
        let rights = said.split_once("CapPrm").unwrap().1;
        assert_eq!(
            rights.split_whitespace().collect::<Vec<_>>(),
            [":", "0000000000000004", "CapBnd:", "0000000000000004", "NoNewPrivs:", "1"]
        );
    }
}
