//! Passes from a graph to an executable memory plan: assign, fuse, lower, transfer, lifetimes, place, verify.
