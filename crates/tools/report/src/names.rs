//! Names that are nearly right.

/// What to say of a name that is none of `names`: the one that is meant, or all there are, with
/// `others` behind them.
pub fn did_you_mean<'a>(
    text: &str,
    names: impl Iterator<Item = &'a str>,
    others: Option<&'a str>,
) -> String {
    let names: Vec<&str> = names.collect();
    match nearest(text, names.iter().copied()) {
        Some(name) => format!("is {name} meant?"),
        None => {
            let all: Vec<&str> = names.into_iter().chain(others).collect();
            format!("there are {}", all.join(", "))
        }
    }
}

/// The name that is meant by one that is none of `names`, if it is near enough to one.
pub fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |name: &&str| strsim::damerau_levenshtein(name, text);
    // A word that is far from all of them says nothing.
    names.min_by_key(distance).filter(|name| distance(name) * 2 <= text.len())
}

/// The same as a remark behind a message; empty if no name is near.
pub fn remark<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> String {
    nearest(text, names).map_or_else(String::new, |name| format!("; is {name} meant?"))
}

/// That there is no such network device, and which there are.
pub fn no_device(name: &str, names: &[String]) -> String {
    let meant = remark(name, names.iter().map(String::as_str));
    format!("no network device {name} here; there are: {}{meant}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_near_is_meant() {
        let names = || ["delay", "throttle", "disabled"].into_iter();
        assert_eq!(nearest("dealy", names()), Some("delay"));
        assert_eq!(remark("trottle", names()), "; is throttle meant?");
        assert_eq!(remark("eth0", names()), "");
    }
}
