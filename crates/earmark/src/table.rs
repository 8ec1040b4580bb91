//! Tables for people: one row for each setting, every number with its unit in the header.

use bench::compare::{Outcome, Ratio, not_measured};
use bench::experiment::MxTerms;
use bench::halves;
use bench::measurement::{Halves, Measurement, Quantiles};
use report::terminal::{NOTHING, Table, Width, number};

/// All that `earmark bench` prints, in lines of at most `width` columns.
#[must_use]
pub(crate) fn of(outcome: &Outcome, width: Width) -> String {
    let mx = outcome.mx.as_ref().map(messages).unwrap_or_default();
    let title = format!("{} in the {} world{mx}\n", outcome.experiment, outcome.world);
    let mut text = width.wrap(&title) + &results(&outcome.results).fit(width);
    for result in &outcome.results {
        if !result.halves.is_empty() {
            text += &format!("\n\n{}", halves_table(&result.halves).fit(width));
        }
        if let Some(story) = halves::story(&result.halves) {
            text += &format!("\n{}", width.wrap(&story));
        }
    }
    if !outcome.ratios.is_empty() {
        text += &format!("\n\n{}", ratios(&outcome.ratios, width));
    }
    text += &width.wrap(&footer(&outcome.results));
    text += &width.wrap(&not_measured(outcome.results.iter()));
    text
}

/// What messages of MX are like, in words.
fn messages(terms: &MxTerms) -> String {
    let mut text = format!(": messages of {} bytes", terms.size);
    if let Some(in_flight) = terms.in_flight {
        text += &format!(", {in_flight} on their way at once");
    }
    text += &format!(", marks: {}", terms.marks);
    if terms.misorder > 0 {
        text += &format!(", {} frames early", terms.misorder);
    }
    text
}

fn results(results: &[Measurement]) -> Table {
    let clients = results.iter().any(|result| result.clients.is_some());
    let mut headers = vec![("setting", 0)];
    if clients {
        headers.push(("clients", 0));
    }
    headers.extend([
        ("min us", 5),
        ("p50 us", 0),
        ("p99 us", 1),
        ("max us", 6),
        ("mean us", 5),
        ("half p50", 2),
        ("answers/s", 2),
        ("Mbit/s", 1),
        ("datagrams/s", 1),
        ("messages/s", 1),
        ("MB/s", 1),
        ("ints/msg", 3),
        ("interrupts/s", 0),
        ("pkts/int", 3),
        ("hold p50", 4),
        ("hold p99", 5),
        ("NIC cpu", 7),
        ("host cpu", 4),
        ("rx ns/pkt", 3),
    ]);
    let rows: Vec<Vec<String>> = results.iter().map(|result| row(result, clients)).collect();
    // A column in which nothing was measured says nothing.
    let told = |column: &usize| rows.iter().any(|row| row[*column] != NOTHING);
    let columns: Vec<usize> = (0..headers.len()).filter(told).collect();
    let mut table = Table::new(columns.iter().map(|&column| headers[column]));
    for row in &rows {
        table.add_row(columns.iter().map(|&column| row[column].as_str()));
    }
    table
}

fn row(result: &Measurement, clients: bool) -> Vec<String> {
    let latency = |of: fn(&Quantiles) -> f64| number(result.latency_us.as_ref().map(of), 1);
    let hold = |of: fn(&Quantiles) -> f64| number(result.hold_us.as_ref().map(of), 1);
    let mut row = vec![result.setting.clone()];
    if clients {
        row.push(result.clients.map_or(NOTHING.into(), |clients| clients.to_string()));
    }
    row.extend([
        latency(|quantiles| quantiles.min),
        latency(|quantiles| quantiles.p50),
        latency(|quantiles| quantiles.p99),
        latency(|quantiles| quantiles.max),
        latency(|quantiles| quantiles.mean),
        number(result.half_round_trip_us.map(|half| half.p50), 1),
        number(result.transactions_per_s, 0),
        number(result.bulk_bits_per_s.map(|bits| bits / 1e6), 0),
        number(result.datagrams_per_s, 0),
        number(result.messages_per_s, 0),
        number(result.message_bytes_per_s.map(|bytes| bytes / 1e6), 1),
        number(result.interrupts_per_message, 2),
        number(result.interrupts_per_s, 0),
        number(result.packets_per_interrupt, 1),
        hold(|quantiles| quantiles.p50),
        hold(|quantiles| quantiles.p99),
        number(result.cpu.map(|cpu| cpu.nic), 2),
        number(result.cpu.map(|cpu| cpu.host), 2),
        number(result.receive_ns_per_packet, 0),
    ]);
    row
}

fn halves_table(halves: &[Halves]) -> Table {
    let mut table = Table::new([
        ("median us", 0),
        ("round trip", 0),
        ("request half", 1),
        ("response half", 1),
        ("clock offset", 0),
    ]);
    for half in halves {
        let median = |of: Option<Quantiles>| number(of.map(|quantiles| quantiles.p50), 1);
        table.add_row([
            half.setting.clone(),
            median(half.round_trip_us),
            median(half.request_us),
            median(half.response_us),
            median(half.offset_us),
        ]);
    }
    table
}

/// Ratios closer to 1 than this in all pairs say only that both settings carried the same load.
const SAME: f64 = 0.02;

/// For each figure that differs, a matrix: the row's setting divided by the column's.
fn ratios(ratios: &[Ratio], width: Width) -> String {
    let mut figures: Vec<&str> = ratios.iter().map(|ratio| ratio.figure).collect();
    figures.dedup();
    let matrices = figures.into_iter().filter_map(|figure| {
        let of: Vec<&Ratio> = ratios.iter().filter(|ratio| ratio.figure == figure).collect();
        let differs = of.iter().any(|ratio| (ratio.median - 1.0).abs() > SAME);
        differs.then(|| matrix(figure, &of).fit(width))
    });
    matrices.collect::<Vec<_>>().join("\n\n")
}

fn matrix(figure: &str, ratios: &[&Ratio]) -> Table {
    let mut settings: Vec<&str> = Vec::new();
    let mut rows: Vec<(&str, Option<u32>)> = Vec::new();
    for ratio in ratios {
        if !settings.contains(&ratio.to.as_str()) {
            settings.push(&ratio.to);
        }
        if !rows.contains(&(&ratio.of, ratio.clients)) {
            rows.push((&ratio.of, ratio.clients));
        }
    }
    let title = format!("{} x that of", figure.replace('_', " "));
    // The first setting is what the others are compared with; those after it may be left out.
    let ranks = (0..=u8::MAX).chain(std::iter::repeat(u8::MAX));
    let mut table =
        Table::new(std::iter::once((title.as_str(), 0)).chain(settings.iter().copied().zip(ranks)));
    for (of, clients) in rows {
        let cell = |to: &&str| {
            let found = ratios.iter().find(|r| r.of == of && r.clients == clients && r.to == **to);
            found.map_or(NOTHING.into(), |r| format!("{:.2} ({:.2}-{:.2})", r.median, r.min, r.max))
        };
        let name = clients.map_or(of.to_owned(), |clients| format!("{of}, {clients} clients"));
        table.add_row(std::iter::once(name).chain(settings.iter().map(cell)));
    }
    table
}

/// What the reader must know to judge the numbers.
fn footer(results: &[Measurement]) -> String {
    let Some(first) = results.first() else { return String::new() };
    let environment = &first.environment;
    let timers = results.iter().filter_map(|result| result.timer_overshoot_us.as_ref());
    let overshoot = timers.max_by(|one, other| one.p50.total_cmp(&other.p50)).map_or_else(
        || "no timer ran".to_owned(),
        |over| {
            format!("timers overshot by up to {:.1} us (p50), {:.1} us (p99)", over.p50, over.p99)
        },
    );
    let interrupts = match environment.interrupt_latency_us {
        None | Some(0) => String::new(),
        Some(us) => format!(" Interrupts take {us} us."),
    };
    format!(
        "\n\nNIC waits: {}; {overshoot}.{interrupts} Marks: {}. Cable: {}. TCP: {}.\n\
         {} x {}, Linux {}, load {:.2}, {}, {:.1} s for each setting.",
        environment.wait,
        if environment.mark.is_empty() { "nothing" } else { &environment.mark },
        environment.link,
        environment.congestion_control,
        environment.cpus,
        environment.cpu_model,
        environment.kernel,
        environment.load_average,
        environment.privilege,
        first.seconds,
    )
}

#[cfg(test)]
pub(crate) mod tests;
