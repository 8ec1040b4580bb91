use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;

/// A directory that goes away with this value.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("earmark-files-{:x}", crate::seed::seed()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn link(&self, name: &str, target: impl AsRef<Path>) -> PathBuf {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, &path).unwrap();
        path
    }

    fn pipe(&self, name: &str) -> PathBuf {
        let path = self.at(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    fn names(&self) -> Vec<String> {
        let names = Directory::open(&self.0).unwrap().names(100).unwrap();
        names.into_iter().map(|name| name.into_string().unwrap()).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[track_caller]
fn refused<T>(outcome: io::Result<T>) -> String {
    outcome.map(drop).unwrap_err().to_string()
}

const OTHER: u32 = 12_345;

/// Gives a file or a link to another user, if this one may: root may, outside of user namespaces.
fn give_away(path: &Path) -> bool {
    lchown(path, Some(OTHER), None).is_ok()
}

#[test]
fn only_regular_files_of_bounded_size_are_read() {
    let place = Scratch::new();
    let file = place.file("text", "12345");
    assert_eq!(read_text(&file, 5).unwrap(), "12345");
    assert_eq!(read(&place.link("link", &file), 5).unwrap(), b"12345");
    assert_eq!(refused(read_text(&file, 4)), "it is larger than 4 bytes");
    assert_eq!(refused(read_text(&place.0, 9)), "it is a directory, and no file");
    let pipe = place.pipe("pipe");
    for path in [Path::new("/dev/zero"), &pipe, &place.link("zero", "/dev/zero")] {
        assert_eq!(refused(read_text(path, 9)), "it is a device or a pipe, and no file");
    }
    // Their size is 0 until they are read.
    assert_eq!(refused(read(Path::new("/proc/self/maps"), 9)), "it is larger than 9 bytes");
    assert_eq!(refused(read_text_from(io::repeat(b'x'), 9)), "it is larger than 9 bytes");
    assert_eq!(refused(read_text_from(&[0xff][..], 9)), "it is no text in UTF-8");
    assert_eq!(read_text(&place.at("none"), 9).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn own_files_are_those_that_others_cannot_write() {
    let place = Scratch::new();
    let file = place.file("text", "12345");
    let directory = Directory::open(&place.0).unwrap();
    assert_eq!(directory.read_own("text", 5).unwrap(), "12345");
    directory.check_own().unwrap();
    let open = fs::Permissions::from_mode(0o666);
    fs::set_permissions(&file, open).unwrap();
    let refusal = refused(directory.read_own("text", 5));
    assert!(refusal.ends_with(&format!("type: chmod go-w {}", file.display())), "{refusal}");
    assert!(refused(read_secret(&file, 5)).starts_with("others may read it"));
    fs::set_permissions(&place.0, fs::Permissions::from_mode(0o1777)).unwrap();
    assert!(refused(directory.check_own()).starts_with("others may write to it"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(read_secret(&file, 5).unwrap(), "12345");
    if give_away(&file) && give_away(&place.0) {
        let why = "it belongs to user 12345, not to root";
        assert_eq!(refused(read_secret(&file, 5)), why);
        assert_eq!(refused(directory.read_own("text", 5)), why);
        assert_eq!(refused(directory.check_own()), why);
    }
}

#[test]
fn files_of_a_directory_are_no_links() {
    let place = Scratch::new();
    place.link("link", place.file("text", "12345"));
    place.pipe("pipe");
    let directory = Directory::open(&place.0).unwrap();
    assert_eq!(refused(directory.read_own("link", 5)), "it is a link, and no file");
    assert!(directory.lock_file("link").is_err() && directory.lock_file("pipe").is_err());
    directory.lock_file("lock").unwrap();
    assert_eq!(mode(&place.at("lock")), 0o600);
    assert_eq!(refused(directory.names(3)), "it has more than 3 files");
    // What was left there is no way to another file.
    place.link("beside", place.at("text"));
    directory.new_file_as("beside", "link").unwrap().finish().unwrap();
    assert_eq!((text(&place.at("text")), text(&place.at("link"))), ("12345".into(), "".into()));
    assert_eq!(place.names(), ["link", "lock", "pipe", "text"]);
    let below = Directory::open_or_make(&place.at("a/b")).unwrap();
    below.write("c", b"1", 0o640).unwrap();
    assert_eq!((mode(&place.at("a")) & 0o722, mode(&place.at("a/b/c"))), (0o700, 0o640));
    below.remove("c").unwrap();
    assert_eq!(below.remove("c").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_file_is_replaced_as_a_whole_and_keeps_its_permissions() {
    let place = Scratch::new();
    let file = place.at("page");
    write(&file, b"one").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    fs::hard_link(&file, place.at("other name")).unwrap();
    write(&file, b"two").unwrap();
    assert_eq!((text(&file).as_str(), mode(&file)), ("two", 0o640));
    assert_eq!(text(&place.at("other name")), "one");
    write_with(&file, b"three", Some(0o604)).unwrap();
    assert_eq!((text(&file).as_str(), mode(&file)), ("three", 0o604));
    let mut reader = fs::File::open(&file).unwrap();
    create(&file).unwrap().write_all(b"four").unwrap();
    let mut before = String::new();
    reader.read_to_string(&mut before).unwrap();
    assert_eq!((before.as_str(), text(&file).as_str()), ("three", "four"));
    create_new(&place.at("code"), b"secret", 0o600).unwrap();
    assert_eq!(mode(&place.at("code")), 0o600);
    let again = create_new(&place.at("code"), b"other", 0o600);
    assert_eq!(again.unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(place.names(), ["code", "other name", "page"]);
    assert!(refused(write(&place.0, b"x")).starts_with("it is a directory"));
    assert_eq!(write(&place.at("no/x"), b"x").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn devices_pipes_and_own_links_are_written_to() {
    let place = Scratch::new();
    let file = place.file("text", "old");
    let link = place.link("link", "text");
    write(&link, b"new").unwrap();
    assert_eq!(text(&file), "new");
    write(&place.link("to be", "made"), b"made").unwrap();
    assert_eq!(text(&place.at("made")), "made");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    write(Path::new("/dev/null"), b"x").unwrap();
    let null = fs::metadata("/dev/null").unwrap();
    assert!(!null.is_file());
    // As /dev/stdout is, in a pipeline and with a file.
    let (mut reader, writer) = io::pipe().unwrap();
    let stdout = place.link("stdout", format!("/proc/self/fd/{}", writer.as_raw_fd()));
    writable(&stdout, 9).unwrap();
    write(&stdout, b"piped").unwrap();
    drop(writer);
    let mut piped = String::new();
    reader.read_to_string(&mut piped).unwrap();
    assert_eq!(piped, "piped");
    let output = fs::File::options().write(true).open(&file).unwrap();
    write(Path::new(&format!("/proc/self/fd/{}", output.as_raw_fd())), b"in place").unwrap();
    assert_eq!(text(&file), "in place");
    writable(&place.pipe("pipe"), 9).unwrap();
}

#[test]
fn what_can_be_written_is_found_out_early() {
    let place = Scratch::new();
    let file = place.file("text", "12345");
    writable(&file, 100).unwrap();
    writable(&place.at("new"), 100).unwrap();
    writable(Path::new("/dev/null"), 100).unwrap();
    assert_eq!(text(&file), "12345");
    assert_eq!(place.names(), ["text"]);
    assert!(writable(&place.0, 0).is_err() && writable(&place.at("no/x"), 0).is_err());
    assert!(writable(Path::new("/dev/full"), 1).is_err());
}

#[test]
fn no_link_of_another_user_leads_to_what_is_written() {
    let place = Scratch::new();
    let file = place.file("out/text", "precious");
    let targets =
        [("link", file.clone()), ("way", place.at("out")), ("proc", "/proc/self/cwd".into())];
    let links = targets.map(|(name, target)| place.link(name, target));
    if !links.iter().all(|link| give_away(link)) {
        return;
    }
    for path in ["link", "way/text", "way/new", "proc/new", "out/../way/text"] {
        let path = place.at(path);
        for refusal in [
            refused(write(&path, b"x")),
            refused(create(&path)),
            refused(create_new(&path, b"x", 0o600)),
            refused(writable(&path, 1)),
        ] {
            let exists = refusal.contains("File exists") && path.ends_with("link");
            assert!(refusal.contains("is a link of user 12345") || exists, "{refusal}");
        }
    }
    assert!(Directory::open_or_make(&place.at("way/new")).is_err());
    assert!(Tree::at(place.at("way")).write("text", "x", 0o644).is_err());
    assert_eq!(text(&file), "precious");
    assert_eq!(fs::read_dir(place.at("out")).unwrap().count(), 1);
}

#[test]
fn nothing_leads_out_of_a_tree() {
    let place = Scratch::new();
    let victim = place.file("victim", "precious");
    fs::create_dir(place.at("outside")).unwrap();
    let tree = Tree::at(place.at("tree"));
    assert_eq!(tree.read_text("/etc/a", 9).unwrap(), None);
    tree.write("/etc/a", "1", 0o755).unwrap();
    assert_eq!(
        (text(&place.at("tree/etc/a")).as_str(), mode(&place.at("tree/etc/a"))),
        ("1", 0o755)
    );
    for (name, target) in [
        ("etc/victim", victim.clone()),
        ("etc/up", "../../victim".into()),
        ("etc/out", place.at("outside")),
        ("etc/out up", "../../outside".into()),
        ("etc/loop", "loop".into()),
        ("etc/zero", "/dev/zero".into()),
        ("etc/root", "/proc/self/root".into()),
    ] {
        place.link(&format!("tree/{name}"), target);
    }
    for name in ["victim", "up", "loop", "zero", "out/a", "root/a"] {
        let refusal = refused(tree.read_text(&format!("etc/{name}"), 9));
        assert!(refusal.contains("leads nowhere") || refusal.contains("symbolic"), "{refusal}");
    }
    for name in ["out/a", "out up/a", "loop/a", "root/a"] {
        refused(tree.write(&format!("etc/{name}"), "x", 0o644));
    }
    assert_eq!(fs::read_dir(place.at("outside")).unwrap().count(), 0);
    // The link itself is replaced, or removed.
    tree.write("etc/victim", "x", 0o644).unwrap();
    tree.remove("etc/up").unwrap();
    assert_eq!(
        (text(&victim), text(&place.at("tree/etc/victim"))),
        ("precious".into(), "x".into())
    );
    place.pipe("tree/etc/pipe");
    assert!(refused(tree.read_text("etc/pipe", 9)).contains("a pipe"));
    assert!(refused(tree.read_text("etc/victim", 0)).contains("larger than 0"));
}

#[test]
fn links_within_a_tree_are_followed_as_after_chroot() {
    let place = Scratch::new();
    let tree = Tree::at(place.at("tree"));
    tree.write("run/x/a", "1", 0o644).unwrap();
    place.link("tree/etc/absolute", "/run/x");
    place.link("tree/etc/relative", "../../../run/x/a");
    place.link("tree/etc/hidden", "/dev/null");
    let read = |path| tree.read_text(path, 9).unwrap();
    assert_eq!(read("etc/absolute/a").as_deref(), Some("1"));
    assert_eq!(read("etc/relative").as_deref(), Some("1"));
    assert_eq!(read("etc/hidden").as_deref(), Some(""));
    assert_eq!((read("etc/none"), read("none/none")), (None, None));
    tree.write("etc/absolute/b/c", "2", 0o644).unwrap();
    assert_eq!(text(&place.at("tree/run/x/b/c")), "2");
    assert_eq!(tree.names("etc/absolute", 9).unwrap(), ["a", "b"]);
    assert!(tree.names("etc/absolute", 1).is_err());
    assert!(
        tree.names("none", 9).unwrap().is_empty() && tree.names("run/x/a", 9).unwrap().is_empty()
    );
    assert!(tree.has_directory("run/x/b") && !tree.has_directory("run/x/a"));
    assert!(tree.remove_directory("run/x/b").is_err());
    tree.remove("run/x/b/c").unwrap();
    tree.remove_directory("run/x/b").unwrap();
}
