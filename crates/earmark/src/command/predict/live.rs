//! A capture that the command makes itself: headers of all packets of a device, as pcap.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use predict::Predictor;
use report::errln;
use sys::packet::{missed, open_listener};
use sys::stamps::LinkAddress;
use sys::wait::wait_readable;
use sys::{ctrl_c, files};

/// Bytes of a packet that are kept: headers.
const KEPT: usize = 128;
/// Bytes of packets that are fed at once.
const PIECE: usize = 1 << 20;
/// How often signals are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// LINKTYPE_LINUX_SLL2, and bytes of its header.
const SLL2: u32 = 276;
const SLL2_HEADER: usize = 20;

/// What was captured, beside the packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Captured {
    packets: u64,
    missed: u32,
    hardware: u64,
}

/// Captures the packets of `device` for `lasts`, and feeds them; `copy` is a file for them, too.
pub(super) fn feed(
    device: &str,
    lasts: Duration,
    copy: Option<&Path>,
    session: &mut Predictor,
) -> Result<()> {
    let what = || format!("capture on {device}");
    let socket = open_listener(device).with_context(what)?;
    let mut file = match copy {
        Some(path) => {
            Some(files::create(path).with_context(|| format!("write {}", path.display()))?)
        }
        None => None,
    };
    ctrl_c::watch().context("take signals")?;
    let (begun, mut looked) = (Instant::now(), Instant::now());
    let (mut bytes, mut captured) = (header(), Captured::default());
    let mut begin = bytes.len();
    let mut buffer = [0; KEPT];
    while begun.elapsed() < lasts {
        match socket.receive_packet(&mut buffer) {
            Ok((length, link, stamps)) => {
                captured.packets += 1;
                captured.hardware += u64::from(stamps.hardware.is_some());
                // The clock of the NIC is its own: one of the two is taken for all packets.
                let is_hardware = captured.hardware > 0;
                if captured.hardware == 1 && stamps.hardware.is_some() {
                    // Those before it have stamps of the other clock.
                    bytes.truncate(begin);
                }
                let stamp = if is_hardware { stamps.hardware } else { stamps.software };
                let kept = &buffer[..length.min(KEPT)];
                if let Some(at) = stamp {
                    record(&mut bytes, at, &link, (kept, length));
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let left = lasts.saturating_sub(begun.elapsed()).min(LOOK_EVERY);
                wait_readable(socket.socket(), left).with_context(what)?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error).with_context(what),
        }
        if bytes.len() >= PIECE {
            pass_on(&mut bytes, file.as_mut(), session)?;
            begin = 0;
        }
        if looked.elapsed() > LOOK_EVERY {
            looked = Instant::now();
            if ctrl_c::check().is_err() {
                break;
            }
        }
    }
    pass_on(&mut bytes, file.as_mut(), session)?;
    captured.missed = missed(socket.socket()).with_context(what)?;
    ensure!(
        captured.packets > 0,
        "capture on {device}: no packet in {:.0} s; is there traffic? earmark watch {device}",
        lasts.as_secs_f64()
    );
    errln!("{}", captured.in_words(device));
    Ok(())
}

impl Captured {
    fn in_words(&self, device: &str) -> String {
        let stamps = match self.hardware {
            0 => "stamps of the kernel, taken behind the hold that is in force".to_owned(),
            all if all == self.packets => "stamps of the NIC, taken before any hold".to_owned(),
            some => format!("stamps of the NIC, of {some} of them; the others are left out"),
        };
        let missed = match self.missed {
            0 => String::new(),
            missed => format!("; {missed} came faster than they were read, and are missing"),
        };
        format!("captured {} packets on {device}: {stamps}{missed}", self.packets)
    }
}

fn pass_on(bytes: &mut Vec<u8>, file: Option<&mut File>, session: &mut Predictor) -> Result<()> {
    session.feed(bytes)?;
    if let Some(file) = file {
        file.write_all(bytes).context("write the capture")?;
    }
    bytes.clear();
    Ok(())
}

/// The header of a pcap with nanoseconds.
fn header() -> Vec<u8> {
    let words = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, (KEPT + SLL2_HEADER) as u32, SLL2];
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// Adds a record with a cooked header, as libpcap writes it.
fn record(bytes: &mut Vec<u8>, at: u64, link: &LinkAddress, (kept, length): (&[u8], usize)) {
    const SECOND: u64 = 1_000_000_000;
    let [captured, original] = [kept.len(), length].map(|it| (it + SLL2_HEADER) as u32);
    for word in [(at / SECOND) as u32, (at % SECOND) as u32, captured, original] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(link.protocol.to_be_bytes());
    bytes.extend([0; 2]);
    bytes.extend(link.interface.to_be_bytes());
    bytes.extend(link.hardware.to_be_bytes());
    bytes.extend([link.kind, link.address.1]);
    bytes.extend(link.address.0);
    bytes.extend(kept);
}

#[cfg(test)]
mod tests {
    use super::*;
    use capture::{CapturedPacket, PacketDirection, Reader};

    #[test]
    fn what_is_recorded_is_read_again() {
        let mut bytes = header();
        let link = |kind| LinkAddress {
            protocol: 0x0800,
            interface: 2,
            hardware: 1,
            kind,
            address: ([2, 0, 0, 0, 0, 1, 0, 0], 6),
        };
        let mut packet = [0; 40];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&1_000_u16.to_be_bytes());
        packet[9] = 6;
        record(&mut bytes, 5_000_000_007, &link(0), (&packet, 1_000));
        record(&mut bytes, 5_000_000_009, &link(4), (&packet, 1_000));
        let mut seen = Vec::new();
        let mut reader = Reader::new();
        let mut each = |it: &CapturedPacket| seen.push((it.at_ns, it.length, it.direction));
        reader.feed(&bytes, &mut each).unwrap();
        assert_eq!(
            seen,
            [
                (5_000_000_007, 1_014, PacketDirection::In),
                (5_000_000_009, 1_014, PacketDirection::Out)
            ]
        );
    }
}
