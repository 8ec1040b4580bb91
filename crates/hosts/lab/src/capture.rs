//! Captures: a pcapng file of what crossed the ports, with what the NIC did to each frame as the
//! frame's comment.
//!
//! Each port is an interface of the file. A frame that a host received stands at the time at which
//! the host got it; its comment gives the mark, the hold and the interrupt that delivered it:
//!
//! ```text
//! mark=yes hold=75.103us interrupt=412 reason=timer queue=0
//! mark=no hold=0.000us interrupt=412 reason=timer off=20.004us queue=0
//! ```
//!
//! The second frame came 20 us after the interrupt, and the host had not switched it on again: it
//! was still polling, or had put that off (`napi-defer-hard-irqs`). Then the host takes the frame
//! when it polls, which nothing tells the NIC.
//!
//! The data plane must not wait for a disk, so a thread of its own writes the file.
//! Format: IETF draft-ietf-opsawg-pcapng, blocks SHB, IDB and EPB.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use base::time::{Duration, Instant};
use nic::observer::Delivered;

use crate::calendar::BEGINNING_OF_TIME;
use sys::{clock, files};

/// Frames that may wait for the disk.
const BACKLOG: usize = 16_384;

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const LINKTYPE_ETHERNET: u16 = 1;

const OPT_COMMENT: u16 = 1;
const OPT_IF_NAME: u16 = 2;
const OPT_EPB_FLAGS: u16 = 2;
const OPT_SHB_USERAPPL: u16 = 4;
const OPT_IF_TSRESOL: u16 = 9;

const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// What a capture could not do.
#[derive(Debug, thiserror::Error)]
#[error("write capture {}: {source}; free some space or choose another path with --pcap", path.display())]
pub struct CaptureError {
    path: PathBuf,
    source: io::Error,
}

/// One frame on its way to the file.
struct Record {
    interface: u32,
    at: Instant,
    direction: u32,
    comment: String,
    frame: Vec<u8>,
}

/// A capture that is being written.
#[derive(Debug)]
pub struct Capture {
    records: Option<SyncSender<Record>>,
    writer: Option<JoinHandle<io::Result<()>>>,
    path: PathBuf,
    missed: u64,
}

impl Capture {
    /// Creates the file at `path`, with an interface for each of `ports`, in real time.
    pub fn create(path: &Path, ports: &[&str]) -> Result<Self, CaptureError> {
        Self::since(path, ports, clock::wall_clock_nanos() - clock::now().as_nanos())
    }

    /// The same in virtual time: the file says nothing of the machine or the moment.
    pub fn create_virtual(path: &Path, ports: &[&str]) -> Result<Self, CaptureError> {
        Self::since(path, ports, BEGINNING_OF_TIME)
    }

    /// A capture whose time zero is `epoch_nanos` after 1970.
    fn since(path: &Path, ports: &[&str], epoch_nanos: u64) -> Result<Self, CaptureError> {
        let failed = |source| CaptureError { path: path.to_owned(), source };
        let mut file = BufWriter::new(files::create(path).map_err(failed)?);
        let mut header = section_header();
        ports.iter().for_each(|port| header.extend(interface(port)));
        file.write_all(&header).and_then(|()| file.flush()).map_err(failed)?;
        let (records, received) = sync_channel(BACKLOG);
        let writer = std::thread::Builder::new()
            .name("earmark-pcap".into())
            .spawn(move || write(file, &received, epoch_nanos))
            .map_err(failed)?;
        Ok(Self { records: Some(records), writer: Some(writer), path: path.to_owned(), missed: 0 })
    }

    pub(crate) fn transmitted(&mut self, interface: u32, at: Instant, frame: &[u8]) {
        let comment = String::from("transmitted");
        self.send(Record { interface, at, direction: OUTBOUND, comment, frame: frame.to_owned() });
    }

    pub(crate) fn delivered(&mut self, interface: u32, delivered: &Delivered, frame: &[u8]) {
        self.send(Record {
            interface,
            at: delivered.at,
            direction: INBOUND,
            comment: comment(delivered),
            frame: frame.to_owned(),
        });
    }

    fn send(&mut self, record: Record) {
        match self.records.as_ref().map(|records| records.try_send(record)) {
            None | Some(Ok(())) => {}
            Some(Err(TrySendError::Full(_) | TrySendError::Disconnected(_))) => self.missed += 1,
        }
    }

    /// Ends the capture; how many frames are missing because they came faster than they were
    /// written.
    pub fn finish(mut self) -> Result<u64, CaptureError> {
        self.close().map_err(|source| CaptureError { path: self.path.clone(), source })?;
        Ok(self.missed)
    }

    /// Lets the writing thread write what is left, and waits for it.
    fn close(&mut self) -> io::Result<()> {
        self.records = None;
        self.writer.take().map_or(Ok(()), |writer| {
            writer.join().unwrap_or_else(|_| Err(io::Error::other("the writing thread panicked")))
        })
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // A caller that wants to know of an error calls `finish`.
        let _ = self.close();
    }
}

fn comment(delivered: &Delivered) -> String {
    let Delivered { queue, descriptor, .. } = delivered;
    let mark = if descriptor.marked { "yes" } else { "no" };
    let hold = micros(delivered.hold);
    let Some(interrupt) = &delivered.interrupt else {
        return format!("mark={mark} hold={hold} polled queue={queue}");
    };
    let off = descriptor.completed_at.since(interrupt.at);
    let off = if off > Duration::ZERO { format!(" off={}", micros(off)) } else { String::new() };
    let (number, reason) = (interrupt.number, interrupt.reason);
    format!("mark={mark} hold={hold} interrupt={number} reason={reason}{off} queue={queue}")
}

fn micros(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    format!("{}.{:03}us", nanos / 1_000, nanos % 1_000)
}

fn write(
    mut file: BufWriter<File>,
    records: &Receiver<Record>,
    epoch_nanos: u64,
) -> io::Result<()> {
    for record in records {
        file.write_all(&packet(&record, epoch_nanos))?;
    }
    file.flush()
}

/// Frames `body` as a block: type, length, body padded to 32 bits, length.
fn block(kind: u32, mut body: Vec<u8>) -> Vec<u8> {
    body.resize(body.len().next_multiple_of(4), 0);
    let length = (body.len() + 12) as u32;
    let mut block = Vec::with_capacity(length as usize);
    block.extend(kind.to_le_bytes());
    block.extend(length.to_le_bytes());
    block.append(&mut body);
    block.extend(length.to_le_bytes());
    block
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

fn end_of_options(body: &mut Vec<u8>) {
    body.extend([0; 4]);
}

fn section_header() -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(0x1A2B_3C4D_u32.to_le_bytes());
    body.extend(1_u16.to_le_bytes());
    body.extend(0_u16.to_le_bytes());
    body.extend(u64::MAX.to_le_bytes());
    option(&mut body, OPT_SHB_USERAPPL, concat!("earmark ", env!("CARGO_PKG_VERSION")).as_bytes());
    end_of_options(&mut body);
    block(SECTION_HEADER, body)
}

fn interface(name: &str) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(LINKTYPE_ETHERNET.to_le_bytes());
    body.extend(0_u16.to_le_bytes());
    body.extend(0_u32.to_le_bytes());
    option(&mut body, OPT_IF_NAME, name.as_bytes());
    option(&mut body, OPT_IF_TSRESOL, &[9]);
    end_of_options(&mut body);
    block(INTERFACE_DESCRIPTION, body)
}

fn packet(record: &Record, epoch_nanos: u64) -> Vec<u8> {
    let at = epoch_nanos + record.at.as_nanos();
    let length = record.frame.len() as u32;
    let mut body = Vec::with_capacity(record.frame.len() + 128);
    body.extend(record.interface.to_le_bytes());
    body.extend(((at >> 32) as u32).to_le_bytes());
    body.extend((at as u32).to_le_bytes());
    body.extend(length.to_le_bytes());
    body.extend(length.to_le_bytes());
    body.extend(&record.frame);
    body.resize(body.len().next_multiple_of(4), 0);
    option(&mut body, OPT_EPB_FLAGS, &record.direction.to_le_bytes());
    option(&mut body, OPT_COMMENT, record.comment.as_bytes());
    end_of_options(&mut body);
    block(ENHANCED_PACKET, body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nic::descriptor::Descriptor;
    use nic::moderation::Reason;
    use nic::observer::Interrupted;

    #[test]
    fn blocks_are_framed_by_their_length() {
        for (kind, block) in
            [(SECTION_HEADER, section_header()), (INTERFACE_DESCRIPTION, interface("b0"))]
        {
            assert_eq!(block.len() % 4, 0);
            assert_eq!(block[..4], kind.to_le_bytes());
            assert_eq!(block[4..8], (block.len() as u32).to_le_bytes());
            assert_eq!(block[block.len() - 4..], block[4..8]);
        }
    }

    #[test]
    fn a_packet_block_holds_the_frame_and_its_comment() {
        let record = Record {
            interface: 1,
            at: Instant::from_nanos(5),
            direction: INBOUND,
            comment: "mark=yes".into(),
            frame: vec![0xAB; 61],
        };
        let block = packet(&record, 1 << 32);
        assert_eq!(block[8..12], 1_u32.to_le_bytes());
        assert_eq!(block[12..20], [1, 0, 0, 0, 5, 0, 0, 0]);
        assert_eq!(block[28..89], [0xAB; 61]);
        assert!(block.windows(8).any(|window| window == b"mark=yes"));
    }

    #[test]
    fn a_frame_that_no_interrupt_reported_has_how_long_they_were_off() {
        let interrupt = Interrupted {
            queue: 0,
            number: 4,
            at: Instant::from_nanos(75_000),
            reason: Reason::Timer,
            packets: 1,
        };
        let came = |nanos| Delivered {
            queue: 0,
            descriptor: Descriptor {
                length: 64,
                marked: false,
                arrived_at: Instant::from_nanos(nanos),
                completed_at: Instant::from_nanos(nanos),
            },
            at: Instant::from_nanos(95_004),
            hold: Instant::from_nanos(75_000).since(Instant::from_nanos(nanos)),
            interrupt: Some(interrupt),
        };
        let text = "mark=no hold=75.000us interrupt=4 reason=timer queue=0";
        assert_eq!(comment(&came(0)), text);
        let text = "mark=no hold=0.000us interrupt=4 reason=timer off=20.004us queue=0";
        assert_eq!(comment(&came(95_004)), text);
    }

    #[test]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let failed = Capture::create(Path::new("/dev/full"), &["a0"]).unwrap_err().to_string();
        assert!(failed.contains("/dev/full") && failed.contains("--pcap"), "{failed}");
    }
}
