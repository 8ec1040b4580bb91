//! Any bytes as a file of layout, and as the records of a ring that have that layout.

use tracepoints::format::Format;
use tracepoints::record::{Record, each};

/// The first line feed after which a second one follows parts the layout from the records.
pub(crate) fn replay(bytes: &[u8]) {
    let split = bytes.windows(2).position(|pair| pair == b"\n\n");
    let (layout, records) = bytes.split_at(split.map_or(0, |at| at + 2));
    let format = std::str::from_utf8(layout).ok().and_then(|text| Format::parse(text).ok());
    let mut seen = 0;
    let left = each(records, |record| {
        seen += 1;
        let Record::Sample { raw, .. } = record else { return };
        for name in ["common_pid", "common_flags", "name", "skbaddr", "a"] {
            let Some(field) = format.as_ref().and_then(|format| format.field(name)) else {
                continue;
            };
            // What is shown lies in the record.
            let shown = field.bytes(raw).map_or(0, <[u8]>::len);
            assert!(shown <= raw.len());
            assert!(field.text(raw).is_none_or(|text| text.len() <= shown));
            assert_eq!(field.number(raw).is_some(), field.signed(raw).is_some());
        }
    });
    assert!(left + 8 * seen <= records.len(), "each record has a header");
}
