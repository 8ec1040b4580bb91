//! Commands in the text of a document.

/// The text without its code blocks, and the lines of these, continued ones joined.
pub(crate) fn divide(text: &str) -> (String, Vec<String>) {
    let (mut prose, mut blocks) = (String::new(), String::new());
    for (number, part) in text.split("```").enumerate() {
        if number % 2 == 0 { &mut prose } else { &mut blocks }.push_str(part);
    }
    (prose, blocks.replace("\\\n", " ").lines().map(str::to_owned).collect())
}

/// The words of the one `earmark` command of a line, without prompt, comment and redirections; what
/// stands for a pairing code is one.
pub(crate) fn words(line: &str) -> Option<Vec<String>> {
    let line = match line.split_once("$ ") {
        Some((name, command)) if name.chars().all(char::is_alphanumeric) => command,
        _ => line,
    };
    let words = shlex::split(&line.replace("--code CODE", "--code ABCD-EFGH-JKLM-NPQR"))?;
    let words = words.strip_prefix(&["sudo".to_owned()]).unwrap_or(&words);
    let ends = |word: &String| ["|", ">", "&&", ";", "&"].contains(&word.as_str());
    let command: Vec<_> = words.iter().take_while(|word| !ends(word)).cloned().collect();
    (command.first()? == "earmark" && command.len() > 1).then_some(command)
}
