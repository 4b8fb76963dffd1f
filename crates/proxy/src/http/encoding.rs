//! Compressed bodies: read for a person, passed on as they came.

use std::io::{self, Read, Write};

use bytes::Bytes;

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Encoding {
    /// By the name of a header; `Err` if it is none that is known, `Ok(None)` if the body is not compressed.
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

    /// A whole body as it was before, if that has no more than so many bytes.
    pub(super) fn decode(self, body: &[u8], most: usize) -> io::Result<Vec<u8>> {
        let reader: Box<dyn Read + '_> = match self {
            Self::Gzip => Box::new(flate2::read::MultiGzDecoder::new(body)),
            Self::Deflate => Box::new(flate2::read::ZlibDecoder::new(body)),
            Self::Brotli => Box::new(brotli::Decompressor::new(body, 4 << 10)),
            Self::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(body)?),
        };
        let mut decoded = Vec::with_capacity(body.len() * 4);
        reader.take(most as u64 + 1).read_to_end(&mut decoded)?;
        if decoded.len() > most {
            return Err(io::Error::other(format!("it has more than {most} bytes")));
        }
        Ok(decoded)
    }
}

/// A whole body for those who cannot be told that it is compressed. What cannot be read stays as it is.
pub(super) fn plain(encoding: Option<&str>, body: Bytes, most: usize) -> Bytes {
    match Encoding::parse(encoding) {
        Ok(Some(encoding)) => encoding.decode(&body, most).map_or(body, Bytes::from),
        Ok(None) | Err(_) => body,
    }
}

/// Decompresses a stream as it comes.
pub(super) enum Inflate {
    Plain,
    Gzip(flate2::write::MultiGzDecoder<Capped>),
    Deflate(flate2::write::ZlibDecoder<Capped>),
    Brotli(Box<brotli::DecompressorWriter<Capped>>),
    Zstd(zstd::stream::write::Decoder<'static, Capped>),
    /// What comes cannot be read; it is passed on all the same.
    Broken,
}

impl Inflate {
    pub(super) fn new(encoding: Option<&str>) -> Self {
        match Encoding::parse(encoding) {
            Ok(None) => Self::Plain,
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

    /// Whether bytes come as they are.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
    }

    /// Whether what came cannot be read.
    pub(super) fn is_broken(&self) -> bool {
        matches!(self, Self::Broken)
    }

    /// What a chunk holds, as far as it is known by now.
    pub(super) fn feed(&mut self, chunk: &[u8]) -> Vec<u8> {
        let fed = match self {
            Self::Plain => return chunk.to_vec(),
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

/// What a chunk holds, if that is not far too much: a few kilobytes can be made to hold gigabytes.
#[derive(Default)]
pub(super) struct Capped(Vec<u8>);

impl Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST {
            return Err(io::Error::other("a chunk holds too much"));
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The most that one chunk may hold.
const MOST: usize = 32 << 20;

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
    fn every_encoding_is_read_whole_and_in_pieces() {
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
    fn what_cannot_be_read_is_no_panic() {
        for name in ["gzip", "deflate", "br", "zstd", "rot13"] {
            let mut inflate = Inflate::new(Some(name));
            let _ = inflate.feed(&[7; 100]);
            let _ = inflate.feed(&[9; 100]);
        }
        assert_eq!(Encoding::parse(Some("rot13")), Err("rot13".to_owned()));
    }
}
