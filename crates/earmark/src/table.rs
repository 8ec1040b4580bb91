//! Tables for people: one row for each setting, every number with its unit in the header.

use bench::compare::{Comparison, Figure, Ratio, not_measured};
use bench::experiment::{Crowd, MxTerms, Pattern};
use bench::measurement::{Measurement, OneWayDelays, Quantiles};
use bench::one_way;
use bench::ratio::{FIRST, legend};
use report::terminal::{NOTHING, Table, Width, number};

/// All that `earmark bench` prints, in lines of at most `width` columns; with `all_ratios`, a
/// matrix for each figure, too.
#[must_use]
pub(crate) fn of(comparison: &Comparison, all_ratios: bool, width: Width) -> String {
    let Comparison { results: measured, ratios, .. } = comparison;
    let more = comparison.mx.as_ref().map(messages);
    let more = more.or(comparison.crowd.as_ref().map(crowd)).unwrap_or_default();
    let title = format!("{} in the {} world{more}\n", comparison.experiment, comparison.world);
    let mut text = width.wrap(&title) + &results(measured, ratios).fit(width);
    for result in measured {
        if !result.one_way.is_empty() {
            text += &format!("\n\n{}", halves_table(&result.one_way).fit(width));
        }
        if let Some(sentences) = one_way::describe(&result.one_way) {
            text += &format!("\n{}", width.wrap(&sentences));
        }
    }
    if all_ratios && !ratios.is_empty() {
        text += &format!("\n\n{}", matrices(ratios, width));
    }
    text += &width.wrap(&footer(measured, &ratio_legend(measured, ratios)));
    text += &width.wrap(&not_measured(measured.iter()));
    text
}

/// How many hosts there are, and who talks, in words.
fn crowd(crowd: &Crowd) -> String {
    let Crowd { hosts, pattern, processes, workers } = crowd;
    let talk = match pattern {
        Pattern::Incast => "all to one",
        Pattern::AllToAll => "all to all",
    };
    let each = if *processes > 1 { format!(", {processes} processes each") } else { String::new() };
    let servers = if *workers > 1 { format!(", {workers} workers") } else { String::new() };
    format!(": {hosts} hosts, {talk}{each}{servers}")
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

/// A column of the results.
struct Column {
    header: &'static str,
    /// 0 is always shown, the highest is left out first.
    rank: u8,
    cell: fn(&Measurement) -> String,
    /// The figure of [`Ratio`] that it shows, with header and rank of the column of ratios.
    ratio: Option<(Figure, &'static str, u8)>,
}

/// A column that is not compared.
const fn plain(header: &'static str, rank: u8, cell: fn(&Measurement) -> String) -> Column {
    Column { header, rank, cell, ratio: None }
}

impl Column {
    /// The column with the ratios of `figure` beside it.
    const fn compared(mut self, figure: Figure, header: &'static str, rank: u8) -> Self {
        self.ratio = Some((figure, header, rank));
        self
    }
}

/// A ratio is left out before its figure; those of latency and interrupts are left out last.
const COLUMNS: [Column; 22] = [
    plain("min us", 6, |it| latency(it, |quantiles| quantiles.min)),
    plain("p50 us", 0, |it| latency(it, |quantiles| quantiles.p50)).compared(
        Figure::LatencyP50,
        "p50 ratio",
        1,
    ),
    plain("p99 us", 2, |it| latency(it, |quantiles| quantiles.p99)),
    plain("max us", 7, |it| latency(it, |quantiles| quantiles.max)),
    plain("mean us", 6, |it| latency(it, |quantiles| quantiles.mean)),
    plain("half p50", 3, |it| number(it.half_round_trip_us.map(|half| half.p50), 1)),
    plain("answers/s", 3, |it| number(it.transactions_per_s, 0)).compared(
        Figure::Transactions,
        "answers ratio",
        4,
    ),
    plain("Mbit/s", 2, |it| number(it.bulk_bits_per_s.map(|bits| bits / 1e6), 0)).compared(
        Figure::BulkBits,
        "Mbit/s ratio",
        3,
    ),
    plain("datagrams/s", 2, |it| number(it.datagrams_per_s, 0)),
    plain("messages/s", 2, |it| number(it.messages_per_s, 0)).compared(
        Figure::Messages,
        "messages ratio",
        3,
    ),
    plain("MB/s", 2, |it| number(it.message_bytes_per_s.map(|bytes| bytes / 1e6), 1)),
    plain("ints/msg", 4, |it| number(it.interrupts_per_message, 2)).compared(
        Figure::InterruptsPerMessage,
        "ints/msg ratio",
        5,
    ),
    plain("interrupts/s", 0, |it| number(it.interrupts_per_s, 0)).compared(
        Figure::Interrupts,
        "ints ratio",
        1,
    ),
    plain("host busy %", 1, |it| number(it.busiest_host().map(|busy| busy * 100.0), 1)),
    plain("busy-polled %", 2, |it| {
        let part = it.busy_polled.zip(it.packets).map(|(polled, all)| polled as f64 / all as f64);
        number(part.map(|part| part * 100.0), 1)
    }),
    plain("polling cpu", 1, |it| number(it.polling_cpu, 2)),
    plain("pkts/int", 4, |it| number(it.packets_per_interrupt, 1)),
    plain("hold p50", 5, |it| hold(it, |quantiles| quantiles.p50)),
    plain("hold p99", 6, |it| hold(it, |quantiles| quantiles.p99)),
    plain("NIC cpu", 8, |it| number(it.cpu.map(|cpu| cpu.nic), 2)),
    plain("host cpu", 5, |it| number(it.cpu.map(|cpu| cpu.host), 2)),
    plain("rx ns/pkt", 4, |it| number(it.receive_ns_per_packet, 0)),
];

fn latency(result: &Measurement, of: fn(&Quantiles) -> f64) -> String {
    number(result.latency_us.as_ref().map(of), 1)
}

fn hold(result: &Measurement, of: fn(&Quantiles) -> f64) -> String {
    number(result.hold_us.as_ref().map(of), 1)
}

/// A row for each setting, with its ratios to the first one.
fn results(results: &[Measurement], ratios: &[Ratio]) -> Table {
    let each = |of: &dyn Fn(&Measurement) -> String| results.iter().map(of).collect::<Vec<_>>();
    let mut columns = vec![("setting", 0, each(&|it| it.setting.clone()))];
    let clients = |it: &Measurement| it.clients.map_or(NOTHING.into(), |count| count.to_string());
    columns.push(("clients", 0, each(&clients)));
    for column in &COLUMNS {
        columns.push((column.header, column.rank, each(&column.cell)));
        if let Some((figure, header, rank)) = column.ratio
            && differs(figure, ratios)
        {
            let cell = |it: &Measurement| ratio_to_first(figure, it, results, ratios);
            columns.push((header, rank, each(&cell)));
        }
    }
    // A column in which nothing was measured says nothing.
    columns.retain(|(_, _, cells)| cells.iter().any(|cell| cell != NOTHING));
    let mut table = Table::new(columns.iter().map(|(header, rank, _)| (*header, *rank)));
    for row in 0..results.len() {
        table.add_row(columns.iter().map(|(_, _, cells)| cells[row].as_str()));
    }
    table
}

/// Ratios closer to 1 than this in all pairs say only that both settings carried the same load.
const SAME: f64 = 0.02;

/// Whether any two settings differ in `figure`.
fn differs(figure: Figure, ratios: &[Ratio]) -> bool {
    let mut of = ratios.iter().filter(|ratio| ratio.figure == figure);
    of.any(|ratio| (ratio.spread.median - 1.0).abs() > SAME)
}

/// The cell of `result` beside `figure`: the first setting with as many clients is what it is
/// divided by.
fn ratio_to_first(
    figure: Figure,
    result: &Measurement,
    results: &[Measurement],
    ratios: &[Ratio],
) -> String {
    let mut of = ratios.iter().filter(|it| it.figure == figure && it.clients == result.clients);
    let first = &results[0].setting;
    if result.setting == *first {
        // Where nothing could be divided by it, it is no measure of others.
        return of.find(|it| it.to == *first).map_or(NOTHING, |_| FIRST).into();
    }
    let found = of.find(|it| it.of == result.setting && it.to == *first);
    found.map_or(NOTHING.into(), |it| it.spread.cell(result.rounds.len() > 1))
}

/// What the ratios beside the figures are, if there are any.
fn ratio_legend(results: &[Measurement], ratios: &[Ratio]) -> String {
    let compared = COLUMNS.iter().filter_map(|column| column.ratio);
    let shown = compared.filter(|(figure, ..)| differs(*figure, ratios)).count() > 0;
    match results.first() {
        Some(first) if shown => legend(&first.setting, first.rounds.len() > 1) + " ",
        _ => String::new(),
    }
}

fn halves_table(halves: &[OneWayDelays]) -> Table {
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

/// For each figure that differs, a matrix: the row's setting divided by the column's.
fn matrices(ratios: &[Ratio], width: Width) -> String {
    let mut figures: Vec<Figure> = ratios.iter().map(|ratio| ratio.figure).collect();
    figures.dedup();
    let differing = figures.into_iter().filter(|figure| differs(*figure, ratios));
    let matrices = differing.map(|figure| {
        let of: Vec<&Ratio> = ratios.iter().filter(|ratio| ratio.figure == figure).collect();
        matrix(figure, &of).fit(width)
    });
    matrices.collect::<Vec<_>>().join("\n\n")
}

fn matrix(figure: Figure, ratios: &[&Ratio]) -> Table {
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
    let title = format!("{} x that of", figure.title());
    // The first setting is what the others are compared with; those after it may be left out.
    let ranks = (0..=u8::MAX).chain(std::iter::repeat(u8::MAX));
    let mut table =
        Table::new(std::iter::once((title.as_str(), 0)).chain(settings.iter().copied().zip(ranks)));
    for (of, clients) in rows {
        let cell = |to: &&str| {
            let found = ratios.iter().find(|r| r.of == of && r.clients == clients && r.to == **to);
            found.map_or(NOTHING.into(), |r| {
                format!("{:.2} ({:.2}-{:.2})", r.spread.median, r.spread.min, r.spread.max)
            })
        };
        let name = clients.map_or(of.to_owned(), |clients| format!("{of}, {clients} clients"));
        table.add_row(std::iter::once(name).chain(settings.iter().map(cell)));
    }
    table
}

/// What the reader must know to judge the numbers.
fn footer(results: &[Measurement], legend: &str) -> String {
    let Some(first) = results.first() else { return String::new() };
    let environment = &first.environment;
    let timers = results.iter().filter_map(|result| result.timer_overshoot_us.as_ref());
    let overshoot = timers.max_by(|one, other| one.p50.total_cmp(&other.p50)).map_or_else(
        || "no timer ran".to_owned(),
        |over| {
            format!("timers overshot by up to {:.1} us (p50), {:.1} us (p99)", over.p50, over.p99)
        },
    );
    let nic = if environment.nic.is_empty() {
        String::new()
    } else {
        format!(" Driver: {}.", environment.nic)
    };
    let interrupts = match environment.interrupt_latency_us {
        None | Some(0) => String::new(),
        Some(us) => format!(" Interrupts take {us} us."),
    };
    let costs = if environment.costs.is_empty() {
        String::new()
    } else {
        format!(" Costs of a host: {}.", environment.costs)
    };
    // A run in virtual time may last some milliseconds.
    let measured = if first.seconds < 1.0 {
        format!("{:.0} ms", first.seconds * 1e3)
    } else {
        format!("{:.1} s", first.seconds)
    };
    format!(
        "\n\n{legend}NIC waits: {}; {overshoot}.{nic}{interrupts}{costs} Marks: {}. Cable: {}. TCP: {}.\n\
         {}, {measured} for each setting.",
        environment.wait,
        if environment.mark.is_empty() { "nothing" } else { &environment.mark },
        environment.link,
        environment.congestion_control,
        environment.computer(),
    )
}

#[cfg(test)]
mod tests;
