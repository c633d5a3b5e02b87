//! The backend contract (kernels, capabilities, regions) with the null, deferring and reference backends.
