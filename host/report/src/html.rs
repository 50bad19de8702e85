//! A report as one HTML file: no script, nothing from the network, charts inline.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::chart::{WIDTH, n};
use crate::document::{Block, Document, Drawing, Figure, Item, Span, Table, Text};

/// Light and dark, screen and paper.
const STYLE: &str = include_str!("style.css");

/// Write it down.
pub fn html(document: &Document) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "weir " (env!("CARGO_PKG_VERSION")) };
                title { (document.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (document.title) }
                    p.subtitle { (document.subtitle) }
                    nav aria-label="Contents" {
                        @for section in &document.sections {
                            a href={ "#" (section.id) } { (section.title) }
                            " "
                        }
                    }
                }
                main {
                    @for section in &document.sections {
                        section id=(section.id) {
                            h2 { (section.title) }
                            @for block in &section.blocks { (render(block)) }
                        }
                    }
                }
            }
        }
    }
    .into_string()
}

fn render(block: &Block) -> Markup {
    match block {
        Block::Paragraph(text) => html! { p { (inline(text)) } },
        Block::Heading(title) => html! { h3 { (title) } },
        Block::List(points) => html! { ul { @for point in points { li { (inline(point)) } } } },
        Block::Items(items) => html! { ol.items { @for item in items { (render_item(item)) } } },
        Block::Table(table) => render_table(table),
        Block::Figure(figure) => render_figure(figure),
    }
}

fn render_item(item: &Item) -> Markup {
    html! {
        li id=(item.id) {
            p.title {
                @if let Some(severity) = &item.severity {
                    span class={ "severity " (severity.to_lowercase()) } { (severity.to_lowercase()) }
                    " "
                }
                (inline(&item.title))
            }
            @if !item.points.is_empty() {
                ul { @for point in &item.points { li { (inline(point)) } } }
            }
            @for note in &item.notes { p.note { (inline(note)) } }
        }
    }
}

fn render_table(table: &Table) -> Markup {
    html! {
        div.scroll {
            table id=(table.id) {
                caption { (inline(&table.caption)) }
                thead {
                    tr { @for (name, right) in &table.headers { th class=[right.then_some("n")] { (name) } } }
                }
                tbody {
                    @for row in &table.rows {
                        tr id=[row.id.as_ref()] {
                            @for (cell, (_, right)) in row.cells.iter().zip(&table.headers) {
                                td class=[right.then_some("n").or_else(|| is_long(cell).then_some("w"))] { (inline(cell)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Whether a word in it would make a table wider than paper: longer than an IPv4 address with its port.
fn is_long(cell: &Text) -> bool {
    let words = cell.0.iter().flat_map(|span| match span {
        Span::Plain(text) | Span::Strong(text) | Span::Code(text) | Span::Link { text, .. } => text.split_whitespace(),
    });
    words.map(|word| word.chars().count()).any(|letters| letters > 21)
}

fn render_figure(figure: &Figure) -> Markup {
    html! {
        figure id=(figure.id) {
            (draw(&figure.drawing))
            figcaption { (inline(&figure.caption)) }
        }
    }
}

/// A drawing and its legend.
fn draw(drawing: &Drawing) -> Markup {
    html! {
        svg viewBox={ "0 0 " (n(WIDTH)) " " (n(drawing.height)) } role="img" aria-label=(drawing.title) {
            (PreEscaped(&drawing.body))
        }
        ul.legend {
            @for (class, line, name) in &drawing.legend {
                li class=(class) { i.l[*line] {} span { (name) } }
            }
        }
    }
}

fn inline(text: &Text) -> Markup {
    html! {
        @for span in &text.0 {
            @match span {
                Span::Plain(text) => (text),
                Span::Strong(text) => strong { (text) },
                Span::Code(text) => code { (text) },
                Span::Link { to, text } => a href={ "#" (to) } { (text) },
            }
        }
    }
}
