//! Installs the C API as other libraries of C are: nothing but files below a prefix.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::{header, repo, shell};

/// The names by which linkers and programs know the shared library. The second one is its soname.
const LINKER_NAME: &str = "libearmark.so";
const SONAME: &str = "libearmark.so.0";

/// What `cargo xtask install` takes.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Where to: /usr/local, for example
    #[arg(long)]
    prefix: PathBuf,
}

/// Where the files go.
pub(crate) struct Places {
    /// The directory that stands for `/` for now; `/` itself if files go where they are to be.
    pub root: PathBuf,
    pub prefix: PathBuf,
    /// Below the prefix.
    pub libraries: &'static str,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    shell::run(&mut shell::cargo(["build", "--release", "-p", "earmark-capi"]))?;
    let built = repo::target_directory()?.join("release");
    let prefix = std::path::absolute(&options.prefix).context("finding the prefix")?;
    place(repo::root(), &built, &Places { root: "/".into(), prefix, libraries: "lib" })?;
    println!(
        "installed below {}; compile with: pkg-config --cflags --libs earmark",
        options.prefix.display()
    );
    Ok(())
}

/// Puts the files of `source`, and what cargo built of it, into their places.
pub(crate) fn place(source: &Path, built: &Path, places: &Places) -> Result<()> {
    let below = places.prefix.strip_prefix("/").unwrap_or(&places.prefix);
    let at = places.root.join(below);
    let libraries = at.join(places.libraries);
    copy(&built.join("libearmark_capi.so"), &libraries.join(SONAME))?;
    copy(&built.join("libearmark_capi.a"), &libraries.join("libearmark.a"))?;
    let link = libraries.join(LINKER_NAME);
    let _ = fs::remove_file(&link);
    symlink(SONAME, &link).with_context(|| format!("linking {}", link.display()))?;
    copy(&source.join(header::PATH), &at.join("include/earmark_mx.h"))?;
    let pages = source.join("man");
    for page in fs::read_dir(&pages).with_context(|| format!("listing {}", pages.display()))? {
        let page = page?;
        copy(&page.path(), &at.join("share/man/man3").join(page.file_name()))?;
    }
    let description = libraries.join("pkgconfig/earmark.pc");
    fs::create_dir_all(libraries.join("pkgconfig"))?;
    fs::write(&description, pkg_config(places))
        .with_context(|| format!("writing {}", description.display()))
}

/// Copies a file, and makes the directories above it.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    let directory = to.parent().unwrap_or(to);
    fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
    // A library that programs have mapped must not change under them.
    let _ = fs::remove_file(to);
    fs::copy(from, to)
        .with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
    Ok(())
}

fn pkg_config(places: &Places) -> String {
    format!(
        "prefix={}\n\nName: earmark\nDescription: MX message passing over plain Ethernet\n\
         Version: {}\nCflags: -I${{prefix}}/include\nLibs: -L${{prefix}}/{} -learmark\n\
         Libs.private: -lgcc_s -lpthread -ldl -lm\n",
        places.prefix.display(),
        env!("CARGO_PKG_VERSION"),
        places.libraries
    )
}
