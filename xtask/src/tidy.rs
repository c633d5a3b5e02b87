//! tidy
pub mod tree;
pub fn run() -> anyhow::Result<()> {
    Ok(())
}
