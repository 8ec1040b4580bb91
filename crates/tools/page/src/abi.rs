//! What JavaScript calls. It writes into [`room`], calls [`ask`] or [`feed`], and reads the answer.
//!
//! Bytes cross in memory that Rust owns: no address from outside is ever followed.

#![allow(unsafe_code)] // For the names alone: a symbol that JavaScript finds is one for all of C.

use std::cell::RefCell;

use serde_json::{Value, json};

use crate::Engine;

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

/// Room for `bytes` bytes, which the next call takes; it is there until then.
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
    call(Engine::ask)
}

/// Takes the next bytes of the file that was announced; the same otherwise.
// SAFETY: no other crate of the page has a symbol of this name.
#[unsafe(no_mangle)]
extern "C" fn feed() -> usize {
    call(Engine::feed)
}

/// Where the answer is, until the next call.
// SAFETY: no other crate of the page has a symbol of this name.
#[unsafe(no_mangle)]
extern "C" fn answer() -> *const u8 {
    INSTANCE.with_borrow(|it| it.answer.as_ptr())
}

fn call(of: fn(&mut Engine, &[u8]) -> Result<Value, String>) -> usize {
    INSTANCE.with_borrow_mut(|it| {
        let answer = match of(&mut it.engine, &it.room) {
            Ok(value) => json!({ "ok": value }),
            Err(error) => json!({ "error": error }),
        };
        it.answer = answer.to_string().into_bytes();
        it.answer.len()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_crosses_and_an_answer_comes_back() {
        for (request, begins) in [("{", r#"{"error":"#), (r#"{"ask":"version"}"#, r#"{"ok":"#)] {
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
