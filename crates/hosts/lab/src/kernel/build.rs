//! Building the kernel from the sources that apt knows. Nothing here needs root.

use std::ffi::OsStr;
use std::fmt::Arguments;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::cache::Cache;
use super::process::{output_of, piped, run};
use super::recipe::{self, SERIES, When};
use super::sources::{Sources, Suite};

/// The programs that the build runs, and Debian's packages of them.
const TOOLS: [(&str, &str); 10] = [
    ("apt-get", "apt"),
    ("dpkg-deb", "dpkg"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
    ("make", "make"),
    ("gcc", "gcc"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("strip", "binutils"),
];

/// The kernel: one that was built by this recipe, or a new one of the newest sources: of those that
/// the machine's apt knows, or of a suite. `report` gets a line before each step.
pub fn find_or_build(suite: Option<&Suite>, report: fn(Arguments<'_>)) -> Result<PathBuf> {
    let cache = Cache::open(suite)?;
    if let Some(path) = cache.newest() {
        return Ok(path);
    }
    check_tools()?;
    let lock = cache.lock(report)?;
    let workshop = cache.workshop(&lock)?;
    let (directory, started) = (workshop.path(), Instant::now());
    let sources = Sources::newest(suite, directory)?;
    let kernel = cache.kernel(&sources.version);
    if kernel.is_file() {
        // Another process has built it meanwhile.
        return Ok(kernel);
    }
    let build = Build { directory, sources: &sources, started, report };
    build.download()?;
    build.unpack()?;
    build.configure()?;
    let built = build.compile()?;
    // A reader sees the whole kernel or none.
    fs::rename(&built, &kernel).with_context(|| format!("create {}", kernel.display()))?;
    build.report(&format!("built {}", sources.version));
    Ok(kernel)
}

fn check_tools() -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let missing = |tool: &str| !std::env::split_paths(&path).any(|dir| dir.join(tool).is_file());
    let missing: Vec<_> = TOOLS.iter().filter(|(tool, _)| missing(tool)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let tools: Vec<_> = missing.iter().map(|(tool, _)| *tool).collect();
    if tools.contains(&"apt-get") {
        bail!(
            "build a kernel: this takes Debian's or Ubuntu's apt-get; elsewhere, build Linux \
             {}.{} or newer with ARCH=um and name it in {}",
            recipe::OLDEST.0,
            recipe::OLDEST.1,
            super::VARIABLE
        );
    }
    let packages: Vec<_> = missing.iter().map(|(_, package)| *package).collect();
    bail!(
        "build a kernel: {} missing; install with: apt-get install {}",
        tools.join(", "),
        packages.join(" ")
    );
}

struct Build<'a> {
    directory: &'a Path,
    sources: &'a Sources,
    started: Instant,
    report: fn(Arguments<'_>),
}

impl Build<'_> {
    fn report(&self, what: &str) {
        let seconds = self.started.elapsed().as_secs_f64();
        (self.report)(format_args!("earmark: kernel: {seconds:>4.0} s  {what}"));
    }

    fn source(&self) -> PathBuf {
        self.directory.join(&self.sources.package)
    }

    fn download(&self) -> Result<()> {
        self.report(&format!("downloading {} (150 MB)", self.sources.package));
        run(self.sources.download().current_dir(self.directory))
            .context("download the sources; if apt's lists are old: apt-get update")
    }

    /// Unpacks the archive inside the package straight from one pipe into the next.
    fn unpack(&self) -> Result<()> {
        self.report("unpacking");
        let deb = fs::read_dir(self.directory)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.extension() == Some(OsStr::new("deb")))
            .context("find the downloaded package: apt-get left no .deb file")?;
        let mut package = Command::new("dpkg-deb");
        let mut package = piped(package.arg("--fsys-tarfile").arg(&deb))?;
        let inner = format!("./usr/src/{}.tar.xz", self.sources.package);
        let mut archive = Command::new("tar");
        archive.args(["--extract", "--to-stdout", &inner]).stdin(output_of(&mut package));
        let mut archive = piped(&mut archive)?;
        let mut files = Command::new("tar");
        files.args(["--extract", "--xz"]).current_dir(self.directory);
        files.args(
            recipe::LEFT_OUT.map(|part| format!("--exclude={}/{part}", self.sources.package)),
        );
        let unpacked = run(files.stdin(output_of(&mut archive)));
        let whole = package.wait()?.success() && archive.wait()?.success();
        unpacked?;
        if !whole {
            bail!("unpack {}: it is damaged; try again", deb.display());
        }
        fs::remove_file(&deb).with_context(|| format!("remove {}", deb.display()))
    }

    fn configure(&self) -> Result<()> {
        self.edit()?;
        let fragment = self.directory.join("um.config");
        fs::write(&fragment, recipe::CONFIG)
            .with_context(|| format!("write {}", fragment.display()))?;
        run(self.make("allnoconfig").env("KCONFIG_ALLCONFIG", &fragment))?;
        let path = self.source().join(".config");
        let config =
            fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let missing = recipe::missing_from(&config);
        let is_essential =
            |line: &&&str| recipe::ESSENTIAL.iter().any(|option| line.starts_with(option));
        if let Some(line) = missing.iter().find(is_essential) {
            bail!(
                "configure {}: it does not take {line}; please report this",
                self.sources.package
            );
        }
        if !missing.is_empty() {
            self.report(&format!("{} does not take {}", self.sources.package, missing.join(", ")));
        }
        Ok(())
    }

    fn edit(&self) -> Result<()> {
        let (file, text) = recipe::REPLACED;
        let path = self.source().join(file);
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        let package = &self.sources.package;
        let mut fit = Vec::new();
        for series in SERIES.iter() {
            if series.make(&self.source())? {
                fit.push(&series.name);
            } else if series.when == When::Faster {
                let name = &series.name;
                self.report(&format!("{package}: {name} does not fit; guests will be slower"));
            }
        }
        let mut required = SERIES.iter().filter(|series| series.when == When::Required);
        if let Some(missing) = required.find(|series| !fit.contains(&&series.name)) {
            bail!(
                "edit {package}: it lacks the text that {} replaces; please report this",
                missing.name
            );
        }
        Ok(())
    }

    fn compile(&self) -> Result<PathBuf> {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        self.report(&format!("compiling on {jobs} cores; 2 to 4 minutes on two"));
        run(self.make("linux").arg(format!("-j{jobs}")))?;
        let kernel = self.source().join("linux");
        run(Command::new("strip").arg(&kernel))?;
        Ok(kernel)
    }

    fn make(&self, target: &str) -> Command {
        let mut make = Command::new("make");
        make.args(["ARCH=um", target]).current_dir(self.source()).envs(recipe::BUILD);
        // Flags of a surrounding make, and variables that this one would take for its own.
        for name in ["MAKEFLAGS", "MAKELEVEL", "MFLAGS", "CROSS_COMPILE", "KBUILD_OUTPUT", "O"] {
            make.env_remove(name);
        }
        make
    }
}
