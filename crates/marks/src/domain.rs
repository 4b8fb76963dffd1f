//! The Landlock domain: scopes only, so that files, mounts and networks work as they do without it.

use landlock::{
    BitFlags, CompatLevel, Compatible as _, RestrictSelfError, Ruleset, RulesetAttr as _, RulesetError, RulesetStatus,
    Scope as LandlockScope,
};
use rustix::io::Errno;

use crate::{MarkError, Scope};

/// The Landlock domain of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// The thread cannot reach abstract sockets and processes outside the domain.
    Entered,
    /// The kernel has no scopes: Landlock is older than ABI 6, or disabled.
    Missing,
}

/// The scopes of a program. Signals are scoped for whole agents only.
fn scopes(scope: Scope) -> BitFlags<LandlockScope> {
    match scope {
        Scope::Command => LandlockScope::AbstractUnixSocket.into(),
        Scope::Agent => LandlockScope::AbstractUnixSocket | LandlockScope::Signal,
    }
}

/// Puts the calling thread into a new domain.
pub(crate) fn enter(scope: Scope) -> Result<Domain, MarkError> {
    let restricted = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .scope(scopes(scope))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self);
    match restricted {
        Ok(status) if status.ruleset == RulesetStatus::NotEnforced => Ok(Domain::Missing),
        Ok(_) => Ok(Domain::Entered),
        // The kernel nests at most 16 domains. A thread this deep is in one already.
        Err(error) if is_too_deep(&error) => Ok(Domain::Entered),
        Err(error) => Err(MarkError::Domain(error.to_string())),
    }
}

fn is_too_deep(error: &RulesetError) -> bool {
    let RulesetError::RestrictSelf(RestrictSelfError::RestrictSelfCall { source, .. }) = error else { return false };
    source.raw_os_error() == Some(Errno::TOOBIG.raw_os_error())
}

/// `true` if the kernel has both scopes. Does not restrict the caller.
pub(crate) fn is_supported() -> bool {
    let required = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).scope(scopes(Scope::Agent));
    required.and_then(Ruleset::create).is_ok()
}
