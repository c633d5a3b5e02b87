//! The fast CPU backend: worker pool, quantised dots and matrix products, attention; SIMD chosen at run time.
