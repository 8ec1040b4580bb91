//! Whose events matter: filters by the names of threads, or by their numbers.
//!
//! The kernel's numbers of threads are not those of a namespace. Names are the same everywhere, and
//! are known before a thread does anything. Others may have the same ones; their paths are
//! separated by their processes.

use std::collections::BTreeSet;
use std::fs;

/// So many threads can be named in a filter; where there are more, all are seen.
const MAX_NAMES: usize = 30;

/// The longest name of a thread, in bytes (`TASK_COMM_LEN`, less the zero).
const MAX_NAME_BYTES: usize = 15;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TaskFilter {
    All,
    Names(BTreeSet<String>),
    /// Those of threads with these numbers of the kernel.
    Tasks(BTreeSet<u32>),
}

impl TaskFilter {
    /// Those of threads with this name, as far as it has room.
    pub(crate) fn named(name: &str) -> Self {
        Self::of([shortened(name)].into())
    }

    fn of(names: BTreeSet<String>) -> Self {
        let quotable = names.iter().all(|name| !name.contains(['"', '\\', '*', '?', '[']));
        if names.is_empty() || names.len() > MAX_NAMES || !quotable {
            return Self::All;
        }
        Self::Names(names)
    }

    /// Also that of this number. Of names, nothing changes.
    pub(crate) fn add(&mut self, task: u32) {
        match self {
            Self::All => *self = Self::Tasks([task].into()),
            Self::Tasks(tasks) if tasks.len() < MAX_NAMES => {
                tasks.insert(task);
            }
            _ => {}
        }
    }

    /// Whether the wake-ups of a thread were let pass, as far as its number shows.
    pub(crate) fn shows(&self, task: u32) -> bool {
        match self {
            Self::Tasks(tasks) => tasks.contains(&task),
            _ => true,
        }
    }

    /// A filter that is true if one of the fields is one of these; the first of each pair is the
    /// field with a name, the second that with a number.
    pub(crate) fn filter(&self, fields: &[(&str, &str)]) -> Option<String> {
        let mut terms = Vec::new();
        for (name, number) in fields {
            match self {
                Self::All => return None,
                Self::Names(names) => {
                    terms.extend(names.iter().map(|text| format!("{name} == \"{text}\"")));
                }
                Self::Tasks(tasks) => {
                    terms.extend(tasks.iter().map(|task| format!("{number} == {task}")));
                }
            }
        }
        Some(terms.join(" || "))
    }
}

fn shortened(name: &str) -> String {
    let end = (0..=name.len().min(MAX_NAME_BYTES)).rev().find(|end| name.is_char_boundary(*end));
    name[..end.unwrap_or(0)].to_owned()
}

/// A process, and those that it has started, whose own threads have names.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessTree {
    root: Option<u32>,
    pids: BTreeSet<u32>,
    names: BTreeSet<String>,
}

impl ProcessTree {
    /// Empty; its first process will have this name.
    pub(crate) fn new(name: &str) -> Self {
        Self { names: [shortened(name)].into(), ..Self::default() }
    }

    pub(crate) fn adopt(&mut self, pid: u32) {
        self.root = Some(pid);
        self.pids.insert(pid);
    }

    /// Whether a process belongs to it; each does while there is no first one. A process of
    /// another namespace has no number here.
    pub(crate) fn has(&self, pid: Option<u32>) -> bool {
        self.root.is_none() || pid.is_some_and(|pid| self.pids.contains(&pid))
    }

    /// Looks for processes and threads that are new.
    pub(crate) fn refresh(&mut self) {
        let mut next: Vec<u32> = self.root.into_iter().collect();
        while let Some(pid) = next.pop() {
            self.pids.insert(pid);
            let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { continue };
            for thread in threads.filter_map(Result::ok) {
                let read = |file: &str| fs::read_to_string(thread.path().join(file));
                if let Ok(name) = read("comm") {
                    self.names.insert(name.trim_end_matches('\n').to_owned());
                }
                let children = read("children").unwrap_or_default();
                next.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
            }
        }
    }

    pub(crate) fn filter(&self) -> TaskFilter {
        TaskFilter::of(self.names.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_name_each_thread_in_each_field() {
        let fields = [("prev_comm", "prev_pid"), ("next_comm", "next_pid")];
        let named = TaskFilter::named("a-very-long-name-of-a-thread");
        let expected = "prev_comm == \"a-very-long-nam\" || next_comm == \"a-very-long-nam\"";
        assert_eq!(named.filter(&fields).as_deref(), Some(expected));
        let mut tasks = TaskFilter::All;
        assert_eq!(tasks.filter(&fields), None);
        tasks.add(7);
        tasks.add(9);
        let expected = "prev_pid == 7 || prev_pid == 9 || next_pid == 7 || next_pid == 9";
        assert_eq!(tasks.filter(&fields).as_deref(), Some(expected));
        assert!(tasks.shows(7) && !tasks.shows(8) && named.shows(8));
    }

    #[test]
    fn names_that_no_filter_can_hold_let_all_tasks_pass() {
        for name in ["a\"b", "a*", "", "x\\"] {
            let filter = TaskFilter::named(name);
            assert!(filter == TaskFilter::All || name.is_empty(), "{name}");
        }
        let many = (0..40).map(|number| number.to_string()).collect();
        assert_eq!(TaskFilter::of(many), TaskFilter::All);
    }

    #[test]
    fn family_of_this_process_has_its_threads() {
        let mut family = ProcessTree::new("program");
        assert!(family.has(Some(1)), "as long as no process is known");
        family.adopt(std::process::id());
        std::thread::scope(|scope| {
            let (sender, receiver) = std::sync::mpsc::channel::<()>();
            let thread = std::thread::Builder::new().name("explain-who".into());
            thread.spawn_scoped(scope, move || receiver.recv()).unwrap();
            // A thread names itself as it begins.
            for _ in 0..60_000 {
                family.refresh();
                if family.names.contains("explain-who") {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            drop(sender);
        });
        assert!(family.names.contains("explain-who"), "{family:?}");
        assert!(family.has(Some(std::process::id())) && !family.has(Some(1)));
        assert!(!family.has(None));
    }
}
