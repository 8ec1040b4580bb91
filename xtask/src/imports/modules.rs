//! The modules of a target, the names in each, and the paths that its code mentions.

use std::collections::BTreeMap;

/// A target: modules by number, the root first.
#[derive(Default)]
pub(super) struct Tree {
    /// Paths from the directory of the root file.
    pub files: Vec<String>,
    pub modules: Vec<Module>,
    /// What the code mentions.
    pub references: Vec<Reference>,
    /// The modules that define a `macro_rules` of a name.
    pub macros: BTreeMap<String, Vec<usize>>,
}

/// One module, in a file of its own or in braces.
#[derive(Default)]
pub(super) struct Module {
    /// Index into [`Tree::files`].
    pub file: usize,
    pub parent: Option<usize>,
    /// A name may stand for a module and a function at once.
    pub names: BTreeMap<String, Vec<Name>>,
    /// Paths of which everything is imported.
    pub globs: Vec<Vec<String>>,
}

/// What a name in a module stands for.
#[derive(Clone)]
pub(super) enum Name {
    /// A module in it, by number.
    Module(usize),
    /// What is defined there.
    Item,
    /// What is at this path, imported or re-exported.
    Use(Vec<String>),
}

/// A path in the code of a module.
pub(super) struct Reference {
    pub module: usize,
    pub path: Vec<String>,
    pub line: usize,
    /// A macro is called by this path.
    pub is_macro: bool,
}

/// A `mod name;` whose file is yet to be read.
pub(super) struct Child {
    /// The module in which it is declared.
    pub parent: usize,
    pub name: String,
    /// What `#[path]` says.
    pub path: Option<String>,
    /// Modules in braces between the file and the declaration.
    pub within: Vec<String>,
}

impl Tree {
    /// Adds an empty module.
    pub(super) fn add(&mut self, parent: Option<usize>, file: usize) -> usize {
        self.modules.push(Module { file, parent, ..Module::default() });
        self.modules.len() - 1
    }

    /// Adds a meaning to a name in a module.
    pub(super) fn define(&mut self, module: usize, name: &str, meaning: Name) {
        self.modules[module].names.entry(name.to_owned()).or_default().push(meaning);
    }
}
