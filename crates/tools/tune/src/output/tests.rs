use super::*;

/// Whole outputs of the programs, as they print them.
macro_rules! sample {
    ($file:literal) => {
        include_str!(concat!("samples/", $file))
    };
}

fn choose(command: &str, output: &str) -> Result<Measurand, String> {
    Measurand::choose(command, output, None, None)
}

#[test]
fn each_known_program_counts_by_the_figure_that_it_sums_up() {
    use Sense::{Max, Min};
    for (command, output, value, better) in [
        ("netperf -H b -t TCP_RR", sample!("netperf-tcp-rr.txt"), 31546.19, Max),
        ("netperf -t TCP_RR -c -C", sample!("netperf-tcp-rr-cpu.txt"), 23094.86, Max),
        ("/usr/bin/netperf -H b", sample!("netperf-tcp-stream.txt"), 20794.13, Max),
        ("netperf -t UDP_STREAM", sample!("netperf-udp-stream.txt"), 33784.41, Max),
        ("sockperf ping-pong -i b", sample!("sockperf-ping-pong.txt"), 29.088, Min),
        ("sockperf throughput -i b", sample!("sockperf-throughput.txt"), 867_372.0, Max),
        ("ip netns exec x ping -c 5 b", sample!("ping.txt"), 32.0, Min),
        ("ping -f -q b", sample!("ping-flood.txt"), 3.0, Min),
        ("iperf3 -c b", sample!("iperf3.txt"), 16_300.0, Max),
        ("iperf3 -c b -P 2", sample!("iperf3-parallel.txt"), 23_500.0, Max),
        ("iperf3 -c b -J", sample!("iperf3.json"), 24_447_120_588.023_58, Max),
        ("wrk http://b/", sample!("wrk.txt"), 1278.51, Max),
        ("wrk --latency http://b/", sample!("wrk-latency.txt"), 3140.0, Min),
        ("memtier_benchmark -s b", sample!("memtier-benchmark.txt"), 47_777.74, Max),
        ("fio job.fio", sample!("fio.txt"), 46.35, Min),
        ("fio --output-format=json job", sample!("fio.json"), 53.209_739_516, Min),
        ("redis-benchmark -t get", sample!("redis-benchmark.txt"), 89_686.09, Max),
        ("redis-benchmark -q -t get", sample!("redis-benchmark-quiet.txt"), 89_285.71, Max),
    ] {
        let measurand = choose(command, output).unwrap_or_else(|why| panic!("{command}: {why}"));
        assert!((measurand.value - value).abs() < 1e-6 * value, "{command}: {measurand:?}");
        assert_eq!(measurand.better, better, "{command}");
        let words = measurand.in_words();
        assert!(
            !measurand.line.contains(['\n', '\r']) && words.ends_with(&measurand.line),
            "{words}"
        );
        assert_eq!(measurand.read(output), Ok(measurand.value));
    }
}

#[test]
fn no_number_counts_where_it_is_not_clear_which() {
    for (command, output, words) in [
        ("iperf3 -c b --bidir", sample!("iperf3-bidir.txt"), "no number with a line to itself"),
        ("fio job.fio", sample!("fio-randrw.txt"), "several figures of fio: mean latency"),
        ("redis-benchmark --csv", sample!("redis-benchmark-two.csv"), "several figures of redis"),
        ("./bench.sh", sample!("netperf-tcp-rr.txt"), "no number with a line to itself"),
        (
            "ping b; sockperf pp",
            concat!(sample!("ping.txt"), sample!("sockperf-ping-pong.txt")),
            "figures of several programs",
        ),
        ("x", "7 requests in 1.5 seconds\n", "no number with a line to itself"),
        ("x", "1\n2\n", "2 numbers, each on its own line"),
        ("x", "NaN\ninf\n", "no number with a line to itself"),
    ] {
        let why = choose(command, output).unwrap_err();
        assert!(why.contains(words), "{command}: {why}");
    }
    // A program that is known, and an output that is not its own.
    assert_eq!(choose("netperf -P 0 -v 0", "45914.72 \n").unwrap().value, 45_914.72);
    let asked = Some(Sense::Max);
    let why = Measurand::choose("ping b", sample!("ping.txt"), None, asked).unwrap_err();
    assert!(why.contains("mean round trip in us, of which less is better"), "{why}");
}

#[test]
fn a_pattern_or_a_path_names_the_number() {
    let named = |locator: &str, output: &str| {
        let locator: Locator = locator.parse()?;
        Measurand::choose("x", output, Some(&locator), None).map(|measurand| measurand.value)
    };
    let sockperf = sample!("sockperf-ping-pong.txt");
    assert_eq!(named(r"percentile 99\.000 = +([\d.]+)", sockperf), Ok(40.43));
    assert_eq!(
        named(r"99% +(?P<value>[\d.]+)(?P<unit>\w+)", sample!("wrk-latency.txt")),
        Ok(5940.0)
    );
    assert_eq!(
        named(".jobs[0].read.clat_ns.percentile[\"99.000000\"]", sample!("fio.json")),
        Ok(82_432.0)
    );
    // What fio says before its JSON.
    assert_eq!(named(".a[1]", "fio: a note {\n{\"a\": [1, 2.5]}\nbye\n"), Ok(2.5));
    for (locator, output, words) in [
        (r"percentile .* = +([\d.]+)", sockperf, "8 places that"),
        (r"p50=(\d+)", sockperf, "nothing that `p50="),
        (".a.b", "{\"a\": 1}", "JSON without a number at .a.b"),
        (".a.b", "a: 1", "no JSON"),
        (r"took (\w+)", "took long", "`long`, which is no number"),
        (r"took (?P<value>\d+)(?P<unit>\w+)", "took 5h", "`h`, which is no unit"),
        ("p99", "", "put the number into a group"),
        (".a..b", "", "put the number into a group"),
        ("p99: ([0-9", "", "unclosed"),
    ] {
        let why = named(locator, output).unwrap_err();
        assert!(why.contains(words), "{locator}: {why}");
    }
}
