//! Pictures hold what the plan says: one rectangle per value, to scale, and nothing breaks out of its markup.

mod support;

use minfer_graph::*;
use minfer_plan::picture::{PictureError, html, svg};
use minfer_plan::*;
use roxmltree::{Document, Node as Element};
use support::*;

const STRATEGIES: [Strategy; 3] = [Strategy::Planned, Strategy::Pool, Strategy::Naive];

fn plans(graph: &Graph) -> [Plan; 3] {
    STRATEGIES.map(|strategy| plan(graph, &two_backends(), PlanOptions { strategy }).unwrap())
}

fn number(element: Element, attribute: &str) -> f64 {
    element.attribute(attribute).unwrap().parse().unwrap()
}

fn of_class<'a>(document: &'a Document, tag: &str, class: &str) -> Vec<Element<'a, 'a>> {
    let is = |element: &Element| element.has_tag_name(tag) || element.tag_name().name() == tag;
    document.descendants().filter(|e| is(e) && e.attribute("class") == Some(class)).collect()
}

/// Left, top, right and bottom of a rectangle.
fn edges(rect: Element) -> [f64; 4] {
    let [x, y, width, height] = ["x", "y", "width", "height"].map(|name| number(rect, name));
    [x, y, x + width, y + height]
}

/// Values in arenas, and workspaces.
fn n_drawn(plan: &Plan) -> usize {
    plan.values.iter().filter(|value| matches!(value.place, Place::Arena { .. })).count()
        + plan.steps.iter().filter(|step| step.workspace.is_some()).count()
}

#[test]
fn the_svg_has_one_rectangle_per_value_and_none_overlap() {
    let graph = hostile_llama(3);
    for plan in plans(&graph) {
        let text = svg(&plan, &ledger(), &hostile_caption());
        let document = Document::parse(&text).expect("an SVG is XML");
        let rects = of_class(&document, "rect", "value");
        assert_eq!(rects.len(), n_drawn(&plan));
        let rects: Vec<[f64; 4]> = rects.into_iter().map(edges).collect();
        // Positions are rounded to hundredths of a pixel.
        let overlaps = |a: &[f64; 4], b: &[f64; 4]| (0..2).all(|d| a[d] + 0.03 < b[d + 2] && b[d] + 0.03 < a[d + 2]);
        for (index, a) in rects.iter().enumerate() {
            assert!(!rects[..index].iter().any(|b| overlaps(a, b)), "{a:?} covers another value");
        }
    }
}

#[test]
fn chains_in_place_are_one_body_with_marks() {
    let graph = llama(params(32), 4);
    let [planned, _, naive] = plans(&graph);
    let n_aliases = planned.values.iter().filter(|value| value.alias.is_some()).count();
    assert!(n_aliases >= 4, "the residual stream is summed in place, {n_aliases}");
    let count = |plan: &Plan| {
        let text = svg(plan, &ledger(), &hostile_caption());
        let document = Document::parse(&text).unwrap();
        let is_body = |e: &Element| e.attribute("class").is_some_and(|class| class.split(' ').any(|c| c == "body"));
        // The legend has one mark and a few bodies of its own; they are there under every strategy.
        (document.descendants().filter(is_body).count(), of_class(&document, "path", "mark").len())
    };
    let (naive_bodies, naive_marks) = count(&naive);
    assert_eq!(naive_marks, 1);
    assert_eq!(count(&planned), (naive_bodies - n_aliases, naive_marks + n_aliases));
}

#[test]
fn the_lower_bound_and_the_height_are_to_scale() {
    let graph = llama(params(32), 3);
    for plan in plans(&graph) {
        let text = svg(&plan, &ledger(), &hostile_caption());
        let document = Document::parse(&text).unwrap();
        let fields: Vec<[f64; 4]> = of_class(&document, "rect", "field").into_iter().map(edges).collect();
        let (bounds, heights) = (of_class(&document, "line", "bound"), of_class(&document, "line", "height"));
        let mut heights = heights.into_iter();
        let tops: Vec<[f64; 4]> = of_class(&document, "rect", "value").into_iter().map(edges).collect();
        for (index, arena) in plan.arenas.iter().enumerate() {
            // Two fields an arena, the map and the live bytes, each crossed by the lower bound.
            let [left, top, right, floor] = fields[2 * index];
            let bound = number(bounds[2 * index], "y1");
            assert!(bound > top && bound < floor);
            let inside = |r: &&[f64; 4]| r[0] >= left && r[2] <= right + 0.02 && r[1] >= top && r[3] <= floor + 0.02;
            let highest = tops.iter().filter(inside).map(|r| r[1]).fold(f64::MAX, f64::min);
            let ratio = (floor - bound) / (floor - highest);
            let expected = arena.figures.lower_bound_bytes as f64 / arena.bytes as f64;
            assert!((ratio - expected).abs() < 2e-3, "{}: {ratio}, {expected}", arena.name);
            if arena.bytes != arena.figures.lower_bound_bytes {
                let height = number(heights.next().expect("a height of its own"), "y1");
                assert!((height - highest).abs() < 0.02);
            }
        }
        assert!(heights.next().is_none());
    }
}

/// The strip of live bytes touches the lower bound at its peak, and nowhere crosses it.
#[test]
fn live_bytes_reach_the_lower_bound() {
    let graph = llama(params(32), 3);
    let planned = &plans(&graph)[0];
    let text = svg(planned, &ledger(), &hostile_caption());
    let document = Document::parse(&text).unwrap();
    let bounds = of_class(&document, "line", "bound");
    let paths = of_class(&document, "path", "live");
    assert_eq!(paths.len(), planned.arenas.len());
    for (index, path) in paths.into_iter().enumerate() {
        let levels = path.attribute("d").unwrap().split('V').skip(1);
        let levels = levels.map(|part| part.split(['H', 'z']).next().unwrap().parse::<f64>().unwrap());
        assert_eq!(levels.fold(f64::MAX, f64::min), number(bounds[2 * index + 1], "y1"));
    }
}

#[test]
fn hostile_names_stay_text() {
    let graph = hostile_llama(3);
    let [planned, pool, naive] = plans(&graph);
    let (ledger, caption) = (ledger(), hostile_caption());
    let picture = svg(&planned, &ledger, &caption);
    let document = Document::parse(&picture).unwrap();
    let names = ["script", "img", "foreignObject", "image", "use", "a"];
    assert!(!document.descendants().any(|e| names.contains(&e.tag_name().name())));
    assert!(document.descendants().any(|e| e.text().is_some_and(|text| text.contains(HOSTILE[0]))));

    let page = html(&[&planned, &pool, &naive], &ledger, &caption).unwrap();
    assert_eq!(page.matches("</script").count(), 2, "the data's and the script's own");
    assert!(!page.contains("<img") && !page.contains("<script>hacked"));
    assert!(page.contains("Content-Security-Policy\" content=\"default-src 'none'"));
    for loads in ["src=", "href=", "@import", "url(http", "fetch(", "XMLHttpRequest"] {
        let inside_names = HOSTILE.iter().any(|name| name.contains(loads));
        assert!(inside_names || !page.contains(loads), "{loads}");
    }
}

#[test]
fn the_page_carries_every_plan() {
    let graph = hostile_llama(3);
    let [planned, pool, naive] = plans(&graph);
    let page = html(&[&planned, &pool, &naive], &ledger(), &hostile_caption()).unwrap();
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    let data: serde_json::Value = serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
    let scene = &data["scene"];
    assert_eq!(scene["steps"].as_array().unwrap().len(), planned.steps.len());
    let items = scene["items"].as_array().unwrap();
    assert_eq!(items.len(), n_drawn(&planned));
    assert!(items.iter().any(|item| item["name"] == HOSTILE[2]), "names arrive whole");
    for kind in ["value", "input", "output", "staging", "workspace"] {
        assert!(items.iter().any(|item| item["kind"] == kind), "no {kind}");
    }
    for (layout, plan) in scene["layouts"].as_array().unwrap().iter().zip([&planned, &pool, &naive]) {
        assert_eq!(layout["strategy"], plan.arenas[0].strategy.to_string());
        for (offset, item) in layout["offsets"].as_array().unwrap().iter().zip(items) {
            let Some(id) = plan.graph.find(item["name"].as_str().unwrap()) else { continue };
            assert!(matches!(plan.value(id).place, Place::Arena { offset: o, .. } if o == offset.as_u64().unwrap()));
        }
        let n_over = layout["takes_over"].as_array().unwrap().iter().filter(|over| !over.is_null()).count();
        assert_eq!(n_over, plan.values.iter().filter(|value| value.alias.is_some()).count());
    }
    // The ledger's lines and the arenas of the first plan: weights, KV, host, arena.
    assert_eq!(data["owners"].as_array().unwrap().len(), 4);
}

#[test]
fn the_same_plan_gives_the_same_text() {
    let graph = hostile_llama(2);
    let draw = || {
        let plans = plans(&graph);
        let [a, b, c] = plans.each_ref();
        (svg(a, &ledger(), &hostile_caption()), html(&[a, b, c], &ledger(), &hostile_caption()).unwrap())
    };
    assert_eq!(draw(), draw());
}

#[test]
fn plans_that_do_not_belong_together_are_refused() {
    let (graph, other) = (llama(params(8), 1), llama(params(9), 1));
    let ([planned, pool, _], [_, _, naive]) = (plans(&graph), plans(&other));
    let page = |plans: &[&Plan]| html(plans, &ledger(), &hostile_caption());
    assert_eq!(page(&[]), Err(PictureError::NoPlan));
    assert_eq!(page(&[&planned, &planned]), Err(PictureError::StrategyTwice { strategy: Strategy::Planned }));
    let error = page(&[&planned, &pool, &naive]).unwrap_err();
    assert_eq!(error, PictureError::OtherGraph { strategy: Strategy::Naive });
    assert!(error.to_string().contains("naive"), "{error}");
    assert!(page(&[&pool]).is_ok());
}

/// A graph without values still has a picture: the bars, and a word on the missing map.
#[test]
fn an_empty_plan_is_drawn() {
    let graph = Lab::new(params(4), 0, 0).finish(&[]);
    let plan = plan(&graph, &one(TestCaps::default()), PlanOptions::default()).unwrap();
    assert!(plan.arenas.is_empty());
    let text = svg(&plan, &ledger(), &hostile_caption());
    assert!(Document::parse(&text).is_ok() && text.contains("no value of this plan"));
    assert!(html(&[&plan], &ledger(), &hostile_caption()).is_ok());
}
