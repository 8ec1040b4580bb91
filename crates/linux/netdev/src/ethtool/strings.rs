//! String sets: the names of a driver's own counters.

use crate::genl::for_each;
use crate::tlv::{Malformed, Tlvs, Writer};

/// In request and answer, the sets, and one of them (`ETHTOOL_A_STRSET_STRINGSETS`,
/// `ETHTOOL_A_STRINGSETS_STRINGSET`).
const SETS: u16 = 2;
const SET: u16 = 1;
/// Which one, and its strings (`ETHTOOL_A_STRINGSET_...`).
const ID: u16 = 1;
const STRINGS: u16 = 3;
/// One string, and its text (`ETHTOOL_A_STRINGS_STRING`, `ETHTOOL_A_STRING_VALUE`).
const STRING: u16 = 1;
const VALUE: u16 = 2;
/// The set of the counters' names (`ETH_SS_STATS`).
const STATISTICS: u32 = 1;

/// Asks for the names of counters.
pub(super) fn of_statistics(request: &mut Writer) {
    request.nest(SETS, |sets| {
        sets.nest(SET, |set| {
            set.put_u32(ID, STATISTICS);
        });
    });
}

/// Reads the attributes of `ETHTOOL_MSG_STRSET_GET_REPLY`: the strings of all sets, in order.
pub fn parse_strings(attributes: &[u8]) -> Result<Vec<String>, Malformed> {
    let mut texts = Vec::new();
    within(Tlvs::new(attributes), SETS, &mut |sets| {
        within(sets, SET, &mut |set| {
            within(set, STRINGS, &mut |strings| {
                within(strings, STRING, &mut |string| {
                    for_each(string, |part| {
                        texts.extend((part.kind == VALUE).then(|| part.text().trim().to_owned()));
                        Ok(())
                    })
                })
            })
        })
    })?;
    Ok(texts)
}

/// Calls `each` with what is in the attributes of this type.
fn within(
    attributes: Tlvs<'_>,
    kind: u16,
    each: &mut dyn FnMut(Tlvs<'_>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    for_each(
        attributes,
        |attribute| {
            if attribute.kind == kind { each(attribute.nested()) } else { Ok(()) }
        },
    )
}
