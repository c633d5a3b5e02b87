//! Streaming: what is streamed is what decoding the whole gives, in whole characters.

use std::sync::Arc;

use crate::small;
use minfer_text::{EncodeOptions, StreamDecoder, Tokenizer, Utf8Stream};
use proptest::prelude::*;

#[test]
fn characters_come_whole() {
    let mut stream = Utf8Stream::new();
    assert_eq!(stream.push(b"\xf0\x9f"), "");
    assert_eq!(stream.push(b"\xa6"), "");
    assert_eq!(stream.push(b"\x99"), "🦙");
    assert_eq!(stream.push(b"\xf0\x9f"), "");
    assert_eq!(stream.finish(), "\u{fffd}");
    assert_eq!(stream.finish(), "");
    assert_eq!(stream.push(b"a\xffb"), "a\u{fffd}b");
    assert_eq!(stream.push(b"\xe6\xad"), "");
    assert_eq!(stream.push(b"x"), "\u{fffd}x");
    assert_eq!(stream.finish(), "");
}

#[test]
fn tokens_of_half_characters_are_held() {
    let tokenizer = Tokenizer::new(small::bpe("gpt-2", false)).unwrap();
    let mut stream = StreamDecoder::new(&tokenizer);
    let given: Vec<String> =
        [0xf0, 0x9f, 0xa6, 0x99, 0xf0, 0x9f].into_iter().map(|id| stream.push(id).to_owned()).collect();
    assert_eq!(given, ["", "", "", "🦙", "", ""]);
    assert_eq!(stream.finish(), "\u{fffd}");
}

#[test]
fn only_the_very_first_space_is_left_out() {
    let tokenizer = Arc::new(Tokenizer::new(small::spm(true)).unwrap());
    let opts = EncodeOptions { add_special: true, parse_special: false };
    let ids = tokenizer.encode("a a", opts);
    let stream = |mut stream: StreamDecoder<Arc<Tokenizer>>, ids: &[u32]| {
        let mut text: String = ids.iter().map(|&id| stream.push(id).to_owned()).collect();
        text += stream.finish();
        text
    };
    assert_eq!(stream(StreamDecoder::new(tokenizer.clone()), &ids), "a a");
    assert_eq!(stream(StreamDecoder::continuing(tokenizer.clone()), &ids[1..]), " a a");
    // A begin token starts a new text wherever it stands.
    assert_eq!(stream(StreamDecoder::continuing(tokenizer.clone()), &ids), "a a");
    let shown = StreamDecoder::new(tokenizer.clone()).show_special(true);
    assert_eq!(stream(shown, &ids), "<s>a a");
}

proptest! {
    #[test]
    fn streamed_equals_whole(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(0xf0), Just(0x9f)], 0..60),
        cuts in prop::collection::vec(0usize..5, 0..60),
    ) {
        let mut stream = Utf8Stream::new();
        let mut text = String::new();
        let mut rest = &bytes[..];
        for cut in cuts {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            text += stream.push(piece);
            rest = after;
        }
        text += stream.push(rest);
        text += stream.finish();
        prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn streamed_ids_equal_decoded_ids(ids in prop::collection::vec(0u32..280, 0..60)) {
        for spec in [small::bpe("gpt-2", false), small::spm(true)] {
            let tokenizer = Tokenizer::new(spec).unwrap();
            let mut stream = StreamDecoder::new(&tokenizer);
            let mut text: String = ids.iter().map(|&id| stream.push(id).to_owned()).collect();
            text += stream.finish();
            let whole = tokenizer.decode(&ids);
            prop_assert_eq!(text, String::from_utf8_lossy(&whole));
        }
    }
}
