//! What a model answers, as it comes.
