//! Netlink attributes: type, length, value, and attributes within values.
//!
//! Layout: `struct nlattr` of Linux, `include/uapi/linux/netlink.h`. Length and type are 16 bits
//! each in the byte order of the machine; the length counts these four bytes, and attributes are
//! padded to four.

const HEADER: usize = 4;
/// The bits of a type that are not flags (`NLA_TYPE_MASK`).
const TYPE: u16 = 0x3fff;
/// The flag of attributes that hold attributes (`NLA_F_NESTED`).
const NESTED: u16 = 0x8000;

/// Bytes from the kernel that are not what its headers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// An attribute or message says it is shorter than its own header, or longer than what is left.
    #[error("{claimed} bytes are claimed where {left} are left")]
    Length {
        /// What it says.
        claimed: usize,
        /// What there is, in bytes.
        left: usize,
    },
    /// A value is not of the size of its type.
    #[error("attribute {kind} has {length} bytes, which is not the size of its type")]
    Value {
        /// The type of the attribute.
        kind: u16,
        /// The size of its value, in bytes.
        length: usize,
    },
    /// The message lacks an attribute without which it says nothing.
    #[error("attribute {kind} is missing")]
    Missing {
        /// The type of the attribute.
        kind: u16,
    },
}

/// An attribute of a netlink message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tlv<'a> {
    /// Its type, without flags.
    pub kind: u16,
    /// Its value, without padding.
    pub value: &'a [u8],
}

impl<'a> Tlv<'a> {
    /// A whole number of 8, 16, 32 or 64 bits: the kernel's `uint` may be any of the last two.
    pub fn number(&self) -> Result<u64, Malformed> {
        match *self.value {
            [a] => Ok(a.into()),
            [a, b] => Ok(u16::from_ne_bytes([a, b]).into()),
            [a, b, c, d] => Ok(u32::from_ne_bytes([a, b, c, d]).into()),
            [a, b, c, d, e, f, g, h] => Ok(u64::from_ne_bytes([a, b, c, d, e, f, g, h])),
            _ => Err(self.wrong()),
        }
    }

    /// A whole number that fits 32 bits.
    pub fn word(&self) -> Result<u32, Malformed> {
        u32::try_from(self.number()?).map_err(|_| self.wrong())
    }

    /// Text up to its terminating zero, if there is one; what is not UTF-8 is replaced.
    pub fn text(&self) -> String {
        let text = self.value.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    /// The attributes within.
    pub fn nested(&self) -> Tlvs<'a> {
        Tlvs(self.value)
    }

    fn wrong(&self) -> Malformed {
        Malformed::Value { kind: self.kind, length: self.value.len() }
    }
}

/// Attributes one after the other. It ends after the first that is malformed.
#[derive(Clone, Copy, Debug)]
pub struct Tlvs<'a>(&'a [u8]);

impl<'a> Tlvs<'a> {
    /// The attributes in these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Those of one type.
    pub fn of_kind(self, kind: u16) -> Result<Vec<Tlv<'a>>, Malformed> {
        let is_one = |it: &Result<Tlv<'_>, _>| it.as_ref().map_or(true, |tlv| tlv.kind == kind);
        self.filter(is_one).collect()
    }

    /// What they say together.
    pub fn read<R: Reply>(self) -> Result<R, Malformed> {
        let mut reply = R::default();
        for attribute in self {
            reply.take(&attribute?)?;
        }
        Ok(reply)
    }
}

/// What an answer of the kernel says, made of its attributes one by one.
pub trait Reply: Default {
    /// Takes an attribute; one that is not known is passed over.
    fn take(&mut self, attribute: &Tlv<'_>) -> Result<(), Malformed>;
}

/// Reads the attributes of an answer.
pub fn parse<R: Reply>(attributes: &[u8]) -> Result<R, Malformed> {
    Tlvs::new(attributes).read()
}

impl<'a> Iterator for Tlvs<'a> {
    type Item = Result<Tlv<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = std::mem::take(&mut self.0);
        if bytes.is_empty() {
            return None;
        }
        let [a, b, c, d, ..] = *bytes else {
            return Some(Err(Malformed::Length { claimed: HEADER, left: bytes.len() }));
        };
        let length = usize::from(u16::from_ne_bytes([a, b]));
        let kind = u16::from_ne_bytes([c, d]) & TYPE;
        let Some(value) = bytes.get(HEADER..length) else {
            return Some(Err(Malformed::Length { claimed: length, left: bytes.len() }));
        };
        // The last one may lack its padding.
        self.0 = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Ok(Tlv { kind, value }))
    }
}

/// Attributes as they are written.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Appends an attribute.
    ///
    /// # Panics
    /// If the value has more than 65,531 bytes. What this crate writes are numbers and names, which
    /// it has looked at.
    pub fn put(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        let length = u16::try_from(HEADER + value.len()).expect("a number or a short name");
        self.bytes.extend(length.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(value);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    /// Appends a number of 8 bits.
    pub fn put_u8(&mut self, kind: u16, value: u8) -> &mut Self {
        self.put(kind, &[value])
    }

    /// Appends a number of 32 bits.
    pub fn put_u32(&mut self, kind: u16, value: u32) -> &mut Self {
        self.put(kind, &value.to_ne_bytes())
    }

    /// Appends a number of 64 bits.
    pub fn put_u64(&mut self, kind: u16, value: u64) -> &mut Self {
        self.put(kind, &value.to_ne_bytes())
    }

    /// Appends text with its terminating zero.
    pub fn put_text(&mut self, kind: u16, value: &str) -> &mut Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.put(kind, &bytes)
    }

    /// Appends an attribute that holds attributes.
    pub fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let mut inner = Self::default();
        fill(&mut inner);
        self.put(kind | NESTED, &inner.bytes)
    }

    /// All that was written, padding included.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<Tlv<'_>>, Malformed> {
        Tlvs::new(bytes).collect()
    }

    #[test]
    fn values_of_a_wrong_size_are_refused_and_text_never() {
        let odd = Tlv { kind: 9, value: &[1, 2, 3] };
        assert_eq!(odd.number(), Err(Malformed::Value { kind: 9, length: 3 }));
        assert_eq!(
            Tlv { kind: 9, value: &[] }.number(),
            Err(Malformed::Value { kind: 9, length: 0 })
        );
        assert_eq!(Tlv { kind: 9, value: &[0xff, b'a', 0, b'b'] }.text(), "\u{fffd}a");
        assert_eq!(Tlv { kind: 9, value: &[] }.text(), "");
    }

    #[test]
    fn last_attribute_without_its_padding_is_read() {
        let bytes = [5, 0, 1, 0, 42];
        assert_eq!(read(&bytes).unwrap(), [Tlv { kind: 1, value: &[42] }]);
    }
}
