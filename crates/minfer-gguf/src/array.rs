//! Arrays of metadata values, decoded while they are walked: a vocabulary of
//! 262,144 strings costs nothing but the bytes of the file. Must not know any key.

use std::fmt;

use crate::mapped::View;
use crate::reader::Reader;
use crate::value::{Value, ValueType, encode_string};

/// An array, checked when the file was opened and decoded on use.
#[derive(Clone)]
pub struct Array {
    elem: ValueType,
    len: usize,
    /// The elements as they stand in a file, without type and count.
    view: View,
}

impl Array {
    /// The view must hold exactly `len` well-formed elements.
    pub(crate) fn new(elem: ValueType, len: usize, view: View) -> Array {
        Array { elem, len, view }
    }

    /// An array of strings (or bytes), for writing.
    pub fn from_strings<S: AsRef<[u8]>>(strings: impl IntoIterator<Item = S>) -> Array {
        let mut bytes = Vec::new();
        let mut len = 0;
        for string in strings {
            encode_string(string.as_ref(), &mut bytes);
            len += 1;
        }
        Array::new(ValueType::String, len, View::from_vec(bytes))
    }

    /// An array of values that all have the type `elem`; `None` otherwise.
    pub fn from_values(elem: ValueType, values: &[Value]) -> Option<Array> {
        let mut bytes = Vec::new();
        for value in values {
            if value.value_type() != elem {
                return None;
            }
            value.encode(&mut bytes);
        }
        Some(Array::new(elem, values.len(), View::from_vec(bytes)))
    }

    /// Elements in the array.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The type of every element.
    pub fn elem_type(&self) -> ValueType {
        self.elem
    }

    /// The elements as they stand in the file.
    pub fn as_bytes(&self) -> &[u8] {
        self.view.as_bytes()
    }

    /// The strings, as bytes (tokens may be invalid UTF-8). `None` for another element type.
    pub fn strings(&self) -> Option<Strings<'_>> {
        (self.elem == ValueType::String).then(|| Strings { reader: Reader::new(self.as_bytes()), left: self.len })
    }

    /// The integers of any integer type. `None` for another element type, or if a
    /// `u64` does not fit an `i64`.
    pub fn ints(&self) -> Option<Scalars<'_, i64>> {
        let decode: fn(&[u8]) -> i64 = match self.elem {
            ValueType::U8 => |b| u8::from_le_bytes(fixed(b)).into(),
            ValueType::I8 => |b| i8::from_le_bytes(fixed(b)).into(),
            ValueType::U16 => |b| u16::from_le_bytes(fixed(b)).into(),
            ValueType::I16 => |b| i16::from_le_bytes(fixed(b)).into(),
            ValueType::U32 => |b| u32::from_le_bytes(fixed(b)).into(),
            ValueType::I32 => |b| i32::from_le_bytes(fixed(b)).into(),
            ValueType::U64 | ValueType::I64 => |b| i64::from_le_bytes(fixed(b)),
            _ => return None,
        };
        let ints = self.scalars(decode)?;
        let wraps = self.elem == ValueType::U64 && ints.clone().any(|value| value < 0);
        (!wraps).then_some(ints)
    }

    /// The floats, rounded to single precision. `None` for another element type.
    pub fn f32s(&self) -> Option<Scalars<'_, f32>> {
        match self.elem {
            ValueType::F32 => self.scalars(|b| f32::from_le_bytes(fixed(b))),
            ValueType::F64 => self.scalars(|b| f64::from_le_bytes(fixed(b)) as f32),
            _ => None,
        }
    }

    /// The bools. `None` for another element type.
    pub fn bools(&self) -> Option<Scalars<'_, bool>> {
        match self.elem {
            ValueType::Bool => self.scalars(|b| u8::from_le_bytes(fixed(b)) != 0),
            _ => None,
        }
    }

    /// Walks the inner arrays, which share the bytes. `None` for another element type.
    pub fn arrays(&self) -> Option<impl Iterator<Item = Array>> {
        let mut reader = (self.elem == ValueType::Array).then(|| Reader::new(self.as_bytes()))?;
        Some((0..self.len).map_while(move |_| {
            let (elem, len, range) = crate::parse::inner_array(&mut reader)?;
            Some(Array::new(elem, len, self.view.slice(range)))
        }))
    }

    fn scalars<T>(&self, decode: fn(&[u8]) -> T) -> Option<Scalars<'_, T>> {
        let size = self.elem.fixed_bytes()?;
        Some(Scalars { chunks: self.as_bytes().chunks_exact(size), decode })
    }

    /// Appends element type, count and elements.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.elem.id().to_le_bytes());
        out.extend((self.len as u64).to_le_bytes());
        out.extend_from_slice(self.as_bytes());
    }
}

/// The first `N` bytes; zeros where there are fewer.
fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or([0; N])
}

impl PartialEq for Array {
    fn eq(&self, other: &Array) -> bool {
        self.elem == other.elem && self.len == other.len && self.as_bytes() == other.as_bytes()
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}; {}]", self.elem, self.len)
    }
}

/// Walks an array of strings without copying one.
#[derive(Clone)]
pub struct Strings<'a> {
    reader: Reader<'a>,
    left: usize,
}

impl<'a> Iterator for Strings<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        // The array was checked on opening. Should the file have changed since, the walk ends or yields
        // other bytes, but stays inside.
        Some(self.reader.string().unwrap_or_default())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Strings<'_> {}

/// Walks an array of numbers.
#[derive(Clone)]
pub struct Scalars<'a, T> {
    chunks: std::slice::ChunksExact<'a, u8>,
    decode: fn(&[u8]) -> T,
}

impl<T> Scalars<'_, T> {
    /// The element at `index`, in constant time.
    pub fn get(&self, index: usize) -> Option<T> {
        self.chunks.clone().nth(index).map(self.decode)
    }
}

impl<T> Iterator for Scalars<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.chunks.next().map(self.decode)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.chunks.size_hint()
    }
}

impl<T> ExactSizeIterator for Scalars<'_, T> {}

macro_rules! array_from {
    ($($from:ty => $variant:ident),* $(,)?) => {$(
        impl From<&[$from]> for Array {
            fn from(values: &[$from]) -> Array {
                let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                Array::new(ValueType::$variant, values.len(), View::from_vec(bytes))
            }
        }
        impl From<&[$from]> for Value {
            fn from(values: &[$from]) -> Value {
                Value::Array(values.into())
            }
        }
        impl From<Vec<$from>> for Value {
            fn from(values: Vec<$from>) -> Value {
                Value::Array(values.as_slice().into())
            }
        }
    )*};
}

array_from! { u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, u64 => U64, i64 => I64, f32 => F32, f64 => F64 }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_walked_as_bytes() {
        let array = Array::from_strings([&b"a"[..], b"", b"\xff\xfe"]);
        let walked: Vec<&[u8]> = array.strings().into_iter().flatten().collect();
        assert_eq!(walked, [&b"a"[..], b"", b"\xff\xfe"]);
        assert_eq!(array.strings().map(|s| s.len()), Some(3));
        assert!(array.ints().is_none());
    }

    #[test]
    fn numbers_have_random_access() {
        let array = Array::from(&[1i32, -2, 3][..]);
        let ints = array.ints().unwrap_or_else(|| unreachable!());
        assert_eq!(ints.get(1), Some(-2));
        assert_eq!(ints.get(3), None);
        assert_eq!(ints.collect::<Vec<_>>(), [1, -2, 3]);
        assert!(Array::from(&[1u64, u64::MAX][..]).ints().is_none());
        assert_eq!(Array::from(&[0.5f64][..]).f32s().and_then(|mut f| f.next()), Some(0.5));
    }
}
