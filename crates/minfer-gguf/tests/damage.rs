//! A valid file, damaged: cut at every length, and with random bytes changed. Nothing
//! panics, reads outside, or passes for whole when it is not.

use minfer_gguf::*;

/// A file that has a bit of everything and that every byte of which matters.
fn valid() -> Vec<u8> {
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", "llama").set("general.alignment", 32u32);
    writer.set("a.bool", true).set("a.float", 0.5f32).set("a.u64", u64::MAX);
    writer.set("a.ints", vec![1i32, -2, 3]);
    writer.set("a.tokens", Array::from_strings(["<s>", "", "two"]));
    writer.set("a.nested", Array::from_values(ValueType::Array, &[vec![1u8].into(), vec![2u16].into()]).unwrap());
    writer.tensor_f32("one", &[32, 2], DType::Q4_0, &[0.5; 64]).unwrap();
    writer.tensor_f32("two", &[8], DType::F32, &[1.0; 8]).unwrap();
    writer.to_bytes()
}

fn open(bytes: &[u8]) -> Result<GgufFile, GgufError> {
    GgufFile::from_bytes(bytes.to_vec())
}

#[test]
fn every_prefix_is_truncated() {
    let bytes = valid();
    assert!(open(&bytes).is_ok());
    assert!(matches!(open(&[]), Err(GgufError::Empty)));
    for len in 1..bytes.len() {
        let error = open(&bytes[..len]).unwrap_err();
        assert!(error.to_string().contains("truncated"), "{len} of {} bytes: {error}", bytes.len());
    }
}

#[test]
fn truncation_tells_both_sizes() {
    let bytes = valid();
    let error = open(&bytes[..bytes.len() - 1]).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&format!("the file has {} bytes", bytes.len() - 1)), "{text}");
    assert!(text.contains(&format!("tensor `two` needs {}", bytes.len())), "{text}");
}

/// Uses everything a reader offers; the results do not matter.
fn exercise(file: &GgufFile) {
    for entry in file.metadata() {
        let _ = format!("{} = {}", entry.key, entry.value);
        if let Value::Array(array) = &entry.value {
            let strings = array.strings().map_or(0, |strings| strings.map(<[u8]>::len).sum());
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
    assert!(accepted > 100, "damage in names and data does no harm: {accepted} accepted");
}
