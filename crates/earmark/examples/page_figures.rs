//! How fast the page answers, in Chromium without a window: what `cargo xtask bench page` measures.
//!
//! ```text
//! page_figures PAGE first          milliseconds from opening the file to the first picture
//! page_figures PAGE sliders STATE  of See in this state, each slider through all of its values:
//!                                  milliseconds from its move to the frame with the answer
//! page_figures PAGE capture FILE   seconds until Drop has answered, and what it took of memory
//! page_figures write FILE MB       writes a capture of headers
//! ```

use std::fs::{self, File};
use std::io::{BufWriter, Write};

use anyhow::{Context, Result, bail};
use base::quantiles::nearest_rank;
use serde_json::{Value, json};

#[path = "../tests/support/browser.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod browser;
#[path = "../tests/support/directory.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod directory;
#[path = "../tests/support/waiting.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod waiting;
#[path = "../../core/capture/tests/support/written.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod written;

use browser::Browser;
use directory::Directory;
use waiting::{PATIENCE, soon_some};
use written::{Order, pcap, udp};

/// Notes when the first frame with the picture was due; the clock begins with the navigation.
const FIRST: &str = "new MutationObserver(() => {
    if (window.first || !document.querySelector('#see .tradeoff svg')) return;
    window.first = true;
    requestAnimationFrame(() => { window.first = performance.now(); });
}).observe(document, { childList: true, subtree: true })";

/// Moves each slider that is in sight through all of its values, and waits for each answer: for new
/// figures, or for a sentence that says why there are none.
const SLIDERS: &str = "(async () => {
    const frame = () => new Promise(requestAnimationFrame);
    const answer = () => new Promise((done) => {
        const seen = new MutationObserver(() => { seen.disconnect(); done(); });
        const places = see.querySelectorAll('.figures, .status');
        places.forEach((it) => seen.observe(it, { childList: true }));
    });
    const move = async (slider, value) => {
        const begun = performance.now(), answered = answer();
        slider.value = value;
        slider.dispatchEvent(new Event('input'));
        await answered;
        await frame();
        return performance.now() - begun;
    };
    const times = [];
    for (const slider of see.querySelectorAll('.controls .field:not([hidden]) input[type=range]')) {
        const before = slider.value;
        for (let value = 0; value <= slider.max; value++) times.push(await move(slider, value));
        await move(slider, before);
    }
    return times;
})()";

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = match words[..] {
        [page, "first"] => first(page)?,
        [page, "sliders", state] => sliders(page, state)?,
        [page, "capture", file] => capture(page, file)?,
        ["write", file, megabytes] => return write(file, megabytes.parse()?),
        _ => bail!("the first lines of page_figures.rs say how to call it"),
    };
    println!("{said}");
    Ok(())
}

/// A browser that shows the page in a state.
fn shown(page: &str, state: &str) -> Result<Browser> {
    let page = fs::canonicalize(page)
        .with_context(|| format!("find {page}; make it with: cargo xtask page"))?;
    let mut browser = Browser::start();
    browser.order("Page.addScriptToEvaluateOnNewDocument", json!({ "source": FIRST }));
    browser.open(&format!("file://{}#{state}", page.display()));
    Ok(browser)
}

fn first(page: &str) -> Result<Value> {
    let mut browser = shown(page, "see")?;
    browser.until("window.first > 0");
    Ok(json!({ "ms": browser.value("window.first") }))
}

fn sliders(page: &str, state: &str) -> Result<Value> {
    let mut browser = shown(page, state)?;
    browser.until("see.dataset.played != undefined");
    let times = browser.value(SLIDERS);
    let mut times: Vec<f64> = serde_json::from_value(times)?;
    times.sort_unstable_by(f64::total_cmp);
    let quantile = |per_mille| nearest_rank(&times, per_mille);
    let (p50, p95, most) = (quantile(500), quantile(950), quantile(1_000));
    Ok(json!({ "answers": times.len(), "p50_ms": p50, "p95_ms": p95, "max_ms": most }))
}

fn capture(page: &str, file: &str) -> Result<Value> {
    let mut browser = shown(page, "drop")?;
    browser.until("document.querySelector('#drop .field') != null");
    let before = browser.resident_peak();
    browser.choose("#drop", &[file]);
    browser.until("!document.querySelector('#drop .typed').hidden");
    let said = browser.value("document.querySelector('#drop .status').textContent");
    // It says: 100.0 MB in 2.5 s.
    let seconds = said.as_str().and_then(|said| said.split(" in ").nth(1)?.split(' ').next());
    let seconds: f64 = seconds.with_context(|| format!("{said} names no seconds"))?.parse()?;
    let took = browser.resident_peak() - before;
    Ok(json!({ "bytes": fs::metadata(file)?.len(), "seconds": seconds, "resident_bytes": took }))
}

/// Writes packets as `tcpdump -s 96` keeps them: bulk of eight flows, a packet each 1.2 us, which
/// is 10 Gbit/s, beside a request each 100 us, and an answer for every tenth packet.
fn write(file: &str, megabytes: u64) -> Result<()> {
    let mut out = BufWriter::new(File::create(file).with_context(|| format!("create {file}"))?);
    let head = pcap(Order::Little, true, 1, &[]);
    out.write_all(&head)?;
    let kept = |frame: Vec<u8>| [frame[..96].to_vec()];
    let flows = (0..8).flat_map(|flow| kept(udp(1, 2, 5_001 + flow, 1_514))).collect::<Vec<_>>();
    let [request] = kept(udp(1, 2, 7_000, 200));
    let [answer] = kept(udp(2, 1, 40_000, 200));
    let (mut bytes, mut number) = (head.len() as u64, 0_u64);
    while bytes < megabytes * 1_000_000 {
        let at = number * 1_200;
        let bulk = (at, &flows[number as usize % flows.len()][..], 1_514);
        let beside = match number {
            _ if number.is_multiple_of(83) => Some((at + 400, &request[..], 200)),
            _ if number.is_multiple_of(10) => Some((at + 600, &answer[..], 200)),
            _ => None,
        };
        let packets: Vec<_> = std::iter::once(bulk).chain(beside).collect();
        let records = &pcap(Order::Little, true, 1, &packets)[head.len()..];
        out.write_all(records)?;
        bytes += records.len() as u64;
        number += 1;
    }
    Ok(out.flush()?)
}
