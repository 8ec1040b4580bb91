//! A setting: what a user writes to choose a strategy.
//!
//! `STRATEGY[:rx-usecs]`, as in `disabled`, `delay:75`, `marked:75`, `adaptive`. Parts combine with
//! `+`, each with the number that is natural to it:
//!
//! | written | means |
//! |---|---|
//! | `delay:75`, `throttle:125`, `periodic:128` | that timer, `rx-usecs` |
//! | `quiet:20/75` | `rx-usecs` 20 without a packet, 75 after the first at the latest |
//! | `itr:1`, `itr:3` | a throttle whose gap Intel's driver picks, in its mode 1 or 3 |
//! | `driver` | what the driver of the host wrote into the device's registers |
//! | `frames:32` | at most 32 frames, over `delay` with its usual 75 us |
//! | `throttle:125+frames:32` | the same bound over another timer |
//! | `marked:75`, `stream:75` | Algorithm 1 or 2 over `delay:75` |
//! | `marked+throttle:125`, `stream+adaptive` | the same over another timer |
//! | `lane:75` | what a rule sends to a queue of its own interrupts at once; the rest waits |
//! | `marked:75+gap:20` | a mark interrupts at least 20 us after the interrupt before |

use core::fmt;
use core::str::FromStr;

use base::quantity::{QuantityError, Unit};

use super::{Factory, ItrMode, ModeratorFactory};

/// The longest `rx-usecs`: one second, far beyond any NIC, short of hanging a host by a slip of the
/// keyboard.
pub const MAX_RX_USECS: u32 = 1_000_000;

/// The largest `rx-frames`.
pub const MAX_RX_FRAMES: u32 = 65_535;

/// Which timer an ordinary packet waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimerKind {
    /// None: every packet interrupts.
    Disabled,
    /// A delay after the first packet.
    Delay,
    /// A minimum gap between interrupts.
    Throttle,
    /// A free-running tick.
    Periodic,
    /// A delay that begins anew with each packet, up to a bound.
    Quiet,
    /// A minimum gap that e1000e picks.
    Itr(ItrMode),
    /// What Linux's DIM picks.
    Adaptive,
    /// What the host's driver wrote into the device's registers.
    Driver,
    /// What a moderator from outside of this crate says.
    Custom(Factory),
}

impl TimerKind {
    /// Each once, in its usual mode.
    const ALL: [Self; 8] = [
        Self::Disabled,
        Self::Delay,
        Self::Throttle,
        Self::Periodic,
        Self::Quiet,
        Self::Itr(ItrMode::Conservative),
        Self::Adaptive,
        Self::Driver,
    ];

    /// The word in a setting.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Delay => "delay",
            Self::Throttle => "throttle",
            Self::Periodic => "periodic",
            Self::Quiet => "quiet",
            Self::Itr(_) => "itr",
            Self::Adaptive => "adaptive",
            Self::Driver => "driver",
            Self::Custom(Factory(factory)) => factory.name(),
        }
    }

    /// `rx-usecs` where none is given: Myri-10G's default for `delay`, and those of the e1000 and
    /// bge seeds.
    #[must_use]
    pub const fn usual_rx_usecs(self) -> u32 {
        match self {
            Self::Delay => 75,
            Self::Throttle => 125,
            Self::Periodic => 128,
            Self::Quiet => 20,
            _ => 0,
        }
    }

    /// Whether `rx-usecs` means anything to it.
    const fn takes_rx_usecs(self) -> bool {
        matches!(self, Self::Delay | Self::Throttle | Self::Periodic | Self::Quiet)
    }
}

/// What a marked packet does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Marks {
    /// Nothing: it waits as any other.
    Ignored,
    /// It interrupts as soon as its DMA has completed (`marked`, Algorithm 1).
    Immediate,
    /// It interrupts when no more DMAs are pending (`stream`, Algorithm 2).
    Deferred,
    /// Nothing; but a queue that is for [lanes](crate::lanes) alone interrupts at once (`lane`).
    /// That is a setting of a port: each of its queues has what [`Moderation::of_queue`] makes of
    /// it.
    Lane,
}

/// One setting of a queue's moderation, in the words of `ethtool -c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Moderation {
    /// Which timer ordinary packets wait for.
    pub timer: TimerKind,
    /// Microseconds of the timer; 0 for `disabled`, `itr`, `adaptive`, `driver` and custom timers.
    pub rx_usecs: u32,
    /// Microseconds after the first packet at which `quiet` interrupts all the same; 0 for the
    /// others.
    pub rx_abs_usecs: u32,
    /// Interrupt at this many frames even if the timer has not run out; 0: no such limit.
    pub rx_frames: u32,
    /// What marks do.
    pub marks: Marks,
    /// Microseconds that a mark leaves between the interrupt before and its own; 0: none.
    pub gap_usecs: u32,
}

impl Moderation {
    /// The words that begin a setting.
    pub const STRATEGIES: [&str; 12] = [
        "disabled", "delay", "throttle", "periodic", "quiet", "itr", "adaptive", "driver",
        "frames", "marked", "stream", "lane",
    ];

    /// The bound of `quiet` where none is given, unless its `rx-usecs` are longer: the usual delay.
    pub const USUAL_RX_ABS_USECS: u32 = TimerKind::Delay.usual_rx_usecs();

    /// The gap where `gap` is given without a number.
    pub const USUAL_GAP_USECS: u32 = 20;

    /// `rx-frames` where `frames` is given without a number.
    pub const USUAL_RX_FRAMES: u32 = 32;

    /// One interrupt per packet.
    pub const DISABLED: Self = Self {
        timer: TimerKind::Disabled,
        rx_usecs: 0,
        rx_abs_usecs: 0,
        rx_frames: 0,
        marks: Marks::Ignored,
        gap_usecs: 0,
    };

    /// The strategy whose moderators `factory` makes.
    #[must_use]
    pub const fn custom(factory: &'static dyn ModeratorFactory) -> Self {
        Self { timer: TimerKind::Custom(Factory(factory)), ..Self::DISABLED }
    }

    /// The setting itself, if a NIC can do it.
    ///
    /// # Errors
    /// If a number is out of range, or the parts do not go together.
    pub fn checked(self) -> Result<Self, SettingError> {
        if self.rx_usecs.max(self.rx_abs_usecs).max(self.gap_usecs) > MAX_RX_USECS {
            return Err(SettingError::UsecsTooLong);
        }
        if self.rx_frames > MAX_RX_FRAMES {
            return Err(SettingError::TooManyFrames);
        }
        if self.rx_usecs > 0 && !self.timer.takes_rx_usecs() {
            return Err(SettingError::NoUsecs(self.timer.name()));
        }
        let is_quiet = self.timer == TimerKind::Quiet;
        if is_quiet && self.rx_abs_usecs < self.rx_usecs {
            return Err(SettingError::BoundTooShort);
        }
        let no_timer = self.timer == TimerKind::Disabled;
        if no_timer && (self.marks != Marks::Ignored || self.rx_frames > 0) {
            return Err(SettingError::NothingToHold);
        }
        if self.gap_usecs > 0 && matches!(self.marks, Marks::Ignored | Marks::Lane) {
            return Err(SettingError::NoMarks);
        }
        Ok(Self { rx_abs_usecs: if is_quiet { self.rx_abs_usecs } else { 0 }, ..self })
    }

    /// What one queue does if this is the setting of its port; `is_lane` if it is for lanes alone.
    #[must_use]
    pub fn of_queue(self, is_lane: bool) -> Self {
        match (self.marks, is_lane) {
            (Marks::Lane, true) => Self::DISABLED,
            (Marks::Lane, false) => Self { marks: Marks::Ignored, ..self },
            _ => self,
        }
    }

    /// Whether every packet interrupts as soon as its DMA has completed.
    #[must_use]
    pub const fn is_immediate(&self) -> bool {
        let is_zero = self.timer.takes_rx_usecs() && self.rx_usecs == 0;
        is_zero || self.rx_frames == 1 || matches!(self.timer, TimerKind::Disabled)
    }

    /// The word that `nic show` and tables use for the strategy as a whole.
    #[must_use]
    pub fn strategy(&self) -> &'static str {
        match self.marks {
            Marks::Immediate => "marked",
            Marks::Deferred => "stream",
            Marks::Lane => "lane",
            Marks::Ignored => self.timer.name(),
        }
    }
}

/// Why a setting cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingError {
    /// A word that names no strategy.
    UnknownStrategy,
    /// Something that should be a number is not one.
    NotANumber,
    /// Two timers, two marks or two frame counts in one setting.
    Twice,
    /// `rx-usecs` above [`MAX_RX_USECS`].
    UsecsTooLong,
    /// `rx-frames` above [`MAX_RX_FRAMES`].
    TooManyFrames,
    /// `rx-usecs` for a timer that has none.
    NoUsecs(&'static str),
    /// A mode that `itr` does not have.
    NoMode,
    /// A bound for a timer other than `quiet`.
    NoBound(&'static str),
    /// A bound of `quiet` that is shorter than its `rx-usecs`.
    BoundTooShort,
    /// A gap without marks.
    NoMarks,
    /// Marks or frames over `disabled`, which never holds anything back.
    NothingToHold,
    /// `rx-usecs` or `rx-frames` together with `adaptive-rx on`.
    AdaptiveChooses,
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownStrategy => f.write_str(
                "no such strategy; there are disabled, delay, throttle, periodic, quiet, itr, adaptive, driver, frames, \
                 marked, stream, lane (as in `delay:75`, `quiet:20/75`, `marked:75`, `marked+throttle:125`, \
                 `delay:75+frames:32`, `marked:75+gap:20`)",
            ),
            Self::NotANumber => f.write_str(
                "what follows the colon must be a whole number of microseconds, such as 75 or 75us, or of frames for `frames`",
            ),
            Self::Twice => f.write_str("a setting has one timer, one of marked, stream and lane, and one frames"),
            Self::UsecsTooLong => write!(f, "rx-usecs is at most {MAX_RX_USECS}"),
            Self::TooManyFrames => write!(f, "rx-frames is at most {MAX_RX_FRAMES}"),
            Self::NoUsecs(timer) => {
                write!(f, "`{timer}` takes no rx-usecs; `delay`, `throttle`, `periodic` and `quiet` do")
            }
            Self::NoBound(timer) => {
                write!(f, "`{timer}` takes one number; `quiet:20/75` takes two")
            }
            Self::BoundTooShort => f.write_str(
                "the bound of `quiet` is at least its rx-usecs, as in `quiet:20/75`",
            ),
            Self::NoMode => f.write_str(
                "`itr` has the modes 1 (dynamic) and 3 (conservative); for a rate of your own set \
                 its gap: `throttle:125` is 8000 interrupts a second",
            ),
            Self::NoMarks => {
                f.write_str("a gap is one before marks; it goes with marked or stream, as in `marked:75+gap:20`")
            }
            Self::NothingToHold => f.write_str(
                "marks and rx-frames shorten a wait, and `disabled` never waits; choose a timer such as delay:75",
            ),
            Self::AdaptiveChooses => f.write_str(
                "with adaptive-rx on, the NIC chooses rx-usecs and rx-frames itself; leave them out",
            ),
        }
    }
}

impl core::error::Error for SettingError {}

impl FromStr for Moderation {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        // One that is too large for the type is too large for the setting.
        let number_of = |name: &str, text: &str| {
            let unit = if matches!(name, "frames" | "itr") { Unit::Count } else { Unit::Micros };
            match unit.read_whole(text, 0..=u32::MAX.into()) {
                Ok(number) => Ok(number),
                Err(QuantityError::OutOfRange(..)) => Ok(u32::MAX),
                Err(_) => Err(SettingError::NotANumber),
            }
        };
        let mut timer: Option<(TimerKind, Option<u32>)> = None;
        let mut marks: Option<(Marks, Option<u32>)> = None;
        let (mut frames, mut bound, mut gap) = (None, None, None);
        for part in text.trim().split('+') {
            let (name, numbers) = part.split_once(':').map_or((part, None), |(n, x)| (n, Some(x)));
            let number = |text| number_of(name, text);
            let (first, second) = match numbers.and_then(|numbers| numbers.split_once('/')) {
                Some((first, second)) => (Some(number(first)?), Some(number(second)?)),
                None => (numbers.map(number).transpose()?, None),
            };
            if let Some(second) = second {
                let names =
                    Self::STRATEGIES.into_iter().chain(["gap"]).find(|known| *known == name);
                match names.ok_or(SettingError::UnknownStrategy)? {
                    "quiet" => bound = Some(second),
                    other => return Err(SettingError::NoBound(other)),
                }
            }
            let repeated = match name {
                "marked" => marks.replace((Marks::Immediate, first)).is_some(),
                "stream" => marks.replace((Marks::Deferred, first)).is_some(),
                "lane" => marks.replace((Marks::Lane, first)).is_some(),
                "frames" => frames.replace(first.unwrap_or(Self::USUAL_RX_FRAMES)).is_some(),
                "gap" => gap.replace(first.unwrap_or(Self::USUAL_GAP_USECS)).is_some(),
                _ => {
                    let kind = TimerKind::ALL.into_iter().find(|kind| kind.name() == name);
                    let kind = kind.ok_or(SettingError::UnknownStrategy)?;
                    timer.replace((kind, first)).is_some()
                }
            };
            if repeated {
                return Err(SettingError::Twice);
            }
        }
        let (mut kind, mut timer_usecs) = timer.unwrap_or((TimerKind::Delay, None));
        if let TimerKind::Itr(mode) = &mut kind
            && let Some(number) = timer_usecs.take()
        {
            *mode = ItrMode::of(number).ok_or(SettingError::NoMode)?;
        }
        let (marks, marks_usecs) = marks.unwrap_or((Marks::Ignored, None));
        if timer_usecs.is_some() && marks_usecs.is_some() {
            return Err(SettingError::Twice);
        }
        let rx_usecs = timer_usecs.or(marks_usecs).unwrap_or(kind.usual_rx_usecs());
        Self {
            timer: kind,
            rx_usecs,
            rx_abs_usecs: bound.unwrap_or(Self::USUAL_RX_ABS_USECS.max(rx_usecs)),
            rx_frames: frames.unwrap_or(0),
            marks,
            gap_usecs: gap.unwrap_or(0),
        }
        .checked()
    }
}

impl fmt::Display for Moderation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.marks, self.timer) {
            (Marks::Ignored, _) => f.write_str(self.timer.name())?,
            (_, TimerKind::Delay) => f.write_str(self.strategy())?,
            (_, timer) => write!(f, "{}+{}", self.strategy(), timer.name())?,
        }
        if self.timer.takes_rx_usecs() {
            write!(f, ":{}", self.rx_usecs)?;
        }
        match self.timer {
            TimerKind::Quiet => write!(f, "/{}", self.rx_abs_usecs)?,
            TimerKind::Itr(mode) => write!(f, ":{}", mode.number())?,
            _ => {}
        }
        if self.rx_frames > 0 {
            write!(f, "+frames:{}", self.rx_frames)?;
        }
        if self.gap_usecs > 0 {
            write!(f, "+gap:{}", self.gap_usecs)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn parse(text: &str) -> Result<Moderation, SettingError> {
        text.parse()
    }

    #[test]
    fn display_gives_back_what_was_parsed() {
        for text in [
            "disabled",
            "delay:75",
            "throttle:125",
            "periodic:128",
            "quiet:20/75",
            "marked+quiet:5/5+frames:8",
            "itr:1",
            "marked+itr:3+frames:8+gap:20",
            "adaptive",
            "delay:75+frames:32",
            "throttle:125+frames:8",
            "marked:75",
            "stream:50",
            "marked+throttle:125",
            "stream+adaptive",
            "driver",
            "marked+driver",
            "marked:75+frames:16",
            "marked:75+gap:20",
            "lane:75",
            "lane+throttle:125+frames:8",
            "stream+quiet:5/75+frames:16+gap:1",
        ] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn numbers_left_out_are_the_usual_ones() {
        assert_eq!(parse("delay").unwrap().rx_usecs, 75);
        assert_eq!(
            parse("quiet:0.02ms/75us+frames:2").unwrap(),
            parse("quiet:20/75+frames:2").unwrap()
        );
        assert_eq!(parse("throttle").unwrap().rx_usecs, 125);
        assert_eq!(parse("frames").unwrap().to_string(), "delay:75+frames:32");
        assert_eq!(parse("marked+periodic").unwrap().to_string(), "marked+periodic:128");
        assert_eq!(parse("quiet").unwrap().to_string(), "quiet:20/75");
        assert_eq!(parse("itr").unwrap().to_string(), "itr:3");
        assert_eq!(parse("gap+marked").unwrap().to_string(), "marked:75+gap:20");
        assert_eq!(parse("marked+gap:0").unwrap().to_string(), "marked:75");
        assert_eq!(parse("quiet:200").unwrap().to_string(), "quiet:200/200");
    }

    #[test]
    fn each_queue_has_its_part_of_a_lane() {
        let lane = parse("lane:75+frames:8").unwrap();
        assert_eq!(lane.of_queue(true), Moderation::DISABLED);
        assert_eq!(lane.of_queue(false).to_string(), "delay:75+frames:8");
        for setting in ["marked:75", "delay:75", "disabled"].map(|text| parse(text).unwrap()) {
            assert_eq!(setting.of_queue(true), setting);
        }
    }

    #[test]
    fn impossible_settings_are_refused() {
        assert_eq!(parse("dealy:75"), Err(SettingError::UnknownStrategy));
        assert_eq!(parse(""), Err(SettingError::UnknownStrategy));
        assert_eq!(parse("delay:soon"), Err(SettingError::NotANumber));
        assert_eq!(parse("delay:-1"), Err(SettingError::NotANumber));
        assert_eq!(parse("delay:75ns"), Err(SettingError::NotANumber));
        assert_eq!(parse("frames:8us"), Err(SettingError::NotANumber));
        assert_eq!(parse("delay:75+throttle:10"), Err(SettingError::Twice));
        assert_eq!(parse("marked:75+delay:50"), Err(SettingError::Twice));
        assert_eq!(parse("delay:1000001"), Err(SettingError::UsecsTooLong));
        assert_eq!(parse("delay:99999999999"), Err(SettingError::UsecsTooLong));
        assert_eq!(parse("frames:65536"), Err(SettingError::TooManyFrames));
        assert_eq!(parse("disabled:75"), Err(SettingError::NoUsecs("disabled")));
        assert_eq!(parse("itr:0"), Err(SettingError::NoMode));
        assert_eq!(parse("itr:8000"), Err(SettingError::NoMode));
        assert_eq!(parse("marked:75+itr"), Err(SettingError::NoUsecs("itr")));
        assert_eq!(parse("itr+throttle:5"), Err(SettingError::Twice));
        assert_eq!(parse("quiet:20/19"), Err(SettingError::BoundTooShort));
        assert_eq!(parse("quiet:20/"), Err(SettingError::NotANumber));
        assert_eq!(parse("quiet:20/1000001"), Err(SettingError::UsecsTooLong));
        assert_eq!(parse("delay:20/75"), Err(SettingError::NoBound("delay")));
        assert_eq!(parse("frames:20/75"), Err(SettingError::NoBound("frames")));
        assert_eq!(parse("delay:75+gap:20"), Err(SettingError::NoMarks));
        assert_eq!(parse("gap:20"), Err(SettingError::NoMarks));
        assert_eq!(parse("marked+gap:20+gap:20"), Err(SettingError::Twice));
        assert_eq!(parse("marked+gap:1000001"), Err(SettingError::UsecsTooLong));
        assert_eq!(parse("marked+gap:20/30"), Err(SettingError::NoBound("gap")));
        assert_eq!(parse("marked+disabled"), Err(SettingError::NothingToHold));
        assert_eq!(parse("lane+disabled"), Err(SettingError::NothingToHold));
        assert_eq!(parse("lane:75+gap:20"), Err(SettingError::NoMarks));
        assert_eq!(parse("lane:75+marked"), Err(SettingError::Twice));
    }
}
