//! Support of this kernel for marks on processes under the gate.

use sayso_marks::KernelSupport;
use sayso_server::is_marked;

use super::DoctorFinding;

pub(super) fn findings() -> Vec<DoctorFinding> {
    let KernelSupport { marks, scopes, peer_handles } = KernelSupport::find();
    let mut findings = Vec::new();
    findings.push(if marks {
        DoctorFinding::fine("no_new_privs and seccomp filters mark what runs under the gate")
    } else {
        DoctorFinding::problem(
            "this kernel has no seccomp filters, so that nothing under the gate can be marked",
            "use a kernel with CONFIG_SECCOMP_FILTER; until then agents are known by their process tree alone",
        )
    });
    findings.push(if scopes {
        DoctorFinding::fine("Landlock scopes keep marked processes from the socket for verdicts, and from tracing others")
    } else {
        DoctorFinding::note(
            "this kernel has no Landlock scopes (Linux 6.12): verdicts of marked processes are refused, but they can reach the \
             socket and trace other processes of yours",
            "use Linux 6.12 or newer with Landlock enabled (lsm=landlock,…)",
        )
    });
    findings.push(if peer_handles {
        DoctorFinding::fine("process handles of peers (SO_PEERPIDFD) tell who decides")
    } else {
        DoctorFinding::note(
            "this kernel has no SO_PEERPIDFD (Linux 6.5): peers are told apart by their start time",
            "nothing",
        )
    });
    if is_marked() {
        findings.push(DoctorFinding::note(
            "this process runs under the gate, or in a sandbox that looks the same, such as Flatpak: it decides nothing",
            "decide in a terminal outside",
        ));
    }
    findings
}
