//! The Wireshark dissector: what tshark reads in frames of every type.

use std::process::Command;

use mx::seq::Seq;
use mx::wire::{
    BITMAP, Body, Connect, ConnectStatus, ETHER_TYPE, Header, Nack, NackReason, Notify, Pull,
    REFUSED, VERSION, write,
};

use crate::support::{Directory, needs, output, run};

const HEADER: Header = Header {
    marked: false,
    crc: false,
    full: false,
    ask: false,
    to: 3,
    from: 200,
    token: 0x0a0b_0c0d,
    seq: Seq(1_000_000),
    ack: Seq(77),
    credit: 4_000_000_000,
    window: 256,
};

const CONNECT: Connect = Connect {
    instance: 0x0123_4567_89ab_cdef,
    token: 0xfeed_beef,
    key: 5,
    version: VERSION,
    mtu: 9000,
    status: ConnectStatus::Accepted,
    crc: true,
};

/// What follows the EtherType, padded as Ethernet does.
fn frame(header: &Header, body: &Body<'_>) -> Vec<u8> {
    let mut frame = vec![0; 1500];
    let length = write(header, body, &mut frame);
    frame.truncate(length.max(46));
    frame
}

/// A capture of frames in the oldest format there is (pcap 2.4, Ethernet).
fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    for frame in frames {
        let length = frame.len() as u32;
        for word in [0, 0, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

/// Frames of Ethernet with this type.
fn ethernet(ether_type: u16, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let header = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &ether_type.to_be_bytes()].concat();
    frames.iter().map(|frame| [&header[..], frame].concat()).collect()
}

/// The values of fields in each of these frames, with more options for tshark.
fn read(frames: &[Vec<u8>], options: &[&str], fields: &str) -> Vec<String> {
    let directory = Directory::new();
    let capture = directory.file("mx.pcap");
    std::fs::write(&capture, pcap(frames)).unwrap();
    let script = directory.write("mx.lua", run(&["mx", "dissector"]).output());
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-X", &format!("lua_script:{script}"), "-r", &capture]);
    tshark.args(["-T", "fields", "-E", "separator=|"]).args(options);
    tshark.args(fields.split(' ').flat_map(|field| ["-e", field]));
    let ended = output(&mut tshark);
    assert!(!ended.stderr.to_lowercase().contains("lua"), "{ended:?}");
    ended.output().lines().map(str::to_owned).collect()
}

/// The values of fields in one frame.
fn read_one(header: &Header, body: &Body<'_>, fields: &str) -> Vec<String> {
    read(&ethernet(ETHER_TYPE, &[frame(header, body)]), &[], fields)
}

#[test]
fn header_and_flags_are_read() {
    needs!("tshark");
    let header = "mx.type mx.flags mx.to mx.from mx.token mx.seq mx.next mx.ack mx.credit \
                  mx.window mx.length";
    let small = "38|0x00|3|200|0x0a0b0c0d|1000000||77|4000000000|256|12";
    assert_eq!(read_one(&HEADER, &Body::Small(1, b"data"), header), [small]);
    // Not numbered: the number is that of the next one.
    let probe = "46|0x00|3|200|0x0a0b0c0d||1000000|77|4000000000|256|0";
    assert_eq!(read_one(&HEADER, &Body::Probe, header), [probe]);
    for number in 0..4 {
        let [marked, ask, full, crc] = [0, 1, 2, 3].map(|it| it == number);
        let header = Header { marked, ask, full, crc, ..HEADER };
        let flags = "mx.flags.mark mx.flags.ask mx.flags.full mx.flags.crc";
        let text = read_one(&header, &Body::Close, flags);
        let yes: Vec<bool> = text[0].split('|').map(|it| it == "1" || it == "True").collect();
        assert_eq!(yes, [marked, ask, full, crc], "{text:?}");
    }
}

#[test]
fn body_of_each_type_is_read() {
    needs!("tshark");
    let pull = Pull {
        region: 6,
        pull: 7,
        offset: 1 << 33,
        wanted: 0xffff_ffff,
        first: 1_000,
        payload: 32_768,
    };
    let cases: [(Body<'_>, &str, &str); 10] = [
        (Body::Ack(&[0b101, 0x80]), "mx.ack.bitmap mx.ack.arrived", "0580|78,80,93"),
        (Body::Ack(&[]), "mx.ack.bitmap mx.data", "|"),
        (
            Body::Connect(CONNECT),
            "mx.connect.instance mx.connect.token mx.connect.key mx.connect.version \
             mx.connect.mtu mx.connect.status mx.connect.crc",
            "0x0123456789abcdef|0xfeedbeef|0x00000005|3|9000|1|1",
        ),
        (Body::Small(0x77, b"hi"), "mx.match mx.data", "0x0000000000000077|6869"),
        (
            Body::Medium { match_info: 0xab, total: 5_000, offset: 1_436, data: b"xyz" },
            "mx.match mx.total mx.offset mx.data",
            "0x00000000000000ab|5000|1436|78797a",
        ),
        (
            Body::Rendezvous { match_info: 9, total: 1 << 40, region: 12, head: b"h" },
            "mx.match mx.total mx.region",
            "0x0000000000000009|1099511627776|12",
        ),
        (
            Body::Pull(pull),
            "mx.region mx.pull mx.offset mx.pull.wanted mx.pull.first mx.pull.payload",
            "6|7|8589934592|0xffffffff|1000|32768",
        ),
        (
            Body::Reply { pull: 7, index: 1_001, data: b"ab" },
            "mx.pull mx.reply.index mx.data",
            "7|1001|6162",
        ),
        (
            Body::Notify(Notify { region: 12, delivered: 1 << 40 }),
            "mx.region mx.notify.delivered mx.refused",
            "12|1099511627776|",
        ),
        (
            Body::Nack(Nack { token: 0x11, reason: NackReason::BadToken }),
            "mx.nack.token mx.nack.reason",
            "0x00000011|2",
        ),
    ];
    for (body, fields, expected) in cases {
        assert_eq!(read_one(&HEADER, &body, fields), [expected], "{body:?}");
        // The checksum is no part of the body.
        assert_eq!(
            read_one(&Header { crc: true, ..HEADER }, &body, fields),
            [expected],
            "{body:?}"
        );
    }
}

#[test]
fn lists_say_what_frames_are_for_and_what_is_wrong_with_them() {
    needs!("tshark");
    let frames = [
        frame(&Header { marked: true, ..HEADER }, &Body::Small(1, b"data")),
        frame(&HEADER, &Body::Connect(CONNECT)),
        frame(&HEADER, &Body::Ack(&[0xff; BITMAP])),
        frame(&HEADER, &Body::Close),
        frame(&HEADER, &Body::Notify(Notify { region: 1, delivered: REFUSED })),
    ];
    let text = read(&ethernet(ETHER_TYPE, &frames), &[], "_ws.col.Protocol _ws.col.Info");
    assert_eq!(
        text,
        [
            "MX|small 200 > 3 marked 4 bytes",
            "MX|connect 200 > 3 accepted",
            "MX|ack 200 > 3 256 beyond",
            "MX|close 200 > 3",
            "MX|notify 200 > 3 region 1, refused",
        ]
    );
    let mut short = frame(&HEADER, &Body::Small(1, b"data"));
    short[23] = 255;
    let mut unknown = short.clone();
    unknown[0] = 45;
    let stub = short[..10].to_vec();
    let text = read(&ethernet(ETHER_TYPE, &[short, unknown, stub]), &[], "_ws.expert.message");
    let shorter = "Frame is shorter than it says";
    assert_eq!(text, [shorter, "Type is unknown", shorter]);
}

#[test]
fn frames_in_udp_are_read_where_the_user_says_so() {
    needs!("tshark");
    let content = frame(&HEADER, &Body::Small(0x77, b"hi"));
    let udp_length = (8 + content.len()) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend((20 + udp_length).to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2]);
    packet.extend([9000_u16, 9000, udp_length, 0].map(u16::to_be_bytes).concat());
    packet.extend(content);
    let frames = ethernet(0x0800, &[packet]);
    assert_eq!(read(&frames, &[], "mx.match"), [""]);
    let decoded = read(&frames, &["-d", "udp.port==9000,mx"], "mx.match");
    assert_eq!(decoded, ["0x0000000000000077"]);
}
