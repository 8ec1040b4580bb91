//! Blind tests of captures of Linux guests in virtual time: `guests FIRST_SEED COUNT [all]`.
//!
//! Each seed draws a workload of `earmark bench` and a secret setting, or a decoy: an interrupt for
//! each packet, or the same with packets of a flow merged as GRO does. `earmark` makes the capture,
//! whose stamps are those behind the NIC; only stamps, flows and lengths are judged. Prints a line
//! for each case with `all`, and what came of them in JSON.

use std::process::{Command, ExitCode, Stdio};

use blind::{CaptureRating, GuestCase, Stamp};
use capture::{CapturedPacket, Reader};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse::<u64>().ok());
    let Some((first, count)) = number(0).zip(number(1)) else {
        eprintln!("guests: the first lines of guests.rs say how to call it");
        return ExitCode::FAILURE;
    };
    let (mut held, mut decoys, mut ratings) = (0, 0, Vec::new());
    for seed in first..first + count {
        let case = GuestCase::draw(seed);
        let Some(stamps) = played(&case) else { return ExitCode::FAILURE };
        let (rating, said) = case.rate(&stamps);
        if arguments.len() > 2 {
            println!(
                "{seed} {} under {}: {rating:?}: {}",
                case.workload,
                case.truth(),
                said.in_words()
            );
        }
        *(if case.is_decoy() { &mut decoys } else { &mut held }) += 1;
        ratings.push((case.is_decoy(), rating));
    }
    let of = |is_decoy, rating| ratings.iter().filter(|it| **it == (is_decoy, rating)).count();
    println!(
        "{{\"held\": {held}, \"right\": {}, \"wrong\": {}, \"no_family\": {}, \"cannot_tell\": {}, \
         \"decoys\": {decoys}, \"accused\": {}}}",
        of(false, CaptureRating::Right),
        of(false, CaptureRating::Wrong),
        of(false, CaptureRating::NoFamily),
        of(false, CaptureRating::CannotTell),
        of(true, CaptureRating::Accused)
    );
    ExitCode::SUCCESS
}

/// What the guests' NIC delivered: `None` if the bench or the capture failed, which it has said.
fn played(case: &GuestCase) -> Option<Vec<Stamp>> {
    let path = std::env::temp_dir().join(format!("guests-{}.pcapng", std::process::id()));
    let mut bench = Command::new("earmark");
    bench.args(["bench", "--world", "virtual", "--ports", "b", "--rounds", "1", "--json"]);
    bench.args(["--warmup", "0.02", "--duration", "0.5", "--seed", "1"]);
    bench.args(["--strategy", &case.setting.to_string()]).arg("--pcap").arg(&path);
    let status = bench.args(case.workload.split(' ')).stdout(Stdio::null()).status();
    let bytes = std::fs::read(&path);
    // Gone or not, it is of no more use.
    let _ = std::fs::remove_file(&path);
    let bytes = bytes.ok().filter(|_| status.is_ok_and(|status| status.success()))?;
    let mut stamps = Vec::new();
    let mut reader = Reader::new();
    let mut each = |packet: &CapturedPacket| {
        if packet.recorded.is_some() {
            let flow = predict::flow_number(&packet.headers);
            stamps.push((packet.interface, (packet.at_ns, flow, packet.length)));
        }
    };
    reader.feed(&bytes, &mut each).ok()?;
    reader.finish().ok()?;
    let of_b = reader.interfaces().iter().position(|it| it.name.as_deref() == Some("b0"))?;
    let its = stamps.into_iter().filter(|(interface, _)| *interface == of_b);
    Some(its.map(|(_, stamp)| stamp).collect())
}
