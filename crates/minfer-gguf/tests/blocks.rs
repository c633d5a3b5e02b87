//! The block formats against hand-computed vectors, golden vectors made by another
//! implementation, and properties of the encoder.

use minfer_gguf::{BlockError, DType, decode_row, encode_row};
use proptest::prelude::*;

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

fn numeric() -> impl Iterator<Item = DType> {
    DType::ALL.iter().copied().filter(|dtype| *dtype != DType::I32)
}

fn decode(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    let mut out = vec![f32::NAN; bytes.len() / dtype.block_bytes() * dtype.block_elems()];
    decode_row(dtype, bytes, &mut out).unwrap();
    out
}

fn encode(dtype: DType, values: &[f32]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_row(dtype, values, &mut out).unwrap();
    assert_eq!(Some(out.len()), dtype.row_bytes(values.len()));
    out
}

fn hex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2));
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn golden_vectors_decode_bit_for_bit() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/blocks.txt")).unwrap();
    let mut seen = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let mut fields = line.split('\t');
        let mut field = || fields.next().unwrap();
        let dtype = DType::from_name(field()).unwrap();
        let got = decode(dtype, &hex(field()));
        let want: Vec<f32> = field().split(' ').map(|value| value.parse().unwrap()).collect();
        assert_eq!(got.len(), want.len());
        for (index, (got, want)) in got.iter().zip(&want).enumerate() {
            assert_eq!(got.to_bits(), want.to_bits(), "line {}, {dtype}, element {index}: {got} != {want}", number + 1);
        }
        seen.push(dtype);
    }
    for dtype in numeric() {
        assert!(seen.contains(&dtype), "no golden vector for {dtype}");
    }
}

/// Blocks small enough to work out with a pencil: scale 1 or 2, few bits set.
#[test]
fn hand_computed_vectors() {
    const ONE: [u8; 2] = [0x00, 0x3c];
    const TWO: [u8; 2] = [0x00, 0x40];
    let block = |dtype: DType, set: &[(usize, &[u8])]| {
        let mut bytes = vec![0u8; dtype.block_bytes()];
        for (at, value) in set {
            bytes[*at..*at + value.len()].copy_from_slice(value);
        }
        decode(dtype, &bytes)
    };
    // Levels 3 and 12 of value 0 and 16: 2 * (3 - 8), 2 * (12 - 8).
    let v = block(DType::Q4_0, &[(0, &TWO), (2, &[0xc3])]);
    assert_eq!((v[0], v[16], v[1]), (-10.0, 8.0, -16.0));
    // 2 * 3 + 1, 2 * 12 + 1, 2 * 0 + 1.
    let v = block(DType::Q4_1, &[(0, &TWO), (2, &ONE), (4, &[0xc3])]);
    assert_eq!((v[0], v[16], v[1]), (7.0, 25.0, 1.0));
    // The fifth bits of values 1 and 31: 16 - 16 and 16 - 16; value 0: 3 - 16.
    let v = block(DType::Q5_0, &[(0, &ONE), (2, &[2, 0, 0, 0x80]), (6, &[0x03])]);
    assert_eq!((v[0], v[1], v[31], v[2]), (-13.0, 0.0, 0.0, -16.0));
    let v = block(DType::Q5_1, &[(0, &ONE), (2, &TWO), (4, &[2, 0, 0, 0x80]), (8, &[0x03])]);
    assert_eq!((v[0], v[1], v[31], v[2]), (5.0, 18.0, 18.0, 2.0));
    // Bytes are signed.
    let v = block(DType::Q8_0, &[(0, &TWO), (2, &[5, 0xff, 0x80])]);
    assert_eq!((v[0], v[1], v[2], v[3]), (10.0, -2.0, -256.0, 0.0));
    // Group 0 has scale 3 and minimum 1: 1 * 3 * 2 - 2 * 1 for level 2. Value 32 is
    // of group 2, whose scale is 5: level 3 of bits 2..4.
    let v = block(DType::Q2_K, &[(0, &[0x13, 0, 0x05]), (16, &[0x0e]), (80, &ONE), (82, &TWO)]);
    assert_eq!((v[0], v[32], v[1], v[16]), (4.0, 15.0, -2.0, 0.0));
    // Group 0: stored scale 33, so 1. Its high bit is set for value 0: q = 1 + 4.
    // Group 8 (value 128) has scale 2 from the high nibble, 34 = 2 + 2 * 16.
    let v = block(DType::Q3_K, &[(0, &[0x01]), (32, &[0x01]), (96, &[0x21]), (104, &[0b0010_0010]), (108, &ONE)]);
    assert_eq!((v[0], v[1], v[128]), (1.0, -4.0, -8.0));
    // Group 0: scale 2, minimum 3. Group 4: scale 1 + 16 * 1, minimum 2.
    let v = block(
        DType::Q4_K,
        &[(0, &ONE), (2, &TWO), (4, &[0x42, 0, 0, 0, 3, 0, 0, 0, 0x21]), (16, &[0x05]), (16 + 64, &[0x01])],
    );
    assert_eq!((v[0], v[1], v[128], v[129]), (4.0, -6.0, 13.0, -4.0));
    // As above with the fifth bit of value 0 of group 0: 2 * (5 + 16) - 2 * 3.
    let v = block(
        DType::Q5_K,
        &[(0, &ONE), (2, &TWO), (4, &[0x42, 0, 0, 0, 3, 0, 0, 0, 0x21]), (16, &[0x01]), (48, &[0x05])],
    );
    assert_eq!((v[0], v[1]), (36.0, -6.0));
    // Value 0: low 5, high 2: 5 + 32 - 32 = 5, times scale -3.
    let v = block(DType::Q6_K, &[(0, &[0x05]), (128, &[0x02]), (192, &[0xfd, 1]), (208, &TWO)]);
    assert_eq!((v[0], v[1], v[16]), (-30.0, 192.0, -64.0));
    let v = block(DType::IQ4_NL, &[(0, &TWO), (2, &[0xf0])]);
    assert_eq!((v[0], v[16]), (-254.0, 226.0));
    // Group 1: scale 3 + 16 * 2 - 32 = 3.
    let v = block(DType::IQ4_XS, &[(0, &ONE), (2, &[0b1000, 0]), (4, &[0x30]), (8 + 16, &[0x8f])]);
    assert_eq!((v[32], v[48], v[0]), (339.0, 3.0, 32.0 * 127.0));
    assert_eq!(decode(DType::BF16, &[0x80, 0x3f]), [1.0]);
    assert_eq!(decode(DType::F16, &TWO), [2.0]);
}

#[test]
fn wrong_lengths_are_errors() {
    for dtype in numeric() {
        let (elems, bytes) = (dtype.block_elems(), dtype.block_bytes());
        let mut out = vec![0.0; elems];
        let short = decode_row(dtype, &vec![0; bytes - 1], &mut out);
        assert!(matches!(short, Err(BlockError::Size { .. })), "{dtype}: {short:?}");
        if dtype.is_quantized() {
            let part = decode_row(dtype, &vec![0; bytes], &mut out[1..]);
            assert!(matches!(part, Err(BlockError::RowLength { .. })), "{dtype}: {part:?}");
            let part = encode_row(dtype, &out[1..], &mut Vec::new());
            assert!(matches!(part, Err(BlockError::RowLength { .. })), "{dtype}: {part:?}");
        }
        assert_eq!(decode_row(dtype, &[], &mut []), Ok(()));
    }
    let refused = decode_row(DType::I32, &[0; 4], &mut [0.0]);
    assert_eq!(refused, Err(BlockError::NoValues { dtype: DType::I32 }));
}

#[test]
fn what_cannot_be_quantised_is_refused() {
    for dtype in numeric().filter(|dtype| dtype.is_quantized()) {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
            let mut values = vec![0.5; dtype.block_elems()];
            values[3] = bad;
            let mut out = vec![7];
            assert!(encode_row(dtype, &values, &mut out).is_err(), "{dtype} took {bad}");
            assert_eq!(out, [7], "an error leaves the output alone");
        }
    }
}

#[test]
fn zeros_stay_zeros() {
    for dtype in numeric() {
        let zeros = vec![0.0; dtype.block_elems() * 2];
        assert_eq!(decode(dtype, &encode(dtype, &zeros)), zeros, "{dtype}");
    }
}

/// Largest error of one value, as a share of the largest magnitude in its block: half
/// a step of the levels, plus what rounding the scales adds.
fn tolerance(dtype: DType) -> f32 {
    match dtype {
        DType::F32 => 0.0,
        DType::F16 => 0.0005,
        DType::BF16 => 0.004,
        DType::Q8_0 => 0.005,
        DType::Q6_K => 0.04,
        DType::Q5_0 | DType::Q5_1 | DType::Q5_K => 0.08,
        DType::Q4_0 | DType::Q4_1 | DType::Q4_K | DType::IQ4_NL | DType::IQ4_XS => 0.16,
        DType::Q3_K => 0.3,
        DType::Q2_K => 0.45,
        DType::I32 => f32::NAN,
    }
}

fn check_near(dtype: DType, values: &[f32]) -> Result<(), TestCaseError> {
    let decoded = decode(dtype, &encode(dtype, values));
    for (block, (values, decoded)) in
        values.chunks(dtype.block_elems()).zip(decoded.chunks(dtype.block_elems())).enumerate()
    {
        // Below the smallest normal half-precision number, steps stay the same.
        let largest = values.iter().fold(1e-4f32, |a, v| a.max(v.abs()));
        for (index, (value, decoded)) in values.iter().zip(decoded).enumerate() {
            let error = (value - decoded).abs();
            prop_assert!(
                error <= largest * tolerance(dtype),
                "{dtype}, block {block}, element {index}: {value} became {decoded}, largest {largest}"
            );
        }
    }
    Ok(())
}

/// Values of one scale, as in a weight row; sometimes all of one sign.
fn row() -> impl Strategy<Value = Vec<f32>> {
    (-2i32..4, -1.0f32..1.0, prop::collection::vec(-1.0f32..1.0, 512))
        .prop_map(|(exponent, shift, values)| values.iter().map(|v| (v + shift) * 10f32.powi(exponent)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decode_of_encode_is_near(values in row()) {
        for dtype in numeric() {
            check_near(dtype, &values)?;
        }
    }

    /// One outlier, the rest small: the worst case for a shared scale.
    #[test]
    fn outliers_stay_near(at in 0usize..512, size in -1000.0f32..1000.0) {
        let mut values: Vec<f32> = (0..512).map(|i| (i as f32 * 0.7).sin()).collect();
        values[at] = size;
        for dtype in numeric() {
            check_near(dtype, &values)?;
        }
    }

    /// Any bytes decode without panic, NaN scales included; each block on its own.
    #[test]
    fn any_bytes_decode(bytes in prop::collection::vec(any::<u8>(), 512)) {
        for dtype in numeric() {
            let whole = &bytes[..bytes.len() / dtype.block_bytes() * dtype.block_bytes()];
            let row = decode(dtype, whole);
            for (block, values) in whole.chunks(dtype.block_bytes()).zip(row.chunks(dtype.block_elems())) {
                let alone: Vec<u32> = decode(dtype, block).iter().map(|v| v.to_bits()).collect();
                prop_assert!(alone.iter().zip(values).all(|(a, b)| *a == b.to_bits() || b.is_nan()));
            }
        }
    }

    /// What is on a format's grid already comes back bit for bit in a second round.
    #[test]
    fn plain_formats_are_exact(values in row()) {
        for dtype in FLOATS {
            let once = decode(dtype, &encode(dtype, &values));
            prop_assert_eq!(&decode(dtype, &encode(dtype, &once)), &once);
        }
    }
}
