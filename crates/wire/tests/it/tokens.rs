//! Token counts and their cache.

use std::borrow::Cow;
use std::cell::Cell;

use proptest::prelude::*;
use sayso_wire::tokens::{DEFAULT_ENTRIES, Exactness, TokenCounter, TokenEncoding, Tokenizer, Tokens, count};

const O200K: Tokenizer = Tokenizer { encoding: TokenEncoding::O200k, exactness: Exactness::Exact };
const CL100K: Tokenizer = Tokenizer { encoding: TokenEncoding::Cl100k, exactness: Exactness::Exact };

/// Texts with their counts in o200k_base and cl100k_base, as computed by tiktoken 0.14 from PyPI.
const KNOWN: &[(&str, u64, u64)] = &[
    ("", 0, 0),
    ("hello world", 2, 2),
    ("The quick brown fox jumps over the lazy dog.", 10, 10),
    ("fn main() {\n    println!(\"Hello, {}!\", name);\n}\n", 14, 14),
    ("Die Straße war naß — 你好,世界! Привет 🦀👩\u{200d}👩\u{200d}👧", 24, 34),
    ("  \t\n\n   indented\r\n\r\n", 6, 6),
    ("<|endoftext|>", 7, 7),
    ("1234567890 3.14159 0xdeadbeef", 15, 15),
    (r#"{"file_path":"/work/src/lib.rs","limit":200}"#, 14, 13),
    ("don't I'LL we've O'Reilly's", 8, 11),
    ("e\u{301}\u{301} ＡＢＣ ǅ", 10, 12),
];

#[test]
fn counts_match_tiktoken() {
    let mut counter = TokenCounter::default();
    for &(text, o200k, cl100k) in KNOWN {
        assert_eq!(count(O200K, text), Tokens::exact(o200k), "{text:?}");
        assert_eq!(count(CL100K, text), Tokens::exact(cl100k), "{text:?}");
        assert_eq!(counter.count(O200K, text), Tokens::exact(o200k), "{text:?}");
        assert_eq!(counter.count(CL100K, text), Tokens::exact(cl100k), "{text:?}");
    }
}

#[test]
fn repeated_characters_match_tiktoken() {
    for (text, tokens) in [("a".repeat(1000), 125), (" ".repeat(1000), 9), ("=-".repeat(300), 38)] {
        assert_eq!(count(O200K, &text), Tokens::exact(tokens));
        assert_eq!(count(CL100K, &text), Tokens::exact(tokens));
    }
}

#[test]
fn openai_models_are_counted_exactly() {
    for name in [
        "gpt-4o",
        "gpt-4o-mini-2024-07-18",
        "gpt-4.1",
        "gpt-4.1-nano",
        "gpt-5",
        "gpt-5.5",
        "gpt-5.1-codex-max",
        "GPT-5-mini",
        "openai/gpt-5",
        "ft:gpt-4o:acme::7",
        "o1",
        "o1-pro",
        "o3-mini",
        "o4-mini",
        "codex-mini-latest",
        "chatgpt-4o-latest",
    ] {
        assert_eq!(Tokenizer::for_model(name), O200K, "{name}");
    }
    for name in ["gpt-4", "gpt-4-0613", "gpt-4-turbo", "gpt-3.5-turbo", "gpt-35-turbo", "text-embedding-3-small"] {
        assert_eq!(Tokenizer::for_model(name), CL100K, "{name}");
    }
}

#[test]
fn other_models_are_estimated() {
    for name in
        ["claude-sonnet-4-5", "claude-opus-4-8", "gemini-2.5-pro", "qwen3-coder", "gpt-40", "gpt-4ox", "o11", "o", ""]
    {
        assert_eq!(Tokenizer::for_model(name), Tokenizer::ESTIMATE, "{name}");
    }
    assert_eq!(count(Tokenizer::for_model("claude-sonnet-4-5"), "hello world"), Tokens::estimate(2));
}

#[test]
fn count_display_groups_thousands_and_marks_estimates() {
    assert_eq!(Tokens::exact(0).to_string(), "0");
    assert_eq!(Tokens::exact(999).to_string(), "999");
    assert_eq!(Tokens::exact(1234).to_string(), "1,234");
    assert_eq!(Tokens::estimate(1_234_567).to_string(), "≈ 1,234,567");
    assert_eq!(format!("{:>9}|{:<9}|", Tokens::estimate(1234), Tokens::exact(12)), "  ≈ 1,234|12       |");
}

#[test]
fn sum_with_estimate_is_an_estimate() {
    assert_eq!(Tokens::exact(1) + Tokens::exact(2), Tokens::exact(3));
    assert_eq!(Tokens::exact(1) + Tokens::estimate(2), Tokens::estimate(3));
    assert_eq!(Tokens::estimate(1) + Tokens::exact(2), Tokens::estimate(3));
    assert_eq!(Tokens::estimate(0) + Tokens::exact(2), Tokens::estimate(2));
    assert_eq!([1, 2, 3].map(Tokens::exact).into_iter().sum::<Tokens>(), Tokens::exact(6));
    assert_eq!(std::iter::empty::<Tokens>().sum::<Tokens>(), Tokens::ZERO);
    assert_eq!(Tokens::exact(u64::MAX) + Tokens::exact(1), Tokens::exact(u64::MAX));
    let mut total = Tokens::ZERO;
    total += Tokens::estimate(4);
    assert_eq!(total, Tokens::estimate(4));
}

#[test]
fn cached_count_serves_exact_and_estimate() {
    let mut counter = TokenCounter::default();
    let text = "the same words for two models";
    let estimate = counter.count(Tokenizer::ESTIMATE, text);
    assert_eq!(estimate, Tokens::estimate(6));
    assert_eq!(counter.count(O200K, text), Tokens::exact(6));
    assert_eq!(counter.count(Tokenizer::ESTIMATE, text), Tokens::estimate(6));
    assert_eq!(counter.entries(), 1, "one encoding, one entry");
}

#[test]
fn encodings_are_cached_separately() {
    let mut counter = TokenCounter::default();
    let (text, o200k, cl100k) = KNOWN[4];
    for _ in 0..2 {
        assert_eq!(counter.count(O200K, text), Tokens::exact(o200k));
        assert_eq!(counter.count(CL100K, text), Tokens::exact(cl100k));
    }
    assert_eq!(counter.entries(), 2);
}

#[test]
fn cached_text_is_not_decoded_again() {
    let mut counter = TokenCounter::default();
    let decoded = Cell::new(0);
    let ask = |counter: &mut TokenCounter| {
        counter.count_encoded(O200K, br"tabs\tand\nlines\u003cb\u003e", || {
            decoded.set(decoded.get() + 1);
            Cow::Borrowed("tabs\tand\nlines<b>")
        })
    };
    let first = ask(&mut counter);
    assert_eq!(first, count(O200K, "tabs\tand\nlines<b>"));
    assert_eq!(ask(&mut counter), first);
    assert_eq!(decoded.get(), 1);
}

#[test]
fn encoded_bytes_and_text_are_cached_separately() {
    let mut counter = TokenCounter::default();
    let spelled = r"\u0061 \u0061 \u0061 \u0061";
    let text = spelled.replace(r"\u0061", "a");
    let sent = counter.count_encoded(O200K, spelled.as_bytes(), || Cow::Borrowed(&text));
    assert_eq!(sent, count(O200K, &text));
    assert_eq!(counter.count(O200K, spelled), count(O200K, spelled));
    assert_ne!(sent, count(O200K, spelled));
}

#[test]
fn invalid_utf8_is_estimated() {
    let mut counter = TokenCounter::default();
    assert_eq!(counter.count_bytes(O200K, b"hello world"), Tokens::exact(2));
    let broken = counter.count_bytes(O200K, b"hello \xff\xfe world \xed\xa0\x80");
    assert_eq!(broken.exactness, Exactness::Estimate);
    assert!(broken.count > 2);
    // The repaired text counts the same.
    let repaired = String::from_utf8_lossy(b"hello \xff\xfe world \xed\xa0\x80");
    assert_eq!(counter.count(O200K, &repaired).exactness, Exactness::Exact);
}

#[test]
fn cache_is_bounded() {
    for bound in [2, 3, 10, 64] {
        let mut counter = TokenCounter::new(bound);
        for number in 0..500 {
            counter.count(O200K, &format!("a text that is numbered {number}"));
            assert!(counter.entries() <= bound, "{} entries of {bound}", counter.entries());
        }
        assert!(counter.entries() > bound / 3, "and it is used");
        counter.clear();
        assert_eq!(counter.entries(), 0);
    }
    // A bound that is too small is raised to the minimum.
    for bound in [0, 1] {
        let mut counter = TokenCounter::new(bound);
        for number in 0..10 {
            counter.count(O200K, &format!("a text that is numbered {number}"));
        }
        assert!(counter.entries() <= 2);
    }
    const { assert!(DEFAULT_ENTRIES >= 10_000) };
}

#[test]
fn used_entries_outlive_unused() {
    let mut counter = TokenCounter::new(20);
    let decoded = Cell::new(0);
    for number in 0..200 {
        counter.count(O200K, &format!("a text that comes once, number {number}"));
        counter.count_encoded(O200K, b"a text that comes again and again", || {
            decoded.set(decoded.get() + 1);
            Cow::Borrowed("a text that comes again and again")
        });
    }
    assert_eq!(decoded.get(), 1);
}

#[test]
fn short_texts_are_not_cached() {
    let mut counter = TokenCounter::default();
    assert_eq!(counter.count(O200K, "user"), Tokens::exact(1));
    assert_eq!(counter.entries(), 0);
}

/// Runs without a break, in which a naive merge would be quadratic.
#[test]
fn long_runs_are_counted_in_linear_time() {
    // At this size a quadratic algorithm exceeds the test timeout.
    const SIZE: usize = 10 << 20;
    let mut random = 7u64;
    let mut letter = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        char::from(b'a' + (random % 26) as u8)
    };
    let letters: String = (0..SIZE / 4).map(|_| letter()).collect();
    let runs =
        ["a".repeat(SIZE), " ".repeat(SIZE), "=".repeat(SIZE), "\0".repeat(SIZE / 4), "汉".repeat(SIZE / 12), letters];
    for text in &runs {
        let tokens = count(O200K, text);
        assert_eq!(tokens.exactness, Exactness::Estimate);
        assert!(tokens.count > 0 && tokens.count <= text.len() as u64);
    }
    // tiktoken encodes 8 letters as one token, so the cuts cost almost no extra token.
    assert_eq!(count(O200K, &runs[0]).count, (SIZE / 8) as u64);
}

#[test]
fn source_files_match_bpe_openai() {
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let mut checked = 0;
    for entry in std::fs::read_dir(sources).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(count(O200K, &text).count, bpe_openai::o200k_base().count(text.as_str()) as u64, "{path:?}");
            assert_eq!(count(CL100K, &text).count, bpe_openai::cl100k_base().count(text.as_str()) as u64, "{path:?}");
            checked += 1;
        }
    }
    assert!(checked > 5);
}

#[test]
fn ten_megabytes_of_code_match_bpe_openai() {
    let line = "    let total: usize = items.iter().map(|item| item.size).sum(); // all of them\n";
    let lines = (10 << 20) / line.len();
    let tokens = count(O200K, &line.repeat(lines));
    let few = [10, 20].map(|lines| count(O200K, &line.repeat(lines)).count);
    let each = (few[1] - few[0]) / 10;
    assert_eq!(tokens, Tokens::exact(few[0] + each * (lines as u64 - 10)));
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    let text = prop_oneof!["\\PC{0,60}", "[ \\t\\r\\n'/a-cA-C0-9]{0,80}", "(.|\\n){0,60}"];
    prop::collection::vec(text, 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn cached_counts_equal_uncached(texts in texts(), order in prop::collection::vec(any::<(prop::sample::Index, bool)>(), 0..60), bound in 0usize..12) {
        let mut counter = TokenCounter::new(bound);
        for (index, newer) in order {
            if texts.is_empty() {
                break;
            }
            let text = index.get(&texts);
            let tokenizer = if newer { O200K } else { CL100K };
            prop_assert_eq!(counter.count(tokenizer, text), count(tokenizer, text));
            prop_assert!(counter.entries() <= bound.max(2));
        }
    }

    #[test]
    fn cached_sum_equals_first_sum(texts in texts(), new in "\\PC{0,40}") {
        let mut counter = TokenCounter::default();
        let history: Tokens = texts.iter().map(|text| counter.count(O200K, text)).sum();
        let entries = counter.entries();
        let again: Tokens = texts.iter().map(|text| counter.count(O200K, text)).sum();
        prop_assert_eq!(history, again);
        prop_assert_eq!(counter.entries(), entries);
        let with_new = again + counter.count(O200K, &new);
        let scratch: Tokens = texts.iter().chain([&new]).map(|text| count(O200K, text)).sum();
        prop_assert_eq!(with_new, scratch);
        prop_assert!(counter.entries() <= entries + 1);
    }

    /// `bpe-openai` uses another algorithm, based on automata.
    #[test]
    fn counts_match_bpe_openai(texts in texts(), letters in "[a-zA-Z=_ .-]{60,400}") {
        for text in texts.iter().chain([&letters]) {
            prop_assert_eq!(count(O200K, text).count, bpe_openai::o200k_base().count(text.as_str()) as u64);
            prop_assert_eq!(count(CL100K, text).count, bpe_openai::cl100k_base().count(text.as_str()) as u64);
        }
    }

    #[test]
    fn arbitrary_bytes_are_counted(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut counter = TokenCounter::default();
        let tokens = counter.count_bytes(O200K, &bytes);
        prop_assert_eq!(tokens.exactness == Exactness::Exact, std::str::from_utf8(&bytes).is_ok());
        prop_assert_eq!(tokens.count == 0, bytes.is_empty());
    }
}
