//! Bytes that no honest writer makes. Each ends in a typed error; none panics,
//! reads outside, or makes the reader allocate what a count merely claims.

use minfer_gguf::*;

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

/// A file with these tensors (name, dims, type number, offset) and `data` bytes of data.
fn tensor_table(tensors: &[(&str, &[u64], u32, u64)], data: usize) -> Vec<u8> {
    let mut rest = Vec::new();
    for (name, dims, type_id, offset) in tensors {
        rest.extend((name.len() as u64).to_le_bytes());
        rest.extend(name.as_bytes());
        rest.extend((dims.len() as u32).to_le_bytes());
        dims.iter().for_each(|dim| rest.extend(dim.to_le_bytes()));
        rest.extend(type_id.to_le_bytes());
        rest.extend(offset.to_le_bytes());
    }
    let mut bytes = header(3, tensors.len() as u64, 0, &rest);
    bytes.resize(bytes.len().next_multiple_of(32) + data, 7);
    bytes
}

/// A file with one tensor `t`.
fn one_tensor(dims: &[u64], type_id: u32, offset: u64, data: usize) -> Vec<u8> {
    tensor_table(&[("t", dims, type_id, offset)], data)
}

#[test]
fn other_files_are_named() {
    for (bytes, word) in [
        (&b"<!DOCTYPE html><html><body>404</body></html>"[..], "web page"),
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
    assert_error!(header(1, 0, 0, &[0; 8]), GgufError::UnsupportedVersion { version: 1 });
    assert_error!(b"GGUF\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"[..], GgufError::UnsupportedVersion { version: 1 });
    assert_error!(header(0, 0, 0, &[]), GgufError::UnsupportedVersion { version: 0 });
    assert_error!(header(4, 0, 0, &[]), GgufError::UnsupportedVersion { version: 4 });
    assert_error!(header(u32::MAX, 0, 0, &[]), GgufError::UnsupportedVersion { .. });
    assert_error!(header(3u32.swap_bytes(), 0, 0, &[]), GgufError::BigEndian { version: 3 });
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
    assert_error!(header(3, 0, 70_000, &vec![0; 1 << 20]), GgufError::TooMany { .. });
}

#[test]
fn string_lengths_are_checked() {
    let size = header(3, 0, 1, &[0; 12]).len() as u64;
    for len in [u64::MAX, 1 << 63, size + 1, u64::MAX - 31] {
        let mut rest = len.to_le_bytes().to_vec();
        rest.extend([0; 12]);
        assert_error!(header(3, 0, 1, &rest), GgufError::Truncated { place: Place::Key(0), .. });
        let value = entry(8, &len.to_le_bytes());
        assert_error!(header(3, 0, 1, &value), GgufError::Truncated { place: Place::Value(_), .. });
    }
    let mut long = 70_000u64.to_le_bytes().to_vec();
    long.extend(vec![b'k'; 70_100]);
    assert_error!(header(3, 0, 1, &long), GgufError::TooLong { got: 70_000, .. });
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
            assert_error!(header(3, 0, 1, &entry(9, &value)), GgufError::Count { place: Place::Value(_), .. });
        }
    }
    for elem in [13u32, 255, u32::MAX] {
        for count in [0, 1, u64::MAX] {
            let mut value = elem.to_le_bytes().to_vec();
            value.extend(count.to_le_bytes());
            assert_error!(header(3, 0, 1, &entry(9, &value)), GgufError::UnknownValueType { .. });
        }
        assert_error!(header(3, 0, 1, &entry(elem, &[0; 16])), GgufError::UnknownValueType { .. });
    }
    assert_error!(header(3, 0, 1, &entry(7, &[2])), GgufError::BadBool { got: 2, .. });
    let mut bools = 7u32.to_le_bytes().to_vec();
    bools.extend(2u64.to_le_bytes());
    bools.extend([1, 9]);
    assert_error!(header(3, 0, 1, &entry(9, &bools)), GgufError::BadBool { got: 9, .. });
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
    assert!(open(&with(64i32.into())).is_ok(), "any integer type will do");
    assert_error!(with((-32i32).into()), GgufError::WrongType { .. });
    assert_error!(with("32".into()), GgufError::WrongType { .. });
    assert_error!(with(32f32.into()), GgufError::WrongType { .. });
}

#[test]
fn dimensions_are_checked() {
    for dims in [&[1u64, 0][..], &[0], &[0, u64::MAX], &[4, 4, 4, 0]] {
        assert_error!(one_tensor(dims, 0, 0, 64), GgufError::ZeroDim { .. });
    }
    for dims in [&[1u64 << 40, 1 << 40][..], &[u64::MAX, 2], &[1 << 62], &[u64::MAX]] {
        assert_error!(one_tensor(dims, 0, 0, 64), GgufError::TooLarge { .. });
    }
    for dims in [&[1152, (1u64 << 42) + 1][..], &[(1 << 62) - 1], &[4 * 0x7FFF_FFFF, 2], &[17]] {
        assert_error!(one_tensor(dims, 0, 0, 64), GgufError::Truncated { place: Place::Tensor(_), .. });
    }
    assert!(open(&one_tensor(&[4, 2, 2, 1], 0, 0, 64)).is_ok());
    assert_error!(one_tensor(&[], 0, 0, 64), GgufError::DimCount { got: 0, .. });
    assert_error!(one_tensor(&[1; 5], 0, 0, 64), GgufError::DimCount { got: 5, .. });
    let mut huge = one_tensor(&[1], 0, 0, 64);
    huge[33..37].copy_from_slice(&1_000_000u32.to_le_bytes());
    assert_error!(huge, GgufError::DimCount { got: 1_000_000, .. });
}

#[test]
fn rows_are_whole_blocks() {
    let q4_k = DType::Q4_K.ggml_id();
    assert_error!(one_tensor(&[896, 2], q4_k, 0, 4096), GgufError::RowLength { row: 896, block: 256, .. });
    let text = error(&one_tensor(&[896, 2], q4_k, 0, 4096)).to_string();
    assert!(text.contains("`t`") && text.contains("896") && text.contains("Q4_K") && text.contains("256"), "{text}");
    assert!(open(&one_tensor(&[896, 2], DType::Q5_0.ggml_id(), 0, 2 * 28 * 22)).is_ok());
    // The whole is a multiple of the block, the row is not.
    assert_error!(one_tensor(&[128, 2], q4_k, 0, 144), GgufError::RowLength { .. });
}

#[test]
fn offsets_stay_inside() {
    assert_error!(one_tensor(&[8], 0, 16, 64), GgufError::Misaligned { offset: 16, alignment: 32, .. });
    for offset in [1u64 << 40, u64::MAX - 31, 1 << 63, 64] {
        assert_error!(one_tensor(&[8], 0, offset, 64), GgufError::Truncated { place: Place::Tensor(_), .. });
    }
    assert!(open(&one_tensor(&[8], 0, 32, 64)).is_ok());
    assert_error!(one_tensor(&[9], 0, 32, 64), GgufError::Truncated { .. });
    // A format of unknown size must at least start inside.
    assert_error!(one_tensor(&[9], 4242, 64, 64), GgufError::Truncated { .. });
}

#[test]
fn tensors_do_not_overlap() {
    // Four rows of 8 floats take 128 bytes.
    let two = |offset: u64, type_id: u32| {
        let tensors = [("a", &[8u64, 4][..], 0, 0), ("b", &[8], type_id, offset)];
        tensor_table(&tensors, 256)
    };
    assert!(open(&two(128, 0)).is_ok());
    for offset in [0, 32, 96] {
        assert_error!(two(offset, 0), GgufError::Overlap { .. });
        assert_error!(two(offset, 4242), GgufError::Overlap { .. });
    }
}

#[test]
fn names_are_checked() {
    let named = |name| tensor_table(&[(name, &[8][..], 0, 0)], 32);
    assert!(open(&named("blk.0.weight")).is_ok());
    assert_error!(named(""), GgufError::EmptyName { .. });
    assert_error!(named("a\x1b[2J"), GgufError::ControlInName { .. });
    assert_error!(named(&"n".repeat(70_000)), GgufError::TooLong { .. });
}

#[test]
fn paths_that_are_no_files() {
    let dir = std::env::temp_dir();
    let error = GgufFile::open(&dir).unwrap_err();
    assert!(matches!(error.problem(), GgufError::Directory), "{error}");
    assert!(error.to_string().contains(&*dir.to_string_lossy()), "{error}");
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
