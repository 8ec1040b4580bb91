//! What JavaScript calls, and what it is called for. It writes a request into [`room`], calls
//! [`ask`], and reads the answer; while that runs, [`pull`] brings bytes of files.
//!
//! Bytes cross in memory that Rust owns: no address from outside is ever followed.

// Names: one that JavaScript finds is one for all of C, and so is one of its.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::io::{self, Read};

use serde_json::json;

use crate::Engine;

#[cfg(target_arch = "wasm32")]
#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Writes up to `most` bytes of file `number`, from `at`, to `into`; how many, or -1 if the
    /// browser cannot read it. Positions are floats, as JavaScript has them.
    fn pull(number: usize, at: f64, into: *mut u8, most: usize) -> isize;
}

/// Where there is no browser, there is no file.
#[cfg(not(target_arch = "wasm32"))]
unsafe extern "C" fn pull(_number: usize, _at: f64, _into: *mut u8, _most: usize) -> isize {
    -1
}

/// A file that the browser reads, piece by piece.
struct PageFile {
    number: usize,
    at: f64,
}

impl Read for PageFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // SAFETY: it writes no more than `into` has room for, and keeps no address.
        let count = unsafe { pull(self.number, self.at, into.as_mut_ptr(), into.len()) };
        let count = usize::try_from(count).ok().filter(|count| *count <= into.len());
        let what = "the browser cannot read it; if it has changed or is gone, choose it again";
        let count = count.ok_or_else(|| io::Error::other(what))?;
        self.at += count as f64;
        Ok(count)
    }
}

/// Bytes that the browser reads at once. By a fourth of them, reading takes twice as long.
const PIECE: usize = 4 << 20;

/// What an instance keeps between two calls.
#[derive(Default)]
struct Instance {
    engine: Engine,
    room: Vec<u8>,
    answer: Vec<u8>,
}

thread_local! {
    static INSTANCE: RefCell<Instance> = RefCell::default();
}

/// Room for a request of `bytes` bytes; it is there until the next call.
// SAFETY: no other crate of the page has a symbol of this name.
#[unsafe(no_mangle)]
extern "C" fn room(bytes: usize) -> *mut u8 {
    INSTANCE.with_borrow_mut(|it| {
        it.room.resize(bytes, 0);
        it.room.as_mut_ptr()
    })
}

/// Takes a request, and makes an answer of as many bytes as it returns.
// SAFETY: no other crate of the page has a symbol of this name.
#[unsafe(no_mangle)]
extern "C" fn ask() -> usize {
    INSTANCE.with_borrow_mut(|it| {
        let file = |number| PageFile { number, at: 0.0 };
        let open =
            |number| Box::new(io::BufReader::with_capacity(PIECE, file(number))) as Box<dyn Read>;
        let answer = match it.engine.ask(&it.room, &open) {
            Ok(value) => json!({ "ok": value }),
            Err(error) => json!({ "error": error }),
        };
        it.answer = answer.to_string().into_bytes();
        it.answer.len()
    })
}

/// Where the answer is, until the next call.
// SAFETY: no other crate of the page has a symbol of this name.
#[unsafe(no_mangle)]
extern "C" fn answer() -> *const u8 {
    INSTANCE.with_borrow(|it| it.answer.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_crosses_and_an_answer_comes_back() {
        let unreadable = r#"{"ask":"read","files":["a"]}"#;
        for (request, begins) in [
            ("{", r#"{"error":"#),
            (r#"{"ask":"version"}"#, r#"{"ok":"#),
            (unreadable, r#"{"error":"read a: the browser cannot read it"#),
        ] {
            room(request.len());
            INSTANCE.with_borrow_mut(|it| it.room.copy_from_slice(request.as_bytes()));
            let length = ask();
            INSTANCE.with_borrow(|it| {
                assert_eq!(it.answer.len(), length);
                assert!(it.answer.starts_with(begins.as_bytes()), "{request}");
            });
        }
    }
}
