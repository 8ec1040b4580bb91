//! The host behind the NIC: it takes interrupts and polls.

use alloc::vec::Vec;

use base::time::Instant;
use nic::handler::Handler;
use nic::observer::Delivered;
use nic::port::Port;
use nic::processor::{Activity, Costs, Processor};

/// The most packets of one poll (`NAPI_POLL_WEIGHT`, `include/linux/netdevice.h`).
const WEIGHT: usize = 64;

/// A host and its driver.
#[derive(Debug)]
pub(crate) enum PollingHost {
    /// It polls as soon as it is interrupted, and nothing takes time.
    Free,
    /// Interrupts and packets keep its one processor busy.
    Charged {
        processor: Processor<()>,
        /// Of each queue, with whether it has raised an interrupt that is not taken yet.
        handlers: Vec<(Handler, bool)>,
    },
}

impl PollingHost {
    pub(crate) fn new(costs: Costs, queues: u16) -> Self {
        if costs.are_zero() {
            return Self::Free;
        }
        let handlers = (0..queues).map(|_| (Handler::default(), false)).collect();
        Self::Charged { processor: Processor::new(costs), handlers }
    }

    /// When the host has something to do next.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Free => None,
            Self::Charged { handlers, .. } => {
                handlers.iter().filter_map(|(handler, _)| handler.deadline()).min()
            }
        }
    }

    /// Does what is due at `now`; `take` gets each packet.
    #[inline]
    pub(crate) fn serve(
        &mut self,
        now: Instant,
        port: &mut Port<u16>,
        take: &mut impl FnMut(&Delivered, u16),
    ) {
        match self {
            Self::Free => {
                for queue in port.queues_mut() {
                    while queue.take_interrupt() {
                        while queue.poll(now, WEIGHT, &mut (), &mut *take) == WEIGHT {}
                        queue.rearm(now, &mut ());
                    }
                }
            }
            Self::Charged { processor, handlers } => {
                for (queue, (handler, raised)) in port.queues_mut().iter_mut().zip(handlers) {
                    loop {
                        *raised |= queue.take_interrupt();
                        let Some(count) = handler.next(now, queue, processor, (raised, now)) else {
                            break;
                        };
                        queue.poll(now, count, &mut (), &mut *take);
                        // A host that finds nothing more re-arms.
                        if queue.backlog() == 0 {
                            queue.rearm(now, &mut ());
                        }
                    }
                }
            }
        }
    }

    /// Nanoseconds in which its processor was busy; none if nothing takes time.
    pub(crate) fn busy_ns(&self, now: Instant) -> Option<u64> {
        match self {
            Self::Free => None,
            Self::Charged { processor, .. } => {
                let busy = processor.busy(now);
                Some(Activity::ALL.into_iter().map(|activity| busy[activity].as_nanos()).sum())
            }
        }
    }
}
