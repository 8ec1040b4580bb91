//! How the kernel is made: everything that its result depends on, besides the sources.

use super::edit::Edit;
use super::pci::PCI_OVER_VIRTIO;

/// The options that the kernel has beyond none at all.
pub const CONFIG: &str = include_str!("um.config");

/// Raised when [`build`](super::build) does something else with the same sources and options.
const REVISION: u32 = 3;

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
/// process, and then awaits, may change them. Later series have [`FILTERED_CALLS`] instead.
const KEPT_REGISTERS: [Edit; 4] = [
    Edit {
        file: "arch/um/os-Linux/skas/process.c",
        from: "#include <timetravel.h>\n#include \"../internal.h\"\n",
        to: "#include <timetravel.h>
#include \"../internal.h\"

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
        from: "if (get_fp_registers(pid, regs->fp)) {",
        to: "fp_pid = 0;
		err = get_fp_registers(pid, regs->fp);
		if (!err) {
			fp_pid = pid;
			memcpy(fp_known, regs->fp, sizeof(fp_known));
		}
		if (err) {",
    },
];

/// Processors have more registers than this kernel has room for: AMX alone has 8 KiB of them. No
/// program uses those: it would ask first, by a system call that this kernel does not have. But the
/// machine takes registers back only all at once, so zeros follow; of too many it takes what it
/// has. Later series ask how many there are.
const MANY_REGISTERS: [Edit; 2] = [
    Edit {
        file: "arch/x86/um/os-Linux/registers.c",
        from: "#include <stdlib.h>\n",
        to: "#include <stdlib.h>\n#include <string.h>\n",
    },
    Edit {
        file: "arch/x86/um/os-Linux/registers.c",
        from: "		iov.iov_base = fp_regs;
		iov.iov_len = FP_SIZE * sizeof(unsigned long);
		if (ptrace(PTRACE_SETREGSET,",
        to: "		static unsigned long all[8192];

		memcpy(all, fp_regs, FP_SIZE * sizeof(unsigned long));
		iov.iov_base = all;
		iov.iov_len = sizeof(all);
		if (ptrace(PTRACE_SETREGSET,",
    },
];

/// A guest kicks its device by a bit in the calendar's shared memory, which is looked at when its
/// turn ends, and lets no time pass before: neither a message, nor an answer to wait for. The first
/// kick of a ring starts it, and stays a message; so does that of a ring without a callback, whose
/// answer the driver waits for right there, and that of a PCI device, whose registers are read so.
///
/// It finds its interrupts there, one bit for each ring, when its turn begins: no message, no
/// signal because of it. The first interrupt is a message, from which time.c learns what to call.
const SHARED_NOTIFICATIONS: [Edit; 5] = [
    Edit {
        file: "arch/um/kernel/time.c",
        from: "static void time_travel_handle_message(",
        to: concat!(include_str!("notifications.c"), "static void time_travel_handle_message("),
    },
    Edit {
        file: "arch/um/kernel/time.c",
        from: "			/* no request right now since we're running */",
        to: "			time_travel_take_interrupts();
			/* no request right now since we're running */",
    },
    Edit {
        file: "arch/um/drivers/virtio_uml.c",
        from: "struct virtio_uml_vq_info {\n",
        to: "#include <linux/virtio_ids.h>

bool time_travel_kick(void);
void time_travel_share_interrupts(struct time_travel_event *e, u64 *rings);

struct virtio_uml_vq_info {
	bool started;
",
    },
    Edit {
        file: "arch/um/drivers/virtio_uml.c",
        from: "		vu_dev = to_virtio_uml_device(vq->vdev);

		return vhost_user_set_vring_state(",
        to: "		if (info->started && vq->callback &&
		    vq->vdev->id.device == VIRTIO_ID_NET && time_travel_kick())
			return true;
		info->started = true;
		vu_dev = to_virtio_uml_device(vq->vdev);

		return vhost_user_set_vring_state(",
    },
    Edit {
        file: "arch/um/drivers/virtio_uml.c",
        from: "		if (ev && !vu_dev->suspended)\n",
        to: "		if (ev)
			time_travel_share_interrupts(ev, &vu_dev->vq_irq_vq_map);
		if (ev && !vu_dev->suspended)
",
    },
];

/// Programs read the clock without a system call, of which most of what measures makes many. The
/// result is the same. `clock.c` says how.
const CLOCK_IN_MEMORY: [Edit; 8] = [
    Edit {
        file: "arch/um/kernel/time.c",
        from: "EXPORT_SYMBOL(time_travel_ndelay);",
        to: concat!("EXPORT_SYMBOL(time_travel_ndelay);", include_str!("clock.c")),
    },
    Edit {
        file: "arch/um/os-Linux/skas/process.c",
        from: "#include \"../internal.h\"\n",
        to: "#include \"../internal.h\"

void time_travel_enter_user(void);
void time_travel_leave_user(void);
",
    },
    Edit {
        file: "arch/um/os-Linux/skas/process.c",
        from: "		time_travel_print_bc_msg();",
        to: "		time_travel_print_bc_msg();
		time_travel_enter_user();",
    },
    Edit {
        file: "arch/um/os-Linux/skas/process.c",
        from: "		UPT_SYSCALL_NR(regs) = -1;",
        to: "		time_travel_leave_user();
		UPT_SYSCALL_NR(regs) = -1;",
    },
    Edit {
        file: "arch/x86/um/vdso/um_vdso.c",
        from: "#include <asm/unistd.h>\n",
        to: concat!("#include <asm/unistd.h>\n", include_str!("clock_vdso.c")),
    },
    Edit {
        file: "arch/x86/um/vdso/um_vdso.c",
        from: "	asm(\"syscall\"
		: \"=a\" (ret)
		: \"0\" (__NR_clock_gettime),",
        to: "	if (read_clock_page(clock, (long *)ts))
		return 0;

	asm(\"syscall\"
		: \"=a\" (ret)
		: \"0\" (__NR_clock_gettime),",
    },
    Edit {
        file: "arch/x86/um/vdso/vma.c",
        from: "subsys_initcall(init_vdso);\n",
        to: "subsys_initcall(init_vdso);

void *time_travel_clock_page(void);

static int map_clock(struct mm_struct *mm)
{
	static struct vm_special_mapping clock_mapping = {
		.name = \"[vvar]\",
	};
	unsigned long address = um_vdso_addr - PAGE_SIZE;
	void *page = time_travel_clock_page();
	struct vm_area_struct *vma;

	if (!page)
		return -ENOMEM;
	vma = _install_special_mapping(mm, address, PAGE_SIZE,
		VM_READ|VM_WRITE|VM_SHARED|
		VM_MAYREAD|VM_MAYWRITE|VM_MAYSHARE,
		&clock_mapping);
	if (IS_ERR(vma))
		return PTR_ERR(vma);
	return remap_pfn_range(vma, address, __pa(page) >> PAGE_SHIFT,
			       PAGE_SIZE, vma->vm_page_prot);
}
",
    },
    Edit {
        file: "arch/x86/um/vdso/vma.c",
        from: "	mmap_write_unlock(mm);

	return IS_ERR(vma) ? PTR_ERR(vma) : 0;",
        to: "	if (!IS_ERR(vma)) {
		int error = map_clock(mm);

		if (error)
			vma = ERR_PTR(error);
	}

	mmap_write_unlock(mm);

	return IS_ERR(vma) ? PTR_ERR(vma) : 0;",
    },
];

/// The vDSO tells on which processor a program runs, as that of every other x86-64 kernel. That of
/// 6.12 does, that of 7.3 does not, and programs that take it for granted, such as those with
/// Rust's `rustix`, end.
const PROCESSOR_NUMBER: [Edit; 2] = [
    Edit {
        file: "arch/x86/um/vdso/vdso.lds.S",
        from: "		__vdso_gettimeofday;\n		time;",
        to: "		__vdso_gettimeofday;\n		getcpu;\n		__vdso_getcpu;\n		time;",
    },
    Edit {
        file: "arch/x86/um/vdso/um_vdso.c",
        from: "__kernel_old_time_t __vdso_time(",
        to: "long __vdso_getcpu(unsigned int *cpu, unsigned int *node, void *unused);
long __vdso_getcpu(unsigned int *cpu, unsigned int *node, void *unused)
{
	if (cpu)
		*cpu = 0;
	if (node)
		*node = 0;
	return 0;
}
long getcpu(unsigned int *cpu, unsigned int *node, void *unused)
	__attribute__((weak, alias(\"__vdso_getcpu\")));

__kernel_old_time_t __vdso_time(",
    },
];

/// Programs' system calls are caught by a filter inside their process, unless the machine refuses
/// filters. That takes less than `ptrace`, which is the default.
const FILTERED_CALLS: [Edit; 1] = [Edit {
    file: "arch/um/os-Linux/start_up.c",
    from: "static int seccomp_config __initdata;",
    to: "static int seccomp_config __initdata = 1; /* auto */",
}];

/// Edits that make a guest faster, and nothing else.
pub const FASTER: [&[Edit]; 2] = [&SHARED_NOTIFICATIONS, &CLOCK_IN_MEMORY];

/// Edits that some series need: those that have their texts.
pub const WHERE_NEEDED: [&[Edit]; 4] =
    [&MANY_REGISTERS, &KEPT_REGISTERS, &PROCESSOR_NUMBER, &FILTERED_CALLS];

/// Variables of the build. Its date, place and builder are part of what a kernel takes for
/// randomness, so two builds of the same sources would give different results. The last two are in
/// [`BUILDER`].
pub const BUILD: [(&str, &str); 4] = [
    ("KBUILD_BUILD_TIMESTAMP", "Thu Jan  1 00:00:00 UTC 2026"),
    ("KBUILD_BUILD_VERSION", "1"),
    ("KBUILD_BUILD_USER", "earmark"),
    ("KBUILD_BUILD_HOST", "virtual-time"),
];

/// What the banner of a kernel says that was built by this recipe, with its edits.
pub const BUILDER: &[u8] = b"(earmark@virtual-time)";

/// Parts of the sources that are not unpacked: other architectures, and drivers that this kernel
/// cannot have. Their `Kconfig` files stay, since the ones that do build name them.
pub const LEFT_OUT: [&str; 13] = [
    "Documentation/*/*",
    "tools/testing/*",
    "tools/perf/*",
    "arch/*/boot/dts/*",
    "drivers/gpu/*.[ch]",
    "drivers/media/*.[ch]",
    "drivers/infiniband/*.[ch]",
    "drivers/staging/*.[ch]",
    "drivers/scsi/*.[ch]",
    "drivers/net/ethernet/[!i]*/*.[ch]",
    "drivers/net/ethernet/i[!n]*/*.[ch]",
    "drivers/net/wireless/*.[ch]",
    "sound/*.[ch]",
];

/// A short name for the recipe as applied to one version of the sources.
#[must_use]
pub fn hash(version: &str) -> String {
    let text = format!(
        "{version}\n{REVISION}\n{REPLACED:?}\n{NO_RANDOMNESS:?}\n{INTERRUPTED_AND_RUN:?}\n{PCI_OVER_VIRTIO:?}\n{WHERE_NEEDED:?}\n{FASTER:?}\n{BUILD:?}\n{CONFIG}"
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
