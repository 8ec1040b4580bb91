//! `earmark page`: the page of one file, in a browser.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;
use report::outln;

/// Where the page is from the directory of this program: of an installation, and of a build.
const PLACES: [&str; 2] = ["../share/earmark/earmark.html", "../page/earmark.html"];

#[derive(Args, Debug)]
pub(crate) struct PageArgs {
    /// What it shows first, as the part of a link behind #: see, paste, drop, or one with values
    #[arg(value_name = "STATE")]
    state: Option<String>,
}

/// Prints where the page is, and opens it where there is a desktop.
pub(crate) fn run(args: &PageArgs) -> Result<()> {
    let program = std::env::current_exe().context("find the page: where is this program?")?;
    let page = find(program.parent().unwrap_or(Path::new("/")))?;
    let address = address(&page, args.state.as_deref());
    outln!("{address}");
    let has_desktop = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    if has_desktop {
        // Who has no such program opens what was printed.
        let mut opener = Command::new("xdg-open");
        opener.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let _ = opener.status();
    }
    Ok(())
}

/// The page that belongs to the program in `directory`.
fn find(directory: &Path) -> Result<PathBuf> {
    let places = PLACES.map(|place| directory.join(place));
    if let Some(page) = places.iter().find_map(|place| place.canonicalize().ok()) {
        return Ok(page);
    }
    let [installed, built] = places.map(|place| place.display().to_string());
    bail!(
        "open the page: neither {installed} nor {built} is there; the packages bring it, and in the \
         sources this makes it: cargo xtask page"
    )
}

/// The address of a file and what it is to show.
fn address(page: &Path, state: Option<&str>) -> String {
    let mut address = format!("file://{}", encoded(page.as_os_str().as_encoded_bytes()));
    if let Some(state) = state {
        address += "#";
        address += state.trim_start_matches('#');
    }
    address
}

/// Bytes as an address has them: what would mean something in it as a number.
pub(crate) fn encoded(bytes: &[u8]) -> String {
    let one = |byte: &u8| match byte.is_ascii_alphanumeric() || b"/._-~@:".contains(byte) {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    bytes.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_the_file_and_the_state() {
        let page = Path::new("/a dir/50%/earmark.html");
        assert_eq!(address(page, None), "file:///a%20dir/50%25/earmark.html");
        let with_state = address(Path::new("/p.html"), Some("#drop?by=flow"));
        assert_eq!(with_state, "file:///p.html#drop?by=flow");
    }

    #[test]
    fn who_has_no_page_learns_how_to_make_it() {
        let error = find(Path::new("/nowhere/bin")).unwrap_err().to_string();
        assert!(error.ends_with(": cargo xtask page"), "{error}");
    }
}
