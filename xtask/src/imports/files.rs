//! Where the modules of a target are: from its root file to all files.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::modules::{Child, Name, Tree};
use super::visit;

/// What is in a file, if there is such a file.
pub(super) type Read<'a> = &'a dyn Fn(&Path) -> Result<Option<String>>;

/// Reads the file `root` and all that it declares.
pub(super) fn tree(root: &Path, read: Read<'_>) -> Result<Tree> {
    let mut tree = Tree::default();
    let base = root.parent().unwrap_or(Path::new(""));
    let first = File { path: root.to_path_buf(), below: base.to_path_buf(), declared: None };
    let mut waiting = vec![first];
    while let Some(file) = waiting.pop() {
        let text = read(&file.path)?;
        let text = text.with_context(|| format!("no file {}", file.path.display()))?;
        let parsed = syn::parse_file(&text);
        let parsed = parsed.with_context(|| format!("parsing {}", file.path.display()))?;
        let name = file.path.strip_prefix(base).unwrap_or(&file.path);
        tree.files.push(name.to_string_lossy().into_owned());
        let parent = file.declared.as_ref().map(|(parent, _)| *parent);
        let module = tree.add(parent, tree.files.len() - 1);
        if let Some((parent, name)) = &file.declared {
            tree.define(*parent, name, Name::Module(module));
        }
        for child in visit::file(&mut tree, module, &parsed) {
            waiting.push(file.child(child, read)?);
        }
    }
    Ok(tree)
}

/// A file that is yet to be read.
struct File {
    path: PathBuf,
    /// Where the files of its modules are.
    below: PathBuf,
    /// The module that declares it, and its name there; the root has neither.
    declared: Option<(usize, String)>,
}

impl File {
    /// The file of a module that this one declares.
    fn child(&self, child: Child, read: Read<'_>) -> Result<Self> {
        let declared = Some((child.parent, child.name.clone()));
        if let Some(path) = child.path {
            let path = self.path.parent().unwrap_or(Path::new("")).join(path);
            let below = path.parent().unwrap_or(Path::new("")).to_path_buf();
            return Ok(Self { path, below, declared });
        }
        let directory = child.within.iter().fold(self.below.clone(), |at, name| at.join(name));
        let below = directory.join(&child.name);
        for path in [directory.join(format!("{}.rs", child.name)), below.join("mod.rs")] {
            if read(&path)?.is_some() {
                return Ok(Self { path, below, declared });
            }
        }
        bail!("{} declares {}, which has no file", self.path.display(), child.name);
    }
}
