//! Charts as files of their own, for a report in Markdown. Colours are those of the light page.

use maud::{PreEscaped, html};

use crate::chart::{WIDTH, n};
use crate::document::{Block, Document, Drawing};

/// Rules of the page's style that a drawing needs: its colours, and those for what stands in it.
const STYLE: &str = "svg{--fg:#1b1f24;--soft:#59636e;--line:#d1d9e0;--band:#d1242f;--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#cc79a7;\
                     --c4:#a88500;--c5:#3ba3d8;--c6:#7048b6;--c7:#6b7280}";
const PAGE: &str = include_str!("style.css");
/// Room for a name in the legend, px, and the height of its lines.
const ENTRY: f64 = 320.0;
const LINE: f64 = 18.0;

/// Name of a chart's file.
pub fn file_name(id: &str) -> String {
    format!("{id}.svg")
}

/// The charts of a document: names of files, and what stands in them.
pub fn charts(document: &Document) -> Vec<(String, String)> {
    let blocks = document.sections.iter().flat_map(|section| &section.blocks);
    blocks
        .filter_map(|block| match block {
            Block::Figure(figure) => Some((file_name(&figure.id), file(&figure.drawing))),
            _ => None,
        })
        .collect()
}

/// One drawing with its legend below.
fn file(drawing: &Drawing) -> String {
    let columns = (WIDTH / ENTRY) as usize;
    let rows = drawing.legend.len().div_ceil(columns);
    let height = drawing.height + LINE * rows as f64 + 8.0;
    // From here on the page's style is about what stands in a drawing.
    let drawn: String = PAGE
        .lines()
        .filter(|line| {
            [".e ", ".axis", ".band", ".k", ".dots", ".line", "svg text"]
                .iter()
                .any(|rule| line.starts_with(rule))
        })
        .collect();
    html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(n(WIDTH)) height=(n(height)) viewBox={ "0 0 " (n(WIDTH)) " " (n(height)) } role="img" aria-label=(drawing.title) {
            style { (PreEscaped(STYLE)) (PreEscaped(drawn)) }
            rect width="100%" height="100%" fill="#fff" {}
            (PreEscaped(&drawing.body))
            @for (place, (class, line, name)) in drawing.legend.iter().enumerate() {
                @let x = 62.0 + ENTRY * (place % columns) as f64 * 0.92;
                @let y = drawing.height + LINE * (place / columns) as f64 + 12.0;
                g class=(class) {
                    rect.fill x=(n(x)) y=(n(if *line { y - 5.0 } else { y - 9.0 })) width="11" height=(if *line { "2.5" } else { "11" }) {}
                    text.name x=(n(x + 17.0)) y=(n(y)) { (name) }
                }
            }
        }
    }
    .into_string()
}
