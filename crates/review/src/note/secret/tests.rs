//! The credentials are assembled at run time, so that secret scanners ignore this file.

use super::SecretKind::{
    AnthropicKey, AwsAccessKey, BearerToken, GithubToken, GitlabToken, GoogleKey, JsonWebToken, Literal, OpenaiKey,
    PrivateKey, RegistryToken, ServiceToken, SlackToken, StripeKey, UrlPassword,
};
use super::*;

/// Returns random-looking letters and digits, the same in every run.
fn drawn(length: usize) -> String {
    let alphabet = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz23456789";
    (0..length).map(|at| char::from(alphabet[(at * at * 7 + at * 31 + 11) % alphabet.len()])).collect()
}

fn check_as(values: Values, lines: &str, expected: &[SecretKind]) {
    let mut scanner = Scanner::new(values);
    let found: Vec<SecretKind> = lines.lines().flat_map(|line| scanner.scan(line)).collect();
    assert_eq!(found, expected, "in {lines}");
}

fn check(lines: &str, expected: &[SecretKind]) {
    check_as(Values::Quoted, lines, expected);
}

#[test]
fn issuer_tokens_are_found_anywhere() {
    for (prefix, length, kind) in [
        ("ghp_", 36, GithubToken),
        ("github_pat_", 82, GithubToken),
        ("glpat-", 20, GitlabToken),
        ("xoxb-", 40, SlackToken),
        ("https://hooks.slack.com/services/", 44, SlackToken),
        ("sk_live_", 24, StripeKey),
        ("sk-", 48, OpenaiKey),
        ("sk-proj-", 60, OpenaiKey),
        ("sk-ant-api03-", 80, AnthropicKey),
        ("AIza", 35, GoogleKey),
        ("npm_", 36, RegistryToken),
        ("hf_", 34, ServiceToken),
    ] {
        let token = format!("{prefix}{}", drawn(length));
        check(&token, &[kind]);
        check(&format!("token = \"{token}\","), &[kind]);
        check(&format!("curl -H 'X-Key: {token}' # {token}"), &[kind]);
        check(&format!("say(\"a\\n{token}\")"), &[kind]);
        check_as(Values::Unnamed, &token, &[kind]);
    }
    let aws = format!("{}{}", "AKIA", "Q7ZK2MWXB4TNJ5RD");
    check(&format!("aws_access_key_id = {aws}"), &[AwsAccessKey]);
    check(&format!("{aws}X and x{aws}"), &[]);
}

#[test]
fn private_keys_jwts_and_passwords_are_found() {
    let begin = |kind: &str| format!("-----BEGIN {kind}PRIVATE KEY-----");
    let body = drawn(64);
    check(&format!("{}\n{body}\n", begin("RSA ")), &[PrivateKey]);
    check(&format!("    \"{}\\n\" +\n    \"{body}\\n\" +", begin("")), &[PrivateKey]);
    check(&format!("\"key\": \"{}\\n{body}\\n\"", begin("EC ")), &[PrivateKey]);
    check(&format!("{}\nProc-Type: 4,ENCRYPTED\n", begin("RSA ")), &[PrivateKey]);
    check(&format!("if text.starts_with(\"{}\") {{\n    return read(text, {body});", begin("")), &[]);
    check(&format!("{}\n...\n", begin("")), &[]);
    check(&format!("-----BEGIN PUBLIC KEY-----\n{body}\n"), &[]);
    check(&format!("-----BEGIN CERTIFICATE-----\n{body}\n"), &[]);

    let json_web_token = format!("eyJhbGciOiJIUzI1NiJ9.eyJ{}.{}", drawn(30), drawn(43));
    check(&format!("cookie: {json_web_token}"), &[JsonWebToken]);
    check(&format!("Authorization: Bearer {json_web_token}"), &[JsonWebToken]);
    check("eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.short", &[]);
    check(&format!("Authorization: Bearer {}", drawn(30)), &[BearerToken]);

    check("postgres://app:k3Vx9Qm2@db.internal:5432/x", &[UrlPassword]);
    check("url = \"https://me:p4ssw0rdX@host/path\"", &[UrlPassword]);
    check("https://host:8080/a@b and mailto:a@b", &[]);
    check("postgres://postgres:postgres@localhost/x", &[]);
    check("postgres://user:password@host", &[]);
    check("postgres://user:${PASSWORD}@host and redis://u:<password>@host and a://{u}:{p}@h", &[]);
    check("ssh://git@github.com:22/x", &[]);
}

#[test]
fn random_named_values_are_found() {
    let value = "k9Xv2LqR8sW4tZ7bN3mP";
    for line in [
        "password = \"{}\"",
        "  \"api_key\": \"{}\",",
        "const apiKey: string = '{}';",
        "let token: &str = \"{}\";",
        "CLIENT_SECRET := `{}`",
        "secret => '{}'",
        "config['auth_token'] = \"{}\"",
        "db.password1=\"{}\"",
        "SECRET: b\"{}\"",
        "if (token == \"{}\") {",
    ] {
        check(&line.replace("{}", value), &[Literal]);
        check_as(Values::Unnamed, &line.replace("{}", value), &[]);
    }
    check(&format!("API_KEY={value}"), &[]);
    check_as(Values::Bare, &format!("export API_KEY={value}"), &[Literal]);
    check_as(Values::Bare, &format!("password: {value}  "), &[Literal]);
}

#[test]
fn placeholders_are_ignored() {
    let hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    for line in [
        "",
        "checksum = \"{hash}\"",
        "\"integrity\": \"sha512-{hash}==\"",
        "token_hash = \"{hash}\"",
        "secret = \"sha256:{hash}\"",
        "let id = \"550e8400-e29b-41d4-a716-446655440000\";",
        "token = \"550e8400-e29b-41d4-a716-446655440000\"",
        "password = os.environ[\"DATABASE_PASSWORD_2024\"]",
        "const token = process.env.GITHUB_TOKEN_V2_0;",
        "api_key = \"sk-...\"",
        "api_key = \"sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"",
        "token = \"<token>\"",
        "api_key: \"your-api-key\"",
        "password = \"${DB_PASSWORD_1a2B3c4D5e}\"",
        "let secret = b\"\\x9b\\xbe\\x43\\x6b\\xa9\\x40\\xf0\\x17\\xb1\";",
        "Url::parse(\"ftp://rms:secret123@example.com\")",
        "password = \"correct horse battery staple\"",
        "tokenizer = \"bert2Base3Uncased4Model5x\"",
        "token_url: \"https://example.com/oauth2/token/v2\"",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "ghp_000000000000000000000000000000000000",
        "AKIAIOSFODNN7EXAMPLE",
        "task-force-alpha-bravo-charlie-delta-echo-foxtrot",
        "sk-learn-compatible-estimators-and-transformers-for-everyone",
        "Bearer tokens are described in section 2.1 of the document",
        "fn token(text: &str) -> Option<Token> {",
        "größe: \"ß\" = \"…\"",
    ] {
        check(&line.replace("{hash}", hash), &[]);
    }
    // In a lock file even a field called `token` is a hash; without quotes, code is not a value.
    check_as(Values::Unnamed, &format!("token = \"{hash}\""), &[]);
    check("password = derive2Key3From4Salt5(x)", &[]);
    check_as(Values::Bare, "password = {{ vault_db_password_1 }}", &[]);
    check_as(Values::Bare, "token: !reference [a, b]", &[]);
}
