//! What the kernel and a program did with packets, in the few words that a path needs.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    /// In a thread, which the event's task is.
    Task,
    /// In a software interrupt, whatever thread it came upon.
    Softirq,
    /// In an interrupt, whatever thread it came upon.
    Hardirq,
}

/// What happened. Sockets and packets are known by their addresses in the kernel, which are used
/// again after they are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A thread calls one of the system calls that send or receive.
    CallEnter {
        /// The first argument, which for most is a descriptor.
        fd: i32,
    },
    CallExit,
    /// Within a call: that many bytes were sent through a socket.
    Sent {
        socket: u64,
        /// Bytes; below 0 for a failure.
        bytes: i64,
    },
    /// Within a call: that many bytes were received from a socket.
    Took {
        socket: u64,
        /// Bytes; below 0 for a failure.
        bytes: i64,
    },
    /// A packet was given to a device, whose queueing discipline may keep it.
    DeviceQueued {
        packet: u64,
    },
    /// A packet was given to the driver.
    DriverCalled {
        packet: u64,
    },
    /// The driver has taken it.
    DriverDone {
        packet: u64,
    },
    Interrupt {
        number: u32,
    },
    /// Receiving in a software interrupt is asked for.
    SoftirqRaised,
    SoftirqBegan,
    /// A packet enters the stack.
    Received {
        packet: u64,
        /// The device that it came by, as numbered by the decoder.
        device: u16,
    },
    /// Data is in a socket, and its waiters are woken.
    SocketReady {
        socket: u64,
    },
    /// A thread copies a packet to the program's memory.
    Copied {
        packet: u64,
    },
    Woken {
        task: u32,
    },
    /// A thread gets a processor.
    Runs {
        task: u32,
    },
    /// A thread leaves its processor.
    Left {
        task: u32,
    },
    Lost {
        count: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceEvent {
    /// When, in nanoseconds of `CLOCK_MONOTONIC`.
    pub at: u64,
    pub cpu: u32,
    /// Which thread had the processor.
    pub task: u32,
    /// Whether that thread did it.
    pub context: Context,
    pub what: What,
}
