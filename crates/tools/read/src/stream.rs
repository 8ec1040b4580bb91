//! Text of any length, read some megabytes at a time.

use std::io::{self, BufRead, Read};

use crate::answer::Taken;
use crate::block::Cutter;
use crate::gather::{ReadSession, taken};
use crate::kind::InputKind;
use crate::round_trips::{NumberColumn, figures};
use crate::text::clean_lines;
use crate::unknown::{EXPECTED, is_capture};

/// Bytes of a text that are looked at together.
const PIECE: u64 = 4 << 20;

/// Whole lines of a stream, some megabytes at a time.
struct Pieces<R> {
    stream: R,
    /// The line that was cut where the last piece ended.
    rest: Vec<u8>,
    is_end: bool,
}

impl<R: BufRead> Pieces<R> {
    fn next(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = std::mem::take(&mut self.rest);
        self.stream.by_ref().take(PIECE).read_to_end(&mut bytes)?;
        self.is_end = self.stream.fill_buf()?.is_empty();
        if !self.is_end {
            match bytes.iter().rposition(|byte| *byte == b'\n') {
                Some(at) => self.rest = bytes.split_off(at + 1),
                // No line that is looked at is that long.
                None => {
                    self.stream.skip_until(b'\n')?;
                    self.is_end = self.stream.fill_buf()?.is_empty();
                }
            }
        }
        Ok(bytes)
    }
}

/// Text that is of no known kind.
#[derive(Default)]
struct OtherText {
    /// Lines in parts that are not empty.
    lines: usize,
    column: NumberColumn,
    /// Those of the first piece: figures are looked for in them.
    first: Vec<String>,
}

impl ReadSession {
    /// Reads a text; `whole` is what its name says of all of it.
    pub(crate) fn text(
        &mut self,
        name: &str,
        whole: Option<InputKind>,
        stream: impl BufRead,
    ) -> io::Result<()> {
        let mut pieces = Pieces { stream, rest: Vec::new(), is_end: false };
        let mut cutter = Cutter::new(whole);
        let mut other = OtherText::default();
        let (mut lines, mut is_recognised) = (0, false);
        while !pieces.is_end {
            let bytes = pieces.next()?;
            let is_first = lines == 0;
            if is_first && is_capture(&bytes) {
                self.capture(name);
                return Ok(());
            }
            let clean = clean_lines(&bytes);
            lines += clean.len();
            for part in cutter.cut(clean, pieces.is_end) {
                if self.block(name, &part) {
                    is_recognised = true;
                    continue;
                }
                other.lines += part.lines.len();
                if !is_recognised {
                    other.column.add(&part.lines);
                    if is_first {
                        other.first.extend(part.lines);
                    }
                }
            }
        }
        if !is_recognised {
            self.other_text(name, lines, other);
        } else if other.lines > 0 {
            self.note(format!("{name}: {} of other text", show::count(other.lines, "line")));
        }
        Ok(())
    }

    /// Text in which nothing was recognised: it may be a column, or have figures.
    fn other_text(&mut self, name: &str, lines: usize, other: OtherText) {
        let part = |kind| Taken { lines, ..taken(name, 1, kind) };
        if let Some((mut series, not_understood)) = other.column.finish() {
            series.at = format!("{name}:1");
            self.add_one_series(series);
            let remark = Some("without a unit, numbers are microseconds".to_owned());
            self.took(Taken { not_understood, remark, ..part(InputKind::Column) });
            return;
        }
        let figures = figures(&other.first);
        if figures.is_empty() {
            if other.lines > 0 || lines == 0 {
                let remark = Some(EXPECTED.to_owned());
                self.took(Taken { not_understood: lines, remark, ..part(InputKind::Unknown) });
            }
            return;
        }
        let remark = Some(format!("{} of its figures are read as round trips", figures.len()));
        self.took(Taken { remark, ..part(InputKind::Figures) });
        for mut series in figures {
            series.at = name.to_owned();
            self.add_one_series(series);
        }
    }
}
