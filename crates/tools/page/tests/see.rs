//! The tab See, asked as the page asks it.

use page::Engine;
use serde_json::{Value, json};

fn ask(engine: &mut Engine, request: &Value) -> Result<Value, String> {
    engine.ask(request.to_string().as_bytes(), &|_| Box::new(std::io::empty()))
}

fn play(engine: &mut Engine, values: &Value) -> Value {
    let played = ask(engine, &json!({ "ask": "see", "values": values }));
    played.unwrap_or_else(|error| panic!("{values}: {error}"))
}

fn look(engine: &mut Engine, at_us: f64, step: i8) -> Value {
    let request =
        json!({ "ask": "see-look", "at_us": at_us, "span_us": 400, "width": 900, "step": step });
    ask(engine, &request).unwrap()
}

/// What the controls have at first.
fn usual(form: &Value) -> Value {
    let controls = form["controls"].as_array().unwrap().iter();
    let values = controls.map(|it| (it["name"].as_str().unwrap().to_owned(), it["value"].clone()));
    Value::Object(values.collect())
}

#[test]
fn every_control_is_played() {
    let mut engine = Engine::default();
    let form = ask(&mut engine, &json!({ "ask": "see-form" })).unwrap();
    for control in form["controls"].as_array().unwrap() {
        let (name, stops) = (control["name"].as_str().unwrap(), &control["stops"]);
        assert!(!control["hint"].as_str().unwrap().is_empty(), "{name}");
        // The last is the largest, and others lie before it.
        if let Some(stop) = stops.as_array().unwrap().last() {
            let mut values = usual(&form);
            values[name] = stop.clone();
            let played = play(&mut engine, &values);
            let command = played["command"].as_str().unwrap();
            assert!(command.starts_with("earmark bench "), "{command}");
            let is_taken = played["taken"].as_array().unwrap().iter().any(|it| it == name);
            let flag = format!("--{name}");
            assert!(is_taken || !command.contains(&flag), "{command}");
            assert!(!played["figures"].as_array().unwrap().is_empty(), "{command}");
        }
    }
}

#[test]
fn what_is_wrong_is_said_as_the_command_says_it() {
    let mut engine = Engine::default();
    let error = ask(&mut engine, &json!({ "ask": "see", "values": {} })).unwrap_err();
    assert!(error.contains("no experiment"), "{error}");
    let values = json!({ "experiment": "tcp-rr", "strategy": "delay", "rx-usecs": "9999999999" });
    let error = ask(&mut engine, &json!({ "ask": "see", "values": values })).unwrap_err();
    assert!(error.contains("rx-usecs"), "{error}");
    let look = json!({ "ask": "see-look", "at_us": 0, "span_us": 1, "width": 1 });
    assert!(ask(&mut engine, &look).unwrap_err().contains("nothing has been played"));
}

#[test]
fn a_timeline_is_stepped_to_the_interrupt_and_back() {
    let mut engine = Engine::default();
    let values = json!({
        "experiment": "udp-rr", "machine": "ideal", "strategy": "delay", "rx-usecs": "50",
        "ports": "b",
    });
    play(&mut engine, &values);
    let (mut at, mut seen) = (0.0, Vec::new());
    for _ in 0..12 {
        let next = look(&mut engine, at, 1);
        assert!(next["at_us"].as_f64().unwrap() > at);
        at = next["at_us"].as_f64().unwrap();
        seen.push(next);
    }
    let says = |seen: &Value| seen["says"].to_string();
    let held =
        seen.iter().position(|it| says(it).contains("the NIC holds it for 50.0 us")).unwrap();
    let raised = &seen[held + 1..];
    let raised = raised.iter().find(|it| says(it).contains("b: the NIC interrupts")).unwrap();
    assert!(says(raised).contains("reason: timer") && says(raised).contains("b: a poll takes"));
    let waited = raised["at_us"].as_f64().unwrap() - seen[held]["at_us"].as_f64().unwrap();
    assert!((waited - 50.0).abs() < 0.01, "{waited}");
    // The lines of the timer have decided, and no others.
    let decided: Vec<&Value> =
        raised["algorithm"].as_array().unwrap().iter().filter(|it| it[1] == true).collect();
    assert_eq!(decided.len(), 2, "{raised}");
    assert!(decided[0][0].as_str().unwrap().contains("since the first packet"));
    let picture = raised["picture"].as_str().unwrap();
    assert!(picture.contains("hold, 50.000 us") && picture.contains("span dma"), "{picture}");
    let before = look(&mut engine, at, -1)["at_us"].as_f64().unwrap();
    assert!(before < at && look(&mut engine, before, 1)["at_us"].as_f64() == Some(at));
}
