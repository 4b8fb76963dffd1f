//! Compressed bodies.

use std::io::Read;

use bytes::Bytes;

/// Removes the encodings of a `content-encoding` header, the last first. Returns `None` for an unknown encoding or invalid data.
pub(crate) fn decode(body: &Bytes, encodings: Option<&str>) -> Option<Bytes> {
    let mut decoded = body.clone();
    for encoding in encodings.unwrap_or_default().rsplit(',') {
        decoded = match encoding.trim() {
            "" | "identity" => decoded,
            "gzip" | "x-gzip" => read(flate2::read::MultiGzDecoder::new(&*decoded))?,
            "deflate" => read(flate2::read::ZlibDecoder::new(&*decoded))?,
            "br" => read(brotli_decompressor::Decompressor::new(&*decoded, 4096))?,
            "zstd" => zstd::decode_all(&*decoded).ok()?.into(),
            _ => return None,
        };
    }
    Some(decoded)
}

fn read(mut reader: impl Read) -> Option<Bytes> {
    let mut decoded = Vec::new();
    reader.read_to_end(&mut decoded).ok()?;
    Some(decoded.into())
}
