//! The keys of one architecture. Takes an open file; gives numbers inside their ranges, or which key is wrong and why;
//! must not know what a number is used for. Absent is `None`, broken is an error.

use crate::error::ModelError;
use crate::keys;
use minfer_gguf::{GgufError, GgufFile, Metadata, Value};

/// The metadata of a file under the prefix of its architecture.
#[derive(Clone, Copy)]
pub(crate) struct Keys<'a> {
    /// The file.
    pub(crate) file: &'a GgufFile,
    /// The architecture's name.
    pub(crate) arch: &'static str,
}

impl<'a> Keys<'a> {
    fn metadata(&self) -> &'a Metadata {
        self.file.metadata()
    }

    /// The whole key.
    pub(crate) fn key(&self, suffix: &str) -> String {
        format!("{}.{suffix}", self.arch)
    }

    /// The error for a value out of its range.
    pub(crate) fn bad(&self, suffix: &str, expected: impl Into<String>, got: impl ToString) -> ModelError {
        ModelError::Value { key: self.key(suffix), expected: expected.into(), got: got.to_string() }
    }

    fn missing(&self, suffix: &str) -> ModelError {
        GgufError::MissingKey { key: self.key(suffix) }.into()
    }

    /// An integer of at least `least`.
    pub(crate) fn count(&self, suffix: &str, least: u32) -> Result<Option<u32>, ModelError> {
        let Some(value) = self.metadata().u32(&self.key(suffix))? else { return Ok(None) };
        if value < least {
            return Err(self.bad(suffix, format!("at least {least}"), value));
        }
        Ok(Some(value))
    }

    /// The same for a key that must be there, at least 1.
    pub(crate) fn require_count(&self, suffix: &str) -> Result<u32, ModelError> {
        self.count(suffix, 1)?.ok_or_else(|| self.missing(suffix))
    }

    /// A finite number of at least 0.
    pub(crate) fn number(&self, suffix: &str) -> Result<Option<f32>, ModelError> {
        let Some(value) = self.metadata().f32(&self.key(suffix))? else { return Ok(None) };
        if !(value.is_finite() && value >= 0.0) {
            return Err(self.bad(suffix, "finite and not negative", value));
        }
        Ok(Some(value))
    }

    /// A finite number above 0.
    pub(crate) fn positive(&self, suffix: &str) -> Result<Option<f32>, ModelError> {
        match self.number(suffix)? {
            Some(0.0) => Err(self.bad(suffix, "above 0", 0)),
            value => Ok(value),
        }
    }

    /// The same for a key that must be there.
    pub(crate) fn require_positive(&self, suffix: &str) -> Result<f32, ModelError> {
        self.positive(suffix)?.ok_or_else(|| self.missing(suffix))
    }

    /// A finite number above 0; 0 means absent, as in the converters.
    pub(crate) fn nonzero(&self, suffix: &str) -> Result<Option<f32>, ModelError> {
        Ok(self.number(suffix)?.filter(|&value| value != 0.0))
    }

    /// A string.
    pub(crate) fn text(&self, suffix: &str) -> Result<Option<&'a str>, ModelError> {
        Ok(self.metadata().str(&self.key(suffix))?)
    }

    /// A number for all layers or an array with one per layer, each at least 1.
    pub(crate) fn per_layer(&self, suffix: &str, n_layer: u32) -> Result<Option<Vec<u32>>, ModelError> {
        let key = self.key(suffix);
        if !matches!(self.metadata().get(&key), Some(Value::Array(_))) {
            let value = self.count(suffix, 1)?;
            return Ok(value.map(|value| vec![value; n_layer as usize]));
        }
        let Some(items) = self.metadata().ints(&key)? else { return Ok(None) };
        if items.len() as u64 != u64::from(n_layer) {
            return Err(ModelError::ArrayLength { key, expected: n_layer.into(), got: items.len() as u64 });
        }
        let item = |value: i64| match u32::try_from(value) {
            Ok(value) if value > 0 => Ok(value),
            _ => Err(self.bad(suffix, "at least 1 in every layer", value)),
        };
        items.into_iter().map(item).collect::<Result<Vec<u32>, ModelError>>().map(Some)
    }

    /// The same for a key whose number must be there and equal in all layers.
    pub(crate) fn same_in_layers(&self, suffix: &str, n_layer: u32) -> Result<u32, ModelError> {
        let values = self.per_layer(suffix, n_layer)?.ok_or_else(|| self.missing(suffix))?;
        let first = values.first().copied().unwrap_or(0);
        match values.iter().find(|&&value| value != first) {
            None => Ok(first),
            Some(other) => Err(ModelError::UnsupportedSetting {
                key: self.key(suffix),
                got: format!("{first} in one layer and {other} in another"),
            }),
        }
    }

    /// Which layers are windowed: by default all but every `period`-th.
    pub(crate) fn window_pattern(&self, n_layer: u32, period: u32) -> Result<Vec<bool>, ModelError> {
        let suffix = keys::SLIDING_WINDOW_PATTERN;
        let key = self.key(suffix);
        if matches!(self.metadata().get(&key), Some(Value::Array(_)))
            && let Some(flags) = self.metadata().bools(&key)?
        {
            if flags.len() as u64 != u64::from(n_layer) {
                return Err(ModelError::ArrayLength { key, expected: n_layer.into(), got: flags.len() as u64 });
            }
            return Ok(flags.into_iter().collect());
        }
        let period = self.count(suffix, 1)?.unwrap_or(period);
        Ok((0..n_layer).map(|layer| !(layer + 1).is_multiple_of(period)).collect())
    }

    /// Refuses settings that no block computes.
    pub(crate) fn refuse_unsupported(&self) -> Result<(), ModelError> {
        let refuse = |suffix: &str, got: &Value| {
            Err(ModelError::UnsupportedSetting { key: self.key(suffix), got: got.to_string() })
        };
        for &(suffix, off) in keys::REFUSED_NUMBERS {
            if let Some(value) = self.metadata().get(&self.key(suffix)) {
                let number = value.as_f32().or_else(|| value.as_int().map(|int| int as f32));
                if number != Some(off) && number != Some(0.0) {
                    return refuse(suffix, value);
                }
            }
        }
        for &(suffix, off) in keys::REFUSED_SWITCHES {
            if let Some(value) = self.metadata().get(&self.key(suffix))
                && *value != Value::Bool(off)
            {
                return refuse(suffix, value);
            }
        }
        Ok(())
    }

    /// Refuses a sliding window that would hide anything within the trained context.
    pub(crate) fn refuse_window(&self, n_ctx_train: u32) -> Result<(), ModelError> {
        match self.count(keys::SLIDING_WINDOW, 0)? {
            Some(window) if window > 0 && window < n_ctx_train => {
                Err(ModelError::UnsupportedSetting { key: self.key(keys::SLIDING_WINDOW), got: window.to_string() })
            }
            _ => Ok(()),
        }
    }
}
