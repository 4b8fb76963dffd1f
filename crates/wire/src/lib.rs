//! Model APIs as data.
//!
//! A request to a model is kept as the bytes that the agent sent, with an index of where everything is. What a person sees is a
//! projection into sections; what they edit is one leaf; what is sent is the same bytes but for those of that leaf.
//!
//! A stream from a model is decoded as it comes, at any boundary, without keeping what was passed on.

pub mod json;
pub mod stream;
pub mod tokens;
