//! Many random inputs: encoding never panics, decoding gives the input back, streamed is whole. `MINFER_RANDOM_INPUTS` sets
//! how many; without it a few thousand.

use crate::small;
use minfer_text::{EncodeOptions, PreTokenizer, StreamDecoder, Tokenizer};

const PLAIN: EncodeOptions = EncodeOptions { add_special: false, parse_special: false };
const DEFAULT_INPUTS: usize = 20_000;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Bytes, any characters, or a few characters that rules treat in their own way, again and again.
    fn text(&mut self) -> Vec<u8> {
        const SPECIAL: &str = "aAzZlowerabc' sStTmMdD'llreve0123٣१〇½Ⅷ  \n\n\r\t\u{85}\u{a0}\u{3000}\u{2003}.,!?/_-+=<>$`~|^()#\
                               éßſǅΩжЖ中日あアｱ가ㄱㄅ\u{301}\u{903}ा\u{200b}\u{feff}🦙，。…’▁\0\u{7f}<|im_end|><s></s><tool><0x0A>\u{fdd0}";
        let len = self.below(40);
        let few: Vec<char> = SPECIAL.chars().collect();
        let few: Vec<char> = (0..1 + self.below(8)).map(|_| few[self.below(few.len())]).collect();
        let any = |random: &mut Self| char::from_u32(random.below(0x11_0000) as u32).unwrap_or('\u{fffd}');
        match self.below(4) {
            0 => (0..len).map(|_| self.next() as u8).collect(),
            1 => (0..len).map(|_| any(self)).collect::<String>().into_bytes(),
            2 => {
                let start = self.below(SPECIAL.len());
                let text = &SPECIAL.as_bytes()[start..];
                text[..len.min(text.len())].to_vec()
            }
            _ => (0..len).map(|_| few[self.below(few.len())]).collect::<String>().into_bytes(),
        }
    }
}

#[test]
fn random_inputs_are_encoded_and_come_back() {
    let n_inputs = std::env::var("MINFER_RANDOM_INPUTS").map_or(DEFAULT_INPUTS, |n| n.parse().expect("a number"));
    let names = PreTokenizer::names().filter(|name| !small::SPELLED.contains(name));
    let mut tokenizers: Vec<(String, Tokenizer)> =
        names.map(|name| (name.to_owned(), Tokenizer::new(small::bpe(name, name.len() % 2 == 0)).unwrap())).collect();
    let n_byte_level = tokenizers.len();
    for (name, spec) in [("spm", small::spm(true)), ("gemma", small::gemma()), ("unigram", small::unigram(true, false))]
    {
        tokenizers.push((name.to_owned(), Tokenizer::new(spec).unwrap()));
    }
    // These lose text: it has unknown characters, or its spaces are merged.
    let lossy: Vec<Tokenizer> = [small::spm(false), small::unigram(false, true), small::unigram(true, true)]
        .map(|spec| Tokenizer::new(spec).unwrap())
        .into();
    let mut random = Random(1);
    for n in 0..n_inputs {
        let text = random.text();
        let at = n % tokenizers.len();
        let (name, tokenizer) = &tokenizers[at];
        let ids = tokenizer.encode(&text, PLAIN);
        let whole = tokenizer.decode(&ids);
        let mut expected = text.clone();
        if at >= n_byte_level {
            // SentencePiece does not tell `▁` from a space.
            while let Some(found) = expected.windows(3).position(|window| window == "▁".as_bytes()) {
                expected.splice(found..found + 3, *b" ");
            }
        }
        assert!(whole == expected, "{name}: {text:?} comes back as {whole:?}");
        let mut stream = StreamDecoder::new(tokenizer);
        let mut streamed: String = ids.iter().map(|&id| stream.push(id).to_owned()).collect();
        streamed += stream.finish();
        assert_eq!(streamed, String::from_utf8_lossy(&whole), "{name}: {text:?}");
        let opts = EncodeOptions { add_special: true, parse_special: true };
        for tokenizer in [tokenizer, &lossy[n % lossy.len()]] {
            let ids = tokenizer.encode(&text, opts);
            assert!(ids.iter().all(|&id| (id as usize) < tokenizer.n_vocab()), "{name}: {text:?}");
            tokenizer.decode(&ids);
        }
    }
}
