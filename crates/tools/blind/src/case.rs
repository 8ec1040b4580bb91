//! What is hidden: settings, traffic beside the probes, a decoy, an obstacle.

use std::fmt;

use infer::Length;
use nic::moderation::{Marks, Moderation};

use crate::decoy::Decoy;
use crate::obstacle::Obstacle;
use crate::random::Random;

/// What the probes can do in a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// Answers carry the far host's timestamps: NTP, `earmark echo`.
    Stamped,
    /// Round trips, and packets that ask for no answer.
    Silent,
    /// Round trips alone, as with ICMP.
    Plain,
}

/// What holds packets that one side receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The NIC's setting.
    pub setting: Moderation,
    /// Its kernel defers interrupts.
    pub deferral: Option<Deferral>,
}

/// What NAPI does with `gro_flush_timeout` and `napi_defer_hard_irqs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deferral {
    /// From one poll to the next, in microseconds.
    pub usecs: u32,
    /// How many of them in a row find nothing before interrupts are back.
    pub polls: u32,
}

impl Hold {
    pub(crate) const NONE: Self = Self::of(Moderation::DISABLED);

    const fn of(setting: Moderation) -> Self {
        Self { setting, deferral: None }
    }

    /// A hold of a family that a reader of settings alone does not think of.
    fn draw_newer(random: &mut Random, may_defer: bool) -> Self {
        let usecs = random.whole(10, 500);
        match random.whole(0, if may_defer { 2 } else { 0 }) {
            1 => Self::of(moderation(&format!("marked:{usecs}"))),
            0 => {
                Self::of(moderation(&format!("quiet:{usecs}/{}", usecs + random.whole(10, 1_000))))
            }
            _ => {
                // Beyond the silence before a lone packet, a deferral never ends.
                let polls = random.whole(1, (2_000 / usecs).clamp(1, 20));
                Self { deferral: Some(Deferral { usecs, polls }), ..Self::NONE }
            }
        }
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.deferral {
            Some(Deferral { usecs, polls }) => write!(f, "deferral:{usecs}x{polls}"),
            None => self.setting.fmt(f),
        }
    }
}

/// One hold in so many is of a newer family, and one decoy in so many a newer one.
const NEWER: f64 = 0.25;

/// A case that probes have to find out.
#[derive(Clone, Debug)]
pub struct Case {
    seed: u64,
    pub(crate) kind: ProbeKind,
    /// Answers come when they were asked for: `earmark echo`, but no NTP server.
    pub(crate) waits: bool,
    /// My NIC stamps what it receives.
    pub(crate) nic_stamps: bool,
    pub(crate) theirs: Hold,
    pub(crate) mine: Hold,
    pub(crate) decoy: Option<Decoy>,
    /// Packets a second beside the probes, to either side.
    pub(crate) bulk: f64,
    pub(crate) obstacle: Option<Obstacle>,
    /// Which packets NICs mark, by their length.
    pub(crate) rules: &'static str,
}

impl Case {
    /// The case of a seed: two in three have holds, one in three has a decoy, or both.
    pub fn draw(seed: u64) -> Self {
        let mut random = Random::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0xb11d);
        let kind = match random.whole(0, 9) {
            0..=6 => ProbeKind::Stamped,
            7..=8 => ProbeKind::Silent,
            _ => ProbeKind::Plain,
        };
        let is_decoy = random.is(0.33);
        let (mut theirs, mut mine) = (Moderation::DISABLED, Moderation::DISABLED);
        if !is_decoy {
            // Behind one hold in a round trip a second one does not show; see `infer`.
            match random.whole(0, if kind == ProbeKind::Stamped { 2 } else { 1 }) {
                0 => theirs = hold(&mut random),
                1 => mine = hold(&mut random),
                _ => (theirs, mine) = (hold(&mut random), hold(&mut random)),
            }
        }
        if kind != ProbeKind::Stamped {
            // How a server spaces its answers is not known, so nor is which of them is the last.
            mine.rx_frames = 0;
        }
        let decoy = (is_decoy || random.is(0.15)).then(|| Decoy::draw(&mut random));
        let bulk =
            if !is_decoy && random.is(0.3) { random.between(1_000.0, 10_000.0) } else { 0.0 };
        let waits = kind == ProbeKind::Stamped && random.is(0.5);
        let nic_stamps = random.is(0.5);
        let case = Self { kind, waits, nic_stamps, decoy, bulk, ..Self::held(seed, theirs, mine) };
        case.renewed(true)
    }

    /// The case of a seed with an obstacle: the data may not be able to tell.
    pub fn draw_hindered(seed: u64) -> Self {
        let mut random = Random::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x0b57);
        Self { obstacle: Some(Obstacle::draw(&mut random)), ..Self::draw(seed) }
    }

    /// A case for a live world: stamped, with bulk now and then, and decoys that can be planted.
    pub fn draw_live(seed: u64) -> Self {
        Self::draw_on_hosts(seed, true)
    }

    /// The same for virtual time, where computing takes none, so that no core is ever busy.
    pub fn draw_virtual(seed: u64) -> Self {
        Self::draw_on_hosts(seed, false)
    }

    fn draw_on_hosts(seed: u64, may_be_busy: bool) -> Self {
        let mut random = Random::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x11fe);
        let (mut theirs, mut mine) = (Moderation::DISABLED, Moderation::DISABLED);
        let is_decoy = random.is(0.33);
        if !is_decoy {
            match random.whole(0, 2) {
                0 => theirs = hold(&mut random),
                1 => mine = hold(&mut random),
                _ => (theirs, mine) = (hold(&mut random), hold(&mut random)),
            }
        }
        let slow = Decoy::SlowServer { takes: random.between(10.0, 150.0) };
        let busy = Decoy::BusyCore { share: 0.0, longest: 0.0 };
        let decoys = if may_be_busy { [slow, busy] } else { [slow, slow] };
        let decoy = is_decoy.then(|| random.one(&decoys));
        let bulk = if random.is(0.2) { random.between(500.0, 3_000.0) } else { 0.0 };
        let case = Self { decoy, bulk, ..Self::held(seed, theirs, mine) };
        // Devices of namespaces, which play hosts in real time, have no NAPI to defer anything.
        case.renewed(!may_be_busy)
    }

    /// Holds alone, between hosts whose answers carry timestamps and come at will.
    const fn held(seed: u64, theirs: Moderation, mine: Moderation) -> Self {
        Self {
            seed,
            kind: ProbeKind::Stamped,
            waits: true,
            nic_stamps: false,
            theirs: Hold::of(theirs),
            mine: Hold::of(mine),
            decoy: None,
            bulk: 0.0,
            obstacle: None,
            rules: "",
        }
    }

    /// With some of its holds, and of its decoys, of newer kinds; the rest stays as it was drawn.
    fn renewed(mut self, may_defer: bool) -> Self {
        let mut random = Random::new(self.seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x7e11);
        for hold in [&mut self.theirs, &mut self.mine] {
            let newer = Hold::draw_newer(&mut random, may_defer);
            if random.is(NEWER) && *hold != Hold::NONE {
                *hold = newer;
            }
        }
        self.rules = if random.is(0.5) { "length<=512" } else { "length>512" };
        let gathering = Decoy::draw_gathering(&mut random);
        // What asks for no answer is a kernel's to answer.
        if random.is(NEWER) && self.decoy.is_some() && self.kind != ProbeKind::Silent {
            self.decoy = Some(gathering);
        }
        self
    }

    /// Whether timestamps tell the sides apart.
    pub(crate) fn tells_sides(&self) -> bool {
        self.kind == ProbeKind::Stamped || self.nic_stamps
    }

    /// The seed that it was drawn from.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// What the probes can do.
    pub const fn kind(&self) -> ProbeKind {
        self.kind
    }

    /// The holds of the far and of the near side, for the world that puts them into force.
    pub const fn holds(&self) -> (Hold, Hold) {
        (self.theirs, self.mine)
    }

    /// What is planted, for the world that plants it.
    pub const fn decoy(&self) -> Option<Decoy> {
        self.decoy
    }

    /// Which packets NICs mark, for the world that has them do so.
    pub const fn rules(&self) -> &'static str {
        self.rules
    }

    /// What holds packets of this length where `hold` is in force: a NIC does not hold what it
    /// marks.
    pub(crate) fn of_length(&self, hold: Hold, length: Length) -> Hold {
        let is_marked = (length == Length::Full) == self.rules.contains('>');
        match hold.setting.marks {
            Marks::Immediate if is_marked => Hold::NONE,
            _ => hold,
        }
    }

    /// Packets a second beside the probes.
    pub const fn bulk(&self) -> f64 {
        self.bulk
    }
}

fn hold(random: &mut Random) -> Moderation {
    let usecs = random.whole(0, 1_000);
    let text = match random.whole(0, 5) {
        0 => "disabled".to_owned(),
        _ if usecs == 0 => "disabled".to_owned(),
        1 => format!("delay:{usecs}"),
        2 => format!("throttle:{usecs}"),
        3 => format!("periodic:{usecs}"),
        4 => "adaptive".to_owned(),
        // A limit that a burst of ours reaches before the timer ends.
        _ => match (usecs / 8).min(64) {
            0..2 => format!("delay:{usecs}"),
            most => format!("delay:{usecs}+frames:{}", random.whole(2, most)),
        },
    };
    moderation(&text)
}

fn moderation(text: &str) -> Moderation {
    text.parse().expect("settings are well formed")
}
