//! Names of the functions in which a program waits.
//!
//! The kernel walks a stack by frame pointers. What is compiled without them, as C libraries mostly
//! are, ends the walk early: then only the innermost functions are there. Names are those of the
//! tables of symbols, without the lines of sources; where a file has none, its name and the offset
//! in it stand for the function.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use blazesym::symbolize::source::{Process, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use flows::record::TracedRequest;

/// The most functions of a stack that are named.
const DEEPEST: usize = 24;

/// The most stacks whose names are kept.
const MOST: usize = 10_000;

/// Stacks by process and number.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    symbolizer: Symbolizer,
    known: HashMap<(u32, u32), Vec<String>>,
}

impl Symbols {
    /// Names the functions of a request's longest block; `addresses` has those of a stack.
    pub(crate) fn name(
        &mut self,
        request: &mut TracedRequest,
        addresses: impl FnOnce(u32) -> Vec<u64>,
    ) {
        let pid = request.program.pid;
        let Some(block) = &mut request.block else { return };
        let Some(stack) = block.stack else { return };
        if self.known.len() >= MOST {
            self.known.clear();
        }
        let symbolizer = &self.symbolizer;
        let known = self.known.entry((pid, stack));
        block.frames = known.or_insert_with(|| names(symbolizer, pid, &addresses(stack))).clone();
    }
}

/// The functions at some addresses of a process, as numbered in this PID namespace; addresses alone
/// if it has ended.
fn names(symbolizer: &Symbolizer, pid: u32, addresses: &[u64]) -> Vec<String> {
    let addresses = &addresses[..addresses.len().min(DEEPEST)];
    let mut process = Process::new(pid.into());
    // Files that were replaced are found all the same.
    process.map_files = true;
    process.perf_map = true;
    let source = Source::Process(process);
    let found = symbolizer.symbolize(&source, Input::AbsAddr(addresses)).unwrap_or_default();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mut found = found.into_iter();
    let name = |address: &u64| match found.next() {
        Some(Symbolized::Sym(symbol)) => symbol.name.into_owned(),
        _ => place(&maps, *address),
    };
    addresses.iter().map(name).collect()
}

/// An address as the name of its file and the offset in it, by `/proc/PID/maps`.
fn place(maps: &str, address: u64) -> String {
    let found = maps.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let (from, offset) = (hex(from)?, hex(words.nth(1)?)?);
        if !(from..hex(to)?).contains(&address) {
            return None;
        }
        let name = Path::new(words.nth(2)?).file_name()?.to_string_lossy().into_owned();
        Some(format!("{name}+{:#x}", address - from + offset))
    });
    found.unwrap_or_else(|| format!("{address:#x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_this_process_are_named() {
        let here = functions_of_this_process_are_named as fn() as usize as u64;
        let found = names(&Symbolizer::default(), std::process::id(), &[here, 8]);
        assert!(found[0].contains("functions_of_this_process_are_named"), "{found:?}");
        assert_eq!(found[1], "0x8");
    }

    #[test]
    fn addresses_without_a_symbol_are_places_in_files() {
        let maps = "7f00-7f90 r-xp 00001000 fd:00 77 /usr/lib/libx.so.1\n8000-9000 rw-p 00000000 00:00 0 \n";
        assert_eq!(place(maps, 0x7f10), "libx.so.1+0x1010");
        assert_eq!((place(maps, 0x8001), place(maps, 0x7f90)), ("0x8001".into(), "0x7f90".into()));
    }
}
