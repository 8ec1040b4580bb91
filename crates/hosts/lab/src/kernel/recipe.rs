//! How the kernel is made: everything that its result depends on, besides the sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use anyhow::{Context, Result};
use serde::Deserialize;

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

/// A file that is replaced before the build, and by what.
///
/// The generic header says that the hardware has no randomness. Merely to remove this one would let
/// the build find that of x86, which has `RDRAND`.
pub const REPLACED: (&str, &str) =
    ("arch/um/include/asm/archrandom.h", "#include <asm-generic/archrandom.h>\n");

/// Files that edits include as a whole, by the name that stands for them.
const INCLUDED: [(&str, &str); 3] = [
    ("{notifications.c}", include_str!("notifications.c")),
    ("{clock.c}", include_str!("clock.c")),
    ("{clock_vdso.c}", include_str!("clock_vdso.c")),
];

/// What becomes of a series of edits that does not fit the sources; `edits.toml` has the details.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum When {
    Required,
    WhereNeeded,
    Faster,
}

/// Edits that are made together, or not at all.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EditSeries {
    pub(super) name: String,
    pub(super) when: When,
    #[serde(rename = "edit")]
    edits: Vec<Edit>,
}

/// A text that stands once in a file, and what takes its place.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    file: String,
    from: String,
    to: String,
}

/// All of them, in the order of `edits.toml`.
pub(super) static SERIES: LazyLock<Vec<EditSeries>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct Edits {
        series: Vec<EditSeries>,
    }
    let edits: Edits =
        toml::from_str(include_str!("edits.toml")).expect("edits.toml is well formed");
    let mut series = edits.series;
    for edit in series.iter_mut().flat_map(|series| &mut series.edits) {
        for (name, text) in INCLUDED {
            edit.to = edit.to.replace(name, text);
        }
    }
    series
});

impl EditSeries {
    /// Makes all edits below `source`; or none if the text of one is not in its file exactly once,
    /// and then returns false.
    pub(super) fn make(&self, source: &Path) -> Result<bool> {
        let mut files: Vec<(PathBuf, String)> = Vec::new();
        for Edit { file, from, to } in &self.edits {
            let path = source.join(file);
            let position = files.iter().position(|(edited, _)| *edited == path);
            let text = match position {
                Some(position) => files.swap_remove(position).1,
                // EditSeries differ in their files, too.
                None if !path.is_file() => return Ok(false),
                None => {
                    fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?
                }
            };
            if text.matches(from).count() != 1 {
                return Ok(false);
            }
            files.push((path, text.replace(from, to)));
        }
        for (path, text) in files {
            fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        }
        Ok(true)
    }
}

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
pub fn hash(version: &str) -> String {
    // The order, and the form, in which kernels that were built already have it.
    let of = |keep: &dyn Fn(&EditSeries) -> bool| -> Vec<&Vec<Edit>> {
        SERIES.iter().filter(|series| keep(series)).map(|series| &series.edits).collect()
    };
    let named = |name: &'static str| of(&|series| series.name == name);
    let when = |when| of(&|series| series.when == when);
    let text = format!(
        "{version}\n{REVISION}\n{REPLACED:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{BUILD:?}\n{CONFIG}",
        named("no-randomness")[0][0],
        named("interrupted-and-run")[0],
        named("pci-over-virtio"),
        when(When::WhereNeeded),
        when(When::Faster),
    );
    // FNV-1a: names files, keeps no secrets, and stays the same between compilers.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// The lines of [`CONFIG`] that switch something on, and that `config` does not have.
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
    fn hash_is_that_of_the_edits_and_the_version() {
        // Another one makes all users build the kernel again.
        assert_eq!(hash("6.12.1"), "ed3d992357f550fd");
        assert_ne!(hash("6.12.1"), hash("6.13"));
    }
}
