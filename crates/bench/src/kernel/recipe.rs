//! How the kernel is made: everything that its result depends on, besides the sources.

/// The options that the kernel has beyond none at all.
pub const CONFIG: &str = include_str!("um.config");

/// Raised when [`build`](super::build) does something else with the same sources and options.
const REVISION: u32 = 1;

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

/// A file in which one piece of text is replaced before the build, and by what: the kernel's only
/// way to the machine's `getrandom` finds that there is none.
pub const EDITED: (&str, &str, &str) =
    ("arch/um/os-Linux/util.c", "return getrandom(buf, len, flags);", "return -ENOSYS;");

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
    let text = format!("{version}\n{REVISION}\n{REPLACED:?}\n{EDITED:?}\n{CONFIG}");
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
