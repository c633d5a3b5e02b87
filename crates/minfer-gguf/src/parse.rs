//! One file's bytes to its metadata and tensor table. Takes mapped bytes, gives a
//! `Parsed`, every range of which lies inside them. Knows nothing of split sets.
//!
//! Layout: magic, version u32, tensor count u64, metadata count u64, metadata
//! entries (key, type u32, value), tensor entries (name, dimension count u32,
//! dimensions u64, type u32, offset u64), padding, data. Versions 2 and 3 are equal
//! in layout.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{GgufError, Place};
use crate::mapped::{MappedBytes, View};
use crate::metadata::{Entry, Metadata};
use crate::reader::Reader;
use crate::sniff;
use crate::tensor::{TensorInfo, check_overlaps, measure};
use crate::value::{Text, Value, ValueType};

pub(crate) const MAGIC: [u8; 4] = *b"GGUF";
/// Used when `general.alignment` is absent.
pub(crate) const DEFAULT_ALIGNMENT: u64 = 32;
/// The format asks for multiples of 8; above 1 MiB only damage has been seen.
pub(crate) const ALIGNMENTS: std::ops::RangeInclusive<u64> = 8..=1 << 20;
/// The format's limit for keys; tensor names are shorter still.
const MAX_NAME_BYTES: u64 = 65_535;
pub(crate) const MAX_DIMS: u32 = 4;
/// An array of arrays of arrays of arrays is the deepest accepted.
const MAX_DEPTH: u32 = 4;
/// Far above any real file; keeps the tables of a hostile one small.
const MAX_ENTRIES: u64 = 1 << 16;
const MAX_TENSORS: u64 = 1 << 20;
/// Key length, one letter, type, one byte.
const LEAST_ENTRY_BYTES: u64 = 8 + 1 + 4 + 1;
/// Name length, one letter, dimension count, one dimension, type, offset.
const LEAST_TENSOR_BYTES: u64 = 8 + 1 + 4 + 8 + 4 + 8;

/// One file, understood.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) version: u32,
    pub(crate) metadata: Metadata,
    /// In file order, `part` as given to `parse`.
    pub(crate) tensors: Vec<TensorInfo>,
    /// The file, or its first bytes.
    pub(crate) bytes: Arc<MappedBytes>,
    /// Size of the whole file.
    pub(crate) file_bytes: u64,
    /// Where the tensor table ends.
    pub(crate) header_bytes: usize,
}

/// Reads one file of `file_bytes`, of which `bytes` may be only the first ones. `part` is stored in the tensors.
///
/// `Truncated` with a need within the file says that more of it must be here; every other error would also be one if all
/// of it were.
pub(crate) fn parse(bytes: Arc<MappedBytes>, file_bytes: u64, part: usize) -> Result<Parsed, GgufError> {
    let all: &[u8] = &bytes;
    let mut reader = Reader::of_start(all, file_bytes);
    let header = |short: crate::reader::Short| short.at(Place::Header);

    let version = version(all, &mut reader)?;
    let n_tensors = reader.u64().map_err(header)?;
    let n_entries = reader.u64().map_err(header)?;
    reader.check_count(n_entries, LEAST_ENTRY_BYTES, || Place::Header)?;
    reader.check_count(n_tensors, LEAST_TENSOR_BYTES, || Place::Header)?;
    for (what, count, limit) in [("metadata entries", n_entries, MAX_ENTRIES), ("tensors", n_tensors, MAX_TENSORS)] {
        if count > limit {
            return Err(GgufError::TooMany { what, count, limit });
        }
    }

    // The vectors grow as entries are found: a count alone reserves nothing.
    let mut entries = Vec::new();
    for index in 0..n_entries {
        entries.push(entry(&mut reader, index, &bytes)?);
    }
    let metadata = Metadata::new(entries)?;
    let alignment = alignment(&metadata)?;

    reader.check_count(n_tensors, LEAST_TENSOR_BYTES, || Place::Header)?;
    let mut tensors = Vec::new();
    for index in 0..n_tensors {
        tensors.push(tensor(&mut reader, index, part)?);
    }
    let header_bytes = reader.pos();
    let data_start = (header_bytes as u64).next_multiple_of(alignment);
    for info in &mut tensors {
        place(info, data_start, alignment, file_bytes)?;
    }
    check_overlaps(&tensors)?;
    Ok(Parsed { version, metadata, tensors, bytes, file_bytes, header_bytes })
}

/// Magic and version.
fn version(all: &[u8], reader: &mut Reader<'_>) -> Result<u32, GgufError> {
    if all.is_empty() {
        return Err(GgufError::Empty);
    }
    let head = all.get(..all.len().min(MAGIC.len())).unwrap_or_default();
    if !MAGIC.starts_with(head) {
        return Err(GgufError::NotGguf { found: head.to_vec(), guess: sniff::guess(all) });
    }
    reader.take(MAGIC.len() as u64).map_err(|short| short.at(Place::Header))?;
    let version = reader.u32().map_err(|short| short.at(Place::Header))?;
    match (version, version.swap_bytes()) {
        (2 | 3, _) => Ok(version),
        (_, swapped @ 1..=3) => Err(GgufError::BigEndian { version: swapped }),
        _ => Err(GgufError::UnsupportedVersion { version }),
    }
}

fn entry(reader: &mut Reader<'_>, index: u64, bytes: &Arc<MappedBytes>) -> Result<Entry, GgufError> {
    let key = name(reader, || Place::Key(index))?;
    let place = || Place::Value(key.clone());
    let ty = value_type(reader, &place)?;
    let value = value(reader, ty, bytes, &place)?;
    Ok(Entry { key, value })
}

/// A key or tensor name: not empty, not huge, UTF-8 without control characters.
fn name(reader: &mut Reader<'_>, place: impl Fn() -> Place) -> Result<String, GgufError> {
    let len = reader.u64().map_err(|short| short.at(place()))?;
    // Before it is read: nobody should map so much of a file for a name.
    if len > MAX_NAME_BYTES && len <= reader.remaining() {
        return Err(GgufError::TooLong { place: place(), got: len, limit: MAX_NAME_BYTES });
    }
    let bytes = reader.take(len).map_err(|short| short.at(place()))?;
    if len == 0 {
        return Err(GgufError::EmptyName { place: place() });
    }
    let text = std::str::from_utf8(bytes).map_err(|_| GgufError::NotUtf8 { place: place() })?;
    // Names end up in messages and on terminals.
    if text.chars().any(char::is_control) {
        return Err(GgufError::ControlInName { place: place() });
    }
    Ok(text.to_owned())
}

fn value_type(reader: &mut Reader<'_>, place: &impl Fn() -> Place) -> Result<ValueType, GgufError> {
    let id = reader.u32().map_err(|short| short.at(place()))?;
    ValueType::from_id(id).ok_or_else(|| GgufError::UnknownValueType { place: place(), id })
}

fn value(
    reader: &mut Reader<'_>,
    ty: ValueType,
    bytes: &Arc<MappedBytes>,
    place: &impl Fn() -> Place,
) -> Result<Value, GgufError> {
    let short = |short: crate::reader::Short| short.at(place());
    Ok(match ty {
        ValueType::U8 => Value::U8(reader.u8().map_err(short)?),
        ValueType::I8 => Value::I8(i8::from_le_bytes(reader.array().map_err(short)?)),
        ValueType::U16 => Value::U16(u16::from_le_bytes(reader.array().map_err(short)?)),
        ValueType::I16 => Value::I16(i16::from_le_bytes(reader.array().map_err(short)?)),
        ValueType::U32 => Value::U32(reader.u32().map_err(short)?),
        ValueType::I32 => Value::I32(i32::from_le_bytes(reader.array().map_err(short)?)),
        ValueType::U64 => Value::U64(reader.u64().map_err(short)?),
        ValueType::I64 => Value::I64(i64::from_le_bytes(reader.array().map_err(short)?)),
        ValueType::F32 => Value::F32(f32::from_le_bytes(reader.array().map_err(short)?)),
        ValueType::F64 => Value::F64(f64::from_le_bytes(reader.array().map_err(short)?)),
        ValueType::Bool => Value::Bool(bool_of(reader.u8().map_err(short)?, place)?),
        ValueType::String => {
            let len = reader.string().map_err(short)?.len();
            Value::String(Text::new(View::new(bytes, reader.pos() - len..reader.pos())))
        }
        ValueType::Array => {
            let (elem, len) = array_header(reader, place)?;
            let start = reader.pos();
            skip_elements(reader, elem, len, 1, place)?;
            // The elements are all mapped, so their count fits.
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            Value::Array(crate::array::Array::new(elem, len, View::new(bytes, start..reader.pos())))
        }
    })
}

fn bool_of(byte: u8, place: &impl Fn() -> Place) -> Result<bool, GgufError> {
    match byte {
        0 => Ok(false),
        1 => Ok(true),
        got => Err(GgufError::BadBool { place: place(), got }),
    }
}

/// Element type and count, the count checked against the bytes left.
fn array_header(reader: &mut Reader<'_>, place: &impl Fn() -> Place) -> Result<(ValueType, u64), GgufError> {
    let elem = value_type(reader, place)?;
    let len = reader.u64().map_err(|short| short.at(place()))?;
    reader.check_count(len, elem.least_bytes(), place)?;
    Ok((elem, len))
}

/// Walks `len` elements and checks them. Every element consumes at least one byte,
/// so the walk ends with the file at the latest.
fn skip_elements(
    reader: &mut Reader<'_>,
    elem: ValueType,
    len: u64,
    depth: u32,
    place: &impl Fn() -> Place,
) -> Result<(), GgufError> {
    match (elem, elem.fixed_bytes()) {
        (ValueType::Bool, _) => {
            let bools = reader.take(len).map_err(|short| short.at(place()))?;
            for &byte in bools {
                bool_of(byte, place)?;
            }
        }
        (_, Some(size)) => {
            reader.take(len.saturating_mul(size as u64)).map_err(|short| short.at(place()))?;
        }
        (ValueType::Array, None) => {
            if depth >= MAX_DEPTH {
                return Err(GgufError::TooDeep { place: place(), limit: MAX_DEPTH });
            }
            for _ in 0..len {
                let (elem, len) = array_header(reader, place)?;
                skip_elements(reader, elem, len, depth + 1, place)?;
            }
        }
        (_, None) => {
            for _ in 0..len {
                reader.string().map_err(|short| short.at(place()))?;
            }
        }
    }
    Ok(())
}

/// The next array inside an array: element type, length, where its elements lie.
/// `None` only if the bytes changed since they were checked.
pub(crate) fn inner_array(reader: &mut Reader<'_>) -> Option<(ValueType, usize, Range<usize>)> {
    let place = || Place::Header;
    let (elem, len) = array_header(reader, &place).ok()?;
    let start = reader.pos();
    skip_elements(reader, elem, len, 1, &place).ok()?;
    Some((elem, usize::try_from(len).ok()?, start..reader.pos()))
}

/// Whether readers accept this alignment.
pub(crate) fn is_alignment(value: u64) -> bool {
    value.is_power_of_two() && ALIGNMENTS.contains(&value)
}

fn alignment(metadata: &Metadata) -> Result<u64, GgufError> {
    let Some(got) = metadata.u64("general.alignment")? else {
        return Ok(DEFAULT_ALIGNMENT);
    };
    if !is_alignment(got) {
        return Err(GgufError::Alignment { got, least: *ALIGNMENTS.start(), most: *ALIGNMENTS.end() });
    }
    Ok(got)
}

/// One tensor entry; `offset` is still relative to the data section.
fn tensor(reader: &mut Reader<'_>, index: u64, part: usize) -> Result<TensorInfo, GgufError> {
    let place = || Place::TensorInfo(index);
    let name = name(reader, place)?;
    let short = |short: crate::reader::Short| short.at(place());
    let n_dims = reader.u32().map_err(short)?;
    if n_dims == 0 || n_dims > MAX_DIMS {
        return Err(GgufError::DimCount { tensor: name, got: n_dims, most: MAX_DIMS });
    }
    let mut dims = Vec::with_capacity(n_dims as usize);
    for _ in 0..n_dims {
        dims.push(reader.u64().map_err(short)?);
    }
    let ty = crate::dtype::TensorType::from_ggml_id(reader.u32().map_err(short)?);
    let offset = reader.u64().map_err(short)?;
    let n_bytes = measure(&name, &dims, ty)?;
    Ok(TensorInfo { name, dims, ty, part, offset, n_bytes })
}

/// Makes the offset absolute and checks that the data lie within the file.
fn place(info: &mut TensorInfo, data_start: u64, alignment: u64, file_bytes: u64) -> Result<(), GgufError> {
    if !info.offset.is_multiple_of(alignment) {
        return Err(GgufError::Misaligned { tensor: info.name.clone(), offset: info.offset, alignment });
    }
    let absolute = data_start.saturating_add(info.offset);
    // A type of unknown size is only known to start inside the file.
    let needs = absolute.saturating_add(info.n_bytes.max(1));
    if needs > file_bytes {
        return Err(GgufError::Truncated { place: Place::Tensor(info.name.clone()), has: file_bytes, needs });
    }
    info.offset = absolute;
    Ok(())
}
