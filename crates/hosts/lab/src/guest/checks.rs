//! What a guest says on its console, in any bytes and any pieces.
//!
//! The first byte says how long the pieces are; the rest are operations on what the guest is to
//! say: whole frames, lies about their length, any bytes. What is heard is what a slow reading of
//! all of it says.

use std::io::Write;
use std::os::unix::net::UnixStream;

use super::channel::{Channel, GREETING, MAX_FRAME, message};
use super::protocol::{GuestEvent, OutputStream, Status};

/// Bytes that a guest says at most: the kernel keeps them.
const LONGEST: usize = 100_000;

/// Lets a guest speak.
///
/// # Panics
/// If something else is heard.
pub(crate) fn replay(bytes: &[u8]) {
    let Some((piece, rest)) = bytes.split_first() else { return };
    let said = said(rest);
    let (mut guest, here) = UnixStream::pair().expect("there are descriptors");
    let same = here.try_clone().expect("there are descriptors");
    let mut channel = Channel::new(here.into(), same.into()).expect("it takes them");
    let (mut heard, mut greeted, mut is_broken) = (Vec::new(), false, false);
    for piece in said.chunks(1 + usize::from(*piece) * 64) {
        guest.write_all(piece).expect("the kernel takes it");
        while channel.fill().expect("the other end is open").is_some_and(|count| count > 0) {}
        greeted = greeted || channel.is_greeted();
        while greeted && !is_broken {
            match channel.next() {
                Ok(Some(frame)) => heard.push(frame),
                Ok(None) => break,
                // Its owner gives it up.
                Err(error) => is_broken = !error.to_string().is_empty(),
            }
        }
        if is_broken {
            break;
        }
    }
    let expected = frames(&said);
    assert!(heard == expected, "{} frames instead of {}", heard.len(), expected.len());
    for (_, bytes) in heard {
        let Ok(event) = message::<GuestEvent>(&bytes) else { continue };
        let again = postcard::to_allocvec(&event).expect("memory takes it");
        assert_eq!(message::<GuestEvent>(&again).ok(), Some(event));
    }
}

/// The frames after the greeting, up to one that is none.
fn frames(said: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let mut frames = Vec::new();
    let at = said.windows(GREETING.len()).position(|window| window == GREETING);
    let mut rest = at.map_or(&[][..], |at| &said[at + GREETING.len()..]);
    while let Some((length, bytes)) = rest.split_first_chunk() {
        let length = u32::from_le_bytes(*length) as usize;
        if !(4..=MAX_FRAME).contains(&length) || bytes.len() < length {
            break;
        }
        let (frame, after) = bytes.split_at(length);
        let (program, message) = frame.split_first_chunk().expect("it has 4 bytes");
        frames.push((u32::from_le_bytes(*program), message.to_vec()));
        rest = after;
    }
    frames
}

/// What a guest says: each operation is a byte, a length, and as many bytes.
fn said(mut bytes: &[u8]) -> Vec<u8> {
    let mut said = Vec::new();
    while let [what, length, ref rest @ ..] = *bytes
        && said.len() < LONGEST
    {
        let (text, rest) = rest.split_at(usize::from(length).min(rest.len()));
        bytes = rest;
        let program = u32::from(what / 16);
        let event = match what % 8 {
            0 => Some(GuestEvent::Output(
                OutputStream::Output,
                text.repeat(usize::from(what / 8) + 1),
            )),
            1 => Some(GuestEvent::Credit(u64::MAX - u64::from(length))),
            2 => Some(GuestEvent::Exited(Status::Signal(-1))),
            _ => None,
        };
        match (event, what % 8) {
            (Some(event), _) => {
                let message = postcard::to_allocvec(&event).expect("memory takes it");
                frame(&mut said, message.len() as u32 + 4, program, &message);
            }
            (None, 3) => said.extend(GREETING),
            (None, 4) => frame(&mut said, text.len() as u32 + 4, program, text),
            (None, 5) => {
                let lies = [0, 3, 4, MAX_FRAME as u32, MAX_FRAME as u32 + 1, u32::MAX];
                frame(&mut said, lies[usize::from(length) % lies.len()], program, text);
            }
            _ => said.extend(text),
        }
    }
    said
}

fn frame(said: &mut Vec<u8>, length: u32, program: u32, message: &[u8]) {
    said.extend(length.to_le_bytes());
    said.extend(program.to_le_bytes());
    said.extend(message);
}
