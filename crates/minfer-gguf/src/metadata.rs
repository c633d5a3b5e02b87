//! The metadata table. Takes keys, gives values of the type asked for, telling
//! "absent" from "of another type". Must not know which keys exist.

use crate::array::{Array, Scalars, Strings};
use crate::error::{GgufError, Place};
use crate::value::{Text, Value};

/// One metadata entry.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The value.
    pub value: Value,
}

/// Metadata entries in file order, found by key.
///
/// Typed getters return `Ok(None)` for an absent key and an error for a value of
/// another type. Integers of any width are accepted where the value fits, since
/// writers differ in the width they choose.
#[derive(Clone, Default, Debug)]
pub struct Metadata {
    entries: Vec<Entry>,
    /// Indices into `entries`, sorted by key.
    by_key: Vec<u32>,
}

impl Metadata {
    /// Refuses two entries with one key.
    pub(crate) fn new(entries: Vec<Entry>) -> Result<Metadata, GgufError> {
        let by_key = sorted_unique(&entries, |entry| &entry.key)
            .map_err(|entry| GgufError::DuplicateKey { key: entry.key.clone() })?;
        Ok(Metadata { entries, by_key })
    }

    /// Entries in file order.
    pub fn iter(&self) -> std::slice::Iter<'_, Entry> {
        self.entries.iter()
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value of a key, whatever its type.
    pub fn get(&self, key: &str) -> Option<&Value> {
        find_sorted(&self.entries, &self.by_key, key, |entry| &entry.key).map(|entry| &entry.value)
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, GgufError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        convert(value).map(Some).ok_or_else(|| GgufError::WrongType {
            key: key.to_owned(),
            expected,
            got: describe(value),
        })
    }

    /// Any integer that fits a `u32`.
    pub fn u32(&self, key: &str) -> Result<Option<u32>, GgufError> {
        self.typed(key, "an integer from 0 to 4294967295", |v| v.as_int()?.try_into().ok())
    }

    /// Any integer that fits a `u64`.
    pub fn u64(&self, key: &str) -> Result<Option<u64>, GgufError> {
        self.typed(key, "an integer of at least 0", |v| v.as_int()?.try_into().ok())
    }

    /// Any integer that fits an `i64`.
    pub fn i64(&self, key: &str) -> Result<Option<i64>, GgufError> {
        self.typed(key, "a 64-bit integer", |v| v.as_int()?.try_into().ok())
    }

    /// Either float type, rounded to single precision.
    pub fn f32(&self, key: &str) -> Result<Option<f32>, GgufError> {
        self.typed(key, "a float", Value::as_f32)
    }

    /// A bool.
    pub fn bool(&self, key: &str) -> Result<Option<bool>, GgufError> {
        self.typed(key, "a bool", |v| match *v {
            Value::Bool(value) => Some(value),
            _ => None,
        })
    }

    /// A string that is valid UTF-8.
    pub fn str(&self, key: &str) -> Result<Option<&str>, GgufError> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        let text = text.to_str().ok_or_else(|| GgufError::NotUtf8 { place: Place::Value(key.to_owned()) })?;
        Ok(Some(text))
    }

    /// A string, valid UTF-8 or not.
    pub fn text(&self, key: &str) -> Result<Option<&Text>, GgufError> {
        self.typed(key, "a string", Value::as_text)
    }

    /// An array of any element type.
    pub fn array(&self, key: &str) -> Result<Option<&Array>, GgufError> {
        self.typed(key, "an array", Value::as_array)
    }

    /// An array of strings, as bytes.
    pub fn strings(&self, key: &str) -> Result<Option<Strings<'_>>, GgufError> {
        self.typed(key, "an array of strings", |v| v.as_array()?.strings())
    }

    /// An array of integers of any width.
    pub fn ints(&self, key: &str) -> Result<Option<Scalars<'_, i64>>, GgufError> {
        self.typed(key, "an array of integers", |v| v.as_array()?.ints())
    }

    /// An array of floats.
    pub fn f32s(&self, key: &str) -> Result<Option<Scalars<'_, f32>>, GgufError> {
        self.typed(key, "an array of floats", |v| v.as_array()?.f32s())
    }

    /// An array of bools.
    pub fn bools(&self, key: &str) -> Result<Option<Scalars<'_, bool>>, GgufError> {
        self.typed(key, "an array of bools", |v| v.as_array()?.bools())
    }

    /// For `metadata.require(key, Metadata::u32)`: an absent key becomes an error.
    pub fn require<'a, T>(
        &'a self,
        key: &str,
        get: impl FnOnce(&'a Metadata, &str) -> Result<Option<T>, GgufError>,
    ) -> Result<T, GgufError> {
        get(self, key)?.ok_or_else(|| GgufError::MissingKey { key: key.to_owned() })
    }
}

impl<'a> IntoIterator for &'a Metadata {
    type Item = &'a Entry;
    type IntoIter = std::slice::Iter<'a, Entry>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The value's type, and the value itself where it is short.
fn describe(value: &Value) -> String {
    match value {
        Value::String(_) => "a string".to_owned(),
        Value::Array(array) => format!("an array {array}"),
        scalar => format!("the {} {scalar}", scalar.value_type()),
    }
}

/// Indices sorted by name, or an item whose name occurs twice.
pub(crate) fn sorted_unique<T>(items: &[T], name: impl Fn(&T) -> &str) -> Result<Vec<u32>, &T> {
    // Both tables are far shorter than 2^32: an entry takes at least 14 bytes of a mapped file, and an
    // index past u32 would only lose the entry to lookups.
    let mut order: Vec<u32> = (0..items.len()).map_while(|index| u32::try_from(index).ok()).collect();
    let at = |index: &u32| items.get(*index as usize);
    order.sort_by(|a, b| at(a).map(&name).cmp(&at(b).map(&name)));
    for pair in order.windows(2) {
        if let [a, b] = pair
            && let (Some(first), Some(second)) = (at(a), at(b))
            && name(first) == name(second)
        {
            return Err(second);
        }
    }
    Ok(order)
}

/// Binary search in what `sorted_unique` returned.
pub(crate) fn find_sorted<'a, T>(
    items: &'a [T],
    order: &[u32],
    wanted: &str,
    name: impl Fn(&T) -> &str,
) -> Option<&'a T> {
    let at = |index: &u32| items.get(*index as usize);
    let found = order.binary_search_by(|index| at(index).map(&name).cmp(&Some(wanted))).ok()?;
    order.get(found).and_then(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Metadata {
        let entry = |key: &str, value: Value| Entry { key: key.to_owned(), value };
        let entries = vec![
            entry("b", 7u16.into()),
            entry("a", "text".into()),
            entry("neg", (-1i32).into()),
            entry("f", 0.5f32.into()),
            entry("list", vec![1u32, 2].into()),
        ];
        Metadata::new(entries).unwrap_or_default()
    }

    #[test]
    fn absent_is_not_broken() {
        let metadata = sample();
        assert_eq!(metadata.u32("b").ok(), Some(Some(7)));
        assert_eq!(metadata.u32("missing").ok(), Some(None));
        assert_eq!(metadata.str("a").ok(), Some(Some("text")));
        for error in [
            metadata.u32("a").err(),
            metadata.u32("neg").err(),
            metadata.bool("b").err(),
            metadata.str("b").err(),
            metadata.f32("b").err(),
            metadata.array("b").err(),
            metadata.strings("list").err(),
        ] {
            assert!(matches!(error, Some(GgufError::WrongType { .. })), "{error:?}");
        }
        let missing = metadata.require("missing", Metadata::u32);
        assert!(matches!(missing, Err(GgufError::MissingKey { .. })));
        assert_eq!(metadata.require("list", Metadata::ints).ok().map(|ints| ints.len()), Some(2));
    }

    #[test]
    fn file_order_is_kept_and_duplicates_are_refused() {
        let metadata = sample();
        let keys: Vec<&str> = metadata.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["b", "a", "neg", "f", "list"]);
        let twice = vec![Entry { key: "k".into(), value: 1u8.into() }, Entry { key: "k".into(), value: 2u8.into() }];
        assert!(matches!(Metadata::new(twice), Err(GgufError::DuplicateKey { .. })));
    }
}
