//! The page: one HTML file with the engine, its scripts and its styles in it.
//!
//! A browser runs only the script whose hash the policy of the page names, and asks nothing of
//! anywhere.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::{Compression, write::GzEncoder};
use sha2::{Digest as _, Sha256};

use crate::{peers, repo, shell, tools};

/// What the engine is compiled for.
const TARGET: &str = "wasm32-unknown-unknown";
/// Scripts and styles.
const WEB: &str = "crates/tools/page/web";
/// The styles of all pages.
const STYLE: &str = "crates/tools/report/templates/report.css";
/// No page is larger.
const MOST_BYTES: usize = 3_000_000;

/// What finds faults of accessibility in a page (MPL 2.0): tests alone use it.
const AXE: (&str, &str) = ("axe-core", "4.14.1");

/// What `cargo xtask page` takes.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Checks the types of its scripts, too, and gets what its tests look for faults with
    #[arg(long)]
    check: bool,
}

/// Makes the page, and says where it is.
pub(crate) fn run(options: &Options) -> Result<()> {
    peers::ensure_page(options.check)?;
    let target = repo::target_directory()?;
    if options.check {
        shell::run(shell::command("tsc").args(["--project", WEB]))?;
        get_axe(&target.join("page"))?;
    }
    let page = make(repo::root(), &target, shell::cargo([]))?;
    println!("wrote {}", page.display());
    Ok(())
}

/// The same for the tests.
pub(crate) fn check() -> Result<()> {
    run(&Options { check: true })
}

/// Puts the script of axe into the directory, once.
fn get_axe(directory: &Path) -> Result<()> {
    if directory.join("axe.min.js").exists() {
        return Ok(());
    }
    fs::create_dir_all(directory).with_context(|| format!("make {}", directory.display()))?;
    let (name, version) = AXE;
    let mut npm = shell::command("npm");
    shell::run(
        npm.args(["pack", "--silent", &format!("{name}@{version}")]).current_dir(directory),
    )?;
    let mut tar = shell::command("tar");
    tar.args(["--extract", "--strip-components=1", "--file", &format!("{name}-{version}.tgz")]);
    shell::run(tar.arg("package/axe.min.js").current_dir(directory))
}

/// Makes the page from the sources below `source`, in the target directory, with `cargo`; the other
/// tools are there.
pub(crate) fn make(source: &Path, target: &Path, cargo: Command) -> Result<PathBuf> {
    let directory = target.join("page");
    fs::create_dir_all(&directory).with_context(|| format!("make {}", directory.display()))?;
    let read =
        |path: &str| fs::read_to_string(source.join(path)).with_context(|| format!("read {path}"));
    let module = BASE64_STANDARD.encode(packed(&compile(target, cargo)?)?);
    let [script, worker] = ["page.ts", "worker.ts"].map(|file| bundle(source, file));
    let (script, worker) = (script?, worker?);
    let style =
        read(STYLE)? + &read(&format!("{WEB}/page.css"))? + &read(&format!("{WEB}/see.css"))?;
    let policy = format!(
        "default-src 'none'; script-src '{}' 'wasm-unsafe-eval'; style-src '{}'; \
         worker-src blob:; base-uri 'none'; form-action 'none'",
        hash(&script),
        hash(&style)
    );
    let page = read(&format!("{WEB}/page.html"))?
        .replace("{{policy}}", &policy)
        .replace("{{style}}", &style)
        .replace("{{worker}}", &worker)
        .replace("{{module}}", &module)
        .replace("{{script}}", &script);
    ensure!(page.len() < MOST_BYTES, "the page has {} bytes, {MOST_BYTES} at most", page.len());
    let path = directory.join("earmark.html");
    fs::write(&path, page).with_context(|| format!("write {}", path.display()))?;
    Ok(path)
}

/// The module of WebAssembly.
fn compile(target: &Path, mut cargo: Command) -> Result<Vec<u8>> {
    ensure!(
        tools::ensure_target(TARGET),
        "no standard library for {TARGET}; get it with: rustup target add {TARGET}"
    );
    cargo.args(["rustc", "--profile", "wasm", "--target", TARGET]);
    shell::run(cargo.args(["-p", "earmark-page", "--lib", "--crate-type", "cdylib"]))?;
    let module = target.join(TARGET).join("wasm/page.wasm");
    fs::read(&module).with_context(|| format!("read {}", module.display()))
}

/// Compressed, the same bytes each time.
fn packed(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(bytes).context("compress the module")?;
    packed.finish().context("compress the module")
}

/// A script with all that it imports, as text that ends no element of HTML.
fn bundle(source: &Path, file: &str) -> Result<String> {
    let mut esbuild = shell::command("esbuild");
    esbuild.args(["--bundle", "--minify", "--charset=utf8", "--target=es2020"]);
    esbuild.args(["--log-level=warning", file]).current_dir(source.join(WEB));
    let script = shell::output(&mut esbuild)?;
    ensure!(!script.contains("</script"), "{file} would end its element");
    Ok(script)
}

/// The hash of an inline script or style, as a policy has it.
fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}
