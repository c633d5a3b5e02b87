//! `{% generation %}`: takes a template's source, gives it without that pair of tags, which
//! only marks text for training. Must not know what the template says.

/// Replaces the tags by an `if` that is always true, so that their white space control stays.
pub(super) fn strip(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find(['{']) {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        let len = if tail.starts_with("{#") {
            tail.find("#}").map_or(tail.len(), |end| end + 2)
        } else if let Some((len, replacement)) = tag(tail) {
            out.push_str(&replacement);
            rest = &tail[len..];
            continue;
        } else {
            1
        };
        out.push_str(&tail[..len]);
        rest = &tail[len..];
    }
    out.push_str(rest);
    out
}

/// The length of the tag at the start, if it is one of the pair, and what to put there.
fn tag(text: &str) -> Option<(usize, String)> {
    let inside = text.strip_prefix("{%")?;
    let end = inside.find("%}")?;
    let mut name = &inside[..end];
    let mut signs = ["", ""];
    for sign in ["-", "+"] {
        if let Some(rest) = name.strip_prefix(sign) {
            (name, signs[0]) = (rest, sign);
        }
        if let Some(rest) = name.strip_suffix(sign) {
            (name, signs[1]) = (rest, sign);
        }
    }
    let replacement = match name.trim() {
        "generation" => "if true",
        "endgeneration" => "endif",
        _ => return None,
    };
    let [open, close] = signs;
    Some((end + 4, format!("{{%{open} {replacement} {close}%}}")))
}

#[cfg(test)]
mod tests {
    use super::strip;

    #[test]
    fn generation_tags_become_neutral() {
        assert_eq!(strip("a{% generation %}b{%- endgeneration -%}c"), "a{% if true %}b{%- endif -%}c");
        for same in ["{# {% generation %} #}", "{% set x = 1 %}{{ x }}", "{", "{% gen", "é{é"] {
            assert_eq!(strip(same), same);
        }
    }
}
