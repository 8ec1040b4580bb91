//! One build of everything, and the tree of files that packages and tarball are made of.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::install::{self, Places, copy};
use crate::{page, repo, shell, tools};

/// What a static command is compiled for.
const MUSL: &str = "x86_64-unknown-linux-musl";
/// What packages are compiled for.
const GNU: &str = "x86_64-unknown-linux-gnu";
/// Where Debian has libraries of this architecture.
const MULTIARCH: &str = "lib/x86_64-linux-gnu";

pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The crates whose artefacts are shipped.
pub(super) const COMMAND: &str = "earmark";
pub(super) const PROVIDER: &str = "earmark-provider";
pub(super) const C_LIBRARY: &str = "earmark-capi";
const PRELOAD: &str = "earmark-preload";

/// How everything is compiled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Profile {
    /// As it is shipped: the same bytes in whatever directory.
    Release,
    /// As the tests are, which have most of it already.
    Dev,
}

/// One build: from which sources, and where to.
pub(super) struct Build {
    pub source: PathBuf,
    /// Where cargo puts what it builds.
    pub target: PathBuf,
    /// Where artefacts and what they are made of go.
    pub out: PathBuf,
    pub profile: Profile,
    /// When the commit was made, in seconds since 1970; nothing that is shipped is younger.
    pub epoch: u64,
}

/// Which of the two builds.
#[derive(Clone, Copy)]
pub(super) enum Flavour {
    /// For the distribution's libc.
    Native,
    /// Static, for any distribution.
    Musl,
}

impl Flavour {
    pub(super) fn target(self) -> &'static str {
        match self {
            Self::Native => GNU,
            Self::Musl => MUSL,
        }
    }
}

impl Build {
    pub(super) fn new(source: &Path, target: &Path, out: &Path, profile: Profile) -> Result<Self> {
        let epoch = shell::output(
            shell::command("git").args(["log", "-1", "--format=%ct"]).current_dir(source),
        );
        let epoch = epoch.context("find when the commit was made; dist needs a git checkout")?;
        let epoch = epoch.trim().parse().context("read the time of the commit")?;
        fs::create_dir_all(out).with_context(|| format!("make {}", out.display()))?;
        let [source, target, out] = [source, target, out].map(Path::to_owned);
        Ok(Self { source, target, out, profile, epoch })
    }

    /// Cargo, in these sources, with flags that leave no trace of directories.
    pub(super) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut cargo = shell::cargo(arguments.iter().copied());
        cargo.current_dir(&self.source).env("CARGO_TARGET_DIR", &self.target);
        cargo.env("SOURCE_DATE_EPOCH", self.epoch.to_string());
        if self.profile == Profile::Release {
            let flags = self
                .remapped()
                .map(|(from, to)| format!("--remap-path-prefix={}=/usr/src/{to}", from.display()));
            cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
        }
        cargo
    }

    /// The commit that is built.
    pub(super) fn commit(&self) -> Result<String> {
        let mut git = shell::command("git");
        git.args(["rev-parse", "HEAD"]).current_dir(&self.source);
        Ok(shell::output(&mut git)?.trim().to_owned())
    }

    /// Directories whose names would be in panics and line tables; of two that fit the last counts.
    fn remapped(&self) -> [(PathBuf, &'static str); 3] {
        let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo");
        let cargo_home = std::env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from);
        [
            (cargo_home, "cargo"),
            (self.source.clone(), "earmark"),
            (self.target.clone(), "earmark/target"),
        ]
    }

    /// Compiles what packages have.
    pub(super) fn compile_native(&self) -> Result<()> {
        let packages = ["-p", COMMAND, "-p", PROVIDER, "-p", C_LIBRARY, "-p", PRELOAD];
        match self.profile {
            Profile::Release => {
                shell::run(self.cargo(&["build", "--release", "--target", GNU]).args(packages))
            }
            Profile::Dev => shell::run(&mut shell::build()),
        }
    }

    /// Compiles the static command.
    pub(super) fn compile_musl(&self) -> Result<()> {
        ensure!(
            tools::ensure_target(MUSL),
            "no standard library for {MUSL}; get it with: rustup target add {MUSL}"
        );
        let mut cargo = self.cargo(&["build", "--target", MUSL, "-p", COMMAND]);
        if self.profile == Profile::Release {
            cargo.arg("--release");
        }
        shell::run(&mut cargo)
    }

    /// Where cargo has put what it compiled.
    pub(super) fn built(&self, flavour: Flavour) -> PathBuf {
        match (self.profile, flavour) {
            (Profile::Release, _) => self.target.join(flavour.target()).join("release"),
            (Profile::Dev, Flavour::Musl) => self.target.join(MUSL).join("debug"),
            (Profile::Dev, Flavour::Native) => self.target.join("debug"),
        }
    }

    /// Puts the command and all that belongs to it below `prefix`; `zsh` is where the
    /// distribution's zsh looks for completions.
    pub(super) fn place_command(&self, flavour: Flavour, prefix: &Path, zsh: &str) -> Result<()> {
        let command = self.built(flavour).join("earmark");
        copy(&command, &prefix.join("bin/earmark"))?;
        let manual = prefix.join("share/man/man1");
        fs::create_dir_all(&manual).with_context(|| format!("make {}", manual.display()))?;
        shell::run(shell::command(&command).args(["man", "--all"]).arg(&manual))?;
        let completions = [
            ("bash", "share/bash-completion/completions/earmark"),
            ("fish", "share/fish/vendor_completions.d/earmark.fish"),
            ("zsh", zsh),
        ];
        for (name, place) in completions {
            let script = shell::output(shell::command(&command).args(["completions", name]))?;
            write(&prefix.join(place), &script)?;
        }
        let share = prefix.join("share/earmark");
        for (from, to) in [
            ("scenarios", "scenarios"),
            ("policies", "policies"),
            ("packaging/prometheus", "prometheus"),
            ("packaging/grafana", "grafana"),
        ] {
            for path in repo::files(&self.source.join(from), &["toml", "yml", "json"])? {
                copy(&path, &share.join(to).join(path.file_name().unwrap_or_default()))?;
            }
        }
        let page = page::make(&self.source, &self.target, self.cargo(&[]))?;
        copy(&page, &share.join("earmark.html"))?;
        copy(&self.source.join("dissector/mx.lua"), &share.join("mx.lua"))?;
        let documents = prefix.join("share/doc/earmark");
        copy(&self.source.join("README.md"), &documents.join("README.md"))?;
        // Beside the others Debian's tools take it for a changelog of theirs.
        copy(&self.source.join("CHANGELOG.md"), &documents.join("docs/CHANGELOG.md"))?;
        for page in repo::files(&self.source.join("docs"), &["md", "svg"])? {
            let name = page.strip_prefix(&self.source).unwrap_or(&page);
            copy(&page, &documents.join(name))?;
        }
        Ok(())
    }

    /// Puts everything below `root`, which stands for `/`.
    pub(super) fn place_all(&self, root: &Path) -> Result<()> {
        let prefix = root.join("usr");
        let zsh = "share/zsh/vendor-completions/_earmark";
        self.place_command(Flavour::Native, &prefix, zsh)?;
        let built = self.built(Flavour::Native);
        for (built_as, name) in
            [("libearmark_fi.so", "libearmark-fi.so"), ("libearmark_poll.so", "libearmark-poll.so")]
        {
            copy(&built.join(built_as), &prefix.join("lib/earmark").join(name))?;
        }
        let places = Places { root: root.to_owned(), prefix: "/usr".into(), libraries: MULTIARCH };
        install::place(&self.source, &built, &places)
    }
}

/// A directory with nothing in it.
pub(super) fn fresh(directory: &Path) -> Result<()> {
    if directory.exists() {
        fs::remove_dir_all(directory).with_context(|| format!("remove {}", directory.display()))?;
    }
    fs::create_dir_all(directory).with_context(|| format!("make {}", directory.display()))
}

/// Writes a file, and makes the directories above it.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(path))
        .and_then(|()| fs::write(path, text))
        .with_context(|| format!("write {}", path.display()))
}
