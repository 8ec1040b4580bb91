//! What was read last, and reading again at a request.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hyper::body::Bytes;
use tokio::sync::{Notify, watch};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::collector::Collector;
use crate::sample::{Format, encode};

/// How long a reading counts as new. Two Prometheus servers that scrape the same host, or a
/// thousand, cost as much as one.
const FRESH: Duration = Duration::from_secs(1);

/// How long a scrape waits for a reading; a driver may keep its caller waiting for its firmware.
const WITHIN: Duration = Duration::from_secs(10);

/// All devices, as read at one moment.
#[derive(Debug)]
struct Reading {
    at: Instant,
    /// The texts, or why there are none.
    texts: Result<Texts, String>,
}

#[derive(Debug)]
struct Texts {
    open_metrics: Bytes,
    plain: Bytes,
}

/// The latest reading, for all who ask.
#[derive(Clone, Debug)]
pub(super) struct Latest {
    wanted: Arc<Notify>,
    readings: watch::Receiver<Option<Arc<Reading>>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    Failed(String),
    Late,
}

impl Latest {
    /// The text of a reading that began a second ago at most, or later.
    pub(super) async fn text(mut self, format: Format) -> Result<Bytes, Missing> {
        let asked = Instant::now();
        if !is_new(&self.readings.borrow(), asked) {
            self.wanted.notify_one();
        }
        let new = self.readings.wait_for(|reading| is_new(reading, asked));
        let found = timeout(WITHIN, new).await;
        let Ok(Ok(reading)) = found else { return Err(Missing::Late) };
        let Some(reading) = reading.clone() else { return Err(Missing::Late) };
        match (&reading.texts, format) {
            (Ok(texts), Format::OpenMetrics) => Ok(texts.open_metrics.clone()),
            (Ok(texts), Format::Plain) => Ok(texts.plain.clone()),
            (Err(why), _) => Err(Missing::Failed(why.clone())),
        }
    }
}

/// Whether there is a reading that is new for one who asks at a moment.
fn is_new(reading: &Option<Arc<Reading>>, asked: Instant) -> bool {
    reading.as_ref().is_some_and(|it| it.at + FRESH > asked)
}

/// The readings of a collector, and the task that makes them. It ends only if it fails for good.
pub(super) fn collecting(
    mut collector: Collector,
) -> (Latest, impl Future<Output = Result<Infallible>>) {
    let wanted = Arc::<Notify>::default();
    let (publish, readings) = watch::channel(None);
    let latest = Latest { wanted: Arc::clone(&wanted), readings };
    let task = async move {
        loop {
            wanted.notified().await;
            // Others have asked while the last reading was under way, and have it.
            if is_new(&publish.borrow(), Instant::now()) {
                continue;
            }
            let again = spawn_blocking(move || {
                let reading = read(&mut collector);
                (collector, reading)
            });
            let reading;
            (collector, reading) = again.await.context("read the devices")?;
            publish.send_replace(Some(Arc::new(reading)));
        }
    };
    (latest, task)
}

fn read(collector: &mut Collector) -> Reading {
    let at = Instant::now();
    let samples = collector.collect().map_err(|error| format!("{error:#}"));
    let text = |samples: &[_], format| Bytes::from(encode(samples, format));
    let texts = samples.map(|samples| Texts {
        open_metrics: text(&samples, Format::OpenMetrics),
        plain: text(&samples, Format::Plain),
    });
    Reading { at, texts }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings of nothing but a text, which the test publishes.
    fn published() -> (Latest, watch::Sender<Option<Arc<Reading>>>) {
        let (publish, readings) = watch::channel(None);
        (Latest { wanted: Arc::default(), readings }, publish)
    }

    fn reading(at: Instant, text: &'static str) -> Option<Arc<Reading>> {
        let bytes = Bytes::from_static(text.as_bytes());
        let texts = Texts { open_metrics: bytes.clone(), plain: bytes };
        Some(Arc::new(Reading { at, texts: Ok(texts) }))
    }

    /// Runs a test in a time that passes while all tasks wait.
    fn run(test: impl Future<Output = ()>) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().start_paused(true).build().unwrap().block_on(test);
    }

    #[test]
    fn a_reading_that_never_ends_is_not_waited_for() {
        run(async {
            let (latest, _publish) = published();
            assert_eq!(latest.text(Format::Plain).await, Err(Missing::Late));
        });
    }

    #[test]
    fn old_readings_do_not_count_and_new_ones_are_asked_for_once() {
        run(async {
            let (latest, publish) = published();
            let long_ago = Instant::now().checked_sub(2 * FRESH).unwrap();
            publish.send_replace(reading(long_ago, "old"));
            let scrapes = [(); 3].map(|()| tokio::spawn(latest.clone().text(Format::Plain)));
            latest.wanted.notified().await;
            tokio::task::yield_now().await;
            publish.send_replace(reading(Instant::now(), "new"));
            for scrape in scrapes {
                assert_eq!(scrape.await.unwrap(), Ok(Bytes::from_static(b"new")));
            }
            assert_eq!(latest.text(Format::OpenMetrics).await, Ok(Bytes::from_static(b"new")));
        });
    }

    #[test]
    fn a_failure_is_reported_to_all() {
        run(async {
            let (latest, publish) = published();
            let texts = Err("no /sys".to_owned());
            publish.send_replace(Some(Arc::new(Reading { at: Instant::now(), texts })));
            let failed = Err(Missing::Failed("no /sys".into()));
            assert_eq!(latest.text(Format::Plain).await, failed);
        });
    }
}
