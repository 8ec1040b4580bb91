//! How the kernel is made: everything that its result depends on, besides the sources.

/// The options that the kernel has beyond none at all.
pub const CONFIG: &str = include_str!("um.config");

/// Raised when [`build`](super::build) does something else with the same sources and options.
const REVISION: u32 = 2;

/// The oldest series that will do: earlier ones lack coalescing of each queue by itself, and cannot
/// change it on an interface that is up.
pub const OLDEST: (u32, u32) = (6, 12);

/// Options without which the kernel is of no use; a newer series may drop or rename others.
pub const ESSENTIAL: [&str; 5] = [
    "CONFIG_UML_TIME_TRAVEL_SUPPORT",
    "CONFIG_VIRTIO_UML",
    "CONFIG_VIRTIO_NET",
    "CONFIG_HOSTFS",
    "CONFIG_UNIX98_PTYS",
];

// A guest in virtual time does the same every time it runs, if nothing in it comes from outside.
// But User-Mode Linux asks the machine for randomness: for a seed while it boots, and whenever a
// kernel would ask its processor. Both ways are closed; a guest gets its seed from Earmark instead.

/// A file that is replaced before the build, and by what.
///
/// The generic header says that the hardware has no randomness. Merely to remove this one would let
/// the build find that of x86, which has `RDRAND`.
pub const REPLACED: (&str, &str) =
    ("arch/um/include/asm/archrandom.h", "#include <asm-generic/archrandom.h>\n");

/// The kernel's only way to the machine's `getrandom` finds that there is none.
pub const NO_RANDOMNESS: Edit = Edit {
    file: "arch/um/os-Linux/util.c",
    from: "return getrandom(buf, len, flags);",
    to: "return -ENOSYS;",
};

/// One piece of text in a file, which is replaced before the build.
#[derive(Debug)]
pub struct Edit {
    /// The file.
    pub file: &'static str,
    /// What is in it once.
    pub from: &'static str,
    /// What takes its place.
    pub to: &'static str,
}

/// A guest whose turn it is and that takes interrupts before its turn begins may still run as long
/// as its calendar lets it: without the first edit, each of them costs two more messages. One that
/// has still to deliver an earlier interrupt has no event for another one, and gets its turn before
/// its first event: without the second edit it panics.
pub const INTERRUPTED_AND_RUN: [Edit; 2] = [
    Edit {
        file: "arch/um/kernel/time.c",
        from: "if (time < time_travel_shm->free_until)",
        to: "if (time < time_travel_shm->free_until &&
			    time_travel_shm->running_id != time_travel_shm_id)",
    },
    Edit {
        file: "arch/um/kernel/time.c",
        from: "if (e == time_travel_first_event()) {",
        to: "if (e == time_travel_first_event() && e->time == time_travel_time) {",
    },
];

/// The floating-point registers of a program are written back only if they are not what its process
/// has already, which is so after nearly every system call. What the kernel itself runs in that
/// process, and then awaits, may change them.
const KEPT_REGISTERS: [Edit; 4] = [
    Edit {
        file: "arch/um/os-Linux/skas/process.c",
        from: "#include \"../internal.h\"\n",
        to: "#include \"../internal.h\"

static int fp_pid;
static unsigned long fp_known[FP_SIZE];
",
    },
    Edit {
        file: "arch/um/os-Linux/skas/process.c",
        from: "void wait_stub_done(int pid)\n{\n",
        to: "void wait_stub_done(int pid)\n{\n\tfp_pid = 0;\n",
    },
    Edit {
        file: "arch/um/os-Linux/skas/process.c",
        from: "if (put_fp_registers(pid, regs->fp)) {",
        to: "if ((pid != fp_pid || memcmp(fp_known, regs->fp, sizeof(fp_known))) &&
		    put_fp_registers(pid, regs->fp)) {",
    },
    Edit {
        file: "arch/um/os-Linux/skas/process.c",
        from: "		UPT_SYSCALL_NR(regs) = -1;",
        to: "		fp_pid = pid;
		memcpy(fp_known, regs->fp, sizeof(fp_known));
		UPT_SYSCALL_NR(regs) = -1;",
    },
];

/// Edits that make a guest faster, and nothing else. A series that the texts of one group do not
/// fit is built without that group.
pub const FASTER: [&[Edit]; 1] = [&KEPT_REGISTERS];

/// Variables of the build. Its date, place and builder are part of what a kernel takes for
/// randomness, so two builds of the same sources would give different results. The last two are in
/// [`BUILDER`].
pub const BUILD: [(&str, &str); 4] = [
    ("KBUILD_BUILD_TIMESTAMP", "Thu Jan  1 00:00:00 UTC 2026"),
    ("KBUILD_BUILD_VERSION", "1"),
    ("KBUILD_BUILD_USER", "earmark"),
    ("KBUILD_BUILD_HOST", "virtual-time"),
];

/// What the banner of a kernel says that was built by this recipe, with its [edits](Edit).
pub const BUILDER: &[u8] = b"(earmark@virtual-time)";

/// Parts of the sources that are not unpacked: other architectures, and drivers that this kernel
/// cannot have. Their `Kconfig` files stay, since the ones that do build name them.
pub const LEFT_OUT: [&str; 12] = [
    "Documentation/*/*",
    "tools/testing/*",
    "tools/perf/*",
    "arch/*/boot/dts/*",
    "drivers/gpu/*.[ch]",
    "drivers/media/*.[ch]",
    "drivers/infiniband/*.[ch]",
    "drivers/staging/*.[ch]",
    "drivers/scsi/*.[ch]",
    "drivers/net/ethernet/*.[ch]",
    "drivers/net/wireless/*.[ch]",
    "sound/*.[ch]",
];

/// A short name for the recipe as applied to one version of the sources.
#[must_use]
pub fn hash(version: &str) -> String {
    let text = format!(
        "{version}\n{REVISION}\n{REPLACED:?}\n{NO_RANDOMNESS:?}\n{INTERRUPTED_AND_RUN:?}\n{FASTER:?}\n{BUILD:?}\n{CONFIG}"
    );
    // FNV-1a: names files, keeps no secrets, and stays the same between compilers.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// The lines of [`CONFIG`] that switch something on, and that `config` does not have.
#[must_use]
pub fn missing_from(config: &str) -> Vec<&'static str> {
    let wanted = CONFIG.lines().filter(|line| line.starts_with("CONFIG_"));
    wanted.filter(|wanted| !config.lines().any(|line| line == *wanted)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn essential_options_are_asked_for() {
        let missing = missing_from("");
        for option in ESSENTIAL {
            assert!(missing.contains(&format!("{option}=y").as_str()), "{option}");
        }
        assert_eq!(missing_from(CONFIG), [""; 0]);
    }

    #[test]
    fn hash_depends_on_the_version() {
        assert_eq!(hash("6.12"), hash("6.12"));
        assert_ne!(hash("6.12"), hash("6.13"));
        assert_eq!(hash("6.12").len(), 16);
    }
}
