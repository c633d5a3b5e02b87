//! The contract of regions: zeroed, at a stable address, bounds checked, imported ones read-only, absurd sizes refused.
//! Takes a way to make backends; adds to the report. Must not know kernels.

use super::Report;
use crate::backend::{Backend, BackendError};
use crate::buffer::{BackendId, BufRef, RegionId};
use std::sync::Arc;

type Check = fn(&mut dyn Backend) -> Result<(), String>;

const CHECKS: [(&str, Check); 8] = [
    ("regions are zeroed", zeroed),
    ("addresses are stable and aligned", stable),
    ("any bits survive a round trip", bit_exact),
    ("bytes beyond a region are refused", bounds),
    ("imported regions are read-only", read_only),
    ("ids are checked", ids),
    ("copies move bytes within and between regions", copies),
    ("absurd sizes are out of memory", absurd),
];

pub fn run(make: &dyn Fn() -> Box<dyn Backend>, report: &mut Report) {
    for (name, check) in CHECKS {
        if let Err(what) = check(&mut *make()) {
            report.failures.push(format!("{name}: {what}"));
        }
        report.checked.push(name);
    }
}

fn buf(region: u32, offset: u64, len: u64) -> BufRef {
    BufRef { backend: BackendId(0), region: RegionId(region), offset, len }
}

fn create(backend: &mut dyn Backend, region: u32, bytes: u64) -> Result<(), String> {
    backend.create_region(RegionId(region), bytes).map_err(|error| error.to_string())
}

fn read(backend: &dyn Backend, from: BufRef) -> Result<Vec<u8>, String> {
    let mut copy = Vec::new();
    backend.read(from, &mut |bytes| copy.extend_from_slice(bytes)).map_err(|error| error.to_string())?;
    Ok(copy)
}

fn ensure(ok: bool, what: impl ToString) -> Result<(), String> {
    if ok { Ok(()) } else { Err(what.to_string()) }
}

fn ok(result: Result<(), BackendError>) -> Result<(), String> {
    result.map_err(|error| error.to_string())
}

fn zeroed(backend: &mut dyn Backend) -> Result<(), String> {
    for bytes in [0, 1, 63, 64, 100_000] {
        create(backend, 0, bytes)?;
        let content = read(backend, buf(0, 0, bytes))?;
        ensure(content.len() as u64 == bytes && content.iter().all(|&byte| byte == 0), format!("{bytes} bytes"))?;
        ok(backend.fill(buf(0, 0, bytes), 0xAB))?;
        ok(backend.drop_region(RegionId(0)))?;
    }
    Ok(())
}

fn stable(backend: &mut dyn Backend) -> Result<(), String> {
    create(backend, 3, 4096)?;
    let address = backend.region_address(RegionId(3));
    ensure(address.is_some() && backend.region_address(RegionId(2)).is_none(), "an address for what exists only")?;
    create(backend, 9, 1 << 20)?;
    ok(backend.write(buf(3, 0, 4096), &[7; 4096]))?;
    ok(backend.synchronize())?;
    ensure(backend.region_address(RegionId(3)) == address, "the address moved")?;
    ensure(backend.capabilities().alignment().is_power_of_two(), "the alignment is no power of two")
}

fn bit_exact(backend: &mut dyn Backend) -> Result<(), String> {
    create(backend, 0, 4096)?;
    let values: Vec<u32> =
        (0..64).map(|i| 0x9E37_79B9u32.wrapping_mul(i)).chain([0, 1, u32::MAX, 0x7FC0_0001]).collect();
    let bytes: Vec<u8> = values.iter().flat_map(|value| (*value as i32).to_ne_bytes()).collect();
    ok(backend.write(buf(0, 128, 512), &bytes))?;
    ensure(read(backend, buf(0, 128, bytes.len() as u64))? == bytes, "bits changed")?;
    ensure(read(backend, buf(0, 128 + bytes.len() as u64, 64))? == [0; 64], "bytes beyond the write changed")?;
    ok(backend.write(buf(0, 4, 3), &[1, 2, 3]))?;
    ensure(read(backend, buf(0, 0, 8))? == [0, 0, 0, 0, 1, 2, 3, 0], "three bytes at an odd place")?;
    ok(backend.fill(buf(0, 5, 2), 9))?;
    ensure(read(backend, buf(0, 4, 4))? == [1, 9, 9, 0], "fill of two bytes")
}

fn bounds(backend: &mut dyn Backend) -> Result<(), String> {
    create(backend, 0, 100)?;
    create(backend, 1, 100)?;
    for (offset, len) in [(0, 101), (100, 1), (101, 0), (u64::MAX, 1), (1, u64::MAX), (1 << 40, 4)] {
        let out = buf(0, offset, len);
        let results = [
            backend.read(out, &mut |_| ()),
            backend.write(out, &[0]),
            backend.fill(out, 1),
            backend.copy(out, buf(1, 0, len)),
            backend.copy(buf(1, 0, len), out),
        ];
        let refused = |result: &Result<(), BackendError>| matches!(result, Err(BackendError::OutOfBounds { .. }));
        ensure(results.iter().all(refused), format!("{offset}+{len}: {results:?}"))?;
    }
    let long = backend.write(buf(0, 0, 4), &[0; 5]);
    ensure(matches!(long, Err(BackendError::OutOfBounds { .. })), format!("a write longer than its run: {long:?}"))
}

fn read_only(backend: &mut dyn Backend) -> Result<(), String> {
    ok(backend.import_region(RegionId(0), Arc::new(vec![5u8; 300])))?;
    create(backend, 1, 300)?;
    ensure(read(backend, buf(0, 13, 100))? == [5; 100], "imported bytes differ")?;
    let results =
        [backend.write(buf(0, 0, 4), &[1]), backend.fill(buf(0, 0, 4), 1), backend.copy(buf(1, 0, 4), buf(0, 0, 4))];
    let refused = |result: &Result<(), BackendError>| matches!(result, Err(BackendError::ReadOnly { region: 0, .. }));
    ensure(results.iter().all(refused), format!("{results:?}"))?;
    ok(backend.copy(buf(0, 0, 300), buf(1, 0, 300)))?;
    ensure(read(backend, buf(1, 0, 300))? == [5; 300], "a copy out of imported bytes")
}

fn ids(backend: &mut dyn Backend) -> Result<(), String> {
    let unknown = backend.write(buf(4, 0, 1), &[1]);
    ensure(matches!(unknown, Err(BackendError::UnknownRegion { region: 4, .. })), format!("{unknown:?}"))?;
    create(backend, 4, 10)?;
    let twice = [backend.create_region(RegionId(4), 10), backend.import_region(RegionId(4), Arc::new(vec![0u8; 4]))];
    let exists =
        |result: &Result<(), BackendError>| matches!(result, Err(BackendError::RegionExists { region: 4, .. }));
    ensure(twice.iter().all(exists), format!("{twice:?}"))?;
    ok(backend.drop_region(RegionId(4)))?;
    let gone = backend.drop_region(RegionId(4));
    ensure(matches!(gone, Err(BackendError::UnknownRegion { region: 4, .. })), format!("{gone:?}"))?;
    create(backend, 4, 20)
}

fn copies(backend: &mut dyn Backend) -> Result<(), String> {
    create(backend, 0, 256)?;
    create(backend, 1, 256)?;
    let bytes: Vec<u8> = (0..=255).collect();
    ok(backend.write(buf(0, 0, 256), &bytes))?;
    ok(backend.copy(buf(0, 0, 64), buf(0, 128, 64)))?;
    ok(backend.copy(buf(0, 64, 128), buf(1, 4, 128)))?;
    ok(backend.synchronize())?;
    let expected: Vec<u8> = (64..128).chain(0..64).collect();
    ensure(read(backend, buf(1, 4, 128))? == expected, "bytes differ")?;
    ensure(read(backend, buf(0, 0, 64))? == bytes[..64], "the source changed")
}

fn absurd(backend: &mut dyn Backend) -> Result<(), String> {
    for bytes in [1 << 60, u64::MAX, u64::MAX - 70] {
        let result = backend.create_region(RegionId(0), bytes);
        ensure(matches!(result, Err(BackendError::OutOfMemory { .. })), format!("{bytes} bytes: {result:?}"))?;
    }
    create(backend, 0, 64)
}
