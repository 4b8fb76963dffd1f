//! Scripts, and the commands that are found in them.

use proptest::prelude::*;
use sayso_shell::{Certainty, Flow, Script, SimpleCommand, Uncertainty};

/// Commands as text. A command behind a wrapper begins with `name>`.
fn shown(text: &str) -> Vec<String> {
    let one = |command: &SimpleCommand| {
        let through: String = command.wrappers.iter().map(|name| format!("{name}> ")).collect();
        format!("{through}{command}")
    };
    Script::parse(text).commands.iter().map(one).collect()
}

fn doubts(text: &str) -> Vec<String> {
    Script::parse(text).uncertainties.iter().map(Uncertainty::to_string).collect()
}

/// Each row: a script, and its commands.
const CERTAIN: &[(&str, &[&str])] = &[
    ("", &[]),
    ("# rm x", &[]),
    ("ls -l", &["ls -l"]),
    ("git status; rm -rf /", &["git status", "rm -rf /"]),
    ("a && b || c & d", &["a", "b", "c", "d"]),
    ("a|b |& c", &["a", "b", "c"]),
    ("a\nb\n\n c", &["a", "b", "c"]),
    ("echo \"rm -rf\"", &["echo 'rm -rf'"]),
    ("echo 'a;b' # rm x", &["echo 'a;b'"]),
    ("echo a#b", &["echo 'a#b'"]),
    ("echo a\\;b", &["echo 'a;b'"]),
    ("r\\m x", &["rm x"]),
    ("'r'\"m\" x", &["rm x"]),
    ("$'\\x72m' $'a\\tb' $'\\u00e9'", &["rm $'a\\tb' é"]),
    ("echo a\\\nb", &["echo ab"]),
    ("echo \"a\\\nb\" \"\\$x\" \"\\a\"", &["echo ab '$x' '\\a'"]),
    ("echo '' \"\"", &["echo '' ''"]),
    ("(a; b)", &["a", "b"]),
    ("{ a; b; }", &["a", "b"]),
    ("((i = 1 + 2))", &[]),
    ("((a); (b))", &["a", "b"]),
    ("! a", &["a"]),
    ("time a", &["a"]),
    ("if a; then b; elif c; then d; else e; fi", &["a", "b", "c", "d", "e"]),
    ("for x in 1 2; do rm y; done", &["rm y"]),
    ("for ((i=0; i<3; i++)); do a; done", &["a"]),
    ("while a; do b; done < in > out", &["a", "b", "< in > out"]),
    ("until a\ndo b\ndone", &["a", "b"]),
    ("case x in a) b;; (c|d) e ;& *) f; esac; g", &["b", "e", "f", "g"]),
    ("case x in\n a)\n  rm x\n ;;\nesac", &["rm x"]),
    ("[[ a < b && -f c ]] && d", &["'[[' a '<' b '&' '&' -f c ']]'", "d"]),
    ("[ -f a ] || rm b", &["'[' -f a ']'", "rm b"]),
    ("A=1 B=2 c", &["A=1 B=2 c"]),
    ("A=1", &["A=1"]),
    ("c A=1", &["c A=1"]),
    ("> /etc/passwd", &["> /etc/passwd"]),
    ("a >b 2>>c <d <>e >|f &>g", &["a > b >> c < d <> e > f > g"]),
    ("a 2>&1 >&- <&3", &["a"]),
    ("a >&log", &["a > log"]),
    ("echo 2 > a", &["echo 2 > a"]),
    ("a {fd}>b", &["a > b"]),
    ("cat <<'E'\n$(rm x)\nE\nls", &["cat", "ls"]),
    ("cat <<-E > f\n\ta\n\tE\nls", &["cat > f", "ls"]),
    ("cat <<A <<B\n1\nA\n2\nB\nls", &["cat", "ls"]),
    ("cat <<E\nx\\\nE\nE\nls", &["cat", "ls"]),
    ("cat <<< 'rm x'", &["cat"]),
    ("rm größe ☃", &["rm größe '☃'"]),
    ("/bin/rm x", &["/bin/rm x"]),
    ("bash -c \"rm x\"", &["bash -c 'rm x'", "bash -c> rm x"]),
    ("bash -ec 'a; b'", &["bash -ec 'a; b'", "bash -c> a", "bash -c> b"]),
    ("bash -o pipefail -c 'a|b'", &["bash -o pipefail -c 'a|b'", "bash -c> a", "bash -c> b"]),
    ("sh -c 'sh -c \"rm x\"'", &["sh -c 'sh -c \"rm x\"'", "sh -c> sh -c 'rm x'", "sh -c> sh -c> rm x"]),
    ("eval rm x\\; ls", &["eval rm 'x;' ls", "eval> rm x", "eval> ls"]),
    ("trap 'rm x' EXIT", &["trap 'rm x' EXIT", "trap> rm x"]),
    ("sudo -u root rm x", &["sudo -u root rm x", "sudo> rm x"]),
    ("sudo -nu root A=1 rm x", &["sudo -nu root A=1 rm x", "sudo> A=1 rm x"]),
    ("env -i A=1 rm x", &["env -i A=1 rm x", "env> A=1 rm x"]),
    ("env -S 'rm x' y", &["env -S 'rm x' y", "env -S> rm x y"]),
    ("nohup nice -n 5 rm x &", &["nohup nice -n 5 rm x", "nohup> nice -n 5 rm x", "nohup> nice> rm x"]),
    ("timeout -k 1 5s rm x", &["timeout -k 1 5s rm x", "timeout> rm x"]),
    ("time -o f rm x", &["time -o f rm x", "time> rm x"]),
    ("command -v rm", &["command -v rm"]),
    ("command rm x", &["command rm x", "command> rm x"]),
    ("exec -a y rm x", &["exec -a y rm x", "exec> rm x"]),
    ("busybox sh -c 'rm x'", &["busybox sh -c 'rm x'", "busybox> sh -c 'rm x'", "busybox> sh -c> rm x"]),
    ("stdbuf -oL rm x", &["stdbuf -oL rm x", "stdbuf> rm x"]),
    ("su -c 'rm x' me", &["su -c 'rm x' me", "su -c> rm x"]),
    ("watch -n 1 rm x", &["watch -n 1 rm x", "watch> rm x"]),
    ("bash <<'E'\nrm x\nE", &["bash", "bash> rm x"]),
    ("sudo bash <<E\nrm x\nE", &["sudo bash", "sudo> bash", "sudo> bash> rm x"]),
    ("echo 'rm x' | sh", &["echo 'rm x'", "sh", "sh> rm x"]),
    ("cat <<E | sudo sh\nrm x\nE", &["cat", "sudo sh", "sudo> sh", "sudo> sh> rm x"]),
    ("sh <<< 'rm x'", &["sh", "sh> rm x"]),
    ("ssh host rm x", &["ssh host rm x"]),
];

/// Each row: a script whose words are not all certain, and its commands.
const UNCERTAIN: &[(&str, &[&str])] = &[
    ("$(rm x)", &["rm x", "\"$(rm x)\""]),
    ("echo \"$(rm x)\"", &["rm x", "echo \"$(rm x)\""]),
    ("echo `rm x`", &["rm x", "echo \"`rm x`\""]),
    ("echo `a \\`b\\``", &["b", "a `b`", "echo \"`a \\\\`b\\\\``\""]),
    ("cat <<EOF\na $(rm x) b\nEOF\nls", &["cat", "rm x", "ls"]),
    ("FOO=$(curl x) make", &["curl x", "\"FOO=$(curl x)\" make"]),
    ("a=($(rm x) b)", &["rm x", "\"a=($(rm x) b)\""]),
    ("echo ${x:-$(rm x)}", &["rm x", "echo \"${x:-$(rm x)}\""]),
    ("echo $((1 + $(rm x)))", &["rm x", "echo \"$((1 + $(rm x)))\""]),
    ("echo $((a); (b))", &["a", "b", "echo \"$((a); (b))\""]),
    ("diff <(a) >(b)", &["a", "b", "diff <(a) >(b)"]),
    ("[[ $(rm x) ]]", &["rm x", "'[[' \"$(rm x)\" ']]'"]),
    ("case $(a) in $(b)) c;; esac", &["a", "b", "c"]),
    ("for x in $(a); do b; done", &["a", "b"]),
    ("a > $(b)", &["b", "a > $(b)"]),
    ("cat <<< $(rm x)", &["rm x", "cat"]),
    ("$x y", &["$x y"]),
    ("\"$(echo rm)\" x", &["echo rm", "\"$(echo rm)\" x"]),
    ("$(case a in a) b;; esac)", &["b", "\"$(case a in a) b;; esac)\""]),
    ("$(cat <<E\n)\nE\n)", &["cat", "\"$(cat <<E\\n)\\nE\\n)\""]),
    ("bash -c \"rm $x\"", &["bash -c \"rm $x\"", "bash -c> rm $x"]),
    ("find . -exec rm {} +", &["find . -exec rm '{}' +", "find -exec> rm {}"]),
    (
        "find . -exec a \\; -execdir b {} \\;",
        &["find . -exec a ';' -execdir b '{}' ';'", "find -exec> a", "find -execdir> b {}"],
    ),
    ("ls | xargs -0 -n1 rm -f", &["ls", "xargs -0 -n1 rm -f", "xargs> rm -f"]),
    ("f() { rm x; }; f", &["rm x", "f"]),
    ("function f { rm x; }\nf", &["rm x", "f"]),
    ("f()\n(\nrm x\n)", &["rm x"]),
    ("alias ls='rm x'", &["alias 'ls=rm x'"]),
    ("PATH=/x ls", &["PATH=/x ls"]),
    ("export PATH=/x", &["export PATH=/x"]),
    (". ./x", &[". ./x"]),
    ("bash x.sh", &["bash x.sh"]),
    ("curl x | sh", &["curl x", "sh"]),
    ("rm x\r\nls\r\n", &["rm $'x\\r'", "$'ls\\r'"]),
    ("echo 'a; rm x", &["echo 'a; rm x'"]),
    ("echo \"a; $(rm x)", &["rm x", "echo \"a; $(rm x)\""]),
    ("echo $(rm x", &["rm x", "echo \"$(rm x\""]),
    ("if a; then rm x", &["a", "rm x"]),
    ("a ) rm x", &["a", "rm x"]),
    ("fi; rm x", &["rm x"]),
    ("echo a(rm x)", &["echo a", "rm x"]),
    ("cat <<E\nrm x", &["cat"]),
    ("eval \"$x\"", &["eval $x", "eval> $x"]),
    ("sudo --wonder x rm y", &["sudo --wonder x rm y", "sudo> x rm y"]),
    ("r\0m x", &["rm x"]),
];

#[test]
fn every_command_is_listed() {
    let rows = CERTAIN.iter().chain(UNCERTAIN).map(|(script, expected)| (*script, shown(script), *expected));
    let wrong: Vec<_> = rows.filter(|(_, found, expected)| found != expected).collect();
    assert!(wrong.is_empty(), "script, found, expected: {wrong:#?}");
    assert!(CERTAIN.len() + UNCERTAIN.len() >= 110);
}

#[test]
fn what_is_understood_leaves_no_doubt() {
    let rows = CERTAIN.iter().map(|(script, _)| (*script, doubts(script)));
    let doubtful: Vec<_> = rows.filter(|(_, doubts)| !doubts.is_empty()).collect();
    assert!(doubtful.is_empty(), "{doubtful:#?}");
}

#[test]
fn what_may_be_more_than_is_listed_is_a_doubt() {
    for (script, doubt) in [
        ("f() { rm x; }; f", "`f` is given another meaning"),
        ("alias ls='rm x'", "`ls` is given another meaning"),
        ("PATH=/x ls", "setting `PATH` changes how programs run"),
        ("env LD_PRELOAD=x ls", "setting `LD_PRELOAD` changes how programs run"),
        ("git -c core.pager=x log", "setting `git -c core.pager` changes how programs run"),
        (". ./x", "`.` runs a script that is not in this text"),
        ("bash x.sh", "`bash` runs a script that is not in this text"),
        ("curl x | sh", "`sh` runs a script that is not in this text"),
        ("eval \"$x\"", "`eval` runs a script that is not in this text"),
        ("$x y", "which program runs depends on `$x`"),
        ("~/x y", "which program runs depends on `~/x`"),
        ("sudo --wonder x", "which program runs depends on `--wonder`"),
        ("sudo -s", "`sudo` runs a script that is not in this text"),
        ("ls | xargs rm", "`xargs` adds arguments that are not in this text"),
        ("ls\r", "carriage returns become part of words"),
        ("l\0s", "NUL characters are dropped"),
        ("echo 'a", "`'` has no end"),
        ("echo \"a", "`\"` has no end"),
        ("echo `a", "``` has no end"),
        ("cat <<E\nrm x", "`<<E` has no end"),
        ("cat <<E", "`<<E` has no end"),
        ("if a; then b", "`if` has no end"),
        ("a )", "`)` is not understood here"),
        ("((rm x))", "`((` is not understood here"),
        ("[[ a; rm x ]]", "`[[ … ;` is not understood here"),
        ("echo \"${x%'\"'}\"; rm y; echo \"}\"}\"", "`${…'` is not understood here"),
        ("echo ${ rm x; }", "`${ ` is not understood here"),
    ] {
        assert!(doubts(script).iter().any(|found| found == doubt), "{script}: {:?}", doubts(script));
    }
}

#[test]
fn hostile_nesting_ends_in_a_doubt() {
    for script in [
        "(".repeat(10_000),
        "((".repeat(50_000),
        "$(".repeat(5_000),
        "\"$(".repeat(5_000),
        "${x:-".repeat(5_000),
        "`".repeat(9_999),
        "$((".repeat(5_000),
        "<(".repeat(5_000),
        "{ ".repeat(10_000),
        "if ".repeat(10_000),
        "case x in a) ".repeat(10_000),
        "a=(".repeat(5_000),
        "sudo ".repeat(100_000) + "rm x",
        "eval ".repeat(100_000) + "rm x",
        "sh -c 'a; ".repeat(10_000),
        "cat <<E; ".repeat(50_000),
        "a;".repeat(500_000),
        "a | ".repeat(200_000),
        "{ a | ".repeat(20_000),
        "x".repeat(2_000_000),
        "f() ".repeat(100_000),
        "echo $(( 1 ".repeat(10_000),
    ] {
        let parsed = Script::parse(&script);
        assert!(!parsed.uncertainties.is_empty(), "{}", &script[..20]);
    }
    let flat = "echo \"$(a)\" 'b' ; ".repeat(3_000);
    assert_eq!(Script::parse(&flat).commands.len(), 6_000);
    assert_eq!(doubts(&flat), Vec::<String>::new());
}

#[test]
fn words_tell_how_certain_they_are() {
    let certainty = |word: &str| Script::parse(&format!("echo {word}")).commands.last().unwrap().words[1].certainty;
    for word in ["a", "'*'", "\\*", "\"~\"", "a~", "'$x'", "\\$x", "{a}", "{}", "a,b", "$", "$'*'", "a..b", "'{a,b}'"] {
        assert_eq!(certainty(word), Certainty::Literal, "{word}");
    }
    for word in ["*", "a?", "[ab]", "~", "~/x", "{a,b}", "x{1..3}", "a=~", "'a'*"] {
        assert_eq!(certainty(word), Certainty::Pattern, "{word}");
    }
    for word in ["$x", "\"$x\"", "${x}", "$1", "$?", "$(a)", "`a`", "$((1))", "$[1]", "<(a)", "$'\\xff'", "$'\\0'"] {
        assert_eq!(certainty(word), Certainty::Unknown, "{word}");
    }
}

#[test]
fn shells_and_courses_tell_how_far_a_change_of_directory_reaches() {
    let script = Script::parse("a; (b; c); d | e; { f; } & if g; then h; fi; i || j; k && l");
    let shell = |name: &str| script.commands.iter().find(|command| command.words[0].text == name).unwrap();
    for same in ["d", "e", "f", "b"] {
        assert_ne!(shell(same).shell, shell("a").shell, "{same}");
    }
    assert_eq!(shell("b").shell, shell("c").shell);
    assert_ne!(shell("d").shell, shell("e").shell);
    for same in ["g", "h", "i", "j", "k", "l"] {
        assert_eq!(shell(same).shell, shell("a").shell, "{same}");
    }
    let branches: Vec<&str> = script
        .commands
        .iter()
        .filter(|command| command.flow == Flow::Conditional)
        .map(|command| command.words[0].text.as_str())
        .collect();
    assert_eq!(branches, ["g", "h", "j"]);
}

#[test]
fn what_feeds_a_command_is_known() {
    let fed = |text: &str| Script::parse(text).commands.last().unwrap().fed_by;
    assert_eq!(fed("x; curl a | sh"), Some(1));
    assert_eq!(fed("x; sh <(curl a)"), Some(1));
    assert_eq!(fed("a | { b; c; }"), Some(0));
    assert_eq!(fed("a | b; c"), None);
    assert_eq!(fed("a | sudo sh"), Some(0));
}

#[test]
fn an_operator_has_a_command_on_either_side() {
    let unexpected = |text: &str| {
        Script::parse(text).uncertainties.iter().any(|doubt| matches!(doubt, Uncertainty::Unexpected { .. }))
    };
    for wrong in ["a |; b", "a | # b", "a ; ; b", "; a", "| a", "a && | b", "(a |)", "a & ; b", "a ||", "a\n&& b"] {
        assert!(unexpected(wrong), "{wrong:?}");
    }
    for right in [
        "a; b;",
        "a &\nb",
        "a |\n\n# c\nb",
        "a && \\\n b",
        "(a; b;)",
        "{ a; }; b",
        "if a; then b; else c; fi | d",
        "case x in a) ;; b) c;; esac; d",
        "for x in a b; do c; done && d",
        "a &> b; c",
        "",
        "\n\n",
    ] {
        assert!(!unexpected(right), "{right:?}: {:?}", Script::parse(right).uncertainties);
    }
}

proptest! {
    #[test]
    fn any_text_is_read_without_harm(text in "([a-z$(){}'\"`\\\\;|&<>= \n#*~]|\\PC|if |fi |do |done |case |in |esac |<<E|sh -c ){0,60}") {
        sayso_testkit::laws::shell_laws(&text);
    }

    #[test]
    fn quoted_words_are_read_as_they_were(words in prop::collection::vec("\\PC{0,8}|[ -~\n\t]{0,8}", 1..5), ways in any::<u64>()) {
        sayso_testkit::laws::shell_quoting_laws(&words, ways);
    }

    /// The real bash is asked what the words are, for every way to quote that there is.
    #[test]
    fn bash_reads_the_same_words(soup in "[ab '\"\\\\\t#!=é☃%+,:@^_/.-]{1,16}|(\\$'[ab'\\\\nxu0-9\"]{0,8}'|[ab ]|\"[ab\\\\ '#;&|<>*]{0,6}\"|'[ab\\\\ \"$`;&|<>*\n]{0,6}'){1,4}") {
        let text = format!("printf '%s\\0' x {soup}");
        let script = Script::parse(&text);
        let literal: Option<Vec<&str>> = match script.commands.as_slice() {
            [command] if script.uncertainties.is_empty() && command.redirects.is_empty() => {
                command.words[2..].iter().map(sayso_shell::Word::as_literal).collect()
            }
            _ => None,
        };
        let Some(literal) = literal else { return Ok(()) };
        let directory = std::path::Path::new("/");
        let locale = [("LC_ALL", "C.UTF-8")];
        let output = sayso_testkit::programs::run_with(directory, "bash", &["-c", &text], &locale, b"");
        let errors = String::from_utf8_lossy(&output.stderr);
        // bash rejects a pipe without a command behind it, so nothing runs.
        if errors.contains("unexpected end of file") {
            return Ok(());
        }
        prop_assert!(output.status.success(), "{}: {}", text, errors);
        let printed = String::from_utf8(output.stdout).unwrap();
        let words: Vec<&str> = printed.strip_suffix('\0').unwrap().split('\0').collect();
        prop_assert_eq!(words, literal, "{}", text);
    }
}
