//! The name of this host.

use super::frame::{self, is_name};

pub(crate) fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let fits = |letter: char| if is_name(letter.encode_utf8(&mut [0; 4])) { letter } else { '-' };
    let name: String = name.chars().map(fits).take(frame::MAX_NAME).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}
