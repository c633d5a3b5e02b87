//! Colours. Takes a layer; gives a colour; must not know what is drawn with it.
//!
//! The ramp is viridis (N. Smith and S. van der Walt, 2015, CC0): its lightness rises evenly, so that the order of layers
//! can be read in grey and with any kind of colour blindness.

/// Nine evenly spaced colours of viridis.
const VIRIDIS: [[u8; 3]; 9] = [
    [0x44, 0x01, 0x54],
    [0x47, 0x2d, 0x7b],
    [0x3b, 0x52, 0x8b],
    [0x2c, 0x72, 0x8e],
    [0x21, 0x91, 0x8c],
    [0x28, 0xae, 0x80],
    [0x5e, 0xc9, 0x62],
    [0xad, 0xdc, 0x30],
    [0xfd, 0xe7, 0x25],
];

/// Values of no layer.
pub(super) const NO_LAYER: &str = "#9aa0a8";

/// The colour of a layer of `n_layer`, and whether it is dark.
pub(super) fn layer(layer: u32, n_layer: u32) -> ([u8; 3], bool) {
    let along = if n_layer < 2 { 0.5 } else { f64::from(layer.min(n_layer - 1)) / f64::from(n_layer - 1) };
    // Both ends are cut a little: the darkest is hard to tell from text, the lightest from the paper.
    let at = (0.03 + 0.93 * along) * (VIRIDIS.len() - 1) as f64;
    let (low, part) = (at as usize, at.fract());
    let (from, to) = (VIRIDIS[low], VIRIDIS[(low + 1).min(VIRIDIS.len() - 1)]);
    let mut rgb = [0u8; 3];
    for (channel, mixed) in rgb.iter_mut().enumerate() {
        *mixed = (f64::from(from[channel]) * (1.0 - part) + f64::from(to[channel]) * part).round() as u8;
    }
    (rgb, luminance(rgb) < 0.3)
}

/// `#rrggbb`.
pub(super) fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// The fill of an item, and the colour of a mark that can be seen on it.
pub(super) fn fill(of: Option<u32>, n_layer: u32) -> (String, &'static str) {
    match of {
        Some(index) => {
            let (rgb, dark) = layer(index, n_layer);
            (hex(rgb), if dark { "#ffffff" } else { "#10141a" })
        }
        None => (NO_LAYER.to_string(), "#10141a"),
    }
}

/// Relative luminance (WCAG 2.1), without the gamma's linear foot.
fn luminance(rgb: [u8; 3]) -> f64 {
    let [r, g, b] = rgb.map(|channel| (f64::from(channel) / 255.0).powf(2.2));
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lightness_rises_with_the_layer() {
        for n_layer in [2, 3, 30, 80] {
            let lightness: Vec<f64> = (0..n_layer).map(|index| luminance(layer(index, n_layer).0)).collect();
            assert!(lightness.is_sorted_by(|a, b| a < b), "{n_layer}: {lightness:?}");
        }
    }

    #[test]
    fn any_number_of_layers_has_colours() {
        assert_eq!(hex(layer(0, 1).0), hex(layer(9, 0).0));
        assert_eq!(layer(u32::MAX, 4), layer(3, 4));
    }
}
