//! Pictures of a plan: time across, addresses up, one rectangle per value. Takes finished plans and a ledger; gives an SVG
//! or a page for a browser, as text. Must not know models or where the text goes; changes nothing.
//!
//! Both are drawn from one scene, so they cannot disagree. Names come from files and are escaped wherever they are
//! written.

mod canvas;
mod html;
mod ledger;
mod palette;
mod panel;
mod scene;
mod svg;
mod text;

pub use html::html;
pub use svg::svg;
pub use text::escape;

use minfer_memplan::Strategy;

/// What is written above a picture.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Caption {
    /// Which model, such as the file's name.
    pub model: String,
    /// What it was planned for, in one line, such as `prefill, 32 tokens, n_ctx 2048, KV f16`.
    pub settings: String,
}

/// Why plans cannot be drawn on one page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PictureError {
    /// Nothing to draw.
    #[error("a page needs at least one plan")]
    NoPlan,
    /// Two plans of one strategy: the page's switch could not tell them apart.
    #[error("two plans by strategy {strategy}; a page shows each strategy once")]
    StrategyTwice {
        /// The strategy.
        strategy: Strategy,
    },
    /// Plans of different graphs.
    #[error("the plan by strategy {strategy} is of another graph than the first one")]
    OtherGraph {
        /// The strategy of the plan that does not fit.
        strategy: Strategy,
    },
}
