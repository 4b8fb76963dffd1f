//! Content encodings: bodies are decompressed for inspection, and forwarded compressed.

use std::io::{self, Read, Write};

use bytes::Bytes;

/// A supported `content-encoding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Encoding {
    /// Parses a `content-encoding` header. `Ok(None)` means uncompressed; `Err` has an unknown encoding.
    pub(super) fn parse(name: Option<&str>) -> Result<Option<Self>, String> {
        match name.map(|name| name.trim().to_ascii_lowercase()).as_deref() {
            None | Some("" | "identity") => Ok(None),
            Some("gzip" | "x-gzip") => Ok(Some(Self::Gzip)),
            Some("deflate") => Ok(Some(Self::Deflate)),
            Some("br") => Ok(Some(Self::Brotli)),
            Some("zstd") => Ok(Some(Self::Zstd)),
            Some(other) => Err(other.to_owned()),
        }
    }

    /// Decompresses a complete body to at most `max` bytes.
    pub(super) fn decode(self, body: &[u8], max: usize) -> io::Result<Vec<u8>> {
        let reader: Box<dyn Read + '_> = match self {
            Self::Gzip => Box::new(flate2::read::MultiGzDecoder::new(body)),
            Self::Deflate => Box::new(flate2::read::ZlibDecoder::new(body)),
            Self::Brotli => Box::new(brotli::Decompressor::new(body, 4 << 10)),
            Self::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(body)?),
        };
        let mut decoded = Vec::with_capacity(body.len() * 4);
        reader.take(max as u64 + 1).read_to_end(&mut decoded)?;
        if decoded.len() > max {
            return Err(io::Error::other(format!("it decompresses to more than {max} bytes")));
        }
        Ok(decoded)
    }
}

/// Decompresses a complete body; an undecodable one is returned unchanged.
pub(super) fn decode_or_keep(encoding: Option<&str>, body: Bytes, max: usize) -> Bytes {
    match Encoding::parse(encoding) {
        Ok(Some(encoding)) => encoding.decode(&body, max).map_or(body, Bytes::from),
        Ok(None) | Err(_) => body,
    }
}

/// Decompresses a stream chunk by chunk.
pub(super) enum Inflate {
    Identity,
    Gzip(flate2::write::MultiGzDecoder<Capped>),
    Deflate(flate2::write::ZlibDecoder<Capped>),
    Brotli(Box<brotli::DecompressorWriter<Capped>>),
    Zstd(zstd::stream::write::Decoder<'static, Capped>),
    /// The encoding is unknown, or the data is corrupt.
    Broken,
}

impl Inflate {
    pub(super) fn new(encoding: Option<&str>) -> Self {
        match Encoding::parse(encoding) {
            Ok(None) => Self::Identity,
            Ok(Some(Encoding::Gzip)) => Self::Gzip(flate2::write::MultiGzDecoder::new(Capped::default())),
            Ok(Some(Encoding::Deflate)) => Self::Deflate(flate2::write::ZlibDecoder::new(Capped::default())),
            Ok(Some(Encoding::Brotli)) => {
                Self::Brotli(Box::new(brotli::DecompressorWriter::new(Capped::default(), 4 << 10)))
            }
            Ok(Some(Encoding::Zstd)) => {
                zstd::stream::write::Decoder::new(Capped::default()).map_or(Self::Broken, Self::Zstd)
            }
            Err(_) => Self::Broken,
        }
    }

    pub(super) fn is_identity(&self) -> bool {
        matches!(self, Self::Identity)
    }

    pub(super) fn is_broken(&self) -> bool {
        matches!(self, Self::Broken)
    }

    /// Returns the bytes that can be decompressed so far.
    pub(super) fn feed(&mut self, chunk: &[u8]) -> Vec<u8> {
        let fed = match self {
            Self::Identity => return chunk.to_vec(),
            Self::Broken => return Vec::new(),
            Self::Gzip(writer) => feed(writer, chunk, flate2::write::MultiGzDecoder::get_mut),
            Self::Deflate(writer) => feed(writer, chunk, flate2::write::ZlibDecoder::get_mut),
            Self::Brotli(writer) => feed(&mut **writer, chunk, |writer| writer.get_mut()),
            Self::Zstd(writer) => feed(writer, chunk, zstd::stream::write::Decoder::get_mut),
        };
        fed.unwrap_or_else(|_| {
            *self = Self::Broken;
            Vec::new()
        })
    }
}

fn feed<W: Write>(writer: &mut W, chunk: &[u8], inner: impl Fn(&mut W) -> &mut Capped) -> io::Result<Vec<u8>> {
    writer.write_all(chunk)?;
    writer.flush()?;
    Ok(std::mem::take(&mut inner(writer).0))
}

/// Output of one chunk, with a limit: a few kilobytes can decompress to gigabytes.
#[derive(Default)]
pub(super) struct Capped(Vec<u8>);

impl Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_CHUNK_OUTPUT {
            return Err(io::Error::other("a chunk decompresses to too many bytes"));
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes that one chunk may decompress to.
const MAX_CHUNK_OUTPUT: usize = 32 << 20;

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::*;

    fn encode(encoding: Encoding, bytes: &[u8]) -> Vec<u8> {
        match encoding {
            Encoding::Gzip => {
                let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                writer.write_all(bytes).unwrap();
                writer.finish().unwrap()
            }
            Encoding::Deflate => {
                let mut writer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
                writer.write_all(bytes).unwrap();
                writer.finish().unwrap()
            }
            Encoding::Brotli => {
                let mut out = Vec::new();
                brotli::BrotliCompress(&mut &*bytes, &mut out, &brotli::enc::BrotliEncoderParams::default()).unwrap();
                out
            }
            Encoding::Zstd => zstd::encode_all(bytes, 1).unwrap(),
        }
    }

    const ALL: [Encoding; 4] = [Encoding::Gzip, Encoding::Deflate, Encoding::Brotli, Encoding::Zstd];

    #[test]
    fn every_encoding_decodes_whole_and_in_chunks() {
        let text: Vec<u8> = (0..100_000_u32).flat_map(|number| format!("{number},").into_bytes()).collect();
        for (encoding, name) in ALL.into_iter().zip(["gzip", "deflate", "br", "zstd"]) {
            let packed = encode(encoding, &text);
            assert_eq!(encoding.decode(&packed, text.len()).unwrap(), text, "{name}");
            assert!(encoding.decode(&packed, text.len() - 1).is_err(), "{name}");
            assert!(encoding.decode(&packed[..packed.len() / 2], 1 << 30).is_err(), "{name}");
            let mut inflate = Inflate::new(Some(name));
            let out: Vec<u8> = packed.chunks(97).flat_map(|chunk| inflate.feed(chunk)).collect();
            assert_eq!(out, text, "{name}");
        }
    }

    #[test]
    fn corrupt_data_does_not_panic() {
        for name in ["gzip", "deflate", "br", "zstd", "rot13"] {
            let mut inflate = Inflate::new(Some(name));
            let _ = inflate.feed(&[7; 100]);
            let _ = inflate.feed(&[9; 100]);
        }
        assert_eq!(Encoding::parse(Some("rot13")), Err("rot13".to_owned()));
    }
}
