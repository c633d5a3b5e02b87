//! A Rust file as a flat list of tokens, so that comments and strings never match a rule.
//!
//! Takes the text; gives tokens with lines and the modules that the file declares. Must not know
//! any rule.

use std::str::FromStr;

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// One token; a group gives its two brackets and what is between.
#[derive(Debug)]
pub struct Token {
    /// As written; a string literal keeps its quotes.
    pub text: String,
    /// From 1.
    pub line: usize,
    /// Inside an item under `#[cfg(test)]`.
    pub in_test: bool,
}

/// A `mod name;` or an `include!("path")`.
#[derive(Debug, PartialEq, Eq)]
pub struct FileRef {
    /// The inline modules around it.
    pub inline: Vec<String>,
    /// Module name; `None` for an include.
    pub name: Option<String>,
    /// Explicit path, of `#[path = "..."]` or `include!`.
    pub path: Option<String>,
}

/// A lexed file.
#[derive(Debug, Default)]
pub struct Source {
    /// In order.
    pub tokens: Vec<Token>,
    /// Files that this one brings in.
    pub file_refs: Vec<FileRef>,
    /// Every module it declares (inline ones too), with its line.
    pub modules: Vec<(String, usize)>,
}

impl Source {
    /// Lexes `text`.
    pub fn parse(text: &str) -> Result<Self> {
        let stream = TokenStream::from_str(text).map_err(|error| anyhow!("does not lex: {error}"))?;
        let mut source = Source::default();
        source.walk(stream, false, &mut Vec::new());
        Ok(source)
    }

    /// The first token of each place where `words` stand in a row.
    pub fn find<'a>(&'a self, words: &'a [&str]) -> impl Iterator<Item = &'a Token> {
        let windows = self.tokens.windows(words.len());
        windows.filter(move |window| window.iter().zip(words).all(|(t, word)| t.text == *word)).map(|window| &window[0])
    }

    fn walk(&mut self, stream: TokenStream, mut in_test: bool, inline: &mut Vec<String>) {
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        // What the attributes so far say of the item that follows them.
        let (mut item_in_test, mut item_path) = (false, None);
        let mut i = 0;
        while i < trees.len() {
            let tree = &trees[i];
            i += 1;
            match tree {
                TokenTree::Group(group) => {
                    let braces = group.delimiter() == Delimiter::Brace;
                    let test = in_test || (item_in_test && braces);
                    self.group(group, test, inline);
                    if braces {
                        (item_in_test, item_path) = (false, None);
                    }
                }
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    self.push(tree, in_test);
                    let inner = matches!(trees.get(i), Some(TokenTree::Punct(p)) if p.as_char() == '!');
                    let Some(TokenTree::Group(attribute)) = trees.get(i + usize::from(inner)) else {
                        continue;
                    };
                    let words = flat(attribute);
                    if words.first().is_some_and(|w| w == "cfg")
                        && words.iter().any(|w| w == "test")
                        && !words.iter().any(|w| w == "not")
                    {
                        if inner { in_test = true } else { item_in_test = true }
                    }
                    if let [first, equals, literal] = words.as_slice()
                        && first == "path"
                        && equals == "="
                    {
                        item_path = Some(literal.trim_matches('"').to_string());
                    }
                }
                TokenTree::Punct(punct) => {
                    self.push(tree, in_test);
                    if punct.as_char() == ';' {
                        (item_in_test, item_path) = (false, None);
                    }
                }
                TokenTree::Ident(ident) if ident == "mod" => {
                    self.push(tree, in_test);
                    let (Some(TokenTree::Ident(name)), Some(after)) = (trees.get(i), trees.get(i + 1)) else {
                        continue;
                    };
                    let name = name.to_string();
                    self.modules.push((name.clone(), ident.span().start().line));
                    if let TokenTree::Group(body) = after {
                        self.push(&trees[i], in_test);
                        i += 2;
                        inline.push(name);
                        self.group(body, in_test || item_in_test, inline);
                        inline.pop();
                        (item_in_test, item_path) = (false, None);
                    } else {
                        self.file_refs.push(FileRef {
                            inline: inline.clone(),
                            name: Some(name),
                            path: item_path.take(),
                        });
                    }
                }
                TokenTree::Ident(ident) if ident == "include" => {
                    self.push(tree, in_test);
                    if let Some(TokenTree::Group(arguments)) = trees.get(i + 1)
                        && let [literal] = flat(arguments).as_slice()
                    {
                        let path = Some(literal.trim_matches('"').to_string());
                        self.file_refs.push(FileRef { inline: inline.clone(), name: None, path });
                    }
                }
                other => self.push(other, in_test || item_in_test),
            }
        }
    }

    fn group(&mut self, group: &Group, in_test: bool, inline: &mut Vec<String>) {
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::None => ("", ""),
        };
        let line = |span: proc_macro2::Span| span.start().line;
        self.tokens.push(Token { text: open.into(), line: line(group.span_open()), in_test });
        self.walk(group.stream(), in_test, inline);
        self.tokens.push(Token { text: close.into(), line: line(group.span_close()), in_test });
    }

    fn push(&mut self, tree: &TokenTree, in_test: bool) {
        self.tokens.push(Token { text: tree.to_string(), line: tree.span().start().line, in_test });
    }
}

/// The tokens of an attribute, nested ones too, without brackets.
fn flat(group: &Group) -> Vec<String> {
    let mut words = Vec::new();
    for tree in group.stream() {
        match tree {
            TokenTree::Group(inner) => words.extend(flat(&inner)),
            other => words.push(other.to_string()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_do_not_match() {
        let source = Source::parse("//! unsafe\n// unsafe\nfn f() { let _ = \"unsafe\"; }\nunsafe fn g() {}").unwrap();
        let lines: Vec<usize> = source.find(&["unsafe"]).map(|t| t.line).collect();
        assert_eq!(lines, [4]);
    }

    #[test]
    fn test_code_is_told_from_code() {
        let text = "fn a() { x(); } #[cfg(test)] mod tests { fn b() { x(); } } fn c() { x(); } #[cfg(not(test))] fn d() { x() }";
        let source = Source::parse(text).unwrap();
        let in_test: Vec<bool> = source.find(&["x"]).map(|t| t.in_test).collect();
        assert_eq!(in_test, [false, true, false, false]);
    }

    #[test]
    fn files_that_are_brought_in_are_found() {
        let source = Source::parse("mod a; mod b { mod c; } #[path = \"d/e.rs\"] mod e; include!(\"t.rs\");").unwrap();
        let of = |inline: &[&str], name: Option<&str>, path: Option<&str>| FileRef {
            inline: inline.iter().map(|s| s.to_string()).collect(),
            name: name.map(String::from),
            path: path.map(String::from),
        };
        let expected = [
            of(&[], Some("a"), None),
            of(&["b"], Some("c"), None),
            of(&[], Some("e"), Some("d/e.rs")),
            of(&[], None, Some("t.rs")),
        ];
        assert_eq!(source.file_refs, expected);
    }
}
