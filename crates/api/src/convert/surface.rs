//! Surfaces, and marks for what a person has seen.

use sayso_review::{SeenMarks, Surface, SurfaceKind};

use crate::proto;

impl From<&Surface> for proto::Surface {
    fn from(surface: &Surface) -> Self {
        let kind = match surface.kind {
            SurfaceKind::Unknown => proto::surface::Kind::Unspecified,
            SurfaceKind::Terminal => proto::surface::Kind::Terminal,
            SurfaceKind::Browser => proto::surface::Kind::Browser,
            SurfaceKind::Editor => proto::surface::Kind::Editor,
            SurfaceKind::CommandLine => proto::surface::Kind::CommandLine,
        };
        Self { kind: kind.into(), name: surface.name.clone(), ..Default::default() }
    }
}

/// Shortens a name that is too long. A kind of a newer version is unknown.
impl From<proto::Surface> for Surface {
    fn from(surface: proto::Surface) -> Self {
        let kind = match surface.kind.as_known().unwrap_or_default() {
            proto::surface::Kind::Unspecified => SurfaceKind::Unknown,
            proto::surface::Kind::Terminal => SurfaceKind::Terminal,
            proto::surface::Kind::Browser => SurfaceKind::Browser,
            proto::surface::Kind::Editor => SurfaceKind::Editor,
            proto::surface::Kind::CommandLine => SurfaceKind::CommandLine,
        };
        Self::new(kind, &surface.name)
    }
}

/// Encodes marks as one message for each file.
pub fn seen(marks: &SeenMarks) -> Vec<proto::SeenFile> {
    let files = marks.files.iter().map(|(path, hunks)| proto::SeenFile {
        path: path.to_string(),
        hunks: hunks.iter().map(|hunk| *hunk as u64).collect(),
        ..Default::default()
    });
    files.collect()
}
