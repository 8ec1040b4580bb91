//! Compressed files as streams: gzip, bzip2, xz, zstd.
//!
//! Each may have several members one after the other, as parallel compressors and `cat` make them.

use std::io::{self, BufRead, BufReader, Read};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const GZIP: &[u8] = &[0x1f, 0x8b];
const BZIP2: &[u8] = b"BZh";
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// A frame of zstd that is skipped; parallel compressors begin with one. The first byte has four
/// bits of the user's.
const ZSTD_SKIPPED: [u8; 4] = [0x50, 0x2a, 0x4d, 0x18];

/// Bytes that are unpacked at once.
const PIECE: usize = 1 << 16;

/// What is in a file that may be compressed, as a stream.
///
/// # Errors
/// If its beginning cannot be read.
pub fn plain<'a>(mut file: impl BufRead + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let start = file.fill_buf()?;
    let begins = |magic: &[u8]| start.starts_with(magic);
    Ok(match () {
        () if begins(GZIP) => unpacked(MultiGzDecoder::new(file)),
        () if begins(BZIP2) => unpacked(MultiBzDecoder::new(file)),
        () if begins(XZ) => unpacked(XzReader::new(file, true)),
        () if begins(ZSTD) || is_skipped(start) => unpacked(ZstdFrames::new(file)),
        () => Box::new(file),
    })
}

fn is_skipped(start: &[u8]) -> bool {
    start.len() >= 4 && start[0] & 0xf0 == ZSTD_SKIPPED[0] && start[1..4] == ZSTD_SKIPPED[1..]
}

fn unpacked<'a>(bytes: impl Read + 'a) -> Box<dyn BufRead + 'a> {
    Box::new(BufReader::with_capacity(PIECE, bytes))
}

/// Frames of zstd one after the other, with their checksums.
struct ZstdFrames<R> {
    source: R,
    decoder: FrameDecoder,
    /// Whether a frame has begun and has not ended.
    is_open: bool,
}

impl<R: BufRead> ZstdFrames<R> {
    fn new(source: R) -> Self {
        Self { source, decoder: FrameDecoder::new(), is_open: false }
    }

    /// Begins the next frame; `false`: there is none.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => {
                    self.is_open = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut (&mut self.source).take(length.into()), &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
            }
        }
        Ok(false)
    }

    fn end(&mut self) -> io::Result<()> {
        self.is_open = false;
        let stored = self.decoder.get_checksum_from_data();
        if stored.is_some() && stored != self.decoder.get_calculated_checksum() {
            let what = "a frame of zstd has another checksum than it says";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_open && !self.begin()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            }
            let count = self.decoder.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            self.end()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `hello` and a line feed, compressed by the programs of these names.
    const HELLO: [(&str, &[u8]); 4] =
        [("gzip", &GZ), ("bzip2", &BZ2), ("xz", &XZ_FILE), ("zstd", &ZST)];
    const GZ: [u8; 26] = [
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0xcb, 0x48, 0xcd, 0xc9, 0xc9,
        0xe7, 0x02, 0x00, 0x20, 0x30, 0x3a, 0x36, 0x06, 0x00, 0x00, 0x00,
    ];
    const BZ2: [u8; 42] = [
        0x42, 0x5a, 0x68, 0x39, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, 0xc1, 0xc0, 0x80, 0xe2, 0x00,
        0x00, 0x01, 0x41, 0x00, 0x00, 0x10, 0x02, 0x44, 0xa0, 0x00, 0x30, 0xcd, 0x00, 0xc3, 0x46,
        0x29, 0x97, 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, 0xc1, 0xc0, 0x80, 0xe2,
    ];
    const XZ_FILE: [u8; 64] = [
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00, 0x21,
        0x01, 0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0x01, 0x00, 0x05, 0x68, 0x65, 0x6c,
        0x6c, 0x6f, 0x0a, 0x00, 0x00, 0x00, 0xa5, 0x60, 0x97, 0xf1, 0x94, 0xf6, 0xfd, 0xe0, 0x00,
        0x01, 0x1e, 0x06, 0xc1, 0x2f, 0xa4, 0x1d, 0x1f, 0xb6, 0xf3, 0x7d, 0x01, 0x00, 0x00, 0x00,
        0x00, 0x04, 0x59, 0x5a,
    ];
    const ZST: [u8; 19] = [
        0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58, 0x31, 0x00, 0x00, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x0a,
        0x53, 0x88, 0xbd, 0x91,
    ];

    fn unpack(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut found = Vec::new();
        plain(bytes)?.read_to_end(&mut found)?;
        Ok(found)
    }

    #[test]
    fn each_format_is_unpacked_with_all_of_its_members() {
        for (name, bytes) in HELLO {
            assert_eq!(unpack(bytes).unwrap(), b"hello\n", "{name}");
            assert_eq!(unpack(&[bytes, bytes].concat()).unwrap(), b"hello\nhello\n", "{name}");
        }
        assert_eq!(unpack(b"plain").unwrap(), b"plain");
        // A frame that says nothing, as pzstd writes before each of its own.
        let skipped = [&ZSTD_SKIPPED[..], &[2, 0, 0, 0, 7, 7], &ZST].concat();
        assert_eq!(unpack(&[&skipped[..], &skipped].concat()).unwrap(), b"hello\nhello\n");
    }

    #[test]
    fn what_is_damaged_or_cut_is_an_error() {
        for (name, bytes) in HELLO {
            assert!(unpack(&bytes[..bytes.len() - 2]).is_err(), "{name}, cut");
            let mut damaged = bytes.to_vec();
            let at = damaged.len() - 4;
            damaged[at] ^= 0x10;
            assert!(unpack(&damaged).is_err(), "{name}, damaged");
        }
    }
}
