//! An empty program: the floor for `sayso diff`.

fn main() {}
