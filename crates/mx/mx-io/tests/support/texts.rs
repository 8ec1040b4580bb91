//! Texts of any bytes: a file of peers, an endpoint as users write it, the report of a program.
//!
//! The first byte says which. What is read and written again is read as the same.

use mx_io::discovery::{Peers, Target};
use mx_io::report::EndpointReport;

/// Reads the bytes in the way that the first says.
pub(crate) fn replay(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    match kind % 3 {
        0 => peers(&text),
        1 => {
            let Ok(target) = text.parse::<Target>() else { return };
            assert_eq!(target.to_string().parse().as_ref(), Ok(&target));
            assert!(target.among(&[]).is_none() || matches!(target, Target::Address(_)));
        }
        _ => report(rest),
    }
}

/// A file is read as a whole, or refused with the number of a line that it has.
fn peers(text: &str) {
    let peers = match Peers::parse(text) {
        Ok(peers) => peers,
        Err((line, what)) => {
            assert!((1..=text.lines().count()).contains(&line) && !what.is_empty());
            return;
        }
    };
    let lines = text.lines().filter_map(|line| line.split('#').next());
    for (address, name) in lines.filter_map(|line| line.trim().split_once(char::is_whitespace)) {
        let (host, endpoint) = match name.trim().split_once('/') {
            Some((host, number)) => (host, number.parse().expect("it was read")),
            None => (name.trim(), 254),
        };
        let found = peers.address(host, endpoint).expect("it is in the file");
        let target: Target = format!("{address}/{endpoint}").parse().expect("it is an address");
        // A line about this endpoint alone counts before one about the host.
        assert!(name.contains('/') || target == Target::Address(found) || text.contains('/'));
        assert!(!name.contains('/') || target == Target::Address(found));
    }
}

fn report(bytes: &[u8]) {
    let Ok(report) = serde_json::from_slice::<EndpointReport>(bytes) else { return };
    let again = serde_json::to_vec(&report).expect("it is plain data");
    assert_eq!(serde_json::from_slice::<EndpointReport>(&again).ok().as_ref(), Some(&report));
    assert!(report.text().len() >= report.dump.len());
}
