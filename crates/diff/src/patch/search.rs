//! Search for runs of lines.

/// Returns the positions of `wanted`, which must not be empty, in `lines`, in linear time (Knuth, Morris and Pratt).
/// Matches may overlap.
pub(super) fn occurrences<T: PartialEq>(wanted: &[T], lines: &[T]) -> impl Iterator<Item = usize> {
    // For each matched length, the longest shorter match that can continue.
    let mut shorter = vec![0; wanted.len() + 1];
    let mut matched = 0;
    for at in 1..wanted.len() {
        while matched > 0 && wanted[at] != wanted[matched] {
            matched = shorter[matched];
        }
        matched += usize::from(wanted[at] == wanted[matched]);
        shorter[at + 1] = matched;
    }
    let mut matched = 0;
    lines.iter().enumerate().filter_map(move |(at, line)| {
        while matched > 0 && (matched == wanted.len() || *line != wanted[matched]) {
            matched = shorter[matched];
        }
        matched += usize::from(*line == wanted[matched]);
        (matched == wanted.len()).then(|| at + 1 - matched)
    })
}
