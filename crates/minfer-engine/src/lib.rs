//! Load, allocate, schedule, step and sample: runs planned graphs on the backends handed in.
