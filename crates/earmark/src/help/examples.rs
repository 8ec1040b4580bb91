//! Two examples for each command: the only source of those that help and manual pages show and
//! that tests run. `examples.txt` has them.

/// What a test needs to run an example to a good end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing: any user, anywhere.
    Nothing,
    /// Hosts of ours, which it makes.
    Hosts,
    /// A shell on host a of a lab; `server` is host b.
    Lab,
    /// A network with the devices `eth0` and `eth1`, and root.
    Devices,
    /// A far host, a real NIC, minutes, or an end by Ctrl-C: such an example is only parsed.
    More,
}

/// A command line, and what it is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Example {
    /// The words that name its command.
    pub(crate) command: &'static str,
    pub(crate) purpose: &'static str,
    pub(crate) line: &'static str,
    #[allow(dead_code, reason = "only tests run examples")]
    pub(crate) needs: Needs,
}

/// Those of a command, by the words that name it.
pub(crate) fn of_command(path: &str) -> impl Iterator<Item = Example> {
    all().filter(move |example| example.command == path)
}

/// Those of every command that help lists.
pub(crate) fn all() -> impl Iterator<Item = Example> {
    let mut command = "";
    include_str!("examples.txt").lines().filter_map(move |line| {
        if let Some(name) = line.strip_prefix('[') {
            command = name.trim_end_matches(']');
        }
        let mut fields = line.splitn(3, " | ");
        let needs = match fields.next()? {
            "nothing" => Needs::Nothing,
            "hosts" => Needs::Hosts,
            "lab" => Needs::Lab,
            "devices" => Needs::Devices,
            "more" => Needs::More,
            _ => return None,
        };
        Some(Example { command, purpose: fields.next()?, line: fields.next()?, needs })
    })
}
