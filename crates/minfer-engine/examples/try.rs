//! try
use minfer_engine::*; use std::sync::Arc; use minfer_backend::*; use std::ops::ControlFlow;
fn main(){ let a: Vec<String>=std::env::args().collect();
 let t=std::time::Instant::now();
 let m=Arc::new(Model::open(&a[1]).unwrap()); eprintln!("open {:?}",t.elapsed());
 let mut e=Engine::new(m.clone(), vec![Box::new(ReferenceBackend::new())], EngineConfig{n_ctx:512,n_ubatch:440,cache_type:minfer_graph::CacheType::F32,..Default::default()}).unwrap(); eprintln!("new {:?} {:?}",t.elapsed(), e.figures());
 let ids=m.tokenizer.encode(a[2].as_bytes(), minfer_text::EncodeOptions{add_special:true,parse_special:true}); eprintln!("{ids:?}");
 let mut s=Session::new(&mut e).unwrap();
 let mut sm=Sampler::new(SamplingParams{temperature:0.0,..Default::default()}).unwrap();
 let mut out=vec![];
 let r=s.generate(&mut e,&ids,&mut sm,Some(16),&mut |p|{ if let Progress::Token(t)=p {out.push(t);} ControlFlow::Continue(())}).unwrap();
 eprintln!("{r:?} {out:?}"); println!("{}",String::from_utf8_lossy(&m.tokenizer.decode(&out)));
}
