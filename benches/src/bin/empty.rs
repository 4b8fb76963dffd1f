//! Does nothing: the floor that `sayso diff` is measured from.

fn main() {}
