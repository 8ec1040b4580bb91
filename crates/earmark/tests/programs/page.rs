//! The page in a browser: it says what the command says, of the same input.

use std::fs;
use std::path::PathBuf;

use report::numbers::rounded;
use serde_json::{Value, json};

use crate::support::browser::Browser;
use crate::support::{Directory, EARMARK, needs, output, read, repository, run};

/// What `cargo xtask page --check` has made.
fn made(name: &str) -> PathBuf {
    repository("target/page").join(name).canonicalize().unwrap()
}

/// A browser that shows the page in this state.
fn browser(state: &str) -> Browser {
    let mut browser = Browser::start();
    browser.open(&format!("file://{}#{state}", made("earmark.html").display()));
    browser
}

/// Text without what lays it out: rules of tables, spaces, and quotes of commands.
fn bare(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && !"─`\u{200b}".contains(*c)).collect()
}

/// Presses a key.
fn press(browser: &mut Browser, mut key: Value) {
    for kind in ["keyDown", "keyUp"] {
        key["type"] = json!(kind);
        browser.order("Input.dispatchKeyEvent", key.clone());
    }
}

/// Pastes a text, and waits for what the page says.
fn pasted(browser: &mut Browser, text: &str) -> String {
    let paste =
        format!("pasted.value = {}; pasted.dispatchEvent(new Event('input'))", Value::from(text));
    browser.value(&paste);
    browser.until("document.querySelector('#paste .status').textContent.startsWith('Read;')");
    let said = browser.value("document.querySelector('#paste .answer').innerText");
    said.as_str().unwrap().to_owned()
}

/// What the command says of a text.
fn command_says(directory: &Directory, text: &str, option: &str) -> String {
    directory.write("-", text);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("\"$0\" read - {option} <./-"), EARMARK]);
    let ended = output(command.env("COLUMNS", "100").current_dir(directory.path()));
    ended.output().to_owned()
}

#[test]
fn a_paste__has_the_sentences_of_the_command() {
    needs!("chromium", "page");
    let mut browser = browser("paste");
    let directory = Directory::new();
    let cases = ["terminal.txt", "crowded.txt", "sockperf.txt", "bge.txt"];
    let cases = cases.map(|name| read(&format!("crates/tools/read/tests/cases/{name}")));
    let example = read("crates/tools/page/src/example.txt");
    for text in [&example].into_iter().chain(&cases) {
        browser.value("document.querySelector('#paste .status').textContent = ''");
        let said = pasted(&mut browser, text);
        assert_eq!(bare(&said), bare(&command_says(&directory, text, "")), "{said}");
        assert_eq!(saved(&mut browser, "paste"), command_says(&directory, text, "--json"));
    }
    assert_eq!(browser.troubles(), [""; 0]);
}

#[test]
fn a_paste__names_the_line_that_prints_what_is_missing() {
    needs!("chromium", "page");
    let mut browser = browser("paste");
    let pings = (1..11).map(|number| {
        format!("64 bytes from 192.168.0.21: icmp_seq={number} ttl=64 time=0.2{number} ms\n")
    });
    let coalescing = "Adaptive RX: on  TX: off\nrx-usecs: 16\nrx-frames: 88\n".to_owned();
    let text = coalescing + &pings.collect::<String>();
    let said = pasted(&mut browser, &text);
    assert!(said.contains("driver: not here; ethtool -i DEV") && said.contains("10 of them"));
    let line = "document.querySelector('#paste .typed .command').textContent";
    let missing = browser.value(line);
    assert!(missing.as_str().unwrap().starts_with("ethtool -i DEV; "), "{missing}");
    // Who knows the driver sees where to say it.
    assert_eq!(browser.value("document.querySelector('#paste details').open"), true);
    browser.value(
        "document.querySelector('#paste .status').textContent = '';
         const driver = document.getElementById('paste-driver');
         driver.value = 'mlx4_en'; driver.dispatchEvent(new Event('input'))",
    );
    browser.until("document.querySelector('#paste .status').textContent.startsWith('Read;')");
    let known = browser.value("document.querySelector('#paste .answer').innerText");
    assert!(known.as_str().unwrap().contains("mlx4_en"), "{known}");
    assert_eq!(browser.troubles(), [""; 0]);
}

#[test]
fn a_link__has_the_text_that_its_sender_saw() {
    needs!("chromium", "page");
    let mut browser = browser("paste?driver=mlx4_en");
    let text = read("crates/tools/page/src/example.txt");
    let said = pasted(&mut browser, &text);
    assert!(said.contains("mlx4_en"), "{said}");
    let click = "[...document.querySelectorAll('#paste button')]\
                 .find(button => button.textContent == 'Link with this text').click()";
    browser.value(click);
    browser.until("location.hash.includes('text=')");
    let address = browser.value("location.href");
    browser.open(address.as_str().unwrap());
    browser.until("document.querySelector('#paste .status').textContent.startsWith('Read;')");
    assert_eq!(browser.value("pasted.value"), text);
    assert_eq!(browser.value("document.querySelector('#paste .answer').innerText"), said);
}

/// A capture: a packet each 10 us, some of them to another port, and answers.
fn capture() -> Vec<u8> {
    use crate::written::{Order, pcap, udp};
    let packets = (0..10_000_u64).flat_map(|number| {
        let port = if number % 100 == 0 { 123 } else { 5_001 };
        let answer = (number % 10 == 0).then(|| (number * 10_000 + 3_000, udp(2, 1, 40_000, 60)));
        [(number * 10_000, udp(1, 2, port, 200))].into_iter().chain(answer)
    });
    let packets: Vec<_> = packets.collect();
    let written: Vec<_> = packets.iter().map(|(at, it)| (*at, &it[..], it.len() as u32)).collect();
    pcap(Order::Little, true, 1, &written)
}

/// What a tab saves as JSON; it is looked at, not downloaded.
fn saved(browser: &mut Browser, tab: &str) -> Value {
    browser.value("URL.createObjectURL = (blob) => { window.saved = blob; return location.hash; }");
    browser.value(&format!(
        "[...document.querySelectorAll('#{tab} button')]\
         .find(button => button.textContent == 'Save as JSON').click()"
    ));
    browser.value("saved.text()")
}

/// Drops a capture, and waits for the command that says the same.
fn dropped(browser: &mut Browser, capture: &str) -> String {
    browser.value("document.querySelector('#drop .typed').hidden = true");
    browser.choose("#drop", &[capture]);
    browser.until("!document.querySelector('#drop .typed').hidden");
    let typed = browser.value("document.querySelector('#drop .command').textContent");
    typed.as_str().unwrap().to_owned()
}

/// What a command that the page shows prints as JSON.
fn said_as_json(directory: &Directory, typed: &str) -> String {
    let words = typed.strip_prefix("earmark ").unwrap_or_else(|| panic!("{typed}"));
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("\"$0\" {words} --json"), EARMARK]);
    output(command.current_dir(directory.path())).output().to_owned()
}

#[test]
fn a_capture__has_the_prediction_of_the_command() {
    needs!("chromium", "page");
    let directory = Directory::new();
    fs::write(directory.file("a b.pcap"), capture()).unwrap();
    let mut browser = browser(
        "drop?host=10.0.0.2&by=flow&compare=disabled,delay:75,marked:75&costs=paper&seed=7",
    );
    let typed = dropped(&mut browser, &directory.file("a b.pcap"));
    assert!(typed.starts_with("earmark predict 'a b.pcap' --compare disabled,"), "{typed}");
    assert!(typed.contains("--by flow") && typed.contains("--costs paper"), "{typed}");
    assert_eq!(saved(&mut browser, "drop"), said_as_json(&directory, &typed));
    assert_eq!(browser.troubles(), [""; 0]);
}

#[test]
fn a_capture__may_be_compressed_as_for_the_command() {
    needs!("chromium", "page", "bzip2", "zstd");
    let directory = Directory::new();
    fs::write(directory.file("a.pcap"), capture()).unwrap();
    for program in ["gzip", "bzip2", "xz", "zstd"] {
        let mut compress = std::process::Command::new("sh");
        compress.args(["-c", &format!("{program} -c a.pcap >a.{program}")]);
        output(compress.current_dir(directory.path())).output();
        let mut browser = browser("drop");
        let typed = dropped(&mut browser, &directory.file(&format!("a.{program}")));
        assert_eq!(saved(&mut browser, "drop"), said_as_json(&directory, &typed), "{program}");
        assert_eq!(browser.troubles(), [""; 0]);
    }
}

#[test]
fn a_command__is_copied_with_the_keyboard_and_says_so() {
    needs!("chromium", "page");
    let mut browser = browser("see");
    browser.until("see.dataset.played != undefined");
    browser.order("Browser.grantPermissions", json!({ "permissions": ["clipboardReadWrite"] }));
    browser.value("document.querySelector('#see .typed button').focus()");
    press(&mut browser, json!({ "key": "Enter", "text": "\r", "windowsVirtualKeyCode": 13 }));
    browser.until("document.querySelector('#see .typed [role=status]').textContent == 'Copied.'");
    let shown = browser.value("document.querySelector('#see .typed .command').textContent");
    assert_eq!(browser.value("navigator.clipboard.readText()"), shown);
    assert_eq!(browser.troubles(), [""; 0]);
}

#[test]
fn each_case_of_see__has_the_figures_of_the_command_that_it_shows() {
    needs!("chromium", "page");
    let mut browser = browser("see");
    browser.until("see.dataset.played != undefined");
    let links = "[...document.querySelectorAll('#see article a')].map((it) => it.hash)";
    let links = browser.value(links);
    for link in links.as_array().unwrap() {
        browser.value(&format!("delete see.dataset.played; location.hash = {link}"));
        browser.until("see.dataset.played != undefined");
        let shown = browser.value(
            "Object.fromEntries([...document.querySelectorAll('#see .figures div')]\
             .map((it) => [...it.children].map((it) => it.textContent)))",
        );
        let typed = browser.value("document.querySelector('#see .command').textContent");
        let words = shlex::split(typed.as_str().unwrap()).unwrap();
        let words = words.iter().skip(1).map(String::as_str).chain(["--json"]);
        let of_command = run(&words.collect::<Vec<_>>()).json();
        let result = &of_command["results"][0];
        let interrupts = result["interrupts_per_s"].as_f64().unwrap();
        assert_eq!(shown["interrupts a second"], rounded(interrupts, 0), "{typed}");
        if let Some(median) = result["latency_us"]["p50"].as_f64() {
            let median = format!("{} us", rounded(median, 1));
            assert_eq!(shown["round trip, median"], median, "{typed}");
        }
    }
    assert!(links.as_array().unwrap().len() >= 10, "{links}");
    assert_eq!(browser.troubles(), [""; 0]);
}

#[test]
fn the_page__has_no_fault_that_axe_finds_and_fits_every_screen() {
    needs!("chromium", "page");
    let axe = fs::read_to_string(made("axe.min.js")).unwrap();
    let directory = Directory::new();
    fs::write(directory.file("a.pcap"), capture()).unwrap();
    let mut browser = browser("paste");
    pasted(&mut browser, &read("crates/tools/page/src/example.txt"));
    browser.value("document.getElementById('tab-drop').click()");
    browser.choose("#drop", &[&directory.file("a.pcap")]);
    browser.until("!document.querySelector('#drop .typed').hidden");
    browser.value(&format!("{axe}; 0"));
    for tab in ["see", "paste", "drop"] {
        browser.value(&format!("document.getElementById('tab-{tab}').click()"));
        for (width, is_dark) in [(360, false), (360, true), (1_280, false), (2_560, true)] {
            browser.resize(width, is_dark);
            let found = browser.value(
                "axe.run().then((it) => it.violations.map((one) => \
                 `${one.id}: ${one.nodes.map((node) => node.html).join(' ')}`))",
            );
            assert_eq!(found, json!([]), "{tab} at {width}");
            let beyond = browser.value("document.documentElement.scrollWidth - innerWidth");
            assert!(beyond.as_f64().unwrap() <= 0.0, "{tab} at {width}: {beyond} pixels wider");
        }
    }
}

#[test]
fn tabs__are_chosen_by_keys() {
    needs!("chromium", "page");
    let mut browser = browser("see");
    browser.value("document.getElementById('tab-see').focus()");
    for (key, tab) in [("ArrowRight", "paste"), ("End", "drop"), ("ArrowRight", "see")] {
        press(&mut browser, json!({ "key": key }));
        assert_eq!(browser.value("document.activeElement.id"), format!("tab-{tab}"));
        assert_eq!(browser.value("location.hash"), format!("#{tab}"));
        assert_eq!(browser.value(&format!("{tab}.hidden")), false);
    }
}

/// What has the focus, and why it cannot be seen if so.
const FOCUS: &str = "(() => {
    const it = document.activeElement, place = it.getBoundingClientRect();
    const x = place.x + place.width / 2, y = place.y + Math.min(place.height, 20) / 2;
    const hidden = document.elementFromPoint(x, y)?.closest('.tradeoff') ? ' is covered' : '';
    const plain = getComputedStyle(it).outlineStyle == 'none' ? ' has no outline' : '';
    return (it.id || it.getAttribute('aria-label') || it.textContent.trim()) + hidden + plain;
})()";

#[test]
fn the_keyboard__reaches_all_of_a_tab_and_sees_where_it_is() {
    needs!("chromium", "page");
    let mut browser = browser("see");
    browser.until("see.dataset.played != undefined");
    for (tab, last) in
        [("see", "The algorithm"), ("paste", "What you know beside"), ("drop", "More options")]
    {
        browser.value(&format!("document.getElementById('tab-{tab}').click()"));
        for width in [360, 1_280] {
            browser.resize(width, false);
            let mut reached = Vec::new();
            // There, and back again.
            for (from, modifiers, to) in [(format!("tab-{tab}"), 0, last), (last.into(), 8, "tab-")]
            {
                browser.value(&format!(
                    "[...document.querySelectorAll('button, summary, pre')].find((it) => \
                     [it.id, it.getAttribute('aria-label'), it.textContent].includes('{from}')).focus()"
                ));
                let mut at = String::new();
                while !at.starts_with(to) {
                    let tab =
                        json!({ "key": "Tab", "windowsVirtualKeyCode": 9, "modifiers": modifiers });
                    press(&mut browser, tab);
                    at = browser.value(FOCUS).as_str().unwrap().to_owned();
                    reached.push(at.clone());
                    assert!(reached.len() < 200, "{reached:?}");
                }
            }
            let unseen =
                |at: &&String| at.ends_with(" is covered") || at.ends_with(" has no outline");
            assert_eq!(reached.iter().find(unseen), None, "{tab} at {width}");
            reached.pop();
            let (there, back) = reached.split_at(reached.len().div_ceil(2));
            assert!(there.iter().rev().skip(1).eq(back), "{tab}: {there:?} {back:?}");
        }
    }
}

#[test]
fn who_stands_on_cancel_when_it_goes__has_a_button_to_go_on_from() {
    needs!("chromium", "page");
    let mut browser = browser("drop");
    browser.until("document.querySelector('#drop .field') != null");
    browser.value(
        "const files = new DataTransfer();
         files.items.add(new File(['no capture'], 'a.pcap'));
         dispatchEvent(new DragEvent('drop', { dataTransfer: files }));
         document.querySelector('#drop .work button').focus()",
    );
    browser.until("document.querySelector('#drop .work').hidden");
    assert_eq!(browser.value("document.activeElement.textContent"), "Choose a capture");
}

#[test]
fn who_wants_little_motion__sees_one_thing_after_the_other() {
    needs!("chromium", "page");
    let mut browser = browser("see");
    let features = json!([{ "name": "prefers-reduced-motion", "value": "reduce" }]);
    browser.order("Emulation.setEmulatedMedia", json!({ "features": features }));
    browser.until("see.dataset.played != undefined");
    assert!(
        browser.value("see.querySelector('.spoken').textContent").as_str().unwrap().contains(" us")
    );
    let seen = browser.value(
        "new Promise((done) => {
             const seen = [], says = see.querySelector('.says');
             new MutationObserver(() => {
                 seen.push(says.textContent);
                 if (seen.length == 3) done(seen);
             }).observe(says, { childList: true });
             [...see.querySelectorAll('button')].find((it) => it.textContent == 'Play').click();
         })",
    );
    // In between nothing happens.
    let seen: Vec<&str> = seen.as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert!(seen.iter().all(|it| it.contains(": ")) && seen[0] != seen[1], "{seen:?}");
}
