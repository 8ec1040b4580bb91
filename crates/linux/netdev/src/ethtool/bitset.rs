//! Sets of named bits: what is on, and what there is.

use std::collections::BTreeSet;

use crate::genl::for_each;
use crate::tlv::{Malformed, Tlv};

/// All bits in the list are set (`ETHTOOL_A_BITSET_NOMASK`).
const LIST: u16 = 1;
/// The bits (`ETHTOOL_A_BITSET_BITS`).
const BITS: u16 = 3;
/// One of them (`ETHTOOL_A_BITSET_BITS_BIT`).
const BIT: u16 = 1;
/// Its name, and that it is set (`ETHTOOL_A_BITSET_BIT_...`).
const NAME: u16 = 2;
const VALUE: u16 = 3;

/// The names of the bits that are set. It is the long form; nobody asks for the compact one.
pub(super) fn names_of_set_bits(attribute: &Tlv<'_>) -> Result<BTreeSet<String>, Malformed> {
    let (mut is_list, mut bits) = (false, Vec::new());
    for_each(attribute.nested(), |part| {
        match part.kind {
            LIST => is_list = true,
            BITS => for_each(part.nested(), |bit| {
                bits.extend((bit.kind == BIT).then(|| name_and_value(bit)).transpose()?);
                Ok(())
            })?,
            _ => {}
        }
        Ok(())
    })?;
    let set = bits.into_iter().filter(|(name, is_set)| (is_list || *is_set) && !name.is_empty());
    Ok(set.map(|(name, _)| name).collect())
}

fn name_and_value(bit: &Tlv<'_>) -> Result<(String, bool), Malformed> {
    let (mut name, mut is_set) = (String::new(), false);
    for_each(bit.nested(), |part| {
        match part.kind {
            NAME => name = part.text(),
            VALUE => is_set = true,
            _ => {}
        }
        Ok(())
    })?;
    Ok((name, is_set))
}
