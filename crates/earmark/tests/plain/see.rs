//! The tab See of the page, beside the commands that it names.

use std::fs;

use page::Engine;
use serde_json::{Value, json};

use crate::support::{repository, run};

fn ask(engine: &mut Engine, request: &Value) -> Value {
    let answer = engine.ask(request.to_string().as_bytes(), &|_| Box::new(std::io::empty()));
    answer.unwrap_or_else(|error| panic!("{request}: {error}"))
}

/// What the page plays in a state, such as `see?experiment=mixed`.
pub(crate) fn of_state(state: &str) -> Value {
    let mut engine = Engine::default();
    let form = ask(&mut engine, &json!({ "ask": "see-form" }));
    let controls = form["controls"].as_array().unwrap().iter();
    let mut values: serde_json::Map<String, Value> =
        controls.map(|it| (it["name"].as_str().unwrap().to_owned(), it["value"].clone())).collect();
    for pair in state.strip_prefix("see?").unwrap_or_else(|| panic!("{state}")).split('&') {
        let (name, value) = pair.split_once('=').unwrap_or_else(|| panic!("{state}"));
        let before = values.insert(name.to_owned(), value.into());
        assert!(before.is_some(), "no control is called {name}: {state}");
    }
    ask(&mut engine, &json!({ "ask": "see", "values": values }))
}

/// What a command of the page prints as JSON.
fn measured(command: &Value) -> Value {
    let words = shlex::split(command.as_str().unwrap()).unwrap();
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).chain(["--json"]).collect();
    run(&words).json()
}

/// A result without where and when it was measured.
fn without_place(result: &Value) -> Value {
    let mut result = result.clone();
    result.as_object_mut().unwrap().remove("environment").unwrap();
    result
}

#[test]
fn cases_have_the_numbers_of_their_commands() {
    let mut engine = Engine::default();
    let form = ask(&mut engine, &json!({ "ask": "see-form" }));
    let mut results = Vec::new();
    for case in form["cases"].as_array().unwrap() {
        for link in case["links"].as_array().unwrap() {
            let played = ask(&mut engine, &json!({ "ask": "see", "values": link["values"] }));
            let figure = json!([case["figure"], link["shows"]]);
            assert!(played["figures"].as_array().unwrap().contains(&figure), "{link}: {played}");
            let (page, command) = (&played["result"], measured(&played["command"]));
            for of_comparison in ["experiment", "world", "mx", "ratios"] {
                assert_eq!(page[of_comparison], command[of_comparison], "{link}");
            }
            let [page, command] = [page, &command].map(|it| without_place(&it["results"][0]));
            assert_eq!(page, command, "{link}");
            results.push(page);
        }
    }
    let number = |at: usize, path: &str| results[at].pointer(path).unwrap().as_f64().unwrap();
    let near = |is: f64, wanted: f64| (is - wanted).abs() < 0.5;
    // One period or two.
    assert_eq!([0, 1].map(|at| number(at, "/transactions_per_s")), [8_000.0, 4_000.0]);
    assert!(near(number(0, "/latency_us/p50"), 125.0) && near(number(1, "/latency_us/p50"), 250.0));
    assert!(number(2, "/latency_us/p50") < 140.0);
    // The mean moves by half of the period, the minimum does not.
    let moves = |path: &str| number(3, path) - number(4, path);
    assert!((moves("/latency_us/mean") - 60.0).abs() < 3.0 && near(moves("/latency_us/min"), 0.0));
    // Half of the hold, towards the side that waits.
    let errors = [5, 6, 7].map(|at| number(at, "/halves/0/offset_us/p50"));
    assert!(near(errors[0], 150.0) && near(errors[1], -150.0) && near(errors[2], 0.0));
    // A mark that is early costs, and looking ahead helps.
    let [early, last, ahead] = [8, 9, 10].map(|at| number(at, "/latency_us/p50"));
    assert!(early > last + 5.0 && early > ahead + 5.0, "{early} {last} {ahead}");
    // Latency as without moderation, and interrupts as few as under the delay.
    let both = |path| [11, 12, 13].map(|at| number(at, path));
    let ([delay, none, marks], [few, many, marked]) =
        (both("/latency_us/p50"), both("/interrupts_per_s"));
    assert!(marks < 1.1 * none && delay > 3.0 * none && marked < 1.2 * few && many > 3.0 * few);
}

#[test]
fn a_picture_with_others_is_what_a_comparison_measures() {
    let (mut engine, mut second) = (Engine::default(), Engine::default());
    let values = json!({ "experiment": "mixed", "machine": "server", "strategy": "delay", "rx-usecs": "50" });
    let played = ask(&mut engine, &json!({ "ask": "see", "values": values }));
    let request = |ask: &str, ghost: &Value| {
        let mut request = ghost.clone();
        request["ask"] = json!(ask);
        request
    };
    let mut picture = played["picture"].clone();
    let mut next = played["next"].clone();
    let mut ghosts = Vec::new();
    while !next.is_null() {
        assert_eq!(next["number"], ghosts.len());
        let ghost = ask(&mut second, &request("see-ghost", &next));
        let more = ask(&mut engine, &request("see-beside", &ghost));
        (picture, next) = (more["picture"].clone(), more["next"].clone());
        ghosts.push(ghost);
    }
    assert_eq!(ghosts.len(), 7);
    let all = measured(&played["all"]);
    let all = all["results"].as_array().unwrap();
    assert_eq!(without_place(&all[0]), without_place(&played["result"]["results"][0]));
    for result in all {
        let (setting, p50) = (&result["setting"], &result["latency_us"]["p50"]);
        let is_drawn =
            picture.as_str().unwrap().contains(&format!("<title>{}", setting.as_str().unwrap()));
        assert!(is_drawn && p50.is_f64(), "{setting}: {picture}");
    }
    // Another setting has the same others; another bulk flow has none yet, and takes no old ones.
    for (name, value, left) in [("rx-usecs", "60", false), ("bulk-rate", "100", true)] {
        let mut values = values.clone();
        values[name] = json!(value);
        ask(&mut engine, &json!({ "ask": "see", "values": values }));
        let late = ask(&mut engine, &request("see-beside", &ghosts[0]));
        assert_eq!(late["next"]["number"].as_u64(), left.then_some(0), "{name}");
    }
}

#[test]
fn states_in_the_documentation_are_played() {
    let docs = fs::read_dir(repository("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|it| it == "md"));
    let texts = pages.chain([repository("README.md")]).map(|it| fs::read_to_string(it).unwrap());
    let mut states = 0;
    for text in texts {
        for behind in text.split("earmark page '").skip(1) {
            let state = behind.split('\'').next().unwrap();
            if state.starts_with("see?") {
                assert!(!of_state(state)["figures"].as_array().unwrap().is_empty(), "{state}");
                states += 1;
            }
        }
    }
    assert!(states >= 5, "{states}");
}
