//! One file per operation that is no matrix product: what it needs of its step, and how an item is computed.

pub(crate) mod attention;
pub(crate) mod elementwise;
pub(crate) mod embed;
pub(crate) mod kv;
pub(crate) mod norm;
pub(crate) mod quantize;
pub(crate) mod rope;
pub(crate) mod select;
