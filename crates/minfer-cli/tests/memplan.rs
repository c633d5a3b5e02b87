//! `minfer memplan`: answers, exit codes, refusals.

mod support;

use std::fs;
use support::{folder, minfer, minfer_with_stdin};

/// Seven bytes are live at most; eight are needed.
const KNOT: &str = "id,lower,upper,size\na,2,4,1\nb,3,6,2\nc,0,2,4\nd,4,6,3\ne,3,7,2\nf,0,1,3\ng,1,4,2\nh,1,3,1\n";
const FIVE: &str = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n";

fn file(folder: &std::path::Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.into_os_string().into_string().unwrap()
}

#[test]
fn solve_then_check() {
    let dir = folder("memplan_solve");
    let five = file(&dir, "five.csv", FIVE);
    let ran = minfer(["memplan", "solve", &five, "--capacity", "12"]);
    assert!(ran.stderr.contains("12 bytes are live at step 0: b1, b3, b5"), "{ran:?}");
    let solved = file(&dir, "solved.csv", &ran.ok());
    for words in [vec![], vec!["--problem", &five], vec!["--capacity", "12"]] {
        let words = ["memplan", "check", &solved].into_iter().chain(words);
        assert_eq!(minfer(words).ok(), "valid: 5 buffers, height 12 bytes\n");
    }
    let problem_piped = minfer_with_stdin(["memplan", "check", &solved, "--problem", "-"], FIVE.as_bytes());
    assert_eq!(problem_piped.ok(), "valid: 5 buffers, height 12 bytes\n");
    minfer_with_stdin(["memplan", "check", "-", "--problem", "-"], FIVE.as_bytes())
        .refused(&["--problem", "stdin for both"]);
    let piped = minfer_with_stdin(["memplan", "solve", "-"], FIVE.as_bytes()).ok();
    assert_eq!(piped, fs::read_to_string(&solved).unwrap());
    let table = minfer(["memplan", "solve", &five, "--output", "table"]).ok();
    assert!(table.starts_with("id  lower  upper  size  offset\n"), "{table}");
}

#[test]
fn check_names_the_first_violation() {
    let check = |text: &str, words: &[&str]| {
        let ran = minfer_with_stdin(["memplan", "check", "-"].iter().chain(words), text.as_bytes());
        assert_eq!(ran.code, Some(1), "{ran:?}");
        ran.stdout
    };
    let header = "id,lower,upper,size,offset\n";
    let overlap = check(&format!("{header}x,0,2,4,0\ny,1,3,4,3\n"), &[]);
    assert_eq!(
        overlap,
        "wrong: buffers 0 and 1 share bytes while both are live (counted from 0; ids x, y, lines 2, 3 of stdin)\n"
    );
    assert!(check(&format!("{header}x,0,2,4,1\n"), &["--capacity", "4"]).contains("above the capacity 4"));
    let dir = folder("memplan_check");
    let five = file(&dir, "five.csv", FIVE);
    assert!(check(&format!("{header}b1,0,3,4,0\n"), &["--problem", &five]).contains("b2"));
    // A solution that shortened a lifetime is judged by the problem.
    let shortened = format!("{header}b1,0,2,4,0\nb2,3,9,4,8\nb3,2,9,4,0\nb4,9,21,4,0\nb5,0,21,4,4\n");
    assert_eq!(minfer_with_stdin(["memplan", "check", "-"], shortened.as_bytes()).code, Some(0));
    assert!(check(&shortened, &["--problem", &five]).contains("ids b1, b3"));
}

#[test]
fn json_says_what_is_proven() {
    let json = minfer_with_stdin(["memplan", "solve", "-", "--output", "json"], KNOT.as_bytes()).json();
    assert_eq!((json["height"].as_u64(), json["proven"].as_u64()), (Some(8), Some(8)));
    assert_eq!(json["lower_bound"]["bytes"], 7);
    assert_eq!(json["verdict"], "optimal by search");
    assert_eq!(json["buffers"].as_array().unwrap().len(), 8);
}

#[test]
fn what_does_not_fit_comes_with_its_witness() {
    let solve = |capacity: &str| {
        let words = ["memplan", "solve", "-", "--capacity", capacity, "--output", "json"];
        let ran = minfer_with_stdin(words, KNOT.as_bytes());
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(json["fits"], false);
        (json["infeasible"].clone(), ran.stderr)
    };
    let (proof, stderr) = solve("7");
    assert!(stderr.starts_with("nothing fits within 7 bytes: all ways were tried\n"), "{stderr}");
    assert_eq!((proof["irreducible"].as_bool(), proof["buffers"].as_array().unwrap().len()), (Some(true), 8));
    let (proof, stderr) = solve("6");
    assert!(stderr.starts_with("nothing fits within 6 bytes: at step"), "{stderr}");
    assert!(!proof["buffers"].as_array().unwrap().is_empty());
}

#[test]
fn time_that_runs_out_is_no_proof() {
    // Placeable within its capacity, but by no greedy order.
    let hard = concat!(env!("CARGO_MANIFEST_DIR"), "/../minfer-memplan/tests/minimalloc/I.1048576.csv");
    let ran = minfer(["memplan", "solve", hard, "--capacity", "1048576", "--timeout", "0", "--output", "json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("whether there is one is open"), "{ran:?}");
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((json["fits"].as_bool(), json["verdict"].as_str()), (Some(false), Some("gap")));
}

#[test]
fn gaps_lend_bytes() {
    let turns = "id,lower,upper,gaps,size\na,0,9,2-4 6-8,8\nb,2,8,4-6,8\n";
    let solve = |output| minfer_with_stdin(["memplan", "solve", "-", "--output", output], turns.as_bytes());
    let placed = solve("csv").ok();
    assert_eq!(placed, "id,lower,upper,gaps,size,offset\na,0,9,2-4 6-8,8,0\nb,2,8,4-6,8,0\n");
    let json: serde_json::Value = serde_json::from_str(&solve("json").ok()).unwrap();
    assert_eq!((&json["height"], &json["verdict"]), (&8.into(), &"optimal".into()));
    assert_eq!(json["buffers"][0]["gaps"], serde_json::json!([[2, 4], [6, 8]]));
    // `gaps`, then `offset`, in every form.
    assert_eq!(
        json["buffers"][0].as_object().unwrap().keys().map(String::as_str).collect::<Vec<_>>()[5..],
        ["gaps", "offset"]
    );
    let table = solve("table").ok();
    assert_eq!(
        table,
        "id  lower  upper  size  gaps     offset\na       0      9     8  2-4 6-8       0\nb       2      8     8  4-6           0\n"
    );
    let check = |text: &str| minfer_with_stdin(["memplan", "check", "-"], text.as_bytes());
    assert_eq!(check(&placed).ok(), "valid: 2 buffers, height 8 bytes\n");
    let wrong = check(&placed.replace("4-6", "4-5"));
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.stdout.contains("share bytes"), "{wrong:?}");
    let picture = minfer_with_stdin(["memplan", "render", "-"], turns.as_bytes()).ok();
    assert_eq!((picture.matches("<title>").count(), picture.matches("<rect x=").count()), (2, 5));
}

#[test]
fn pictures() {
    let dir = folder("memplan_render");
    let five = file(&dir, "five.csv", FIVE);
    let picture = minfer(["memplan", "render", &five]).ok();
    assert!(picture.starts_with("<svg ") && picture.matches("<title>").count() == 5);
    let out = dir.join("five.svg").into_os_string().into_string().unwrap();
    assert_eq!(minfer(["memplan", "render", &five, "-o", &out]).ok(), "");
    assert_eq!(fs::read_to_string(&out).unwrap(), picture);
    // A placement that is given, and right.
    let solved = minfer(["memplan", "solve", &five]).ok();
    assert_eq!(minfer_with_stdin(["memplan", "render", "-"], solved.as_bytes()).ok(), picture);
}

/// It is drawn all the same, with what is wrong in red, and said to be wrong.
#[test]
fn wrong_placements_are_not_drawn_in_silence() {
    let render = |text: &str, words: &[&str]| {
        let ran = minfer_with_stdin(["memplan", "render", "-"].iter().chain(words), text.as_bytes());
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stdout.starts_with("<svg ") && ran.stdout.ends_with("</svg>\n"), "{ran:?}");
        (ran.stdout.matches("<g fill=\"#e01b24\"").count(), ran.stderr)
    };
    let overlap = "id,lower,upper,size,offset\nx,0,2,4,0\ny,1,3,4,3\nz,5,6,4,0\n";
    let (marked, stderr) = render(overlap, &[]);
    assert_eq!(
        (marked, &*stderr),
        (2, "wrong: buffers 0 and 1 share bytes while both are live (counted from 0; ids x, y, lines 2, 3 of stdin)\n")
    );
    let (marked, stderr) = render(&overlap.replace("y,1", "y,2"), &["--capacity", "6"]);
    assert_eq!(marked, 1);
    assert!(stderr.starts_with("wrong: buffer 1 ends at 7, above the capacity 6"), "{stderr}");
    let (marked, stderr) = render("id,lower,upper,size,offset,gaps\nx,0,2,4,0,0-2\n", &[]);
    assert!(marked == 1 && stderr.contains("impossible") && stderr.contains("id x, line 2"), "{stderr}");
    let hard = include_str!("../../minfer-memplan/tests/minimalloc/I.1048576.csv");
    let (_, stderr) = render(hard, &["--capacity", "1048576", "--timeout", "0"]);
    assert!(stderr.contains("whether there is one is open"), "{stderr}");
}

#[test]
fn bad_input_is_one_sentence() {
    let refused = |text: &[u8], words: &[&str]| {
        minfer_with_stdin(["memplan", "solve", "-"], text).refused(words);
    };
    refused(b"", &["stdin", "empty"]);
    refused(b"\xff\xfe", &["stdin", "UTF-8"]);
    refused(b"id,lower,upper,size\na,0,1,x\n", &["line 2", "size", "x"]);
    refused(b"id,lower,upper,size,gaps\na,0,9,4,2-3@0:2\n", &["line 2", "gaps", "not supported", "2-3@0:2"]);
    refused(b"id,lower,upper,size,gaps\na,0,9,4,2\n", &["line 2", "gaps", "lower-upper"]);
    refused(b"id,lower,upper,size\na,+0,1,4\n", &["line 2", "lower", "+0"]);
    refused(b"id,lower,end,size\na,0,18446744073709551615,4\n", &["line 2", "end", "the step after"]);
    for (gaps, why) in [("8-10", "[8, 10), outside of its lifetime [0, 9)"), ("3-3", "empty"), ("2-5 4-6", "until 5")] {
        let text = format!("id,lower,upper,size,gaps\n\na,0,9,4,\nb c,0,9,4,{gaps}\n");
        refused(text.as_bytes(), &["buffer 1: ", why, "(counted from 0; id b c, line 4 of stdin)"]);
    }
    refused(b"id,lower,upper,size,offset\na,0,9,4,0\nb,0,9,4,1\n", &["ids a, b, lines 2, 3 of stdin"]);
    refused(b"id,lower,upper,size\na,3,2,1\n", &["lifetime [3, 2) is empty"]);
    refused(b"id,lower,upper,size\na,0,1,18446744073709551615\nb,0,1,9\n", &["exceeds 64 bits"]);
    minfer(["memplan", "solve", "missing.csv"]).refused(&["missing.csv", "cannot read"]);
    minfer_with_stdin(["memplan", "check", "-"], FIVE.as_bytes()).refused(&["b1 has no offset", "hint: "]);
    for timeout in ["-1", "nan", "1e30", "soon"] {
        let option = format!("--timeout={timeout}");
        minfer_with_stdin(["memplan", "solve", "-", &option], FIVE.as_bytes()).refused(&["timeout"]);
    }
    minfer(["memplan", "solve", "-", "--capacity=-1"]).refused(&["capacity"]);
}

/// However little memory there is, the end is an answer or a sentence.
#[cfg(target_os = "linux")]
#[test]
fn too_little_memory_is_told() {
    let dir = folder("memplan_memory");
    let binary = support::program().get_program().to_owned();
    let table = |n: u64, longest: u64| {
        let mut x = 1u64;
        let mut below = |end: u64| {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (x >> 33) % end
        };
        let mut line = |i| {
            let lower = below(n);
            format!("b{i},{lower},{},{}\n", lower + 1 + below(longest), 1 + below(1000))
        };
        let lines: String = (0..n).map(&mut line).collect();
        file(&dir, &format!("{n}_{longest}.csv"), &format!("id,lower,upper,size\n{lines}"))
    };
    // Live with few others, with a tenth and with half of them; and too many to be searched.
    for (n, longest) in [(2000, 12), (2000, 200), (2000, 2000), (20_000, 50)] {
        let path = table(n, longest);
        let (mut solved, mut refused) = (0, 0);
        for limit_mib in [20, 22, 25, 30, 40, 50, 70, 90, 120, 300] {
            let words = ["memplan", "solve", &path, "--timeout", "0.7", "--output", "json"];
            // It leaves no memory dump if it is aborted.
            let set = format!("ulimit -c 0 && ulimit -v {} && exec \"$0\" \"$@\"", 1024 * limit_mib);
            let ran = support::finish(std::process::Command::new("sh").arg("-c").arg(set).arg(&binary).args(words));
            match ran.code {
                Some(0) => solved += 1,
                _ => {
                    ran.refused(&["too little memory", "ulimit -v"]);
                    refused += 1;
                }
            }
        }
        // The first are placed without a search, and so without the room for one.
        assert!(solved > 0 && (refused > 0 || longest == 12), "{n} {longest}: {solved} solved, {refused} refused");
    }
}
