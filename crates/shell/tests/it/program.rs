//! The strict grammar: accepted scripts with their forecast, rejected scripts with reason and highlighted text.

use proptest::prelude::*;
use sayso_shell::program::{VariableClass, Variables, variable_class};
use sayso_shell::{Certainty, Flow, Program, Script, SimpleCommand, Uncertainty};

fn forecast(text: &str) -> Script {
    let known: Variables = [("HOME", "/home/me"), ("USER", "me")].into_iter().collect();
    Program::parse(text).unwrap_or_else(|error| panic!("{text}: {error} at {:?}", error.span)).forecast(&known)
}

/// A command as it is shown, uncertain words marked with `?` before them.
fn shown(command: &SimpleCommand) -> String {
    let mut marked = command.clone();
    let redirects = marked.redirects.iter_mut().map(|redirect| &mut redirect.target);
    for word in marked.assignments.iter_mut().chain(&mut marked.words).chain(redirects) {
        if word.certainty != Certainty::Literal {
            word.text.insert_str(0, if word.certainty == Certainty::Pattern { "*?" } else { "?" });
        }
    }
    let through: String = marked.wrappers.iter().map(|name| format!("{name}> ")).collect();
    format!("{through}{marked}")
}

/// Each row: a script, and the commands of its forecast.
const ACCEPTED: &[(&str, &[&str])] = &[
    ("", &[]),
    ("# rm x", &[]),
    ("ls -l", &["ls -l"]),
    ("a; b\nc && d || e | f", &["a", "b", "c", "d", "e", "f"]),
    ("! a | b |& c", &["a", "b", "c"]),
    ("(a; b) > f; { c; } 2>&1", &["a", "b", "> f", "c", ""]),
    ("r\\m 'a b' \"c\" $'\\x64\\te'", &["rm 'a b' c $'d\\te'"]),
    ("x=1; echo $x ${x}2 \"$x\"", &["x=1", "echo 1 12 1"]),
    ("x='a b'; rm $x; rm \"$x\"", &["'x=a b'", "rm a b", "rm 'a b'"]),
    ("x='*.c'; rm $x; rm \"$x\"", &["'x=*.c'", "rm *?*.c", "rm '*.c'"]),
    ("x=$y; rm $x", &["?x=$y", "rm ?$x"]),
    ("rm $(ls) $?", &["ls", "rm ?$(…) ?$?"]),
    ("rm *.c [ab]? ~/x ~", &["rm *?*.c *?[ab]? /home/me/x /home/me"]),
    ("cp f{,.bak} {1..3} {b..a}", &["cp f f.bak 1 2 3 b a"]),
    ("echo HEAD@{1} {} @{u}", &["echo 'HEAD@{1}' '{}' '@{u}'"]),
    ("for f in a b; do rm $f; done", &["rm a", "rm b"]),
    ("for f in *.c; do rm \"$f\" $f; done", &["rm *?*.c ?$f"]),
    ("for f in $(ls); do rm $f; done", &["ls", "rm ?$f"]),
    ("if a; then x=1; else x=2; fi; rm $x", &["a", "x=1", "x=2", "rm ?$x"]),
    ("a && x=1; rm $x", &["a", "x=1", "rm ?$x"]),
    ("a && x=1 && rm $x", &["a", "x=1", "rm 1"]),
    ("a || x=1 && rm $x", &["a", "x=1", "rm ?$x"]),
    ("x=1; (x=2; rm $x); rm $x", &["x=1", "x=2", "rm 2", "rm 1"]),
    ("x=1; echo | x=2; rm $x", &["x=1", "echo", "x=2", "rm 1"]),
    ("x=1; { x=2; } < f; rm $x", &["x=1", "x=2", "< f", "rm ?$x"]),
    ("export X=1 Y=$z; rm $X $Y; unset X", &["export X=1 ?Y=$z", "rm 1 ?$Y", "unset X"]),
    ("A=1 cargo test; rm $A", &["A=1 cargo test", "rm ?$A"]),
    ("a > f 2>> g < h &> i 3> j >&3 <&-", &["a > f >> g < h > i > j"]),
    ("a > $x/f", &["a > ?$x/f"]),
    ("x=' b'; a > $x; y='b c'; a > $y", &["'x= b'", "a > b", "'y=b c'", "a > \"?b c\""]),
    ("cat <<E\n$x\nE\nb", &["cat", "b"]),
    ("bash <<'E'\nrm x\nE", &["bash", "bash> rm x"]),
    ("cat <<< \"$(a)\"", &["a", "cat"]),
    ("while read -r f; do rm \"$f\"; done < list", &["read -r f", "rm ?$f", "< list"]),
    ("case $x in a|b*) c;; *) d;; esac", &["c", "d"]),
    ("[[ -f $x && ! a == b* ]] && c", &["'[[' -f ?$x '&&' '!' a == *?b* ']]'", "c"]),
    ("[ -f a ] && test b", &["'[' -f a ']'", "test b"]),
    ("env A=1 rm x; timeout 5 rm y", &["env A=1 rm x", "env> A=1 rm x", "timeout 5 rm y", "timeout> rm y"]),
    ("a \\\n  b", &["a b"]),
    ("set -euo pipefail; set +x; command -v a; type b", &["set -euo pipefail", "set +x", "command -v a", "type b"]),
    ("echo a#b '#' \\#c", &["echo 'a#b' '#' '#c'"]),
];

#[test]
fn accepted_scripts_have_forecast() {
    let mut wrong = Vec::new();
    for (text, commands) in ACCEPTED {
        let found: Vec<String> = forecast(text).commands.iter().map(shown).collect();
        if found != *commands {
            wrong.push(format!("{text}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each row: a script, the text that is highlighted, and a part of the reason.
const REJECTED: &[(&str, &str, &str)] = &[
    ("eval \"$x\"", "eval", "`eval` runs text that is only known when it runs"),
    ("a; . ./f", ".", "runs a file as part of the script"),
    ("source f", "source", "runs a file"),
    ("exec ls", "exec", "replaces the shell"),
    ("trap 'a' EXIT", "trap", "at another time"),
    ("alias a=b", "alias", "another meaning"),
    ("'eval' x", "'eval'", "only known when it runs"),
    ("function f { a; }", "function", "another meaning"),
    ("f() { a; }", "f(", "another meaning"),
    ("coproc a", "coproc", "background"),
    ("select x in a; do b; done", "select", "terminal"),
    ("a & b", "&", "background"),
    ("a &", "&", "background"),
    ("x=(a b)", "(", "arrays"),
    ("x[0]=1", "x[0]=1", "arrays"),
    ("p[4; a", "p[4", "arrays"),
    ("x+=1", "x+=", "`+=`"),
    ("echo $((x+1))", "$((", "arithmetic"),
    ("((x++))", "((", "arithmetic"),
    ("echo $[1]", "$[", "arithmetic"),
    ("for ((i=0;i<1;i++)); do a; done", "for ((", "arithmetic"),
    ("let x=1", "let", "arithmetic"),
    ("echo ${x:-1}", "${x:-1}", "around a name only"),
    ("echo \"${x@P}\"", "${x@P}", "around a name only"),
    ("echo ${!x} y", "${!x}", "around a name only"),
    ("echo ${#x}", "${#x}", "around a name only"),
    ("echo $1", "$1", "only known to the shell"),
    ("echo \"$@\"", "$@", "only known to the shell"),
    ("echo $$ x", "$$", "only known to the shell"),
    ("echo $RANDOM", "$RANDOM", "only known to the shell"),
    ("echo $BASH_VERSION", "$BASH_VERSION", "only known to the shell"),
    ("echo `a`", "`", "backticks"),
    ("echo \"`a`\"", "`", "backticks"),
    ("diff <(a) <(b)", "<(", "process substitution"),
    ("echo @(a|b)", "@(", "extended patterns"),
    ("echo !!", "!!", "history"),
    ("echo !x", "!x", "history"),
    ("PATH=/x ls", "PATH=", "`PATH`"),
    ("LD_PRELOAD=x ls", "LD_PRELOAD=", "`LD_PRELOAD`"),
    ("GIT_SSH=x git fetch", "GIT_SSH=", "`GIT_SSH`"),
    ("export EDITOR=x", "EDITOR=", "`EDITOR`"),
    ("unset PATH", "PATH", "`PATH`"),
    ("for PATH in a; do b; done", "PATH", "`PATH`"),
    ("IFS=: read -r x", "IFS=", "`IFS`"),
    ("export $x", "$x", "only known when it runs"),
    ("export -p", "-p", "not the name of a variable"),
    ("set -- a", "set -- a", "`set` is supported"),
    ("set -o history", "set -o history", "`set` is supported"),
    ("printf -v x a", "-v", "`printf -v`"),
    ("command ls", "command", "`command` is supported with `-v` only"),
    ("read x", "read", "while read -r NAME"),
    ("while true; do a; done", "while ", "while read -r NAME"),
    ("until a; do b; done", "until", "`until`"),
    ("time a", "time", "`time`"),
    ("for x do a; done", "for x ", "without `in`"),
    ("a <> f", "<>", "`<>`"),
    ("a 10> f", "10", "above 9"),
    ("a {fd}> f", "{fd}", "descriptor"),
    ("a >& f", ">& f", "one digit"),
    ("a 2>&1-", "2>&1-", "one digit"),
    ("a > /dev/tcp/h/1", "/dev/tcp/h/1", "connection"),
    ("a >2>&1", "2", "descriptor"),
    ("[[ a =~ b ]]", "=~", "`=~`"),
    ("[[ a -eq b ]]", "-eq", "`-eq`"),
    ("[[ -v x ]]", "-v", "`-v`"),
    ("[ -v x ]", "-v", "not supported"),
    ("echo ~root", "~root", "`~`"),
    ("make X=~/a", "~", "`~`"),
    ("echo {a,$x}", "{a,$x}", "plain text"),
    ("echo {1..99999}", "{1..99999}", "more than 1000"),
    ("echo [\"a\"]x", "[\"a\"]", "`[…]`"),
    ("echo $\"a\"", "$\"", "translated"),
    ("echo $'\\0'", "$'\\0'", "NUL"),
    ("echo $'\\xff'", "$'\\xff'", "UTF-8"),
    ("echo $(< f)", "$(< f)", "`$(cat file)`"),
    ("ec\\\nho", "\\\n", "line continuation"),
    ("a |\\\n| b", "\\\n", "line continuation"),
    ("echo \"$\\\nx\"", "$", "line continuation"),
    ("echo \"$x\\\ny\"", "\\\n", "line continuation"),
    ("cat <<E\na\\\nb\nE", "\\\n", "line continuation"),
    ("a\0b", "\0", "NUL"),
    ("a\r\nb", "\r", "carriage return"),
    ("a \u{1b}[1m", "\u{1b}", "U+001B"),
    ("a \u{9b}", "\u{9b}", "U+009B"),
    ("'a", "'", "has no end"),
    ("\"a", "\"", "has no end"),
    ("$(a", "$(", "has no end"),
    ("(a", "(", "has no end"),
    ("if a; then b", "b", "in the middle of a command"),
    ("a &&", "&", "in the middle of a command"),
    ("a; }", "}", "stands where"),
    ("a )", ")", "stands where"),
    ("a | in", "in", "stands where"),
    ("]] a", "]]", "stands where"),
    ("a ;; b", ";", "stands where"),
    ("; a", ";", "stands where"),
    ("cat <<E\nx", "<<E", "no line `E`"),
    ("cat <<E", "<<E", "no body"),
    ("cat <<$x\n", "<<$x", "plain word"),
    ("a \\", "\\", "backslash"),
];

#[test]
fn rejected_scripts_name_reason_and_span() {
    let mut wrong = Vec::new();
    for (text, highlighted, reason) in REJECTED {
        let found = Program::parse(text).err().map(|error| (text[error.span.clone()].to_owned(), error.reason));
        if !found.as_ref().is_some_and(|(span, found)| span == highlighted && found.contains(reason)) {
            wrong.push(format!("{text:?}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pipelines_and_subshells_have_own_shells() {
    let script = forecast("cd a; (cd b; ls); c | d; e $(f)");
    let found: Vec<(usize, Option<usize>)> =
        script.commands.iter().map(|command| (command.shell, command.fed_by)).collect();
    assert_eq!(
        found,
        [(0, None), (1, None), (1, None), (2, None), (3, Some(3)), (4, None), (0, Some(5))],
        "{script:?}"
    );
    assert_eq!(script.shells, [0, 0, 0, 0, 0]);
}

#[test]
fn branches_have_course_of_branch() {
    let script = forecast("a && b || c; d; if e; then f; fi; for x in 1; do g; done");
    let straight: Vec<bool> = script.commands.iter().map(|command| command.flow == Flow::Unconditional).collect();
    assert_eq!(straight, [true, true, false, true, false, false, false]);
}

#[test]
fn unknown_program_is_a_doubt() {
    assert_eq!(forecast("$x a").uncertainties, [Uncertainty::UnknownProgram { word: "$x".to_owned() }]);
    assert_eq!(forecast("x=ls; $x a").uncertainties, []);
}

#[test]
fn variables_have_classes() {
    use VariableClass::{Dangerous, Harmless, Other};
    for (names, class) in [
        (
            &[
                "CI",
                "NO_COLOR",
                "NODE_ENV",
                "RUST_LOG",
                "RUST_BACKTRACE",
                "CARGO_TERM_COLOR",
                "TERM",
                "LANG",
                "LC_ALL",
                "DEBUG",
            ][..],
            Harmless,
        ),
        (&["FOO", "x", "PORT", "RUST_UNKNOWN"], Other),
        (
            &[
                "PATH",
                "LD_PRELOAD",
                "IFS",
                "BASH_ENV",
                "ENV",
                "SHELLOPTS",
                "PYTHONPATH",
                "GIT_DIR",
                "MANPAGER",
                "PAGER",
                "EDITOR",
                "VISUAL",
                "PERL5OPT",
                "NODE_OPTIONS",
                "RUBYOPT",
                "HOME",
                "RUSTFLAGS",
                "CARGO_HOME",
                "BASH_FUNC_x",
                "RANDOM",
                "PWD",
                "DYLD_INSERT_LIBRARIES",
                "npm_config_x",
                "GOFLAGS",
                "http_proxy",
                "_",
            ],
            Dangerous,
        ),
    ] {
        for name in names {
            assert_eq!(variable_class(name), class, "{name}");
        }
    }
}

#[test]
fn sizes_are_bounded() {
    for text in [
        format!("echo {}", "{1..9}".repeat(12)),
        format!("{}a{}", "(".repeat(100), ")".repeat(100)),
        format!("echo {}a{}", "$(b ".repeat(100), ")".repeat(100)),
        format!("a {}", "| b".repeat(100)),
        format!("[[ a {} ]]", "&& b ".repeat(100_000)),
        format!("[[ {} a ]]", "! ".repeat(100_000)),
        "a".repeat(2 << 20),
    ] {
        assert!(Program::parse(&text).is_err(), "{}", &text[..40]);
    }
}

#[test]
fn many_variables_are_forecast_in_bounded_time() {
    let text: String = (0..20_000).map(|number| format!("v{number}=1 a $v1 $v{number} && v{number}=2\n")).collect();
    let script = forecast(&text);
    assert!(script.uncertainties.contains(&Uncertainty::TooMany));
}

fn tokens() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "a", "$x", "x=1", " ", "\n", ";", "|", "&&", "(", ")", "{", "}", "if", "then", "fi", "for", "in", "do", "done",
        "'", "\"", "\\", "$(", "<<E", "E", ">", "2>&1", "*", "[", "]", "[[", "]]", "~", "{a,b}", "$'", "é", "case",
        "esac", ";;", "#", "`", "\\\n", "!",
    ]);
    prop::collection::vec(token, 0..24).prop_map(|tokens| tokens.concat())
}

proptest! {
    #[test]
    fn parse_keeps_spans_inside_text(text in prop_oneof![tokens(), ".*"]) {
        sayso_testkit::laws::program_laws(&text);
    }
}

#[test]
fn quirks_of_bash_are_rejected() {
    for (script, span) in [
        ("echo $x{1..3}", "{1..3}"),
        ("echo $(ls){a,b}", "$(ls){a,b}"),
        ("echo $x$", "$x$"),
        ("echo {a},b}", "{a},b}"),
        ("echo a ;&> b", ";"),
        ("true | < missing", "< missing"),
        ("echo $(< file in)", "in"),
    ] {
        let error = Program::parse(script).unwrap_err();
        assert_eq!(&script[error.span.clone()], span, "{script}: {error}");
    }
    for script in
        ["echo ${x}{1..3}", "echo \"$x\"{a,b}", "echo $", "echo \"a$\"", "echo $x\"$\"", "< missing", "echo $x\\$"]
    {
        assert!(Program::parse(script).is_ok(), "{script}");
    }
}

#[test]
fn assignment_stays_where_words_vanish() {
    let forecast = |script: &str| Program::parse(script).unwrap().forecast(&Variables::default());
    let last = |script: &str| forecast(script).commands.pop().unwrap().words;
    let known = |text: &str| vec![sayso_shell::Word::literal(text)];
    assert_eq!(last("x=ls; x=rm true; $x"), known("ls"));
    assert_eq!(last("x=ls; y=; x=rm $y; $x"), known("rm"));
    assert_eq!(last("x=ls; x=rm $y; $x")[0].certainty, Certainty::Unknown);
}

#[test]
fn uncertainties_name_their_part() {
    let parts = |text: &str| -> Vec<(String, String)> {
        let script = Script::read(text);
        let part = |span: &sayso_shell::UncertainSpan| {
            (script.uncertainties[span.uncertainty].to_string(), text[span.start..span.end].to_owned())
        };
        script.uncertain_spans.iter().map(part).collect()
    };
    let pair = |reason: &str, part: &str| (reason.to_owned(), part.to_owned());
    assert_eq!(parts("ls && eval \"$x\""), [pair("`eval` runs text that is only known when it runs", "eval")]);
    assert_eq!(parts("ls; $x a"), [pair("which program runs depends on `$x`", "$x")]);
    assert_eq!(parts("ls | xargs wc"), [pair("`xargs` adds arguments that are not in this text", "xargs")]);
    assert_eq!(parts("ls -l"), []);
}
