//! How fast a capture goes through the NIC: `speed SETTING,... PACKETS`; with `-` for settings it
//! only makes the capture, so that the time for that can be subtracted.
//!
//! The capture is made in memory, as pcap with nanoseconds: frames of 66 and 1514 bytes of eight
//! flows, of which 66 bytes are captured, at random distances of 1 us in the mean. Prints packets,
//! then nanoseconds.

use std::process::ExitCode;
use std::time::Instant;

use base::prng::Prng;
use predict::{By, Predictor, Question, RunSettings};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok((packets, nanos)) => {
            println!("{packets} {nanos}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("speed: {problem}; the first lines of speed.rs say how to call it");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(u64, u128), String> {
    let [settings, packets] = arguments else { return Err("two arguments, please".into()) };
    let packets: u64 = packets.parse().map_err(|e| format!("{packets}: {e}"))?;
    if settings == "-" {
        return Ok((capture(packets).len() as u64 / 82, 0));
    }
    let compare = settings.split(',').map(|text| text.parse().map_err(|e| format!("{text}: {e}")));
    let question = Question {
        compare: compare.collect::<Result<_, _>>()?,
        run: RunSettings {
            rules: "tcp-psh & length<=512".parse().map_err(|e| format!("rules: {e}"))?,
            ..RunSettings::default()
        },
        by: By::Port,
        host: None,
        interface: None,
        link_rate: None,
        grid: None,
        propose: None,
        sample: 0,
    };
    let capture = capture(packets);
    let begun = Instant::now();
    let mut session = Predictor::new(question).map_err(|error| error.to_string())?;
    for piece in capture.chunks(1 << 20) {
        session.feed(piece).map_err(|error| error.to_string())?;
    }
    let prediction = session.finish().map_err(|error| error.to_string())?;
    Ok((prediction.arrivals, begun.elapsed().as_nanos()))
}

fn capture(packets: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        bytes.extend(word.to_le_bytes());
    }
    let (mut random, mut at) = (Prng::new(1), 1_000_000_000_u64);
    for _ in 0..packets {
        at += random.below(2_000);
        let (flow, length) = (random.below(8) as u16, [66_u16, 1_514][random.below(2) as usize]);
        for word in [at / 1_000_000_000, at % 1_000_000_000, 66, length.into()] {
            bytes.extend((word as u32).to_le_bytes());
        }
        let mut frame = [0_u8; 66];
        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
        frame[14..18].copy_from_slice(&[0x45, 0, ((length - 14) >> 8) as u8, (length - 14) as u8]);
        frame[23..34].copy_from_slice(&[6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame[34..36].copy_from_slice(&(11_211 + flow).to_be_bytes());
        frame[36..38].copy_from_slice(&40_000_u16.to_be_bytes());
        frame[46..48].copy_from_slice(&[0x50, if length == 66 { 0x18 } else { 0x10 }]);
        bytes.extend(frame);
    }
    bytes
}
