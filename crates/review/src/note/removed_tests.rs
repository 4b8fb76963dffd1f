//! Counts tests, assertions and skipped tests, so that their removal can be reported.
//!
//! Added and removed lines are searched for keywords, without parsing. A commented-out line does not count, because
//! assertions are often removed that way.

use sayso_base::WsPath;

/// The test syntax of a language.
pub(super) struct Language {
    extensions: &'static [&'static str],
    comments: &'static [&'static str],
    /// Prefixes that start a test.
    tests: &'static [&'static str],
    /// Assertions besides names with `assert`.
    assertions: &'static [&'static str],
    /// Markers that skip a test or all other tests.
    skips: &'static [&'static str],
    /// Presence of an `assert x` statement.
    statement: Statement,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Statement {
    Assert,
    None,
}

const SLASHES: &[&str] = &["//", "/*", "* "];
const HASH: &[&str] = &["#"];

const LANGUAGES: &[Language] = &[
    Language {
        extensions: &["rs"],
        comments: SLASHES,
        tests: &["#[test]", "::test]", "::test(", "#[test_case", "#[rstest", "#[quickcheck", "#[wasm_bindgen_test"],
        assertions: &["#[should_panic"],
        skips: &["#[ignore"],
        statement: Statement::None,
    },
    Language {
        extensions: &["py", "pyi"],
        comments: HASH,
        tests: &["def test"],
        assertions: &["pytest.raises(", "pytest.warns("],
        skips: &[
            "pytest.mark.skip",
            "pytest.mark.xfail",
            "pytest.skip(",
            "pytest.xfail(",
            "unittest.skip",
            "unittest.expectedFailure",
            "self.skipTest(",
            "@skip",
        ],
        statement: Statement::Assert,
    },
    Language {
        extensions: &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "vue", "svelte", "dart"],
        comments: SLASHES,
        tests: &[
            "it(",
            "test(",
            "it.each",
            "test.each",
            "it.skip",
            "test.skip",
            "it.only",
            "test.only",
            "it.concurrent",
            "test.concurrent",
            "it.failing",
            "test.failing",
            "xit(",
            "xtest(",
            "fit(",
            "Deno.test",
            "testWidgets(",
        ],
        assertions: &["expect(", ".should."],
        skips: &[
            "it.skip",
            "test.skip",
            "describe.skip",
            "suite.skip",
            "test.fixme",
            "it.todo",
            "test.todo",
            "it.failing",
            "test.failing",
            "it.only",
            "test.only",
            "describe.only",
            "xit(",
            "xtest(",
            "xdescribe(",
            "fit(",
            "fdescribe(",
            "skip: true",
        ],
        statement: Statement::None,
    },
    Language {
        extensions: &["go"],
        comments: SLASHES,
        tests: &["func Test", "func Fuzz", "func Example"],
        assertions: &["t.Error", "t.Fatal", "t.Fail", "require.", "b.Fatal", "b.Error", "is.Equal("],
        skips: &["t.Skip", "b.Skip", "f.Skip"],
        statement: Statement::None,
    },
    Language {
        extensions: &["java", "kt", "kts", "scala", "groovy"],
        comments: SLASHES,
        tests: &["@Test", "@ParameterizedTest", "@RepeatedTest", "@Property"],
        assertions: &["verify(", "shouldBe", "shouldThrow", "expectThat(", "fail("],
        skips: &["@Disabled", "@Ignore", "assumeTrue(", "assumeFalse("],
        statement: Statement::Assert,
    },
    Language {
        extensions: &["cs", "fs", "vb"],
        comments: SLASHES,
        tests: &["[Fact", "[Theory", "[Test]", "[TestCase", "[TestMethod"],
        assertions: &[".Should()", "Verify("],
        skips: &["[Ignore", "Skip =", "Assert.Inconclusive(", "Assert.Ignore("],
        statement: Statement::None,
    },
    Language {
        extensions: &["rb"],
        comments: HASH,
        tests: &["it \"", "it '", "it(", "def test_", "test \"", "specify ", "scenario "],
        assertions: &["expect(", "expect {", ".must_", "refute"],
        skips: &["xit ", "skip ", "pending ", "fit ", "xdescribe "],
        statement: Statement::None,
    },
    Language {
        extensions: &["php"],
        comments: &["//", "/*", "* ", "# "],
        tests: &["function test", "#[Test", "it('", "test('"],
        assertions: &["expect(", "expectException("],
        skips: &["markTestSkipped(", "markTestIncomplete(", "->skip("],
        statement: Statement::None,
    },
    Language {
        extensions: &["swift"],
        comments: SLASHES,
        tests: &["func test", "@Test"],
        assertions: &["XCTFail(", "#expect(", "#require("],
        skips: &["XCTSkip", ".disabled("],
        statement: Statement::None,
    },
    Language {
        extensions: &["ex", "exs"],
        comments: HASH,
        tests: &["test \"", "property \""],
        assertions: &["refute "],
        skips: &["@tag :skip", "@tag skip", "@moduletag :skip"],
        statement: Statement::Assert,
    },
    Language {
        extensions: &["c", "cc", "cpp", "cxx", "h", "hpp"],
        comments: SLASHES,
        tests: &["TEST(", "TEST_F(", "TEST_P(", "TYPED_TEST(", "TEST_CASE(", "BOOST_AUTO_TEST_CASE("],
        assertions: &["EXPECT_", "REQUIRE", "CHECK(", "CHECK_", "BOOST_CHECK", "BOOST_REQUIRE"],
        skips: &["GTEST_SKIP", "DISABLED_"],
        statement: Statement::None,
    },
    Language {
        extensions: &["sh", "bash", "bats"],
        comments: HASH,
        tests: &["@test "],
        assertions: &[],
        skips: &["skip "],
        statement: Statement::None,
    },
];

/// Numbers of tests, assertions and skips in a range of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) tests: usize,
    pub(super) assertions: usize,
    pub(super) skips: usize,
}

impl Language {
    /// Returns the language of a file by its extension; `None` if its test syntax is unknown.
    pub(super) fn of(path: &WsPath) -> Option<&'static Self> {
        let (_, extension) = path.names().next_back()?.rsplit_once('.')?;
        let extension = extension.to_ascii_lowercase();
        LANGUAGES.iter().find(|language| language.extensions.contains(&extension.as_str()))
    }

    /// `true` if tests are written in source files, so that the path does not identify them.
    pub(super) fn has_tests_inside(&self) -> bool {
        self.extensions.contains(&"rs")
    }

    /// Counts markers in whole lines.
    pub(super) fn count(&self, text: &str) -> Counts {
        let mut counts = Counts::default();
        let mut begins_mark = [false; 256];
        for mark in [self.tests, self.assertions, self.skips].concat() {
            begins_mark[usize::from(mark.as_bytes()[0])] = true;
        }
        for line in text.lines() {
            let line = line.trim_start();
            if self.comments.iter().any(|comment| line.starts_with(comment)) && !line.starts_with("#[") {
                continue;
            }
            let (mut is_test, mut is_skip) = (false, false);
            for (at, byte) in line.bytes().enumerate() {
                if !begins_mark[usize::from(byte)] || (is_name(byte) && at > 0 && continues(line.as_bytes()[at - 1])) {
                    continue;
                }
                let has = |mark: &&str| line.as_bytes()[at..].starts_with(mark.as_bytes());
                is_test |= self.tests.iter().any(has);
                is_skip |= self.skips.iter().any(has);
                counts.assertions += usize::from(self.assertions.iter().any(has));
            }
            counts.tests += usize::from(is_test);
            counts.skips += usize::from(is_skip);
            counts.assertions += self.named_assertions(line);
        }
        counts
    }

    /// Counts calls of names with `assert`.
    fn named_assertions(&self, line: &str) -> usize {
        let in_name = |character: char| u8::try_from(character).map_or(true, is_name);
        let mut count = 0;
        let mut from = 0;
        while let Some(at) = find_assert(&line[from..]) {
            let at = from + at;
            let start = line[..at]
                .rfind(|character| !in_name(character))
                .map_or(0, |end| end + line[end..].chars().next().map_or(1, char::len_utf8));
            let end = line[at..].find(|character| !in_name(character)).map_or(line.len(), |length| at + length);
            let (name, rest) = (&line[start..end], &line[end..]);
            let defines = ["fn", "def", "func", "function", "void", "import", "use"];
            let is_use = match rest.bytes().next() {
                Some(b'!') => true,
                Some(b'(') => !line[..start].split_whitespace().next_back().is_some_and(|word| defines.contains(&word)),
                Some(b'.') => name.eq_ignore_ascii_case("assert"),
                Some(b' ') => self.statement == Statement::Assert && name == "assert",
                _ => false,
            };
            count += usize::from(is_use);
            from = end;
        }
        count
    }
}

fn find_assert(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_here = |at: usize| bytes.get(at..at + 6).is_some_and(|word| word.eq_ignore_ascii_case(b"assert"));
    (0..bytes.len()).find(|at| matches!(bytes[*at], b'a' | b'A') && is_here(*at))
}

/// `true` for a byte of a name; includes all bytes of non-ASCII letters.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// `true` if the byte continues a name or a path to it.
fn continues(byte: u8) -> bool {
    is_name(byte) || matches!(byte, b'.' | b'$')
}

/// Returns the offset of the first test attribute in a Rust source.
pub(super) fn tests_start(source: &[u8]) -> usize {
    let mut at = 0;
    while let Some(next) = source[at..].iter().position(|byte| *byte == b'#') {
        at += next;
        let attribute = source[at..].strip_prefix(b"#[").unwrap_or_default();
        let end = attribute.iter().position(|byte| !is_name(*byte) && *byte != b':').unwrap_or(attribute.len());
        let (name, rest) = attribute.split_at(end);
        // Async runtimes define their own `test` attribute.
        let is_test = name == b"test" || name.ends_with(b"::test");
        if is_test || (name == b"cfg" && (rest.starts_with(b"(test)") || rest.starts_with(b"(all(test"))) {
            return at;
        }
        at += 1;
    }
    source.len()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::*;

    fn check(path: &str, text: &str, tests: usize, assertions: usize, skips: usize) {
        let language = Language::of(&WsPath::parse(path).unwrap()).unwrap();
        assert_eq!(language.count(text), Counts { tests, assertions, skips }, "{text}");
    }

    #[test]
    fn tests_assertions_and_skips_are_counted() {
        check("a.rs", "#[test]\nfn a() {\n    assert!(x);\n    assert_eq!(a, b); assert!(c);\n}\n", 1, 3, 0);
        check("a.rs", "    #[smol::test]\n    #[ignore = \"slow\"]\n    prop_assert!(x);", 1, 1, 1);
        check("a.rs", "// assert!(x);\n/* #[test] */\nfn assert_same(a: u8) {}\nlet asserted = 1;", 0, 0, 0);
        check("a.rs", "#[test]\n#[should_panic(expected = \"x\")]\n", 1, 1, 0);
        check("a.py", "def test_a():\n    assert x == 1\n    self.assertEqual(a, b)\n", 1, 2, 0);
        check("a.py", "async def test_a():\n  with pytest.raises(E):\n# assert x\n", 1, 1, 0);
        check("a.py", "@pytest.mark.skip(reason='x')\n@unittest.skipIf(a)\nexcept AssertionError:\n", 0, 0, 2);
        check("a.ts", "it('a', () => {\n  expect(a).toBe(b);\n  expect(c)\n});\n", 1, 2, 0);
        check("a.ts", "it.skip('a', () => {});\nxit('b');\ndescribe.only('c')\n", 2, 0, 3);
        check("a.ts", "import assert from 'node:assert';\nawait wait(1);\nsplit(x); a.test(b)\n", 0, 0, 0);
        check("a.js", "assert.equal(a, b); assert(c);", 0, 2, 0);
        check("a.go", "func TestA(t *testing.T) {\n\tt.Fatalf(\"x\")\n\tassert.Equal(t, a, b)\n\tt.Skip()\n", 1, 2, 1);
        check("A.java", "@Test\nvoid a() { assertEquals(a, b); }\n@Disabled\nassert x;\n", 1, 2, 1);
        check("a.rb", "it 'does' do\n  expect(a).to eq(b)\nend\n", 1, 1, 0);
        check("a.cc", "TEST_F(A, B) {\n  EXPECT_EQ(a, b);\n  ASSERT_TRUE(c);\n", 1, 2, 0);
        check("a.rs", "größe_assert!(ß); ßassert", 0, 1, 0);
    }

    #[test]
    fn rust_tests_start_at_attribute() {
        let source = b"#![allow(x)]\nassert!(1);\n#[cfg(test)]\nmod tests {}\n";
        assert_eq!(&source[tests_start(source)..][..12], b"#[cfg(test)]");
        assert_eq!(tests_start(b"# #[testing]"), 12);
        assert_eq!(tests_start(b"#[cfg(unix)] #[smol::test(x)]"), 13);
        assert_eq!(tests_start(b""), 0);
    }
}
