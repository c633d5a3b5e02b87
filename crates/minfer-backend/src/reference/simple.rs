//! The formulas of the operations that work row by row, one plain function each, to be read next to `op.rs`. Takes
//! slices; gives or changes slices; must not know steps or regions. Sums, angles and functions are taken in f64.

use minfer_graph::{Activation, RopeStyle};

/// Each run of `weight.len()` elements divided by its root mean square, times the weight.
pub fn rms_norm(x: &mut [f32], weight: &[f32], eps: f32) {
    for run in x.chunks_exact_mut(weight.len()) {
        let squares: f64 = run.iter().map(|&v| f64::from(v) * f64::from(v)).sum();
        let inverse = 1.0 / (squares / run.len() as f64 + f64::from(eps)).sqrt();
        for (v, &w) in run.iter_mut().zip(weight) {
            *v = (f64::from(*v) * inverse * f64::from(w)) as f32;
        }
    }
}

/// One row of the rope table: cosines, then sines, of `position · freq_scale · base^(-2i/n_dims) / factor[i]`.
pub fn rope_table_row(row: &mut [f32], position: i32, base: f32, freq_scale: f32, factors: Option<&[f32]>) {
    let n_dims = row.len();
    let (cosines, sines) = row.split_at_mut(n_dims / 2);
    for (i, (cosine, sine)) in cosines.iter_mut().zip(sines).enumerate() {
        let frequency = f64::from(base).powf(-2.0 * i as f64 / n_dims as f64);
        let factor = factors.map_or(1.0, |factors| f64::from(factors[i]));
        let angle = f64::from(position) * f64::from(freq_scale) * frequency / factor;
        (*cosine, *sine) = (angle.cos() as f32, angle.sin() as f32);
    }
}

/// Rotates the first `n_dims` elements of every head of a row by the angles of its table row.
pub fn rope_row(row: &mut [f32], table: &[f32], style: RopeStyle, head_dim: usize) {
    let half = table.len() / 2;
    let (cosines, sines) = table.split_at(half);
    for head in row.chunks_exact_mut(head_dim) {
        for i in 0..half {
            let (a, b) = match style {
                RopeStyle::Adjacent => (2 * i, 2 * i + 1),
                RopeStyle::Halves => (i, i + half),
            };
            let (x, y) = (head[a], head[b]);
            head[a] = x * cosines[i] - y * sines[i];
            head[b] = x * sines[i] + y * cosines[i];
        }
    }
}

/// Rotates all rows of `x` (`cols` elements each), each by its own row of `table` (`n_dims` elements each).
pub fn rope(x: &mut [f32], cols: usize, table: &[f32], n_dims: usize, style: RopeStyle, head_dim: usize) {
    for (row, table) in x.chunks_exact_mut(cols).zip(table.chunks_exact(n_dims)) {
        rope_row(row, table, style, head_dim);
    }
}

/// A gate function, element by element.
pub fn activate(x: &mut [f32], activation: Activation) {
    for v in x {
        let x = f64::from(*v);
        *v = match activation {
            Activation::Silu => x / (1.0 + (-x).exp()),
            Activation::GeluTanh => {
                let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
                0.5 * x * (1.0 + inner.tanh())
            }
        } as f32;
    }
}

/// `x += y`.
pub fn add(x: &mut [f32], y: &[f32]) {
    for (x, y) in x.iter_mut().zip(y) {
        *x += y;
    }
}

/// `x *= y`.
pub fn mul(x: &mut [f32], y: &[f32]) {
    for (x, y) in x.iter_mut().zip(y) {
        *x *= y;
    }
}
