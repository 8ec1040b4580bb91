//! From the syntax of a file to its modules, names and paths.

use proc_macro2::{TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::visit::{self, Visit};

use super::modules::{Child, Name, Reference, Tree};

/// Adds what a file has in it to its module; returns the modules that have files of their own.
pub(super) fn file(tree: &mut Tree, module: usize, file: &syn::File) -> Vec<Child> {
    let mut visitor = Visitor { tree, module, within: Vec::new(), children: Vec::new() };
    visitor.visit_file(file);
    visitor.children
}

struct Visitor<'a> {
    tree: &'a mut Tree,
    module: usize,
    within: Vec<String>,
    children: Vec<Child>,
}

impl Visitor<'_> {
    fn define(&mut self, name: &syn::Ident) {
        self.tree.define(self.module, &name.unraw().to_string(), Name::Item);
    }

    fn mention(&mut self, path: Vec<String>, line: usize, is_macro: bool) {
        self.tree.references.push(Reference { module: self.module, path, line, is_macro });
    }

    fn mention_path(&mut self, path: &syn::Path, is_macro: bool) {
        if let (None, Some(first)) = (&path.leading_colon, path.segments.first()) {
            let names = path.segments.iter().map(|segment| segment.ident.unraw().to_string());
            self.mention(names.collect(), line(&first.ident), is_macro);
        }
    }

    /// What `use` imports, with `before` in front of it.
    fn import(&mut self, tree: &syn::UseTree, before: &[String], again: bool) {
        let with = |name: &syn::Ident| {
            let name = name.unraw().to_string();
            let own = (name != "self" || before.is_empty()).then_some(name);
            before.iter().cloned().chain(own).collect::<Vec<_>>()
        };
        match tree {
            syn::UseTree::Path(path) => self.import(&path.tree, &with(&path.ident), again),
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, before, again);
                }
            }
            syn::UseTree::Name(name) => {
                let path = with(&name.ident);
                let short = path.last().cloned().unwrap_or_default();
                self.alias(&short, path, again, line(&name.ident));
            }
            syn::UseTree::Rename(rename) => {
                let short = rename.rename.unraw().to_string();
                self.alias(&short, with(&rename.ident), again, line(&rename.ident));
            }
            syn::UseTree::Glob(_) => self.tree.modules[self.module].globs.push(before.to_vec()),
        }
    }

    fn alias(&mut self, short: &str, path: Vec<String>, again: bool, line: usize) {
        if !again {
            self.mention(path.clone(), line, false);
        }
        self.tree.define(self.module, short, Name::Use(path));
    }

    /// The paths among tokens that no one has parsed: arguments of macros, and their rules.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(first) => {
                    let field = at > 0 && is_punct(&tokens[at - 1], '.');
                    let mut path = vec![first.unraw().to_string()];
                    while let Some(name) = next_segment(&tokens[at + 1..]) {
                        path.push(name);
                        at += 3;
                    }
                    let is_macro = tokens.get(at + 1).is_some_and(|next| is_punct(next, '!'));
                    if !field {
                        self.mention(path, line(first), is_macro);
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            at += 1;
        }
    }
}

fn line(name: &syn::Ident) -> usize {
    name.span().start().line
}

/// The name after `::`, if that comes next.
fn next_segment(tokens: &[TokenTree]) -> Option<String> {
    match tokens {
        [first, second, TokenTree::Ident(name), ..]
            if is_punct(first, ':') && is_punct(second, ':') =>
        {
            Some(name.unraw().to_string())
        }
        _ => None,
    }
}

fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if is_test(attributes(item)) {
            return;
        }
        match item {
            syn::Item::Const(item) => self.define(&item.ident),
            syn::Item::Enum(item) => self.define(&item.ident),
            syn::Item::Fn(item) => self.define(&item.sig.ident),
            syn::Item::Static(item) => self.define(&item.ident),
            syn::Item::Struct(item) => self.define(&item.ident),
            syn::Item::Trait(item) => self.define(&item.ident),
            syn::Item::Type(item) => self.define(&item.ident),
            syn::Item::Union(item) => self.define(&item.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let name = item.ident.unraw().to_string();
        let Some((_, items)) = &item.content else {
            let path = item.attrs.iter().find_map(path_attribute);
            let within = self.within.clone();
            self.children.push(Child { parent: self.module, name, path, within });
            return;
        };
        let outer = self.module;
        self.module = self.tree.add(Some(outer), self.tree.modules[outer].file);
        self.tree.define(outer, &name, Name::Module(self.module));
        self.within.push(name);
        for item in items {
            self.visit_item(item);
        }
        self.within.pop();
        self.module = outer;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if item.leading_colon.is_none() {
            let again = !matches!(item.vis, syn::Visibility::Inherited);
            self.import(&item.tree, &[], again);
        }
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        if let Some(name) = &item.ident {
            self.define(name);
            let name = name.unraw().to_string();
            self.tree.macros.entry(name).or_default().push(self.module);
        }
        visit::visit_item_macro(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.mention_path(path, false);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.mention_path(&call.path, true);
        self.tokens(call.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if let syn::Meta::List(list) = &attribute.meta {
            self.tokens(list.tokens.clone());
        }
    }
}

/// The file that `#[path = "..."]` names.
fn path_attribute(attribute: &syn::Attribute) -> Option<String> {
    let syn::Meta::NameValue(pair) = &attribute.meta else { return None };
    let syn::Expr::Lit(value) = &pair.value else { return None };
    match &value.lit {
        syn::Lit::Str(text) if pair.path.is_ident("path") => Some(text.value()),
        _ => None,
    }
}

/// Whether the attributes say that something is compiled for tests only.
fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) if list.path.is_ident("cfg") => needs_test(list.tokens.clone()),
        _ => false,
    })
}

/// Whether a condition holds in tests only: `test`, or `all(...)` with it.
fn needs_test(condition: TokenStream) -> bool {
    let tokens: Vec<_> = condition.into_iter().collect();
    let is =
        |token: &TokenTree, wanted: &str| matches!(token, TokenTree::Ident(name) if name == wanted);
    match tokens.as_slice() {
        [only] => is(only, "test"),
        [all, TokenTree::Group(list)] if is(all, "all") => {
            let parts: Vec<_> = list.stream().into_iter().collect();
            parts
                .split(|token| is_punct(token, ','))
                .any(|part| needs_test(part.iter().cloned().collect()))
        }
        _ => false,
    }
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Union(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
