//! Hosts as people name them: `HOST`, `HOST:PORT`, `[ADDRESS]:PORT`.

/// A host's name or address, and the port behind it, if there is one. Of an address of IPv6 that is
/// in no brackets, a port would look like the rest: there is none.
pub fn host_and_port(text: &str) -> (&str, Option<u16>) {
    let bracketed = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (host, port) = match bracketed {
        Some((host, "")) => return (host, None),
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let digits = port.filter(|port| port.bytes().all(|digit| digit.is_ascii_digit()));
    match digits.and_then(|port| port.parse().ok()) {
        Some(port) if !host.is_empty() => (host, Some(port)),
        _ => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_what_follows_the_only_colon_or_brackets() {
        for (text, host, port) in [
            ("server", "server", None),
            ("server:80", "server", Some(80)),
            ("10.0.0.2:7011", "10.0.0.2", Some(7011)),
            ("10.0.0.2:0", "10.0.0.2", Some(0)),
            ("[fe80::1%eth0]:80", "fe80::1%eth0", Some(80)),
            ("[::1]", "::1", None),
            ("::1", "::1", None),
            ("fe80::1:80", "fe80::1:80", None),
            ("server:http", "server:http", None),
            ("server:70000", "server:70000", None),
            ("server:+7", "server:+7", None),
            (":80", ":80", None),
            ("[::1]80", "[::1]80", None),
        ] {
            assert_eq!(host_and_port(text), (host, port), "{text}");
        }
    }
}
