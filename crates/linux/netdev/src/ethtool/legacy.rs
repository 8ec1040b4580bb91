//! Coalescing by ioctl, on kernels without the `ethtool` family; and the words of that ioctl, which
//! `per_queue.rs` has for each queue.
//!
//! Layout: `struct ethtool_coalesce` of Linux, `include/uapi/linux/ethtool.h`. Its words are in the
//! order of the netlink attributes, but it does not say which of them a driver supports: a 0 may
//! mean either.

use std::io;

use super::coalesce::Coalesce;
use super::parameter::Parameter;
use sys::ethtool::{COALESCE_WORDS as WORDS, Control, GET_COALESCE as GET, SET_COALESCE as SET};

/// The values of `struct ethtool_coalesce`, command included.
///
/// A 0 is taken for "not supported", except for the two waiting times, which every driver has.
pub fn parse_legacy(words: &[u32]) -> Coalesce {
    let mut coalesce = Coalesce::new();
    for parameter in Parameter::all() {
        let Some(&value) = word_of(parameter).and_then(|word| words.get(word)) else { continue };
        if value != 0 || matches!(parameter, Parameter::RxUsecs | Parameter::TxUsecs) {
            coalesce.set(parameter, value);
        }
    }
    coalesce
}

/// Where a parameter is, if it is there at all.
pub(super) fn word_of(parameter: Parameter) -> Option<usize> {
    let word = usize::from(parameter as u16).checked_sub(1)?;
    (word < WORDS).then_some(word)
}

/// Puts the values to change among the others.
pub(super) fn change_words(words: &mut [u32], change: &Coalesce) -> io::Result<()> {
    for (parameter, value) in change.iter() {
        let word = word_of(parameter).and_then(|word| words.get_mut(word));
        *word.ok_or_else(|| io::Error::from_raw_os_error(libc::EOPNOTSUPP))? = value;
    }
    let has_profile = change.rx_profile.is_some() || change.tx_profile.is_some();
    if has_profile { Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)) } else { Ok(()) }
}

pub(super) fn coalesce(control: &Control, device: &str) -> io::Result<Coalesce> {
    let mut words = [0; WORDS];
    words[0] = GET;
    control.ethtool(device, &mut words)?;
    Ok(parse_legacy(&words))
}

pub(super) fn set_coalesce(control: &Control, device: &str, change: &Coalesce) -> io::Result<()> {
    let mut words = [0; WORDS];
    words[0] = GET;
    control.ethtool(device, &mut words)?;
    change_words(&mut words, change)?;
    words[0] = SET;
    control.ethtool(device, &mut words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_differ_from_unsupported_ones() {
        let mut words = [0; WORDS];
        (words[1], words[2], words[10], words[22]) = (75, 0, 1, 4);
        let coalesce = parse_legacy(&words);
        assert_eq!(coalesce.get(Parameter::RxUsecs), Some(75));
        assert_eq!(coalesce.get(Parameter::RxFrames), None);
        assert_eq!(coalesce.get(Parameter::TxUsecs), Some(0));
        assert_eq!(coalesce.is_on(Parameter::AdaptiveRx), Some(true));
        assert_eq!(coalesce.get(Parameter::SampleInterval), Some(4));
        assert!(parse_legacy(&[]).is_empty());
    }

    #[test]
    fn change_of_what_the_ioctl_lacks_is_refused() {
        let mut words = [0; WORDS];
        change_words(&mut words, &Coalesce::new().with(Parameter::RxUsecsHigh, 9)).unwrap();
        assert_eq!(words[18], 9);
        assert!(change_words(&mut words, &Coalesce::new().with(Parameter::CqeModeRx, 1)).is_err());
        let mut profile = Coalesce::new();
        profile.rx_profile = Some(Vec::new());
        assert!(change_words(&mut words, &profile).is_err());
    }
}
