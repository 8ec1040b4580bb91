//! Causes of slow requests, each played in a lab, and whether `earmark explain` names them.
//!
//! ```text
//! causes bench [--only TEXT] [--show]      plays the causes of table.toml; prints JSON
//! causes server PORT KIND [NUMBER]...      serves in a way of its own (server.rs)
//! causes client HOST:PORT SECONDS KIND [NUMBER]...
//! causes sink PORT | flood HOST:PORT BYTES PER_SECOND | bulk HOST:PORT | hog THREADS SECONDS
//! causes filters DEVICE NUMBER             for `tc -batch`: filters for each packet to pass
//! ```

mod bench;
mod client;
mod judge;
mod server;

use std::time::Duration;

use anyhow::{Context, Result, bail};

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| {
        let word = words.get(at).with_context(|| format!("argument {at} is missing"))?;
        word.parse::<u64>().with_context(|| format!("{word} is no number"))
    };
    let text = |at: usize| words.get(at).with_context(|| format!("argument {at} is missing"));
    match text(0)?.as_str() {
        "bench" => bench::run(&words[1..])?,
        "server" => {
            let serve = server::Serve::parse(&words[2..]).context("no such kind of server")?;
            server::run(number(1)? as u16, serve)?;
        }
        "client" => {
            let ask = client::Ask::parse(&words[3..]).context("no such kind of client")?;
            client::run(text(1)?, Duration::from_secs(number(2)?), ask)?;
        }
        "sink" => server::sink(number(1)? as u16)?,
        "flood" => server::flood(text(1)?, number(2)? as usize, number(3)?)?,
        "bulk" => server::bulk(text(1)?)?,
        "filters" => {
            for number in 0..number(2)? {
                let (device, high, low) = (text(1)?, number / 250, number % 250);
                // A priority has room for 4095.
                let priority = 1 + number / 4_000;
                println!(
                    "filter add dev {device} parent ffff: protocol ip prio {priority} u32 match ip src \
                     1.2.{high}.{low}/32 classid 1:1"
                );
            }
        }
        "hog" => {
            let length = Duration::from_secs(number(2)?);
            let hogs = (0..number(1)?).map(|_| std::thread::spawn(move || server::compute(length)));
            for hog in hogs.collect::<Vec<_>>() {
                hog.join().ok().context("a thread has panicked")?;
            }
        }
        other => bail!("there is no {other}; the head of main.rs lists all"),
    }
    Ok(())
}
