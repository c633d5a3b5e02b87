//! Rule: every dependency may be used in a work under MIT OR Apache-2.0.
//!
//! Takes SPDX expressions; gives problems. Must not know where they come from.

use spdx::{Expression, ParseMode};

use super::Report;
use super::tree::Tree;

/// Licences without duties beyond those of MIT and Apache-2.0 (keep the notice).
const ALLOWED: &[&str] = &[
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "BSL-1.0",
    "CC0-1.0",
    "Unlicense",
    "Unicode-3.0",
];

/// Every expression can be met with allowed licences alone.
pub fn check(tree: &Tree, report: &mut Report) {
    for licence in &tree.licences {
        let package = &licence.package;
        match &licence.expression {
            None => report.problem(format!("{package}: states no licence expression")),
            Some(text) => match is_allowed(text) {
                Ok(true) => {}
                Ok(false) => report.problem(format!("{package}: licence `{text}` is not on the allow list")),
                Err(error) => report.problem(format!("{package}: licence `{text}` cannot be read: {error}")),
            },
        }
    }
}

fn is_allowed(expression: &str) -> Result<bool, String> {
    // Lax: older packages write `MIT/Apache-2.0`.
    let expression = Expression::parse_mode(expression, ParseMode::LAX).map_err(|error| error.to_string())?;
    // An exception (`WITH ...`) only adds permissions, so the licence before it decides.
    Ok(expression.evaluate(|req| req.license.id().is_some_and(|id| ALLOWED.contains(&id.name))))
}

#[cfg(test)]
mod tests {
    use super::super::tree::Licence;
    use super::*;

    fn problems(expression: Option<&str>) -> Vec<String> {
        let licences = vec![Licence { package: "p 1".into(), expression: expression.map(String::from) }];
        let mut report = Report::default();
        check(&Tree { licences, ..Tree::default() }, &mut report);
        report.problems
    }

    #[test]
    fn a_licence_off_the_list_fails() {
        for bad in ["GPL-3.0-only", "MIT AND MPL-2.0", "LGPL-2.1-or-later", "SSPL-1.0"] {
            assert!(problems(Some(bad))[0].contains("not on the allow list"), "{bad}");
        }
        assert!(problems(None)[0].contains("no licence"));
        assert!(problems(Some("no such licence"))[0].contains("cannot be read"));
    }

    #[test]
    fn an_allowed_choice_passes() {
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-2.0-only OR MIT",
            "Apache-2.0 WITH LLVM-exception",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
        ] {
            assert!(problems(Some(good)).is_empty(), "{good}");
        }
    }
}
