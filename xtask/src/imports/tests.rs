//! Small crates made up of a few files.

use std::collections::BTreeMap;

use super::graph::Names;
use super::*;

/// A crate of files, by name and text.
fn imports(files: &[(&str, &str)]) -> Imports {
    let find = |path: &Path| {
        let file = files.iter().find(|(name, _)| Path::new("src").join(name) == path);
        Ok(file.map(|(_, text)| (*text).to_owned()))
    };
    read_with(Path::new("src/lib.rs"), &find).unwrap()
}

/// Its imports as `from -> to: names`.
fn edges(files: &[(&str, &str)]) -> Vec<String> {
    let imports = imports(files);
    let edge = |(&(from, to), names): (&(usize, usize), &Names)| {
        let names: Vec<_> = names.keys().map(String::as_str).collect();
        format!("{} -> {}: {}", imports.files[from], imports.files[to], names.join(" "))
    };
    let mut edges: Vec<_> = imports.edges.iter().map(edge).collect();
    edges.sort();
    edges
}

#[test]
fn modules_and_re_exports_are_no_imports() {
    let files = [("lib.rs", "mod a; pub use a::A;"), ("a.rs", "pub struct A;")];
    assert_eq!(edges(&files), [""; 0]);
}

#[test]
fn an_import_leads_to_the_file_that_defines_the_name() {
    let files = [
        ("lib.rs", "mod a; mod b; pub use a::deep::{A as Renamed, f};"),
        ("a/mod.rs", "pub mod deep;"),
        ("a/deep.rs", "pub struct A; pub fn f() {}"),
        ("b.rs", "use crate::Renamed; fn g() { super::f() }"),
    ];
    assert_eq!(edges(&files), ["b.rs -> a/deep.rs: A f"]);
}

#[test]
fn trees_super_self_and_aliases_of_modules_are_followed() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; pub struct Root;"),
        ("a.rs", "pub struct A; pub enum E { V }"),
        ("b.rs", "use super::{a::{self as first, A}, Root}; fn f() { let _ = first::E::V; }"),
        ("c.rs", "mod d; fn f(_: d::D) { self::d::g() }"),
        ("c/d.rs", "use super::super::a::E; pub struct D; pub fn g() {}"),
    ];
    let expected =
        ["b.rs -> a.rs: A E", "b.rs -> lib.rs: Root", "c.rs -> c/d.rs: D g", "c/d.rs -> a.rs: E"];
    assert_eq!(edges(&files), expected);
}

#[test]
fn a_re_export_that_its_own_file_uses_is_an_import() {
    let files = [
        ("lib.rs", "mod a; pub use a::A; fn f(_: A) {}"),
        ("a.rs", "use crate::B as _; pub struct A;"),
    ];
    assert_eq!(edges(&files), ["a.rs -> lib.rs: B", "lib.rs -> a.rs: A"]);
}

#[test]
fn globs_macros_and_names_that_macros_make_are_followed() {
    let files = [
        ("lib.rs", "#[macro_use] mod a; mod b; mod c; pub use c::*;"),
        ("a.rs", "macro_rules! say { () => { $crate::c::C } } make! { pub struct Made; }"),
        ("b.rs", "use crate::C; fn f() { say!(); println!(\"{}\", crate::a::Made); }"),
        ("c.rs", "pub struct C;"),
    ];
    let expected = ["a.rs -> c.rs: C", "b.rs -> a.rs: Made say", "b.rs -> c.rs: C"];
    assert_eq!(edges(&files), expected);
}

#[test]
fn tests_and_other_crates_do_not_count() {
    let files = [
        ("lib.rs", "mod a; mod b; pub use std::fmt; pub struct Root;"),
        (
            "a.rs",
            "#[cfg(test)] mod tests { use super::super::Root; } #[cfg(test)] use crate::Root;\n\
             #[cfg(all(test, unix))] fn f() { crate::b::g() } struct A;\n\
             impl A { #[cfg(test)] fn h() { crate::b::g() } }",
        ),
        ("b.rs", "use std::a; use crate::fmt; pub fn g() { fmt::format(); serde::a::A }"),
    ];
    assert_eq!(edges(&files), [""; 0]);
}

#[test]
fn files_are_found_below_their_modules_and_at_their_paths() {
    let files = [
        ("lib.rs", "mod a; mod inline { mod b; } #[path = \"elsewhere/c.rs\"] mod other;"),
        ("a/mod.rs", "mod d;"),
        ("a/d.rs", "use crate::other::C;"),
        ("inline/b.rs", "use super::super::other::C;"),
        ("elsewhere/c.rs", "pub struct C;"),
    ];
    let expected = ["a/d.rs -> elsewhere/c.rs: C", "inline/b.rs -> elsewhere/c.rs: C"];
    assert_eq!(edges(&files), expected);
}

#[test]
fn a_module_without_a_file_and_a_file_that_is_no_rust_are_errors() {
    let with = |text: &str| {
        let text = text.to_owned();
        let find = move |path: &Path| Ok((path == Path::new("lib.rs")).then(|| text.clone()));
        read_with(Path::new("lib.rs"), &find).unwrap_err().to_string()
    };
    assert!(with("mod gone;").contains("declares gone"));
    assert!(with("fn (").contains("parsing lib.rs"));
}

#[test]
fn a_cycle_has_all_its_files_and_a_shortest_way_round() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use crate::c::C;\npub struct B;"),
        ("c.rs", "use crate::a::A; use crate::d::D; pub struct C;"),
        ("d.rs", "use crate::{\n c::C\n}; pub struct D;"),
    ];
    let found = cycles(&imports(&files));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].files, ["a.rs", "b.rs", "c.rs", "d.rs"]);
    let mut steps: Vec<_> = found[0].steps.iter().collect();
    steps.sort_by_key(|step| &step.from);
    let [first, second] = steps[..] else { panic!("{steps:?}") };
    assert_eq!((&first.from[..], &first.to[..]), ("c.rs", "d.rs"));
    assert_eq!((&second.from[..], &second.to[..]), ("d.rs", "c.rs"));
    assert_eq!(second.names, BTreeMap::from([("C".to_owned(), 2)]));
}

#[test]
fn files_that_import_in_one_direction_are_no_cycle() {
    let files = [
        ("lib.rs", "mod a; mod b; use a::A; use b::B;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "pub struct B; fn f() { self::f() }"),
    ];
    assert_eq!(cycles(&imports(&files)), []);
}
