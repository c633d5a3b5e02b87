//! One metadata value. Takes and gives plain Rust types; strings and arrays are
//! views onto the file's bytes. Must not know any key.

use std::fmt;

use crate::array::Array;
use crate::mapped::View;

/// The value types of the file format, with their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
#[repr(u32)]
pub enum ValueType {
    U8 = 0,
    I8 = 1,
    U16 = 2,
    I16 = 3,
    U32 = 4,
    I32 = 5,
    F32 = 6,
    Bool = 7,
    String = 8,
    Array = 9,
    U64 = 10,
    I64 = 11,
    F64 = 12,
}

impl ValueType {
    const ALL: [ValueType; 13] = [
        ValueType::U8,
        ValueType::I8,
        ValueType::U16,
        ValueType::I16,
        ValueType::U32,
        ValueType::I32,
        ValueType::F32,
        ValueType::Bool,
        ValueType::String,
        ValueType::Array,
        ValueType::U64,
        ValueType::I64,
        ValueType::F64,
    ];

    /// The type with this number in a file.
    pub fn from_id(id: u32) -> Option<ValueType> {
        ValueType::ALL.get(usize::try_from(id).ok()?).copied()
    }

    /// The number in a file.
    pub const fn id(self) -> u32 {
        self as u32
    }

    /// Bytes of one value; `None` for strings and arrays, whose size varies.
    pub const fn fixed_bytes(self) -> Option<usize> {
        match self {
            ValueType::U8 | ValueType::I8 | ValueType::Bool => Some(1),
            ValueType::U16 | ValueType::I16 => Some(2),
            ValueType::U32 | ValueType::I32 | ValueType::F32 => Some(4),
            ValueType::U64 | ValueType::I64 | ValueType::F64 => Some(8),
            ValueType::String | ValueType::Array => None,
        }
    }

    /// The fewest bytes one value can take in a file.
    pub(crate) const fn least_bytes(self) -> u64 {
        match self {
            ValueType::String => 8,
            ValueType::Array => 12,
            _ => match self.fixed_bytes() {
                Some(bytes) => bytes as u64,
                None => 1,
            },
        }
    }

    /// `u32`, `string`, ...
    pub const fn name(self) -> &'static str {
        match self {
            ValueType::U8 => "u8",
            ValueType::I8 => "i8",
            ValueType::U16 => "u16",
            ValueType::I16 => "i16",
            ValueType::U32 => "u32",
            ValueType::I32 => "i32",
            ValueType::F32 => "f32",
            ValueType::Bool => "bool",
            ValueType::String => "string",
            ValueType::Array => "array",
            ValueType::U64 => "u64",
            ValueType::I64 => "i64",
            ValueType::F64 => "f64",
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A string of a file: bytes that are usually, but not surely, UTF-8.
#[derive(Clone)]
pub struct Text(View);

impl Text {
    pub(crate) fn new(view: View) -> Text {
        Text(view)
    }

    /// The bytes as they stand in the file.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The text, if it is valid UTF-8.
    pub fn to_str(&self) -> Option<&str> {
        std::str::from_utf8(self.as_bytes()).ok()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(View::from_vec(text.as_bytes().to_vec()))
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// On one line: invalid bytes become replacement characters, control characters are
/// escaped.
impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in String::from_utf8_lossy(self.as_bytes()).chars() {
            match c.is_control() {
                true => write!(f, "{}", c.escape_default())?,
                false => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

/// One metadata value. Cloning is cheap: strings and arrays share the bytes.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
    Bool(bool),
    String(Text),
    Array(Array),
}

impl Value {
    /// The type of the value.
    pub fn value_type(&self) -> ValueType {
        match self {
            Value::U8(_) => ValueType::U8,
            Value::I8(_) => ValueType::I8,
            Value::U16(_) => ValueType::U16,
            Value::I16(_) => ValueType::I16,
            Value::U32(_) => ValueType::U32,
            Value::I32(_) => ValueType::I32,
            Value::U64(_) => ValueType::U64,
            Value::I64(_) => ValueType::I64,
            Value::F32(_) => ValueType::F32,
            Value::F64(_) => ValueType::F64,
            Value::Bool(_) => ValueType::Bool,
            Value::String(_) => ValueType::String,
            Value::Array(_) => ValueType::Array,
        }
    }

    /// Any integer type, exactly. `None` for every other type.
    pub fn as_int(&self) -> Option<i128> {
        match *self {
            Value::U8(v) => Some(v.into()),
            Value::I8(v) => Some(v.into()),
            Value::U16(v) => Some(v.into()),
            Value::I16(v) => Some(v.into()),
            Value::U32(v) => Some(v.into()),
            Value::I32(v) => Some(v.into()),
            Value::U64(v) => Some(v.into()),
            Value::I64(v) => Some(v.into()),
            _ => None,
        }
    }

    /// Either float type, rounded to single precision.
    pub fn as_f32(&self) -> Option<f32> {
        match *self {
            Value::F32(v) => Some(v),
            Value::F64(v) => Some(v as f32),
            _ => None,
        }
    }

    /// The string, if it is one.
    pub fn as_text(&self) -> Option<&Text> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The array, if it is one.
    pub fn as_array(&self) -> Option<&Array> {
        match self {
            Value::Array(array) => Some(array),
            _ => None,
        }
    }

    /// Appends the value, without its type, as it stands in a file.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Value::U8(v) => out.push(*v),
            Value::I8(v) => out.extend(v.to_le_bytes()),
            Value::U16(v) => out.extend(v.to_le_bytes()),
            Value::I16(v) => out.extend(v.to_le_bytes()),
            Value::U32(v) => out.extend(v.to_le_bytes()),
            Value::I32(v) => out.extend(v.to_le_bytes()),
            Value::U64(v) => out.extend(v.to_le_bytes()),
            Value::I64(v) => out.extend(v.to_le_bytes()),
            Value::F32(v) => out.extend(v.to_le_bytes()),
            Value::F64(v) => out.extend(v.to_le_bytes()),
            Value::Bool(v) => out.push(u8::from(*v)),
            Value::String(text) => encode_string(text.as_bytes(), out),
            Value::Array(array) => array.encode(out),
        }
    }
}

/// Appends a string as it stands in a file: length, bytes.
pub(crate) fn encode_string(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// As `minfer inspect` prints it; arrays only by type and length.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::U8(v) => write!(f, "{v}"),
            Value::I8(v) => write!(f, "{v}"),
            Value::U16(v) => write!(f, "{v}"),
            Value::I16(v) => write!(f, "{v}"),
            Value::U32(v) => write!(f, "{v}"),
            Value::I32(v) => write!(f, "{v}"),
            Value::U64(v) => write!(f, "{v}"),
            Value::I64(v) => write!(f, "{v}"),
            Value::F32(v) => write!(f, "{v}"),
            Value::F64(v) => write!(f, "{v}"),
            Value::Bool(v) => write!(f, "{v}"),
            Value::String(text) => write!(f, "{text}"),
            Value::Array(array) => write!(f, "{array}"),
        }
    }
}

macro_rules! value_from {
    ($($from:ty => $variant:ident),* $(,)?) => {$(
        impl From<$from> for Value {
            fn from(value: $from) -> Value {
                Value::$variant(value.into())
            }
        }
    )*};
}

value_from! {
    u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, u64 => U64, i64 => I64,
    f32 => F32, f64 => F64, bool => Bool, &str => String, Array => Array,
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::String(Text(View::from_vec(text.into_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_prints_on_one_line() {
        let text = Text(View::from_vec(b"it's\n\x1b[31m \xff \xc3\xa9".to_vec()));
        assert_eq!(text.to_string(), "it's\\n\\u{1b}[31m \u{fffd} \u{e9}");
        assert_eq!(text.to_str(), None);
    }

    #[test]
    fn type_numbers_are_positions() {
        for (id, ty) in ValueType::ALL.into_iter().enumerate() {
            assert_eq!((ty.id() as usize, ValueType::from_id(id as u32)), (id, Some(ty)));
        }
        assert_eq!(ValueType::from_id(13), None);
    }
}
