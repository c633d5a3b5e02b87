//! Stop strings: takes text in pieces, gives it up to the first stop string. Must not know where the text comes from.

/// Text in pieces → the same text, but only up to the stop string that ends first. What could still become a stop string is
/// held back, and nothing else. How the text is cut into pieces changes nothing.
#[derive(Debug, Clone, Default)]
pub struct StopStrings {
    stops: Vec<String>,
    /// The end of the text so far: the longest that is the begin of a stop string.
    held: String,
    given: String,
    found: Option<usize>,
}

impl StopStrings {
    /// Empty stop strings never stop.
    pub fn new(stops: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { stops: stops.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// The text that can no longer be part of a stop string; nothing after one was found.
    pub fn push(&mut self, text: &str) -> &str {
        self.given.clear();
        if self.found.is_some() {
            return &self.given;
        }
        self.held.push_str(text);
        let ends = self.stops.iter().enumerate().filter(|(_, stop)| !stop.is_empty()).filter_map(|(at, stop)| {
            let start = self.held.find(stop.as_str())?;
            Some((start + stop.len(), start, at))
        });
        if let Some((_, start, at)) = ends.min() {
            self.found = Some(at);
            self.given.push_str(&self.held[..start]);
            self.held.clear();
        } else {
            let keep = self.stops.iter().map(|stop| overlap(&self.held, stop)).max().unwrap_or(0);
            self.given.extend(self.held.drain(..self.held.len() - keep));
        }
        &self.given
    }

    /// Which stop string was found; by its place in the list.
    pub fn found(&self) -> Option<usize> {
        self.found
    }

    /// Ends the text: what was held back.
    pub fn finish(&mut self) -> &str {
        self.given.clear();
        std::mem::swap(&mut self.given, &mut self.held);
        &self.given
    }
}

/// Length of the longest end of `text` that `stop` begins with, less than all of `stop`.
fn overlap(text: &str, stop: &str) -> usize {
    let longest = text.len().min(stop.len().saturating_sub(1));
    (1..=longest).rev().find(|&len| text.as_bytes().ends_with(&stop.as_bytes()[..len])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(stops: &[&str], pieces: &[&str]) -> (Vec<String>, Option<usize>) {
        let mut stop = StopStrings::new(stops.iter().copied());
        let mut given: Vec<String> = pieces.iter().map(|piece| stop.push(piece).to_owned()).collect();
        given.push(stop.finish().to_owned());
        (given, stop.found())
    }

    #[test]
    fn only_what_may_still_match_is_held_back() {
        let (given, found) = stream(&["###END"], &["a##", "#", "EN", "X", "###END tail", "more"]);
        assert_eq!((given.concat(), found), ("a###ENX".to_owned(), Some(0)));
        assert_eq!(given, ["a", "", "", "###ENX", "", "", ""]);
        assert_eq!(stream(&["é!"], &["aé", "b"]).0, ["a", "éb", ""]);
        assert_eq!(stream(&["xy"], &["ax"]), (vec!["a".to_owned(), "x".to_owned()], None));
        assert_eq!(stream(&["aab"], &["a", "a", "a", "b"]), (["", "", "a", "", ""].map(str::to_owned).into(), Some(0)));
        assert_eq!(stream(&[""], &["a"]).0, ["a", ""]);
        assert_eq!(stream(&[], &["a"]).0, ["a", ""]);
    }

    #[test]
    fn pieces_change_nothing() {
        let stops = ["abcd", "bc", "b!", "日本", "aa"];
        for text in ["xabcd", "ab!", "a日本b", "日日本", "xaab", "ab日", "bb!c", "none"] {
            let whole = stream(&stops, &[text]);
            let chars: Vec<String> = text.chars().map(String::from).collect();
            let pieces = stream(&stops, &chars.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!((whole.0.concat(), whole.1), (pieces.0.concat(), pieces.1), "{text}");
        }
    }
}
