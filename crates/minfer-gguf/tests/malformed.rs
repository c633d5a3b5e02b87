//! Bytes that no honest writer makes. Each ends in a typed error; none panics,
//! reads outside, or makes the reader allocate what a count merely claims.

use minfer_gguf::*;

/// A file that has a bit of everything and that every byte of which matters.
fn valid() -> Vec<u8> {
    let mut writer = GgufWriter::new();
    writer
        .set("general.architecture", "llama")
        .set("general.alignment", 32u32);
    writer
        .set("a.bool", true)
        .set("a.float", 0.5f32)
        .set("a.u64", u64::MAX);
    writer.set("a.ints", vec![1i32, -2, 3]);
    writer.set("a.tokens", Array::from_strings(["<s>", "", "two"]));
    writer.set(
        "a.nested",
        Array::from_values(ValueType::Array, &[vec![1u8].into(), vec![2u16].into()]).unwrap(),
    );
    writer
        .tensor_f32("one", &[32, 2], DType::Q4_0, &[0.5; 64])
        .unwrap();
    writer
        .tensor_f32("two", &[8], DType::F32, &[1.0; 8])
        .unwrap();
    writer.to_bytes()
}

fn open(bytes: &[u8]) -> Result<GgufFile, GgufError> {
    GgufFile::from_bytes(bytes.to_vec())
}

fn error(bytes: &[u8]) -> GgufError {
    match open(bytes) {
        Ok(file) => panic!("accepted: {file:?}"),
        Err(error) => error,
    }
}

macro_rules! assert_error {
    ($bytes:expr, $pattern:pat) => {
        let error = error(&$bytes);
        assert!(matches!(error, $pattern), "{error:?}");
        assert!(!error.to_string().is_empty());
    };
}

/// Header of the given version, tensor count and metadata count, then `rest`.
fn header(version: u32, n_tensors: u64, n_entries: u64, rest: &[u8]) -> Vec<u8> {
    let mut bytes = b"GGUF".to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend(n_tensors.to_le_bytes());
    bytes.extend(n_entries.to_le_bytes());
    bytes.extend(rest);
    bytes
}

/// A metadata entry with the key `a`, a type number and raw value bytes.
fn entry(ty: u32, value: &[u8]) -> Vec<u8> {
    let mut bytes = 1u64.to_le_bytes().to_vec();
    bytes.push(b'a');
    bytes.extend(ty.to_le_bytes());
    bytes.extend(value);
    bytes
}

/// A file with one tensor `t` and `data` bytes of data.
fn one_tensor(dims: &[u64], type_id: u32, offset: u64, data: usize) -> Vec<u8> {
    let mut rest = 1u64.to_le_bytes().to_vec();
    rest.push(b't');
    rest.extend((dims.len() as u32).to_le_bytes());
    dims.iter().for_each(|dim| rest.extend(dim.to_le_bytes()));
    rest.extend(type_id.to_le_bytes());
    rest.extend(offset.to_le_bytes());
    let mut bytes = header(3, 1, 0, &rest);
    bytes.resize(bytes.len().next_multiple_of(32) + data, 7);
    bytes
}

#[test]
fn every_prefix_is_truncated() {
    let bytes = valid();
    assert!(open(&bytes).is_ok());
    assert_error!(bytes[..0], GgufError::Empty);
    for len in 1..bytes.len() {
        let error = error(&bytes[..len]);
        assert!(
            error.to_string().contains("truncated"),
            "{len} of {} bytes: {error}",
            bytes.len()
        );
    }
}

#[test]
fn truncation_tells_both_sizes() {
    let bytes = valid();
    let error = error(&bytes[..bytes.len() - 1]);
    let text = error.to_string();
    assert!(
        text.contains(&format!("the file has {} bytes", bytes.len() - 1)),
        "{text}"
    );
    assert!(
        text.contains(&format!("tensor `two` needs {}", bytes.len())),
        "{text}"
    );
}

#[test]
fn other_files_are_named() {
    for (bytes, word) in [
        (
            &b"<!DOCTYPE html><html><body>404</body></html>"[..],
            "web page",
        ),
        (b"PK\x03\x04\x14\0\0\0\x08\0", "zip"),
        (b"This is no model at all.\n", "text file"),
        (b"ggml\x01\0\0\0", "text file"),
    ] {
        let error = error(bytes);
        assert!(matches!(error, GgufError::NotGguf { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("GGUF"), "{text}");
        assert!(text.contains(word) || word == "text file", "{text}");
    }
}

#[test]
fn versions_and_byte_order() {
    for version in [2, 3] {
        assert!(open(&header(version, 0, 0, &[])).is_ok());
    }
    assert_error!(
        header(1, 0, 0, &[0; 8]),
        GgufError::UnsupportedVersion { version: 1 }
    );
    assert_error!(
        b"GGUF\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"[..],
        GgufError::UnsupportedVersion { version: 1 }
    );
    assert_error!(
        header(0, 0, 0, &[]),
        GgufError::UnsupportedVersion { version: 0 }
    );
    assert_error!(
        header(4, 0, 0, &[]),
        GgufError::UnsupportedVersion { version: 4 }
    );
    assert_error!(
        header(u32::MAX, 0, 0, &[]),
        GgufError::UnsupportedVersion { .. }
    );
    assert_error!(
        header(3u32.swap_bytes(), 0, 0, &[]),
        GgufError::BigEndian { version: 3 }
    );
}

#[test]
fn counts_are_held_against_the_bytes_left() {
    for count in [0x1D1D_1D1D_1D1D_1D1D, u64::MAX, 1 << 32, 1] {
        assert_error!(header(3, count, 0, &[]), GgufError::Count { .. });
        assert_error!(header(3, 0, count, &[]), GgufError::Count { .. });
    }
    for count in [0xFFFF_FFFF, u64::MAX, 5] {
        assert_error!(header(3, 0, count, &[0; 64]), GgufError::Count { .. });
    }
    // 64 zero bytes are an entry with an empty key.
    assert_error!(header(3, 0, 4, &[0; 64]), GgufError::EmptyName { .. });
    assert_error!(
        header(3, 0, 70_000, &vec![0; 1 << 20]),
        GgufError::TooMany { .. }
    );
}

#[test]
fn string_lengths_are_checked() {
    let size = header(3, 0, 1, &[0; 12]).len() as u64;
    for len in [u64::MAX, 1 << 63, size + 1, u64::MAX - 31] {
        let mut rest = len.to_le_bytes().to_vec();
        rest.extend([0; 12]);
        assert_error!(
            header(3, 0, 1, &rest),
            GgufError::Truncated {
                place: Place::Key(0),
                ..
            }
        );
        let value = entry(8, &len.to_le_bytes());
        assert_error!(
            header(3, 0, 1, &value),
            GgufError::Truncated {
                place: Place::Value(_),
                ..
            }
        );
    }
    let mut long = 70_000u64.to_le_bytes().to_vec();
    long.extend(vec![b'k'; 70_100]);
    assert_error!(
        header(3, 0, 1, &long),
        GgufError::TooLong { got: 70_000, .. }
    );
    let mut invalid = 2u64.to_le_bytes().to_vec();
    invalid.extend([0xff, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_error!(header(3, 0, 1, &invalid), GgufError::NotUtf8 { .. });
}

#[test]
fn array_counts_and_types_are_checked() {
    for elem in [0u32, 1, 2, 4, 6, 7, 8, 9, 10, 12] {
        for count in [u64::MAX, 1 << 63, 1 << 61, 1 << 40] {
            let mut value = elem.to_le_bytes().to_vec();
            value.extend(count.to_le_bytes());
            assert_error!(
                header(3, 0, 1, &entry(9, &value)),
                GgufError::Count {
                    place: Place::Value(_),
                    ..
                }
            );
        }
    }
    for elem in [13u32, 255, u32::MAX] {
        for count in [0, 1, u64::MAX] {
            let mut value = elem.to_le_bytes().to_vec();
            value.extend(count.to_le_bytes());
            assert_error!(
                header(3, 0, 1, &entry(9, &value)),
                GgufError::UnknownValueType { .. }
            );
        }
        assert_error!(
            header(3, 0, 1, &entry(elem, &[0; 16])),
            GgufError::UnknownValueType { .. }
        );
    }
    assert_error!(
        header(3, 0, 1, &entry(7, &[2])),
        GgufError::BadBool { got: 2, .. }
    );
    let mut bools = 7u32.to_le_bytes().to_vec();
    bools.extend(2u64.to_le_bytes());
    bools.extend([1, 9]);
    assert_error!(
        header(3, 0, 1, &entry(9, &bools)),
        GgufError::BadBool { got: 9, .. }
    );
}

#[test]
fn nesting_is_limited() {
    let nested = |depth: usize| {
        let mut value = Vec::new();
        for _ in 1..depth {
            value.extend(9u32.to_le_bytes());
            value.extend(1u64.to_le_bytes());
        }
        value.extend(0u32.to_le_bytes());
        value.extend(0u64.to_le_bytes());
        header(3, 0, 1, &entry(9, &value))
    };
    assert!(open(&nested(4)).is_ok());
    assert_error!(nested(5), GgufError::TooDeep { limit: 4, .. });
    assert_error!(nested(100_000), GgufError::TooDeep { .. });
}

#[test]
fn duplicates_are_refused() {
    let mut twice = entry(0, &[1]);
    twice.extend(entry(0, &[2]));
    assert_error!(header(3, 0, 2, &twice), GgufError::DuplicateKey { .. });
    let mut writer = GgufWriter::new();
    writer.tensor_f32("t", &[8], DType::F32, &[1.0; 8]).unwrap();
    writer.tensor_f32("t", &[8], DType::F32, &[1.0; 8]).unwrap();
    assert_error!(writer.to_bytes(), GgufError::DuplicateTensor { .. });
}

#[test]
fn alignment_is_checked() {
    for alignment in [0u32, 1, 3, 4, 33, 1 << 21, 0x8000_0000, u32::MAX] {
        let mut writer = GgufWriter::new();
        writer.alignment(alignment);
        assert_error!(writer.to_bytes(), GgufError::Alignment { .. });
    }
    let with = |value: Value| {
        let mut writer = GgufWriter::new();
        writer.set("general.alignment", value);
        writer.to_bytes()
    };
    assert!(
        open(&with(64i32.into())).is_ok(),
        "any integer type will do"
    );
    assert_error!(with((-32i32).into()), GgufError::WrongType { .. });
    assert_error!(with("32".into()), GgufError::WrongType { .. });
    assert_error!(with(32f32.into()), GgufError::WrongType { .. });
}

#[test]
fn dimensions_are_checked() {
    for dims in [&[1u64, 0][..], &[0], &[0, u64::MAX], &[4, 4, 4, 0]] {
        assert_error!(one_tensor(dims, 0, 0, 64), GgufError::ZeroDim { .. });
    }
    for dims in [
        &[1u64 << 40, 1 << 40][..],
        &[u64::MAX, 2],
        &[1 << 62],
        &[u64::MAX],
    ] {
        assert_error!(one_tensor(dims, 0, 0, 64), GgufError::TooLarge { .. });
    }
    for dims in [
        &[1152, (1u64 << 42) + 1][..],
        &[(1 << 62) - 1],
        &[4 * 0x7FFF_FFFF, 2],
        &[17],
    ] {
        assert_error!(
            one_tensor(dims, 0, 0, 64),
            GgufError::Truncated {
                place: Place::Tensor(_),
                ..
            }
        );
    }
    assert!(open(&one_tensor(&[4, 2, 2, 1], 0, 0, 64)).is_ok());
    assert_error!(
        one_tensor(&[], 0, 0, 64),
        GgufError::DimCount { got: 0, .. }
    );
    assert_error!(
        one_tensor(&[1; 5], 0, 0, 64),
        GgufError::DimCount { got: 5, .. }
    );
    let mut huge = one_tensor(&[1], 0, 0, 64);
    huge[33..37].copy_from_slice(&1_000_000u32.to_le_bytes());
    assert_error!(huge, GgufError::DimCount { got: 1_000_000, .. });
}

#[test]
fn rows_are_whole_blocks() {
    let q4_k = DType::Q4_K.ggml_id();
    assert_error!(
        one_tensor(&[896, 2], q4_k, 0, 4096),
        GgufError::RowLength {
            row: 896,
            block: 256,
            ..
        }
    );
    let text = error(&one_tensor(&[896, 2], q4_k, 0, 4096)).to_string();
    assert!(
        text.contains("`t`")
            && text.contains("896")
            && text.contains("Q4_K")
            && text.contains("256"),
        "{text}"
    );
    assert!(
        open(&one_tensor(
            &[896, 2],
            DType::Q5_0.ggml_id(),
            0,
            2 * 28 * 22
        ))
        .is_ok()
    );
    // The whole is a multiple of the block, the row is not.
    assert_error!(
        one_tensor(&[128, 2], q4_k, 0, 144),
        GgufError::RowLength { .. }
    );
}

#[test]
fn offsets_stay_inside() {
    assert_error!(
        one_tensor(&[8], 0, 16, 64),
        GgufError::Misaligned {
            offset: 16,
            alignment: 32,
            ..
        }
    );
    for offset in [1u64 << 40, u64::MAX - 31, 1 << 63, 64] {
        assert_error!(
            one_tensor(&[8], 0, offset, 64),
            GgufError::Truncated {
                place: Place::Tensor(_),
                ..
            }
        );
    }
    assert!(open(&one_tensor(&[8], 0, 32, 64)).is_ok());
    assert_error!(one_tensor(&[9], 0, 32, 64), GgufError::Truncated { .. });
    // A format of unknown size must at least start inside.
    assert_error!(one_tensor(&[9], 4242, 64, 64), GgufError::Truncated { .. });
}

#[test]
fn tensors_do_not_overlap() {
    let bytes = valid();
    let file = open(&bytes).unwrap();
    let [one, two] = file.tensors() else {
        panic!("two tensors")
    };
    assert!(two.offset > one.offset);
    let mut patched = bytes.clone();
    let name = patched
        .windows(3)
        .position(|window| window == b"two")
        .unwrap();
    // The last `two` in the tables is the tensor; the first is a token.
    let name = patched[name + 3..]
        .windows(3)
        .position(|window| window == b"two")
        .unwrap()
        + name
        + 3;
    let at = name + 3 + 4 + 8 + 4;
    assert_eq!(patched[at..at + 8], 64u64.to_le_bytes());
    patched[at..at + 8].copy_from_slice(&0u64.to_le_bytes());
    assert_error!(patched, GgufError::Overlap { .. });
    patched[at..at + 8].copy_from_slice(&32u64.to_le_bytes());
    assert_error!(patched, GgufError::Overlap { .. });
}

/// Uses everything a reader offers; the results do not matter.
fn exercise(file: &GgufFile) {
    for entry in file.metadata() {
        let _ = format!("{} = {}", entry.key, entry.value);
        if let Value::Array(array) = &entry.value {
            let strings = array
                .strings()
                .map_or(0, |strings| strings.map(<[u8]>::len).sum());
            let ints = array.ints().map_or(0, |ints| ints.count());
            let inner = array.arrays().map_or(0, |arrays| arrays.count());
            assert!(strings + ints + inner <= file.file_bytes() as usize);
        }
    }
    for tensor in file.tensors() {
        let bytes = file.tensor_bytes(tensor);
        assert_eq!(bytes.len() as u64, tensor.n_bytes);
        if let Ok(dtype) = tensor.dtype()
            && let Some(row_bytes) = dtype.row_bytes(tensor.row_elems() as usize)
        {
            let mut row = vec![0.0; tensor.row_elems() as usize];
            let _ = decode_row(dtype, &bytes[..row_bytes], &mut row);
        }
    }
    let _ = (file.kind(), file.require_model().is_ok());
}

/// A small generator of its own, so that a failure repeats.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

#[test]
fn ten_thousand_damaged_files() {
    let bytes = valid();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut accepted = 0;
    for _ in 0..10_000 {
        let mut damaged = bytes.clone();
        for _ in 0..=random.below(4) {
            let at = random.below(damaged.len());
            damaged[at] = match random.below(3) {
                0 => damaged[at] ^ (1 << random.below(8)),
                1 => [0, 0xff, 0x7f, 0x80, 1][random.below(5)],
                _ => random.below(256) as u8,
            };
        }
        if random.below(4) == 0 {
            damaged.truncate(random.below(damaged.len()));
        }
        match open(&damaged) {
            Ok(file) => {
                exercise(&file);
                accepted += 1;
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert!(
        accepted > 100,
        "damage in names and data does no harm: {accepted} accepted"
    );
}

#[test]
fn paths_that_are_no_files() {
    let dir = std::env::temp_dir();
    let error = GgufFile::open(&dir).unwrap_err();
    assert!(matches!(error.problem(), GgufError::Directory), "{error}");
    assert!(
        error.to_string().contains(&*dir.to_string_lossy()),
        "{error}"
    );
    let error = GgufFile::open(dir.join("minfer-gguf-no-such-file.gguf")).unwrap_err();
    assert!(matches!(error.problem(), GgufError::Missing), "{error}");
    let empty = dir.join(format!("minfer-gguf-empty-{}.gguf", std::process::id()));
    std::fs::write(&empty, []).unwrap();
    let error = GgufFile::open(&empty).unwrap_err();
    std::fs::remove_file(&empty).unwrap();
    assert!(matches!(error.problem(), GgufError::Empty), "{error}");
    #[cfg(unix)]
    {
        let error = GgufFile::open("/dev/null").unwrap_err();
        assert!(matches!(error.problem(), GgufError::NotRegular), "{error}");
    }
}
