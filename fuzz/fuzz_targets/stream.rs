//! Parses any bytes as a model's stream, whole and split in two ways.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sayso_wire::stream::{Api, Collector, Positioned, StreamEvent};

/// Small, so that inputs exceed it.
const LIMIT: usize = 512;

fn decode(api: Api, bytes: &[u8], chunk: usize) -> String {
    let mut decoder = api.decoder_with_limit(LIMIT);
    let mut collector = Collector::default();
    let mut told = String::new();
    let mut last = 0;
    let mut take = |positioned: Positioned<StreamEvent<'_>>| {
        assert!(positioned.range.start <= positioned.range.end, "a range runs forward");
        assert!(positioned.range.end >= last, "events come in order");
        assert!(positioned.range.end <= bytes.len() as u64, "a range lies in the stream");
        last = positioned.range.end;
        told.push_str(&format!("{positioned:?}\n"));
        collector.push(positioned.event);
    };
    for chunk in bytes.chunks(chunk) {
        decoder.feed(chunk, &mut take);
        assert!(decoder.retained() < 64 << 10, "a decoder stays small");
    }
    decoder.end(&mut take);
    told
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, bytes)) = data.split_first() else { return };
    for api in Api::ALL {
        let whole = decode(api, bytes, bytes.len().max(1));
        assert_eq!(decode(api, bytes, 1), whole, "byte by byte");
        assert_eq!(decode(api, bytes, usize::from(first) % 61 + 2), whole, "cut");
        // An invalid body is an error and must not panic.
        let _ = sayso_wire::stream::collect::from_body(api, bytes);
    }
});
