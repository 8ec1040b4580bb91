//! Answers of an echo, however many pieces they come in.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use sys::streams::time_left;

/// How long an answer may take, and by how much a run may be too long, whatever the far side does.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(4);

/// Reads until `answer` is full, piece by piece. The deadline is looked at only between two pieces:
/// a read by itself ends by the time-out of the socket, and whole answers cost no call more.
pub(crate) fn read_answer(
    until: Instant,
    answer: &mut [u8],
    mut read: impl FnMut(&mut [u8]) -> io::Result<usize>,
) -> io::Result<()> {
    let mut filled = 0;
    while filled < answer.len() {
        if filled > 0 {
            time_left(until)?;
        }
        match read(&mut answer[filled..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_in_many_pieces_has_one_deadline() {
        let past = Instant::now();
        let (mut answer, mut reads) = ([0; 64], 0);
        let late = read_answer(past, &mut answer, |_| {
            reads += 1;
            Ok(1)
        });
        assert_eq!((late.unwrap_err().kind(), reads), (ErrorKind::TimedOut, 1));
        read_answer(past, &mut answer, |rest| Ok(rest.len())).unwrap();
    }
}
