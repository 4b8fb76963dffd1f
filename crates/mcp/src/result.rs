//! Results of calls as a model receives them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use sayso_tools::{ToolImage, ToolOutput};

/// Maximum size of the text of a result in bytes. The middle of a longer text is omitted.
const MAX_TEXT_BYTES: usize = 100 * 1024;
/// Maximum size of an image in bytes, which model APIs accept.
const MAX_IMAGE_BYTES: usize = 5 << 20;
/// Maximum number of images in a result.
const MAX_IMAGES: usize = 10;
/// Image types that model APIs accept.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

pub(crate) fn output(result: CallToolResult) -> ToolOutput {
    let mut texts = Vec::new();
    let mut images = Vec::new();
    for block in result.content {
        match block {
            ContentBlock::Text(text) => texts.push(text.text),
            ContentBlock::Image(image) => match decode(&image.data, &image.mime_type) {
                Ok(image) if images.len() < MAX_IMAGES => images.push(image),
                Ok(_) => texts.push("[an image beyond the limit of 10 was omitted]".to_owned()),
                Err(note) => texts.push(note),
            },
            ContentBlock::Audio(audio) => texts.push(format!("[audio of type {} was omitted]", audio.mime_type)),
            ContentBlock::Resource(resource) => texts.push(match resource.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => format!("[{uri}]\n{text}"),
                ResourceContents::BlobResourceContents { uri, blob, .. } => {
                    format!("[{uri}: binary content, {} characters of base64, was omitted]", blob.len())
                }
                _ => "[a resource of an unknown kind was omitted]".to_owned(),
            }),
            ContentBlock::ResourceLink(link) => texts.push(format!("[resource {}: {}]", link.name, link.uri)),
            _ => texts.push("[content of an unknown kind was omitted]".to_owned()),
        }
    }
    // Servers repeat structured content as text. Without text it is the only result.
    if texts.is_empty()
        && images.is_empty()
        && let Some(structured) = &result.structured_content
    {
        texts.push(structured.to_string());
    }
    ToolOutput { text: bounded(texts.join("\n")), is_error: result.is_error.unwrap_or(false), images }
}

fn decode(data: &str, media_type: &str) -> Result<ToolImage, String> {
    if !IMAGE_TYPES.contains(&media_type) {
        return Err(format!("[an image of type {media_type} was omitted]"));
    }
    if data.len() / 4 * 3 > MAX_IMAGE_BYTES {
        return Err("[an image larger than 5 MB was omitted]".to_owned());
    }
    let data = STANDARD.decode(data).map_err(|_| "[an image that is not base64 was omitted]".to_owned())?;
    Ok(ToolImage { media_type: media_type.to_owned(), data })
}

fn bounded(text: String) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text;
    }
    let head = text.floor_char_boundary(MAX_TEXT_BYTES / 4 * 3);
    let tail = text.ceil_char_boundary(text.len() - MAX_TEXT_BYTES / 4);
    format!("{}\n[{} bytes were omitted]\n{}", &text[..head], tail - head, &text[tail..])
}
