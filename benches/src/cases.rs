//! The pathological cases of BASELINES.md, the same bytes on every run.

/// Two contents for which an algorithm is slow.
pub struct Case {
    /// Name in BASELINES.md.
    pub name: &'static str,
    /// Makes the old and the new content.
    build: fn() -> (Vec<u8>, Vec<u8>),
}

impl Case {
    /// Every case, in the order of BASELINES.md.
    pub const ALL: [Self; 9] = [
        Self { name: "every 2nd of 100k lines changed", build: every_second },
        Self { name: "200k identical lines, 5 inserted", build: identical },
        Self { name: "4 MB rewritten", build: rewritten },
        Self { name: "one change in 100k lines", build: one_change },
        Self { name: "50k shuffled", build: || shuffled(50_000, 50_000) },
        Self { name: "100k shuffled, 2,000 distinct", build: || shuffled(100_000, 2_000) },
        Self { name: "50k shuffled, 50 distinct", build: || shuffled(50_000, 50) },
        Self { name: "CRLF against LF, 100k", build: line_endings },
        Self { name: "one 4 MB line", build: one_line },
    ];

    /// The case of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|case| case.name == name)
    }

    /// The old and the new content.
    pub fn contents(&self) -> (Vec<u8>, Vec<u8>) {
        (self.build)()
    }
}

/// Knuth's linear congruential generator: enough to shuffle with, and the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}

/// A line that occurs once, as long as lines of code are.
fn line(tag: &str, number: usize) -> String {
    format!("    let {tag}_{number} = compute(input, {});\n", number * 7919 % 100_003)
}

fn lines(tag: &str, numbers: impl IntoIterator<Item = usize>) -> Vec<u8> {
    numbers.into_iter().map(|number| line(tag, number)).collect::<String>().into_bytes()
}

fn every_second() -> (Vec<u8>, Vec<u8>) {
    let new = (0..100_000).map(|number| line(if number % 2 == 0 { "value" } else { "other" }, number));
    (lines("value", 0..100_000), new.collect::<String>().into_bytes())
}

/// Five lines of their own, spread over content that is the same line again and again.
fn identical() -> (Vec<u8>, Vec<u8>) {
    let same = line("same", 1);
    let mut new = String::new();
    for number in 0..200_000 {
        if number % 40_000 == 20_000 {
            new.push_str(&line("inserted", number));
        }
        new.push_str(&same);
    }
    (same.repeat(200_000).into_bytes(), new.into_bytes())
}

fn rewritten() -> (Vec<u8>, Vec<u8>) {
    let four_megabytes = |tag| {
        let mut content = String::new();
        let mut number = 0;
        while content.len() < 4 << 20 {
            content.push_str(&line(tag, number));
            number += 1;
        }
        content.into_bytes()
    };
    (four_megabytes("before"), four_megabytes("after"))
}

fn one_change() -> (Vec<u8>, Vec<u8>) {
    let new = (0..100_000).map(|number| line(if number == 50_000 { "other" } else { "value" }, number));
    (lines("value", 0..100_000), new.collect::<String>().into_bytes())
}

fn shuffled(count: usize, distinct: usize) -> (Vec<u8>, Vec<u8>) {
    let mut random = Random(count as u64 + distinct as u64);
    let mut numbers: Vec<usize> = (0..count).map(|at| at % distinct).collect();
    if distinct < count {
        random.shuffle(&mut numbers);
    }
    let old = lines("value", numbers.iter().copied());
    random.shuffle(&mut numbers);
    (old, lines("value", numbers))
}

fn line_endings() -> (Vec<u8>, Vec<u8>) {
    let unix = lines("value", 0..100_000);
    let windows = String::from_utf8_lossy(&unix).replace('\n', "\r\n").into_bytes();
    (windows, unix)
}

/// A minified file: one word in the middle of its only line differs.
fn one_line() -> (Vec<u8>, Vec<u8>) {
    let one_line = |middle: &str| {
        let half = "function(a,b){return a+b};".repeat((2 << 20) / 26);
        format!("{half}{middle}{half}\n").into_bytes()
    };
    (one_line("before()"), one_line("after()"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_what_their_names_say() {
        for case in Case::ALL {
            let (old, new) = case.contents();
            assert_ne!(old, new, "{}", case.name);
            assert_eq!((old, new), case.contents(), "{} is the same every time", case.name);
        }
        let count = |bytes: &[u8]| bytes.split(|&byte| byte == b'\n').count() - 1;
        let (old, new) = identical();
        assert_eq!((count(&old), count(&new)), (200_000, 200_005));
        let (old, new) = shuffled(1000, 50);
        let distinct: std::collections::HashSet<&[u8]> = old.split(|&byte| byte == b'\n').collect();
        assert_eq!((count(&old), count(&new), distinct.len()), (1000, 1000, 51));
    }
}
