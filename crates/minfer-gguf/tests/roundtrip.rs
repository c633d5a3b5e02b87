//! Writer to reader: what was put in comes out, in every version and alignment, from
//! memory and from disk, whole and split.

use minfer_gguf::*;
use proptest::prelude::*;

fn sample() -> GgufWriter {
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", "llama").set("llama.block_count", 3u32);
    writer.set("tokenizer.ggml.tokens", Array::from_strings([&b"<s>"[..], b"", b"\xff\xfe", "é".as_bytes()]));
    for index in 0..5u64 {
        let dims = [64, index + 1];
        let values: Vec<f32> = (0..dims[0] * dims[1]).map(|i| (i + index) as f32 * 0.01).collect();
        writer.tensor_f32(format!("blk.{index}.weight"), &dims, DType::Q8_0, &values).unwrap();
    }
    writer
}

/// A directory of this test's own, removed afterwards.
struct TempDir(std::path::PathBuf);

impl TempDir {
    fn new(name: &str) -> TempDir {
        let dir = std::env::temp_dir().join(format!("minfer-gguf-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        TempDir(dir)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn assert_same_tensors(a: &GgufFile, b: &GgufFile) {
    assert_eq!(a.tensors().len(), b.tensors().len());
    for (x, y) in a.tensors().iter().zip(b.tensors()) {
        assert_eq!((&x.name, &x.dims, x.ty, x.n_bytes), (&y.name, &y.dims, y.ty, y.n_bytes));
        assert_eq!(a.tensor_bytes(x), b.tensor_bytes(y));
        assert!(!a.tensor_bytes(x).is_empty());
    }
}

#[test]
fn disk_and_memory_agree() {
    let dir = TempDir::new("disk");
    let path = dir.0.join("modèle.gguf");
    sample().write_file(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), sample().to_bytes(), "both ways of writing agree");
    let disk = GgufFile::open(&path).unwrap();
    let memory = GgufFile::from_bytes(sample().to_bytes()).unwrap();
    assert_same_tensors(&disk, &memory);
    assert_eq!(disk.parts().len(), 1);
    assert_eq!(disk.parts()[0].path(), Some(path.as_path()));
    assert!(disk.parts()[0].bytes().is_mapped());
    assert_eq!(disk.file_bytes(), std::fs::metadata(&path).unwrap().len());
    let tensor = disk.tensor("blk.2.weight").unwrap();
    let region = disk.parts()[tensor.part].bytes();
    let from_region = &region[tensor.offset as usize..][..tensor.n_bytes as usize];
    assert_eq!(from_region, disk.tensor_bytes(tensor));
    let tokens: Vec<&[u8]> = disk.metadata().strings("tokenizer.ggml.tokens").unwrap().unwrap().collect();
    assert_eq!(tokens, [&b"<s>"[..], b"", b"\xff\xfe", "é".as_bytes()]);
    drop(disk);
    assert_eq!(region[..4], *b"GGUF", "the region outlives the file");
}

#[test]
fn a_split_set_opens_through_its_first_part() {
    let dir = TempDir::new("split");
    let whole = GgufFile::from_bytes(sample().to_bytes()).unwrap();
    for count in [1u16, 2, 3, 5, 7] {
        let paths = sample().write_parts(&dir.0, "set", count).unwrap();
        let set = GgufFile::open(&paths[0]).unwrap();
        assert_eq!(set.parts().len(), usize::from(count));
        assert_same_tensors(&set, &whole);
        assert_same_tensors(&GgufFile::from_parts(sample().to_parts(count)).unwrap(), &whole);
        assert_eq!(set.metadata().u32("llama.block_count").unwrap(), Some(3));
    }
}

#[test]
fn broken_sets_say_which_part() {
    let dir = TempDir::new("broken");
    let paths = sample().write_parts(&dir.0, "m", 3).unwrap();

    let second = GgufFile::open(&paths[1]).unwrap_err();
    assert!(matches!(second.problem(), GgufError::NotFirstPart { part: 2, count: 3, .. }), "{second}");
    assert!(second.to_string().contains("m-00001-of-00003.gguf"), "{second}");

    let renamed = dir.0.join("renamed.gguf");
    std::fs::copy(&paths[0], &renamed).unwrap();
    let error = GgufFile::open(&renamed).unwrap_err();
    assert!(matches!(error.problem(), GgufError::SplitName { count: 3, .. }), "{error}");

    let third = std::fs::read(&paths[2]).unwrap();
    std::fs::remove_file(&paths[2]).unwrap();
    let error = GgufFile::open(&paths[0]).unwrap_err();
    assert!(matches!(error.problem(), GgufError::MissingPart { part: 3, count: 3 }), "{error}");
    assert!(error.to_string().contains("m-00003-of-00003.gguf"), "{error}");

    std::fs::copy(&paths[1], &paths[2]).unwrap();
    let error = GgufFile::open(&paths[0]).unwrap_err();
    assert!(matches!(error.problem(), GgufError::SplitMismatch { key: "split.no", part: 3, .. }), "{error}");

    std::fs::write(&paths[2], &third[..third.len() - 40]).unwrap();
    let error = GgufFile::open(&paths[0]).unwrap_err();
    assert!(matches!(error.problem(), GgufError::Truncated { .. }), "{error}");
    assert!(error.to_string().contains("m-00003-of-00003.gguf"), "{error}");

    let mut fewer = sample();
    fewer.set("split.no", 0u16).set("split.count", 1u16).set("split.tensors.count", 6i32);
    let error = GgufFile::from_bytes(fewer.to_bytes()).unwrap_err();
    assert!(matches!(error, GgufError::SplitMismatch { key: "split.tensors.count", .. }), "{error}");

    let mut twice = sample().to_parts(2);
    let mut other = sample();
    other.set("split.no", 1u16).set("split.count", 2u16).set("split.tensors.count", 5i32);
    twice[1] = other.to_bytes();
    let error = GgufFile::from_parts(twice).unwrap_err();
    assert!(matches!(error, GgufError::SplitMismatch { .. }), "{error}");

    let extra = vec![sample().to_bytes(), sample().to_bytes()];
    let error = GgufFile::from_parts(extra).unwrap_err();
    assert!(matches!(error, GgufError::SplitMismatch { key: "split.count", .. }), "{error}");

    let error = GgufFile::from_bytes(sample().to_parts(2).swap_remove(0)).unwrap_err();
    assert!(matches!(error, GgufError::MissingPart { part: 2, count: 2 }), "{error}");
}

#[test]
fn kinds_are_told_apart() {
    let kind = |set: &[(&str, &str)], tensors: bool| {
        let mut writer = if tensors { sample() } else { GgufWriter::new() };
        for (key, value) in set {
            writer.set(*key, *value);
        }
        let file = GgufFile::from_bytes(writer.to_bytes()).unwrap();
        assert_eq!(file.require_model().is_ok(), file.kind() == FileKind::Model);
        file.kind()
    };
    assert_eq!(kind(&[], true), FileKind::Model);
    assert_eq!(kind(&[("general.type", "model")], true), FileKind::Model);
    assert_eq!(kind(&[], false), FileKind::Vocabulary);
    assert_eq!(kind(&[("general.type", "adapter")], true), FileKind::Adapter);
    assert_eq!(kind(&[("general.type", "mmproj")], true), FileKind::Projector);
    assert_eq!(kind(&[("general.architecture", "clip")], true), FileKind::Projector);
    assert_eq!(kind(&[("general.type", "imatrix")], true), FileKind::ImportanceMatrix);
    assert_eq!(kind(&[("general.type", "poem")], true), FileKind::Other("poem".into()));
}

#[test]
fn unsupported_formats_open_and_are_refused_on_use() {
    let mut writer = sample();
    writer.tensor_unchecked("iq2", &[256], 16, vec![1; 66]);
    writer.tensor_unchecked("future", &[100], 4242, vec![1; 64]);
    let file = GgufFile::from_bytes(writer.to_bytes()).unwrap();
    let known = file.tensor("iq2").unwrap();
    assert_eq!((known.ty, known.n_bytes), (TensorType::Other(16), 66));
    assert!(known.dtype().unwrap_err().to_string().contains("IQ2_XXS"));
    let unknown = file.tensor("future").unwrap();
    assert_eq!((unknown.n_bytes, file.tensor_bytes(unknown).len()), (0, 0));
    let error = unknown.dtype().unwrap_err();
    assert!(matches!(error, GgufError::UnsupportedTensorType { id: 4242, .. }), "{error}");
}

#[test]
fn nested_arrays_are_walked() {
    let rows = [Value::from(vec![1u32, 2]), Value::from(vec![3u32]), Value::Array(Array::from_strings(["x"]))];
    let nested = Array::from_values(ValueType::Array, &rows).unwrap();
    let mut writer = GgufWriter::new();
    writer.set("nested", nested);
    let file = GgufFile::from_bytes(writer.to_bytes()).unwrap();
    let array = file.metadata().array("nested").unwrap().unwrap();
    let inner: Vec<Array> = array.arrays().unwrap().collect();
    assert_eq!(inner.iter().map(Array::len).collect::<Vec<_>>(), [2, 1, 1]);
    assert_eq!(inner[0].ints().unwrap().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(inner[2].strings().unwrap().next(), Some(&b"x"[..]));
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<u8>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        any::<u16>().prop_map(Value::from),
        any::<i16>().prop_map(Value::from),
        any::<u32>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        (-1e30f32..1e30).prop_map(Value::from),
        (-1e300f64..1e300).prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        prop::collection::vec(any::<i32>(), 0..20).prop_map(Value::from),
        prop::collection::vec(-1e9f32..1e9, 0..20).prop_map(Value::from),
        prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..20)
            .prop_map(|strings| Value::Array(Array::from_strings(strings))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(
        version in 2u32..=3,
        alignment in prop::option::of(3u32..=12),
        values in prop::collection::vec(value(), 0..8),
        shapes in prop::collection::vec((0usize..DType::ALL.len(), 1u64..4, prop::collection::vec(1u64..4, 0..4)), 0..6),
    ) {
        let mut writer = GgufWriter::new();
        writer.version(version);
        if let Some(log2) = alignment {
            writer.alignment(1 << log2);
        }
        for (index, value) in values.iter().enumerate() {
            writer.set(format!("key.{index}"), value.clone());
        }
        let mut expected = Vec::new();
        for (index, (dtype, blocks, outer)) in shapes.iter().enumerate() {
            let dtype = DType::ALL[*dtype];
            let mut dims = vec![blocks * dtype.block_elems() as u64];
            dims.extend(outer.iter().take(3));
            let rows: u64 = dims[1..].iter().product();
            let n_bytes = rows * blocks * dtype.block_bytes() as u64;
            let bytes: Vec<u8> = (0..n_bytes).map(|i| (i * 31 + index as u64) as u8).collect();
            writer.tensor(format!("t{index}"), &dims, dtype, bytes.clone()).unwrap();
            expected.push((dims, dtype, bytes));
        }
        let file = GgufFile::from_bytes(writer.to_bytes()).unwrap();
        prop_assert_eq!(file.version(), version);
        for (index, value) in values.iter().enumerate() {
            prop_assert_eq!(file.metadata().get(&format!("key.{index}")), Some(value));
        }
        prop_assert_eq!(file.tensors().len(), expected.len());
        for (index, (dims, dtype, bytes)) in expected.iter().enumerate() {
            let tensor = file.tensor(&format!("t{index}")).unwrap();
            prop_assert_eq!(&tensor.dims, dims);
            prop_assert_eq!(tensor.dtype().unwrap(), *dtype);
            prop_assert_eq!(file.tensor_bytes(tensor), &bytes[..]);
            prop_assert_eq!(tensor.offset % alignment.map_or(32, |log2| 1 << log2), 0);
        }
        prop_assert_eq!(file.metadata().get("no such key"), None);
        prop_assert_eq!(file.tensor("no such tensor"), None);
    }
}

#[test]
fn the_writer_refuses_what_the_reader_would() {
    let mut writer = GgufWriter::new();
    let refused = writer.tensor("t", &[], DType::F32, vec![0; 4]);
    assert!(matches!(refused, Err(GgufError::DimCount { got: 0, .. })));
    let refused = writer.tensor("t", &[2], DType::F32, vec![0; 4]);
    assert!(matches!(refused, Err(GgufError::DataSize { expected: 8, got: 4, .. })));
    let refused = writer.tensor_f32("t", &[2], DType::F32, &[0.0]);
    assert!(matches!(refused, Err(GgufError::DataSize { .. })));
    let refused = writer.tensor_f32("t", &[32], DType::Q8_0, &[f32::NAN; 32]);
    assert!(matches!(refused, Err(GgufError::Encode { .. })));
    let refused = writer.tensor_f32("t", &[32], DType::Q4_K, &[0.0; 32]);
    assert!(matches!(refused, Err(GgufError::RowLength { row: 32, block: 256, .. })));
    let file = GgufFile::from_bytes(writer.to_bytes()).unwrap();
    assert!(file.tensors().is_empty(), "a refused tensor is not written");
}
