//! The NIC's driver, where the kernel does not have it built in.
//!
//! Earmark's own kernel has it. A distribution's may keep it, and what it depends on, in files
//! beside: modules. Only process 1 could load them. The kernel would ask `modprobe`, which
//! looks in `/lib/modules` alone, and packages of User-Mode Linux put theirs elsewhere.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rustix::io::Errno;
use rustix::system::{finit_module, uname};

/// Where modules may be: in a directory with the kernel's release for its name. The first is that
/// of Debian's package `user-mode-linux`.
const HOMES: [&str; 3] = ["/usr/lib/uml/modules", "/lib/modules", "/usr/lib/modules"];

/// Where drivers show that the kernel has.
const PLACES: [&str; 2] = ["/sys/module", "/sys/bus/pci/drivers"];

/// What to do when modules cannot be used.
const WAY_OUT: &str = "or use a kernel that has the driver built in: earmark kernel";

/// Loads a driver after everything that it depends on. Nothing happens if the kernel has it.
///
/// One that is built in shows in `/sys/module` only if it has parameters, and at its bus anyway.
pub(super) fn load(driver: &str) -> io::Result<()> {
    if PLACES.iter().any(|place| Path::new(place).join(driver).exists()) {
        return Ok(());
    }
    let system = uname();
    let release = system.release().to_string_lossy();
    let homes = HOMES.map(|home| Path::new(home).join(&*release));
    let Some(home) = homes.iter().find(|home| home.join("modules.dep").exists()) else {
        return Err(io::Error::other(format!(
            "it is not built into kernel {release}, and there is no modules.dep in {}; install the \
             kernel's modules with it (apt-get install user-mode-linux), {WAY_OUT}",
            homes.each_ref().map(|home| home.display().to_string()).join(", ")
        )));
    };
    let path = home.join("modules.dep");
    let failed = |what: &str| format!("{what} {}", path.display());
    let index = fs::read_to_string(&path)
        .map_err(|error| io::Error::other(format!("{}: {error}; {WAY_OUT}", failed("read"))))?;
    let modules = in_order(&index, driver).ok_or_else(|| {
        let what = failed("it is neither built into the kernel nor listed in");
        io::Error::other(format!("{what}; {WAY_OUT}"))
    })?;
    modules.into_iter().try_for_each(|module| insert(&home.join(module)))
}

/// The files of a driver and of all that it depends on, in the order in which to load them.
///
/// A line of `modules.dep` names a module, and then what it depends on, what is needed first last.
fn in_order<'a>(index: &'a str, driver: &str) -> Option<Vec<&'a str>> {
    index.lines().find_map(|line| {
        let (module, needed) = line.split_once(':')?;
        let file = Path::new(module).file_name()?.to_str()?;
        let name = file.split('.').next()?.replace('-', "_");
        (name == driver).then(|| needed.split_whitespace().rev().chain([module]).collect())
    })
}

fn insert(path: &Path) -> io::Result<()> {
    let failed = |why: String| io::Error::other(format!("insert {}: {why}", path.display()));
    if path.extension().is_none_or(|extension| extension != "ko") {
        return Err(failed(format!(
            "it is compressed, which is not supported; decompress it and run depmod, {WAY_OUT}"
        )));
    }
    let file = File::open(path).map_err(|error| {
        failed(format!("{error}; install the kernel's modules again, {WAY_OUT}"))
    })?;
    match finit_module(&file, c"", 0) {
        // Somebody else may need it, too.
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(failed(format!("{errno}; install kernel and modules again, {WAY_OUT}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_driver_depends_on_comes_first() {
        let index = "kernel/net/core/failover.ko:\n\
                     kernel/drivers/net/virtio_net.ko: kernel/drivers/net/net_failover.ko \
                     kernel/net/core/failover.ko\n\
                     kernel/drivers/net/net-failover.ko.xz: kernel/net/core/failover.ko.xz\n";
        let expected = [
            "kernel/net/core/failover.ko",
            "kernel/drivers/net/net_failover.ko",
            "kernel/drivers/net/virtio_net.ko",
        ];
        assert_eq!(in_order(index, "virtio_net").unwrap(), expected);
        assert_eq!(in_order(index, "failover").unwrap(), &expected[..1]);
        assert_eq!(in_order(index, "net_failover").unwrap().len(), 2, "a dash is an underscore");
        assert_eq!(in_order(index, "virtio"), None);
        assert_eq!(in_order("nonsense\n\n:\n: x\n", "virtio_net"), None);
    }

    #[test]
    fn a_module_that_cannot_be_loaded_is_named_with_the_reason() {
        let error = insert(Path::new("/no/such/virtio_net.ko.xz")).unwrap_err().to_string();
        assert!(error.contains("/no/such/virtio_net.ko.xz: it is compressed"), "{error}");
        assert!(error.contains("earmark kernel"), "{error}");
        let error = insert(Path::new("/no/such/virtio_net.ko")).unwrap_err().to_string();
        assert!(error.contains("insert /no/such/virtio_net.ko: No such file"), "{error}");
    }
}
