//! Two hundred commands of an agent's day, judged by the starter rules.

use sayso_policy::{
    Defaults, Layer, LayerTrust, Policy, RememberAs, RememberError, Rule, RuleScope, Ruling, STARTER_RULES,
};
use serde::Deserialize;

use crate::policy::{CLAUDE, with_run};

#[derive(Deserialize)]
struct File {
    rule: Vec<Rule>,
}

pub(crate) fn starter_rules() -> Vec<Rule> {
    toml::from_str::<File>(STARTER_RULES).unwrap().rule
}

pub(crate) fn policy(rules: Vec<Rule>) -> Policy {
    let layer =
        Layer { file: "config.toml".to_owned(), trust: LayerTrust::Trusted, defaults: Defaults::default(), rules };
    Policy::new(&[layer], &[]).unwrap()
}

/// Commands as agents write them while they look around, change, build and test.
pub(crate) const COMMANDS: &[&str] = &[
    // Looking around.
    "ls",
    "ls -la",
    "ls -la src/ tests/",
    "ls -1 crates | head -20",
    "pwd && ls",
    "cd src && ls -la",
    "cat README.md",
    "cat package.json | head -50",
    "cat Cargo.toml && cat src/lib.rs",
    "cat -n src/main.rs | sed -n '100,160p'",
    "head -n 40 src/main.rs",
    "head -100 src/index.ts",
    "tail -n +50 src/main.rs | head -n 30",
    "tail -50 logs/app.log",
    "sed -n '1,120p' src/app.py",
    "sed -n 200,260p crates/core/src/lib.rs",
    "nl -ba src/lib.rs | sed -n '10,40p'",
    "wc -l src/*.rs",
    "wc -l $(git ls-files '*.rs')",
    "find . -name '*.rs' | head -50",
    "find src -type f -name '*.ts' -not -path '*/node_modules/*'",
    "find . -type f -name '*.py' | xargs wc -l | sort -n | tail -5",
    "find . -name '*.md' -exec grep -l TODO {} +",
    "find . -maxdepth 2 -type d | sort",
    "find crates -name Cargo.toml -exec cat {} \\;",
    "find . -name '*.log' -size +1M -print",
    "grep -rn 'fn main' src",
    "grep -rn \"TODO\" --include='*.rs' . | wc -l",
    "grep -n 'export' src/index.ts | head",
    "grep -E '^(pub )?fn ' src/lib.rs | cut -d'(' -f1 | sort | uniq -c | sort -rn",
    "rg 'struct Config' -n",
    "rg -l 'unwrap\\(\\)' crates | xargs wc -l",
    "rg --files | head -100",
    "rg -n --hidden -g '!target' 'deny_unknown_fields'",
    "rg -tpy 'import requests' -A 3",
    "tree -L 2 -I node_modules",
    "du -sh target node_modules 2>/dev/null",
    "file target/debug/app",
    "stat src/main.rs",
    "diff src/a.rs src/b.rs",
    "diff -u old.txt new.txt | head -40",
    "which python3 node cargo",
    "command -v rg || echo 'no rg'",
    "uname -a; nproc; free -h",
    "date +%s",
    "env | sort | head",
    "echo $PATH",
    "test -f Cargo.toml && echo rust",
    "[ -f x ] && cat x",
    "[ -d node_modules ] || echo 'not installed'",
    "if [ -f package.json ]; then cat package.json; fi",
    "for f in *.rs; do wc -l \"$f\"; done",
    "for f in src/*.ts; do echo \"== $f\"; head -20 \"$f\"; done",
    "for d in crates/*; do echo $d; ls $d/src; done",
    "jq '.scripts' package.json",
    "jq -r '.dependencies | keys[]' package.json | sort",
    "cat package.json | jq .version",
    "awk '{print $1}' data.txt | sort | uniq -c",
    "awk -F: '{print $2}' notes.txt",
    "awk 'NR>=10 && NR<=20' src/lib.rs",
    "cut -d, -f1,3 data.csv | head",
    "sort -u names.txt | wc -l",
    "ls -t | head -5",
    "printf '%s\\n' a b c",
    "cat <<'EOF'\nhello\nEOF",
    "ps aux | grep node",
    "md5sum dist/app.js",
    "readlink -f ./bin/tool",
    "basename src/main.rs .rs",
    // The repository.
    "git status",
    "git status --short",
    "cd src && git status",
    "git status --porcelain | head -20",
    "git diff",
    "git diff --stat",
    "git diff HEAD~1 -- src/lib.rs",
    "git diff --cached --name-only",
    "git diff main...HEAD --stat",
    "git --no-pager diff",
    "git --no-pager log --oneline -10",
    "git log --oneline -20",
    "git log -p -1 -- src/main.rs",
    "git log --since='2 weeks ago' --pretty=format:'%h %an %s'",
    "git log --graph --oneline --all | head -30",
    "git show HEAD",
    "git show HEAD:src/lib.rs | head -50",
    "git show --stat HEAD~2",
    "git branch",
    "git branch -a",
    "git branch --show-current",
    "git rev-parse HEAD",
    "git rev-parse --abbrev-ref HEAD",
    "git rev-parse --show-toplevel",
    "git blame -L 10,20 src/lib.rs",
    "git grep -n 'TODO' -- '*.rs'",
    "git ls-files | wc -l",
    "git remote -v",
    "git stash list",
    "git tag --list 'v*' | tail -3",
    "git describe --tags --always",
    "git merge-base main HEAD",
    "git config --get user.name",
    "git diff --check",
    "git worktree list",
    "git reflog -5",
    "X=$(git rev-parse HEAD); echo \"$X\"",
    "BRANCH=$(git branch --show-current) && echo \"on $BRANCH\"",
    "git log -1 --format=%H",
    "git shortlog -sn | head",
    "git status && git diff --stat && git log --oneline -5",
    // Rust.
    "cargo build",
    "cargo build --release 2>&1 | tail -20",
    "cargo check --workspace --all-targets",
    "cargo test",
    "RUST_LOG=debug cargo test",
    "RUST_BACKTRACE=1 cargo test -p core -- --nocapture",
    "cargo test --lib parser 2>&1 | tail -40",
    "cargo test -p sayso-policy --test it 2>&1 | grep -E 'test |FAILED' | head",
    "cargo clippy --all-targets -- -D warnings",
    "cargo clippy -p core 2>&1 | grep -A5 warning | head -60",
    "cargo fmt --all -- --check",
    "cargo fmt --check",
    "cargo tree -i serde",
    "cargo doc --no-deps",
    "CARGO_TERM_COLOR=never cargo build 2>&1 | head -50",
    "cd crates/core && cargo test",
    "timeout 300 cargo test --workspace 2>&1 | tail -30",
    "time cargo build",
    "set -e; cargo build; cargo test",
    "set -euo pipefail\ncargo check\ncargo test --doc",
    "cargo test > /tmp/out.txt 2>&1; tail -30 /tmp/out.txt",
    "cargo test 2>&1 | tee /tmp/test.log | tail -5",
    "cargo metadata --format-version 1 --no-deps | jq '.packages[].name'",
    "cargo nextest run --no-fail-fast",
    "export RUST_BACKTRACE=1 && cargo test",
    "cargo build && ls -la target/debug | head",
    "cargo --version && rustc --version",
    "(cd crates/core && cargo check) && (cd crates/cli && cargo check)",
    "cargo test -- --test-threads=1 name_of_test",
    "cargo bench --no-run",
    // JavaScript and TypeScript.
    "npm test",
    "npm test -- src/login.test.ts",
    "npm test -- --watchAll=false",
    "CI=1 npm test",
    "npm run build",
    "npm run lint",
    "npm run build 2>&1 | tail -20",
    "npm run test -- src/foo.test.ts",
    "NODE_ENV=test npm run test",
    "npx tsc --noEmit",
    "npx tsc --noEmit 2>&1 | head -20",
    "npx eslint src --ext .ts,.tsx",
    "npx prettier --check .",
    "npx jest src/foo.test.ts",
    "npx vitest run src/foo.test.ts",
    "pnpm test",
    "pnpm run build",
    "yarn test",
    "node --version && npm --version",
    "npm ls react",
    "FORCE_COLOR=0 npm run typecheck",
    // Python.
    "pytest",
    "pytest -q tests/test_api.py",
    "pytest -x -k 'test_login' --tb=short 2>&1 | tail -30",
    "python -m pytest tests -q",
    "python3 -m pytest tests/unit -v --maxfail=1",
    "PYTHONDONTWRITEBYTECODE=1 pytest -q",
    "mypy src",
    "ruff check .",
    "ruff check src tests --output-format=concise",
    "ruff format --check .",
    "black --check .",
    "uv run pytest -q",
    "pip list | grep -i django",
    "python3 --version",
    "cat data.json | python3 -m json.tool | head",
    // Go and make.
    "go build ./...",
    "go test ./...",
    "go test -run TestFoo -v ./pkg/...",
    "go test -race -count=1 ./... 2>&1 | tail -20",
    "go vet ./...",
    "gofmt -l .",
    "go list -m all | head",
    "make test",
    "make -j4 test",
    "make build 2>&1 | tail",
    "make lint && make test",
    // Work that is asked about.
    "git add -A && git commit -m 'Fix parser'",
    "git commit -m \"$(cat <<'EOF'\nFix the parser\n\nLonger text.\nEOF\n)\"",
    "git push origin HEAD",
    "git checkout -b feature/x",
    "git stash",
    "rm -rf build",
    "mkdir -p src/new && touch src/new/mod.rs",
    "mv src/a.rs src/b.rs",
    "cat > src/new.rs <<'EOF'\nfn main() {}\nEOF",
    "sed -i 's/foo/bar/g' src/lib.rs",
    "npm install lodash",
    "pip install requests",
    "cargo add serde",
    "python3 - <<'EOF'\nprint(1)\nEOF",
    "python3 -c 'import json; print(json.load(open(\"x.json\")))'",
    "python3 scripts/gen.py",
    "node -e 'console.log(1)'",
    "curl -s http://localhost:3000/health",
    "cargo run -- --help",
    "cargo fmt",
    "npm run dev &",
    "kill %1",
    "chmod +x scripts/run.sh",
    "gh pr view 12",
    "docker compose up -d",
];

/// Asked commands may make up this share of a day, in per cent.
const MAX_ASKED_PERCENT: usize = 15;

#[test]
fn starter_rules_ask_about_few_typical_commands() {
    let policy = policy(starter_rules());
    assert!(COMMANDS.len() >= 200, "{} commands", COMMANDS.len());
    let rulings = COMMANDS.iter().map(|command| (command, with_run(command, |act| policy.evaluate(act, &CLAUDE))));
    let asked: Vec<_> = rulings.filter(|(_, ruled)| ruled.ruling != Ruling::Allow).collect();
    for (command, ruled) in &asked {
        println!("{} {command:?}: {}", ruled.ruling, ruled.reason.as_deref().unwrap_or("no rule"));
    }
    let percent = asked.len() * 100 / COMMANDS.len();
    println!("asked about {} of {} commands, {percent} %", asked.len(), COMMANDS.len());
    assert!(asked.len() * 100 <= MAX_ASKED_PERCENT * COMMANDS.len(), "{percent} % of the commands are asked about");
}

/// Approves a command for always, as the gate does it.
fn rule_for(command: &str) -> Result<Rule, RememberError> {
    let answer = RememberAs { scope: RuleScope::Always, ruling: Ruling::Allow };
    with_run(command, |act| Rule::remember(act, &CLAUDE, answer))
}

#[test]
fn offered_rule_covers_the_same_command() {
    let mut refused = Vec::new();
    for command in COMMANDS {
        match rule_for(command) {
            Ok(rule) => {
                let ruled = with_run(command, |act| policy(vec![rule.clone()]).evaluate(act, &CLAUDE));
                let known = ["always", "the whole workspace"].iter().any(|name| ruled.rule.to_string().contains(name));
                assert!(ruled.ruling == Ruling::Allow || known, "{command}: {rule:?}\n{ruled:#?}");
            }
            Err(error) => refused.push(format!("{command}: {error}")),
        }
    }
    println!("no rule is offered for {} of {}:\n{}", refused.len(), COMMANDS.len(), refused.join("\n"));
    assert!(refused.len() * 100 <= 20 * COMMANDS.len(), "{refused:#?}");
}

#[test]
fn offered_rule_covers_no_further_word() {
    for command in COMMANDS.iter().filter(|command| !command.contains(['<', '&', ';', '|', '\n'])) {
        let Ok(rule) = rule_for(command) else { continue };
        let more = format!("{command} --frobnicate");
        let ruled = with_run(&more, |act| policy(vec![rule.clone()]).evaluate(act, &CLAUDE));
        assert_eq!(ruled.ruling, Ruling::Ask, "{more}: {rule:?}");
    }
}

#[test]
fn starter_rules_are_explained_and_used() {
    let rules = starter_rules();
    for (number, rule) in rules.iter().enumerate() {
        let name = rule.name.as_deref().unwrap();
        let block = STARTER_RULES.split("[[rule]]").nth(number).unwrap();
        assert!(block.trim_end().lines().last().unwrap().starts_with("# "), "{name} has no comment");
        let alone = policy(vec![rule.clone()]);
        for pattern in &rule.run {
            let command = pattern.trim_end_matches(" $").replace("[[", "[[ -f x ]]");
            let command = match command.as_str() {
                "[" => "[ -f x ]",
                "cd" => "cd src",
                "set" => "set -e",
                "export" => "export CI=1",
                "command -v" => "command -v git",
                "find" => "find .",
                "time" => "/usr/bin/env true",
                other => other,
            };
            if command.starts_with('/') {
                continue;
            }
            let run = with_run(command, |act| alone.evaluate(act, &CLAUDE));
            let part = run.parts.first().unwrap();
            assert_eq!(part.ruling, Ruling::Allow, "{name}: {command}\n{run:#?}");
        }
    }
}
