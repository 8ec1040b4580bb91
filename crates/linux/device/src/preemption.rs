//! Whether the kernel may take a processor from code of its own that is at work there.
//!
//! A thread that polls a NAPI instance is such code. Where the kernel gives way only at points of
//! its own choice (`PREEMPT_NONE`, `PREEMPT_VOLUNTARY`), such threads have kept a processor for
//! minutes (<https://github.com/openwrt/openwrt/pull/24732>: 4 minutes, and none with
//! `PREEMPT_LAZY`).
//!
//! Sources: `kernel/sched/debug.c` (`sched/preempt`), `init/Makefile` (the words of the version),
//! `preempt=` of `Documentation/admin-guide/kernel-parameters.txt`.

use crate::kernel::KernelFiles;

/// When the kernel gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preemption {
    /// At points of its own choice: `PREEMPT_NONE` or `PREEMPT_VOLUNTARY`.
    Cooperative,
    /// At any moment, or at the latest with a tick of the scheduler: `PREEMPT`, `PREEMPT_LAZY`,
    /// `PREEMPT_RT`.
    Preemptible,
}

/// What a kernel says of it. One that chooses at its boot (`PREEMPT_DYNAMIC`) says what it has
/// chosen on its command line or in debugfs, which root alone reads; `None`: neither does.
pub fn read_preemption(files: &impl KernelFiles) -> Option<Preemption> {
    if let Some(models) = files.word("sys/kernel/debug/sched/preempt") {
        return chosen(&models);
    }
    let version = files.word("proc/version")?;
    if !version.contains("PREEMPT_DYNAMIC") {
        let is_preemptible = version.contains(" PREEMPT");
        return Some(if is_preemptible {
            Preemption::Preemptible
        } else {
            Preemption::Cooperative
        });
    }
    let line = files.word("proc/cmdline")?;
    let mut named = line.split_whitespace().filter_map(|word| word.strip_prefix("preempt="));
    of_name(named.next_back()?)
}

/// The model in brackets, as in `none voluntary (full) lazy`.
fn chosen(models: &str) -> Option<Preemption> {
    let (_, rest) = models.split_once('(')?;
    of_name(rest.split_once(')')?.0)
}

fn of_name(name: &str) -> Option<Preemption> {
    match name {
        "none" | "voluntary" => Some(Preemption::Cooperative),
        "full" | "lazy" => Some(Preemption::Preemptible),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// Files by path.
    struct Files<'a>(&'a [(&'a str, &'a str)]);

    impl KernelFiles for Files<'_> {
        fn bytes(&self, path: &str, _most: u64) -> io::Result<Vec<u8>> {
            let file = self.0.iter().find(|(name, _)| *name == path);
            file.map(|(_, text)| text.as_bytes().to_vec()).ok_or(io::ErrorKind::NotFound.into())
        }

        fn list(&self, _path: &str) -> io::Result<Vec<String>> {
            Ok(Vec::new())
        }

        fn has(&self, path: &str) -> bool {
            self.bytes(path, 0).is_ok()
        }

        fn link_name(&self, _path: &str) -> Option<String> {
            None
        }
    }

    #[test]
    fn a_kernel_says_how_it_preempts() {
        const DEBUG: &str = "sys/kernel/debug/sched/preempt";
        let dynamic = ("proc/version", "Linux version 6.18.1 (gcc) #1 SMP PREEMPT_DYNAMIC Mon");
        let read = |files: &[(&str, &str)]| read_preemption(&Files(files));
        let (gives_way, preempts) = (Some(Preemption::Cooperative), Some(Preemption::Preemptible));
        assert_eq!(read(&[(DEBUG, "none voluntary (full) lazy\n"), dynamic]), preempts);
        assert_eq!(read(&[(DEBUG, "(none) voluntary full\n"), dynamic]), gives_way);
        assert_eq!(
            read(&[dynamic, ("proc/cmdline", "quiet preempt=full preempt=none")]),
            gives_way
        );
        assert_eq!(read(&[dynamic, ("proc/cmdline", "quiet")]), None);
        for (words, expected) in [
            ("#1 SMP Debian 6.1.140-1", gives_way),
            ("#0 SMP PREEMPT Sun", preempts),
            ("#1 SMP PREEMPT_RT Sun", preempts),
            ("#1 SMP PREEMPT_LAZY Sun", preempts),
        ] {
            let version = format!("Linux version 6.18.1 (gcc) {words}");
            assert_eq!(read(&[("proc/version", &version)]), expected, "{words}");
        }
        assert_eq!(read(&[]), None);
    }
}
