//! Files that others may have written, of any bytes: journals, files of `persist`, settings as
//! text, and files with which other programs set up devices.
//!
//! The first byte says which. What is read and written again is read as the same, and a file of
//! ours says the settings that it was made of, and no longer those that were taken out of it.

use clap::ValueEnum;
use netdev::ethtool::Parameter;
use netdev::setters::{Program, Traits, section, settings_in};
use tune::Goal;
use tune::Journal;
use tune::device::Identity;
use tune::peer::Code;
use tune::persist::{Format, Subject, Written, is_ours, link_section, settings_of, without};
use tune::{Change, Knob, State};

const NAME: &str = "enp1s0";

/// Reads the bytes in the way that the first says.
pub(crate) fn replay(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    match kind % 5 {
        0 => journal(&text),
        1 => file(&text),
        2 => settings(&text),
        3 => words(&text),
        _ => of_another_program(&text),
    }
}

/// A file with which some other program sets up devices.
fn of_another_program(text: &str) {
    let [own, driver] = [NAME, "igb"].map(str::to_owned);
    let address = Some("02:00:00:00:00:0a".to_owned());
    let device = Traits { name: own, address, driver: Some(driver), number: None };
    for by in Program::ALL {
        for (_, settings) in settings_in(by, text, &device) {
            for (name, value) in settings {
                let is_parameter = name.parse::<Parameter>().is_ok();
                assert!(is_parameter || by == Program::Modprobe, "{by:?} sets {name}");
                assert!(!value.is_empty(), "{by:?} sets {name} to nothing");
            }
        }
    }
}

/// What a killed process has left, or somebody else in its name; and the device of a guard.
fn journal(text: &str) {
    if let Ok(device) = serde_json::from_str::<Identity>(text) {
        let again = serde_json::to_string(&device).expect("it is plain data");
        assert_eq!(serde_json::from_str::<Identity>(&again).ok(), Some(device));
    }
    let Ok(mut journal) = serde_json::from_str::<Journal>(text) else { return };
    let again = serde_json::to_string(&journal).expect("it is plain data");
    assert_eq!(serde_json::from_str::<Journal>(&again).ok().as_ref(), Some(&journal));
    // What has gone back to how it was is forgotten, and nothing is added.
    let (first, changed) = (journal.first(), journal.kept.clone());
    journal.keep(changed);
    assert!(journal.first().0.keys().all(|setting| first.get(*setting).is_some()));
    let way = first.restored_from(&State::default());
    assert!(way.is_empty(), "nothing is put back that a device does not have");
}

/// A file that lies where one of ours would, or where systemd has one.
fn file(text: &str) {
    let found = settings_of(text);
    for title in ["[Link]", "[Match]"] {
        assert!(section(text, title).iter().all(|line| line.contains('=') && text.contains(line)));
    }
    let all = section(text, "[Link]");
    assert!(link_section(text).iter().all(|line| all.contains(line)));
    let Some((gone, _)) = found.0.first_key_value() else { return };
    // No program reads a file of several formats.
    let others = ["ACTION==", "# Settings: ", "net."];
    if text.contains("\n[Link]\n") && others.iter().any(|sign| text.contains(sign)) {
        return;
    }
    for format in Format::value_variants() {
        let Some(left) = without(*format, NAME, text, &[*gone]) else { continue };
        assert!(!settings_of(&left).0.contains_key(gone), "{gone} is still in {left}");
        assert!(!is_ours(text) || is_ours(&left), "{left}");
    }
}

fn settings(text: &str) {
    let Ok(change) = text.parse::<Change>() else { return };
    if change.is_empty() {
        return;
    }
    assert_eq!(change.to_string().parse::<Change>().as_ref(), Ok(&change));
    let state = State::from(change);
    let json = serde_json::to_string(&state).expect("it is plain data");
    assert_eq!(serde_json::from_str::<State>(&json).ok().as_ref(), Some(&state));
    let lines = Some(section(text, "[Link]"));
    let subject = Subject { name: NAME.into(), lines, ..Subject::default() };
    for format in Format::value_variants() {
        let can_say = state.0.keys().all(|setting| format.can_say(*setting));
        let written = format.write(&subject, &state);
        assert_eq!(written.is_ok(), can_say, "{written:?}");
        let texts = match written {
            Ok(Written::Files(files)) => files.into_iter().map(|file| file.text).collect(),
            Ok(Written::Text(text)) => vec![text],
            Err(why) => {
                assert!(why.contains("cannot say"), "{why}");
                continue;
            }
        };
        let mut said = State::default();
        for text in &texts {
            assert!(is_ours(text), "{text}");
            said.0.extend(settings_of(text).0);
        }
        assert_eq!(said, state, "{format:?}: {texts:?}");
    }
}

/// What users type, and files and the environment say for them.
fn words(text: &str) {
    if let Ok(code) = text.parse::<Code>() {
        assert!(code.to_string().parse::<Code>().is_ok_and(|same| same == code));
        assert_eq!(code.key().len(), 32);
    }
    if let Ok(goal) = text.parse::<Goal>() {
        assert_eq!(goal.to_string().parse().ok(), Some(goal));
    }
    if let Ok(knob) = text.parse::<Knob>() {
        assert!(!knob.values.is_empty());
        assert_eq!(knob.to_string().parse().ok(), Some(knob));
    }
}
