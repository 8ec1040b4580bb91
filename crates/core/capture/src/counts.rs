//! What a reader has counted, most of it what was wrong.

/// CaptureCounts of one capture, free-running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureCounts {
    /// Packets that were handed out.
    pub packets: u64,
    /// Packets of which the capture has only the beginning (its snapshot length).
    pub cut: u64,
    /// Packets that are cut within the headers that rules look at, or whose headers contradict
    /// themselves.
    pub malformed: u64,
    /// Packets whose stamp is before that of the packet before; they count as of that moment.
    pub backwards: u64,
    /// Packets that were left out because their link type is not known.
    pub unknown_link: u64,
    /// Packets that were left out because they name an interface that the capture has not
    /// described.
    pub unknown_interface: u64,
    /// Packets that were left out because they have no stamp (simple packet blocks).
    pub unstamped: u64,
    /// Blocks of pcapng that contradict themselves; each was left out.
    pub damaged: u64,
    /// Bytes after the last record that is whole: the capture ends within a record, or is damaged
    /// there.
    pub rest: u64,
}
