//! Unmodified servers that poll: `libearmark-poll.so` in their environment.

use std::path::PathBuf;

use anyhow::{Context, Result};
use bench::polling::Polling;

/// Where cargo puts it, beside this program or below; and where a package has it.
const PLACES: [&str; 3] =
    ["libearmark_poll.so", "deps/libearmark_poll.so", "../lib/earmark/libearmark-poll.so"];

/// What a program finds in its environment so that its epoll objects poll this way; nothing if they
/// are not to.
pub(crate) fn environment(polling: Polling) -> Result<Vec<(&'static str, String)>> {
    let Some(poll) = polling.of_epoll() else { return Ok(Vec::new()) };
    Ok(vec![
        ("LD_PRELOAD", library()?.to_string_lossy().into_owned()),
        ("EARMARK_BUSY_POLL_USECS", poll.lasts.as_micros().to_string()),
        ("EARMARK_PREFER_BUSY_POLL", u8::from(poll.prefer).to_string()),
    ])
}

fn library() -> Result<PathBuf> {
    let program = std::env::current_exe().context("find the earmark program itself")?;
    let beside = program.parent().context("find the directory of the earmark program")?;
    let mut places = PLACES.iter().map(|place| beside.join(place));
    places.find(|place| place.is_file()).with_context(|| {
        format!(
            "have a server poll: there is no libearmark-poll.so beside {} or in ../lib/earmark; it \
             is in the package earmark, or: cargo build -p earmark-preload",
            program.display()
        )
    })
}
