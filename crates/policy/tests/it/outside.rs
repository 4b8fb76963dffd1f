//! Rules about paths outside the workspace.

use sayso_base::OutsidePath;
use sayso_policy::{LayerTrust, Policy, Ruling};

use crate::policy::{check, judge, layer, user};
use Ruling::{Allow, Ask, Deny};

#[test]
fn user_rules_alone_reach_outside_the_workspace() {
    check(
        &[
            "allow read **",
            "allow write **",
            "allow read /etc/hostname",
            "allow write /home/me/notes/**",
            "deny read /home/me/notes/x",
        ],
        &[
            ("read /etc/hostname", Allow),
            ("read /etc/hostname/", Allow),
            ("read /etc/hosts", Ask),
            ("write /etc/hostname", Ask),
            ("write /home/me/notes/a.md", Allow),
            ("write /home/me/notes/../x", Ask),
            ("read /home/me/notes/x", Deny),
            ("read /HOME/me/notes/X", Deny),
            ("write /home/me/notes/.git/config", Deny),
            ("write /home/me/notes/.claude/settings.json", Ask),
            ("run cat /etc/hostname", Ask),
        ],
    );
    check(&["deny write **"], &[("write /x", Ask)]);
    check(
        &["allow run cat", "allow write /tmp/out"],
        &[("run cat a > /tmp/out", Allow), ("run cat a > /tmp/other", Ask)],
    );
}

#[test]
fn own_state_outside_is_always_denied() {
    let own = [OutsidePath::parse("/home/me/.local/state/sayso").unwrap()];
    let policy = user(&["allow write /home/**", "allow read /home/**"]).with_protected_outside(&own);
    for (act, ruling) in [
        ("read /home/me/.local/state/sayso/journal.db", Deny),
        ("write /home/me/.local/state/sayso/journal.db", Deny),
        ("write /home/me/x/../.local/state/sayso/journal.db", Deny),
        ("write /home/me/.local", Deny),
        ("read /home/me/.local", Allow),
        ("write /home/me/other", Allow),
    ] {
        assert_eq!(judge(&policy, act).ruling, ruling, "{act}");
    }
}

#[test]
fn untrusted_rule_cannot_name_outside_path() {
    let error =
        Policy::new(&[layer("sayso.toml", LayerTrust::TightenOnly, &["allow read /etc/hostname"])], &[]).unwrap_err();
    assert!(error.to_string().contains("cannot name a path outside the workspace"), "{error}");
}
