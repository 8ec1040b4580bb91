//! What was read last, and reading again when somebody asks.

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
    /// When it began.
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

/// Why there is no text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// The devices could not be read.
    Failed(String),
    /// They are being read for too long.
    Late,
}

impl Latest {
    /// The text of a reading that began a second ago at most, or later.
    pub(super) async fn text(mut self, format: Format) -> Result<Bytes, Missing> {
        let asked = Instant::now();
        let is_new = |reading: &Option<Arc<Reading>>| {
            reading.as_ref().is_some_and(|it| it.at + FRESH > asked)
        };
        if !is_new(&self.readings.borrow()) {
            self.wanted.notify_one();
        }
        let found = timeout(WITHIN, self.readings.wait_for(is_new)).await;
        let Ok(Ok(reading)) = found else { return Err(Missing::Late) };
        let Some(reading) = reading.clone() else { return Err(Missing::Late) };
        match (&reading.texts, format) {
            (Ok(texts), Format::OpenMetrics) => Ok(texts.open_metrics.clone()),
            (Ok(texts), Format::Plain) => Ok(texts.plain.clone()),
            (Err(why), _) => Err(Missing::Failed(why.clone())),
        }
    }
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
