//! A browser without a window, driven by Chromium's DevTools protocol over pipes.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::{Value, json};

use super::{Directory, PATIENCE, soon_some};

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    number: u64,
    /// The page; none until it is known.
    session: Option<Value>,
    /// What the browser has said beside its answers.
    events: Vec<Value>,
    _profile: Directory,
}

impl Browser {
    /// Starts it; it ends with this value.
    pub(crate) fn start() -> Self {
        let profile = Directory::new();
        // It takes its orders from descriptor 3, and answers on 4. Root has no sandbox of its.
        let script = "exec chromium --headless=new --no-sandbox --disable-gpu --no-first-run \
                      --remote-debugging-pipe --user-data-dir=\"$0\" about:blank 3<&0 4>&1 \
                      >/dev/null 2>&1";
        let mut command = Command::new("sh");
        command.args(["-c", script, &profile.file("profile")]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, mut stdout) =
            (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let (sender, from) = channel();
        thread::spawn(move || {
            loop {
                let mut message = Vec::new();
                if stdout.read_until(0, &mut message).unwrap_or(0) == 0 {
                    return;
                }
                message.pop();
                let _ = sender.send(serde_json::from_slice(&message).unwrap());
            }
        });
        let events = Vec::new();
        let mut browser =
            Self { child, to, from, number: 0, session: None, events, _profile: profile };
        let page = soon_some("a page", || {
            let all = browser.order("Target.getTargets", json!({}));
            let all = all["targetInfos"].as_array().cloned().unwrap_or_default();
            all.into_iter().find(|target| target["type"] == "page")
        });
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        browser.session = Some(browser.order("Target.attachToTarget", attach)["sessionId"].clone());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.order(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// An order, and its result.
    #[track_caller]
    pub(crate) fn order(&mut self, method: &str, parameters: Value) -> Value {
        self.number += 1;
        let mut order = json!({ "id": self.number, "method": method });
        order["params"] = parameters;
        if let Some(session) = &self.session {
            order["sessionId"] = session.clone();
        }
        self.to.write_all(format!("{order}\0").as_bytes()).unwrap();
        loop {
            let message = self.from.recv_timeout(PATIENCE);
            let mut message = message.unwrap_or_else(|error| panic!("{method}: {error}"));
            if message["id"] == self.number {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].take();
            }
            self.events.push(message);
        }
    }

    /// The value of an expression of JavaScript, also if it is a promise.
    #[track_caller]
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let parameters =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut done = self.order("Runtime.evaluate", parameters);
        assert!(done["exceptionDetails"].is_null(), "{expression}: {done}");
        done["result"]["value"].take()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub(crate) fn until(&mut self, expression: &str) {
        soon_some(expression, || (self.value(expression) == true).then_some(()));
    }

    /// Opens an address anew, and waits until it is there.
    pub(crate) fn open(&mut self, address: &str) {
        for address in ["about:blank", address] {
            self.order("Page.navigate", json!({ "url": address }));
        }
        self.until("location.href != 'about:blank' && document.readyState == 'complete'");
    }

    /// Puts files into the first field for files below an element, as a user would choose them.
    pub(crate) fn choose(&mut self, below: &str, files: &[&str]) {
        let field = format!("document.querySelector('{below} input[type=file]')");
        let field = self.order("Runtime.evaluate", json!({ "expression": field }));
        let id = &field["result"]["objectId"];
        self.order("DOM.setFileInputFiles", json!({ "files": files, "objectId": id }));
    }

    /// Makes the window so wide, and the colours those of a bright or a dark screen.
    pub(crate) fn resize(&mut self, width: u32, is_dark: bool) {
        let size =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.order("Emulation.setDeviceMetricsOverride", size);
        let scheme = if is_dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.order("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// The most that its processes have had in memory, each on its own: what they share counts in
    /// each, so that only differences say something.
    pub(crate) fn resident_peak(&self) -> u64 {
        let children = |pid: u32| {
            let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            let of_thread =
                threads.filter_map(|it| fs::read_to_string(it.path().join("children")).ok());
            let all = of_thread.collect::<Vec<_>>().join(" ");
            all.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
        };
        let mut own = vec![self.child.id()];
        let mut at = 0;
        while let Some(pid) = own.get(at) {
            own.extend(children(*pid));
            at += 1;
        }
        let peak = |pid: &u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        own.iter().filter_map(peak).sum::<u64>() * 1024
    }

    /// What went wrong so far: refusals of the policy, exceptions, and requests to anywhere.
    pub(crate) fn troubles(&mut self) -> Vec<String> {
        self.value("1");
        let is_own = |event: &Value| {
            let url = event["params"]["request"]["url"].as_str().unwrap_or_default();
            ["file:", "blob:", "about:"].iter().any(|own| url.starts_with(own))
        };
        let is_trouble = |event: &&Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown" | "Log.entryAdded") => true,
            Some("Network.requestWillBeSent") => !is_own(event),
            _ => false,
        };
        self.events.iter().filter(is_trouble).map(Value::to_string).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.to.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let _ = self.child.wait();
    }
}
