//! The layout of a tracepoint's records, as tracefs tells it: `events/GROUP/NAME/format`.
//!
//! ```text
//! name: napi_poll
//! ID: 2291
//! format:
//!         field:unsigned short common_type;  offset:0;  size:2;  signed:0;
//!         field:__data_loc char[] dev_name;  offset:16; size:4;  signed:0;
//! ```
//!
//! A field that is declared `__data_loc` holds where its bytes are: the length in the upper half of
//! a 32-bit word, the place from the start of the record in the lower one; `__rel_loc` counts from
//! the end of the word. Source: `kernel/trace/trace_events.c` (`f_show`), and
//! `include/trace/stages/stage3_trace_output.h`.

/// Why a file of layout cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A line that must be there is not.
    #[error("it has no line `{0}`")]
    Absent(&'static str),
    /// A line cannot be read.
    #[error("line {0} cannot be understood")]
    Line(usize),
    /// A field would lie beyond any record.
    #[error("line {0} has a field beyond the end of any record")]
    Far(usize),
}

/// The longest record that the kernel makes, in bytes (`PERF_MAX_TRACE_SIZE`).
const MAX_LENGTH: usize = 8_192;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldLocation {
    Here,
    FromStart,
    FromWord,
}

/// One field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    name: String,
    offset: usize,
    size: usize,
    place: FieldLocation,
}

/// The layout of a tracepoint's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// The tracepoint's name, without its group.
    pub name: String,
    /// Its number, which is `config` of an event and the first field of each record.
    pub id: u16,
    fields: Vec<Field>,
}

impl Format {
    /// Reads a file of layout.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let value = |key: &str| text.lines().find_map(|line| line.trim().strip_prefix(key));
        let name = value("name:").ok_or(FormatError::Absent("name:"))?.trim().to_owned();
        let id = value("ID:").ok_or(FormatError::Absent("ID:"))?.trim();
        let id = id.parse().map_err(|_| FormatError::Absent("ID: NUMBER"))?;
        let mut fields = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let Some(declared) = line.trim().strip_prefix("field:") else { continue };
            let field = field(declared).ok_or(FormatError::Line(number))?;
            if field.offset.saturating_add(field.size) > MAX_LENGTH {
                return Err(FormatError::Far(number));
            }
            fields.push(field);
        }
        if fields.is_empty() {
            return Err(FormatError::Absent("field:"));
        }
        Ok(Self { name, id, fields })
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

fn field(declared: &str) -> Option<Field> {
    let mut parts = declared.split(';').map(str::trim);
    let declaration = parts.next()?;
    let (mut offset, mut size) = (None, None);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", value)) => offset = Some(value.parse().ok()?),
            Some(("size", value)) => size = Some(value.parse().ok()?),
            _ => {}
        }
    }
    let place = match declaration.split_whitespace().next()? {
        "__data_loc" => FieldLocation::FromStart,
        "__rel_loc" => FieldLocation::FromWord,
        _ => FieldLocation::Here,
    };
    // `char comm[16]`, `struct napi_struct * napi`, `__data_loc char[] name`.
    let last = declaration.split_whitespace().next_back()?;
    let name = last.split('[').next()?.trim_start_matches('*');
    (!name.is_empty()).then_some(())?;
    Some(Field { name: name.to_owned(), offset: offset?, size: size?, place })
}

impl Field {
    /// The field's own bytes in a record; `None` if the record is too short.
    fn here<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        record.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// The field as a number, of 1, 2, 4 or 8 bytes, without regard to its sign.
    pub fn number(&self, record: &[u8]) -> Option<u64> {
        let bytes = self.here(record)?;
        Some(match bytes.len() {
            1 => bytes[0].into(),
            2 => u16::from_ne_bytes(bytes.try_into().ok()?).into(),
            4 => u32::from_ne_bytes(bytes.try_into().ok()?).into(),
            8 => u64::from_ne_bytes(bytes.try_into().ok()?),
            _ => return None,
        })
    }

    /// The field as a number with a sign.
    pub fn signed(&self, record: &[u8]) -> Option<i64> {
        let value = self.number(record)?;
        Some(match self.size {
            1 => (value as u8 as i8).into(),
            2 => (value as u16 as i16).into(),
            4 => (value as u32 as i32).into(),
            _ => value as i64,
        })
    }

    /// The field as bytes: an array that lies in the record, or text elsewhere in it up to its end.
    pub fn bytes<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        let found = match self.place {
            FieldLocation::Here => self.here(record)?,
            FieldLocation::FromStart | FieldLocation::FromWord => {
                let word = self.number(record)? as u32;
                let (length, at) = ((word >> 16) as usize, (word & 0xffff) as usize);
                let base = match self.place {
                    FieldLocation::FromWord => self.offset + self.size,
                    _ => 0,
                };
                let start = base.checked_add(at)?;
                record.get(start..start.checked_add(length)?)?
            }
        };
        Some(found)
    }

    /// The field as text, up to the first zero.
    pub fn text<'a>(&self, record: &'a [u8]) -> Option<&'a str> {
        let bytes = self.bytes(record)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        std::str::from_utf8(&bytes[..end]).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.18 writes it.
    const NAPI_POLL: &str = "name: napi_poll\nID: 2291\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:struct napi_struct * napi;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:__data_loc char[] dev_name;\toffset:16;\tsize:4;\tsigned:0;\n\
        \tfield:int work;\toffset:20;\tsize:4;\tsigned:1;\n\
        \tfield:int budget;\toffset:24;\tsize:4;\tsigned:1;\n\n\
        print fmt: \"napi poll on napi struct %p\", REC->napi\n";

    fn record() -> Vec<u8> {
        let mut record = Vec::new();
        record.extend(2291_u16.to_ne_bytes());
        record.extend([0x10, 1]);
        record.extend(77_i32.to_ne_bytes());
        record.extend(0xffff_8880_1234_5678_u64.to_ne_bytes());
        record.extend((5_u32 << 16 | 28).to_ne_bytes());
        record.extend((-3_i32).to_ne_bytes());
        record.extend(64_i32.to_ne_bytes());
        record.extend(b"eth0\0\0\0\0");
        record
    }

    #[test]
    fn layout_of_linux_is_read() {
        let format = Format::parse(NAPI_POLL).unwrap();
        assert_eq!((format.name.as_str(), format.id), ("napi_poll", 2291));
        let record = record();
        let number = |name| format.field(name).unwrap().number(&record);
        assert_eq!(number("common_type"), Some(2291));
        assert_eq!(number("napi"), Some(0xffff_8880_1234_5678));
        assert_eq!(format.field("work").unwrap().signed(&record), Some(-3));
        assert_eq!(format.field("dev_name").unwrap().text(&record), Some("eth0"));
        assert!(format.field("absent").is_none());
    }

    #[test]
    fn relative_place_counts_from_the_end_of_the_word() {
        let text =
            "name: x\nID: 1\n\tfield:__rel_loc char[] name;\toffset:4;\tsize:4;\tsigned:0;\n";
        let format = Format::parse(text).unwrap();
        let mut record = vec![0; 4];
        record.extend((3_u32 << 16 | 2).to_ne_bytes());
        record.extend(b"..lo\0");
        assert_eq!(format.field("name").unwrap().text(&record), Some("lo"));
    }

    #[test]
    fn short_and_lying_records_give_nothing() {
        let format = Format::parse(NAPI_POLL).unwrap();
        let mut record = record();
        for length in 0..record.len() {
            for field in &format.fields {
                let _ = (field.number(&record[..length]), field.text(&record[..length]));
            }
        }
        record[16..20].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(format.field("dev_name").unwrap().text(&record), None);
    }

    #[test]
    fn malformed_layout_is_refused_with_its_line() {
        assert_eq!(Format::parse(""), Err(FormatError::Absent("name:")));
        assert_eq!(Format::parse("name: x\n"), Err(FormatError::Absent("ID:")));
        assert_eq!(Format::parse("name: x\nID: y\n"), Err(FormatError::Absent("ID: NUMBER")));
        assert_eq!(Format::parse("name: x\nID: 70000\n"), Err(FormatError::Absent("ID: NUMBER")));
        assert_eq!(Format::parse("name: x\nID: 1\n"), Err(FormatError::Absent("field:")));
        for broken in [
            "field:",
            "field:int a;",
            "field:int a; offset:x; size:4;",
            "field:int *; \
             offset:0; size:4;",
        ] {
            let text = format!("name: x\nID: 1\n{broken}\n");
            assert_eq!(Format::parse(&text), Err(FormatError::Line(3)), "{broken}");
        }
        let far = "name: x\nID: 1\nfield:int a; offset:8190; size:4;\n";
        assert_eq!(Format::parse(far), Err(FormatError::Far(3)));
        let far = format!("name: x\nID: 1\nfield:int a; offset:{}; size:4;\n", usize::MAX);
        assert_eq!(Format::parse(&far), Err(FormatError::Far(3)));
    }
}
