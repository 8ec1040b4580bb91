//! The pairing code: the secret that `earmark serve` and `earmark tune --peer` share.
//!
//! A code is 16 to 32 letters of Crockford's base 32, 5 bits each; those made here have 20, which
//! is 100 random bits. Case, blanks and dashes do not count, and `O`, `I` and `L` are read as the
//! digits that they look like. The letters themselves, padded with zeros, are the pre-shared key of
//! the handshake (`channel`), which derives its keys from it with HKDF.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use rustix::rand::{GetRandomFlags, getrandom};
use sys::files;

pub(crate) const VARIABLE: &str = "EARMARK_CODE";

const LETTERS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Letters of a code that is made here.
const LENGTH: usize = 20;

/// The fewest letters of a code: 80 bits.
const SHORTEST: usize = 16;

/// No file with a code has more bytes.
const LARGEST: u64 = 1 << 10;

const KEY_BYTES: usize = 32;

/// See the module.
#[derive(Clone, PartialEq, Eq)]
pub struct Code(String);

impl Code {
    /// A new code.
    pub fn random() -> Result<Self> {
        let mut bytes = [0; LENGTH];
        let read = getrandom(&mut bytes, GetRandomFlags::empty()).context("read random bytes")?;
        ensure!(read == LENGTH, "read random bytes: {read} came instead of {LENGTH}");
        Ok(Self(bytes.map(|byte| LETTERS[usize::from(byte % 32)] as char).iter().collect()))
    }

    pub(crate) fn from_environment() -> Result<Option<Self>> {
        let Ok(text) = std::env::var(VARIABLE) else { return Ok(None) };
        text.parse().map(Some).map_err(|why: String| anyhow::anyhow!("{VARIABLE}: {why}"))
    }

    /// The code in a file of this user's, or of root's, that its owner alone may read.
    pub fn read(path: &Path) -> Result<Self> {
        let name = path.display();
        let text = files::read_secret(path, LARGEST).with_context(|| {
            format!("read the code in {name}; give a file of your own with the code in it")
        })?;
        text.parse().map_err(|why: String| anyhow::anyhow!("{name}: {why}"))
    }

    /// The code in a file, which is made with a new code if it is not there.
    pub(crate) fn read_or_create(path: &Path) -> Result<Self> {
        let code = Self::random()?;
        match files::create_new(path, format!("{code}\n").as_bytes(), 0o600) {
            Ok(()) => Ok(code),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Self::read(path),
            Err(error) => Err(error).with_context(|| format!("write {}", path.display())),
        }
    }

    /// The key of the handshake.
    pub fn key(&self) -> [u8; KEY_BYTES] {
        let mut key = [0; KEY_BYTES];
        key[..self.0.len()].copy_from_slice(self.0.as_bytes());
        key
    }
}

impl FromStr for Code {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let letters: Option<String> = text
            .trim()
            .chars()
            .filter(|letter| !matches!(letter, '-' | ' '))
            .map(|letter| match letter.to_ascii_uppercase() {
                'O' => Some('0'),
                'I' | 'L' => Some('1'),
                letter => LETTERS.iter().any(|one| *one as char == letter).then_some(letter),
            })
            .collect();
        match letters {
            Some(letters) if (SHORTEST..=KEY_BYTES).contains(&letters.len()) => Ok(Self(letters)),
            _ => Err(format!(
                "no pairing code: {SHORTEST} to {KEY_BYTES} letters and digits, as `earmark serve` \
                 prints them"
            )),
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, letter) in self.0.chars().enumerate() {
            let dash = if at > 0 && at % 4 == 0 { "-" } else { "" };
            write!(f, "{dash}{letter}")?;
        }
        Ok(())
    }
}

/// A secret is not for logs.
impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code")
    }
}

/// Where `earmark tune` and `earmark explain` get their code from.
#[derive(clap::Args, Debug)]
pub struct CodeArgs {
    /// The pairing code that `earmark serve` prints on the far host
    ///
    /// Other users of this host see it in the list of processes; EARMARK_CODE and --code-file do
    /// not show it.
    #[arg(long, value_name = "CODE", requires = "peer")]
    pub code: Option<Code>,
    /// A file that has the code
    #[arg(long, value_name = "FILE", requires = "peer", conflicts_with = "code")]
    pub(crate) code_file: Option<PathBuf>,
}

impl CodeArgs {
    /// The code: that of the command line, of the file, or of the environment.
    pub fn code(&self) -> Result<Code> {
        if let Some(code) = &self.code {
            return Ok(code.clone());
        }
        if let Some(path) = &self.code_file {
            return Code::read(path);
        }
        match Code::from_environment()? {
            Some(code) => Ok(code),
            None => bail!(
                "the far host needs the pairing code that `earmark serve` prints there: give --code, \
                 --code-file or {VARIABLE}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn codes_are_made_at_random_and_kept_from_others() {
        let [one, other] = [0, 1].map(|_| Code::random().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.to_string().parse(), Ok(one.clone()));
        assert!(!format!("{one:?}").contains(&one.0));

        let path = std::env::temp_dir().join(format!("earmark-code-{}", std::process::id()));
        let made = Code::read_or_create(&path).unwrap();
        assert_eq!(Code::read_or_create(&path).unwrap(), made);
        let refusal = || format!("{:#}", Code::read(&path).unwrap_err());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(refusal().contains("chmod 600"), "{}", refusal());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        // As root may, outside of user namespaces.
        if std::os::unix::fs::chown(&path, Some(12_345), None).is_ok() {
            assert!(refusal().ends_with("it belongs to user 12345, not to root"), "{}", refusal());
        }
        std::fs::remove_file(&path).unwrap();
    }
}
