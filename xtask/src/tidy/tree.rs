//! tree
pub fn fuzz_targets(_root: &std::path::Path) -> anyhow::Result<Vec<String>> {
    Ok(vec![])
}
