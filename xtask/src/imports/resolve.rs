//! From a path to the files that define what it names.

use std::collections::BTreeSet;

use super::modules::{Name, Reference, Tree};

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Module(usize),
    /// Something defined in a file, and its name there.
    Item(usize, String),
    /// Something of another crate.
    Foreign,
}

/// The files that define what `reference` names, and the name.
pub(super) fn files_of(tree: &Tree, reference: &Reference) -> Vec<(usize, String)> {
    let mut resolver = Resolver { tree, open: BTreeSet::new() };
    let mut targets = resolver.path(reference.module, &reference.path);
    if let (true, [name], []) = (reference.is_macro, &reference.path[..], &targets[..]) {
        targets.extend(resolver.textual_macro(name));
    }
    let items = targets.into_iter().filter_map(|target| match target {
        Target::Item(file, name) => Some((file, name)),
        Target::Module(_) | Target::Foreign => None,
    });
    items.collect()
}

struct Resolver<'a> {
    tree: &'a Tree,
    /// The names whose imports are being followed: `use a::a` does not lead to itself.
    open: BTreeSet<(usize, String)>,
}

impl Resolver<'_> {
    /// What `path` means in `module`: nothing if its first name is not one of this crate.
    fn path(&mut self, module: usize, path: &[String]) -> Vec<Target> {
        let Some((first, rest)) = path.split_first() else {
            return vec![Target::Module(module)];
        };
        let mut targets = match (first.as_str(), self.tree.modules[module].parent) {
            ("crate", _) => vec![Target::Module(0)],
            ("self", _) => vec![Target::Module(module)],
            ("super", Some(parent)) => vec![Target::Module(parent)],
            _ => self.name(module, first),
        };
        for name in rest {
            let next = targets.into_iter().flat_map(|target| match target {
                Target::Module(module) => self.inside(module, name),
                // A variant, an associated item: it is where its type is.
                Target::Item(..) | Target::Foreign => vec![target],
            });
            let mut next: Vec<_> = next.collect();
            next.dedup();
            targets = next;
        }
        targets
    }

    /// What follows `module::`. The compiler has found it, so a name that is not seen here is
    /// made by a macro there.
    fn inside(&mut self, module: usize, name: &str) -> Vec<Target> {
        match (name, self.tree.modules[module].parent) {
            ("self", _) => return vec![Target::Module(module)],
            ("super", Some(parent)) => return vec![Target::Module(parent)],
            _ => {}
        }
        let mut found = self.name(module, name);
        if found.is_empty() && module == 0 {
            found.extend(self.textual_macro(name));
        }
        if found.is_empty() {
            found.push(Target::Item(self.tree.modules[module].file, name.to_owned()));
        }
        found
    }

    /// What `name` means in `module`, which defines or imports it.
    fn name(&mut self, module: usize, name: &str) -> Vec<Target> {
        let here = &self.tree.modules[module];
        let key = (module, name.to_owned());
        let follow = self.open.insert(key.clone());
        let mut found = Vec::new();
        for meaning in here.names.get(name).into_iter().flatten() {
            match meaning {
                Name::Module(child) => found.push(Target::Module(*child)),
                Name::Item => found.push(Target::Item(here.file, name.to_owned())),
                Name::Use(path) if follow => {
                    let targets = self.path(module, path);
                    let foreign = targets.is_empty().then_some(Target::Foreign);
                    found.extend(targets.into_iter().chain(foreign));
                }
                Name::Use(_) => {}
            }
        }
        if found.is_empty() && follow {
            for glob in &here.globs {
                for target in self.path(module, glob) {
                    if let Target::Module(from) = target {
                        found.extend(self.name(from, name));
                    }
                }
            }
        }
        if follow {
            self.open.remove(&key);
        }
        found
    }

    /// The `macro_rules` of this name, if there is one of it only.
    fn textual_macro(&self, name: &str) -> Option<Target> {
        match self.tree.macros.get(name).map(Vec::as_slice) {
            Some([module]) => Some(Target::Item(self.tree.modules[*module].file, name.to_owned())),
            _ => None,
        }
    }
}
