//! Which instructions to use. Takes the processor's answer or a name; gives [`SimdLevel`]; reads no environment.

use super::{Kernel, Simd, scalar::Scalar};
use std::fmt;
use std::str::FromStr;

/// A set of vector instructions. Later ones are faster where the processor has them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum SimdLevel {
    /// Plain code that runs anywhere.
    Scalar,
    /// x86-64-v3: AVX2, FMA, F16C.
    Avx2,
    /// The same with 8-bit dot products in 256 bits.
    AvxVnni,
    /// AVX-512 with 8-bit dot products.
    Avx512,
    /// 64-bit ARM: NEON.
    Neon,
    /// The same with 8-bit dot products.
    NeonDot,
}

impl SimdLevel {
    /// Every level, slowest first.
    pub const ALL: [SimdLevel; 6] = [
        SimdLevel::Scalar,
        SimdLevel::Avx2,
        SimdLevel::AvxVnni,
        SimdLevel::Avx512,
        SimdLevel::Neon,
        SimdLevel::NeonDot,
    ];

    /// The fastest level of this processor.
    pub fn detect() -> SimdLevel {
        let best = Self::ALL.into_iter().rev().find(|level| level.is_available());
        best.unwrap_or(SimdLevel::Scalar)
    }

    /// Whether this processor has the instructions.
    pub fn is_available(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            let avx2 = || has!("avx2") && has!("fma") && has!("f16c");
            match self {
                SimdLevel::Scalar => true,
                SimdLevel::Avx2 => avx2(),
                SimdLevel::AvxVnni => avx2() && has!("avxvnni"),
                SimdLevel::Avx512 => {
                    let base = has!("avx512f") && has!("avx512bw") && has!("avx512vl") && has!("avx512dq");
                    avx2() && base && has!("avx512vnni")
                }
                SimdLevel::Neon | SimdLevel::NeonDot => false,
            }
        }
        #[cfg(target_arch = "aarch64")]
        {
            use std::arch::is_aarch64_feature_detected as has;
            match self {
                SimdLevel::Scalar => true,
                SimdLevel::Neon => has!("neon"),
                SimdLevel::NeonDot => has!("neon") && has!("dotprod"),
                SimdLevel::Avx2 | SimdLevel::AvxVnni | SimdLevel::Avx512 => false,
            }
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        {
            self == SimdLevel::Scalar
        }
    }

    /// The name that [`FromStr`] takes.
    pub fn name(self) -> &'static str {
        match self {
            SimdLevel::Scalar => "scalar",
            SimdLevel::Avx2 => "avx2",
            SimdLevel::AvxVnni => "avxvnni",
            SimdLevel::Avx512 => "avx512",
            SimdLevel::Neon => "neon",
            SimdLevel::NeonDot => "neondot",
        }
    }

    /// Runs a kernel on this level; on the scalar one where the processor lacks it.
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Out {
        #[cfg(target_arch = "x86_64")]
        {
            use super::{avx2::V256, avx512::V512};
            // The tokens' constructors ask the processor (a cached answer) and refuse without its instructions.
            match self {
                SimdLevel::Scalar | SimdLevel::Neon | SimdLevel::NeonDot => {}
                SimdLevel::Avx2 => {
                    if let Some(s) = V256::<false>::new() {
                        return s.vectorize(kernel);
                    }
                }
                SimdLevel::AvxVnni => {
                    if let Some(s) = V256::<true>::new() {
                        return s.vectorize(kernel);
                    }
                }
                SimdLevel::Avx512 => {
                    if let Some(s) = V512::new() {
                        return s.vectorize(kernel);
                    }
                }
            }
        }
        #[cfg(target_arch = "aarch64")]
        {
            use super::neon::Neon;
            match self {
                SimdLevel::Neon => {
                    if let Some(s) = Neon::<false>::new() {
                        return s.vectorize(kernel);
                    }
                }
                SimdLevel::NeonDot => {
                    if let Some(s) = Neon::<true>::new() {
                        return s.vectorize(kernel);
                    }
                }
                SimdLevel::Scalar | SimdLevel::Avx2 | SimdLevel::AvxVnni | SimdLevel::Avx512 => {}
            }
        }
        Scalar.vectorize(kernel)
    }
}

impl fmt::Display for SimdLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no level's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown SIMD level {got}; known: scalar, avx2, avxvnni, avx512, neon, neondot")]
pub struct UnknownSimdLevel {
    /// The name.
    pub got: String,
}

impl FromStr for SimdLevel {
    type Err = UnknownSimdLevel;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let level = Self::ALL.into_iter().find(|level| level.name() == name);
        level.ok_or_else(|| UnknownSimdLevel { got: name.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for level in SimdLevel::ALL {
            assert_eq!(level.name().parse(), Ok(level));
        }
        assert!("sse9".parse::<SimdLevel>().is_err());
    }

    #[test]
    fn the_detected_level_is_available() {
        assert!(SimdLevel::detect().is_available());
    }
}
