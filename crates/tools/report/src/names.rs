//! Names that are nearly right.

/// What to say of a name that is none of `names`: the one that is meant, or all there are, with
/// `others` behind them.
pub fn did_you_mean<'a>(
    text: &str,
    names: impl Iterator<Item = &'a str>,
    others: Option<&'a str>,
) -> String {
    let names: Vec<&str> = names.collect();
    let distance = |name: &&&str| strsim::damerau_levenshtein(name, text);
    // A word that is far from all of them says nothing.
    match names.iter().min_by_key(distance).filter(|name| distance(name) * 2 <= text.len()) {
        Some(name) => format!("is {name} meant?"),
        None => {
            let all: Vec<&str> = names.into_iter().chain(others).collect();
            format!("there are {}", all.join(", "))
        }
    }
}
