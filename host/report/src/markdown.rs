//! A report as Markdown (CommonMark with tables). Charts are files of their own ([`crate::charts`]) in a folder beside it.

use std::fmt::Write;

use crate::document::{Block, Document, Item, Span, Table, Text};
use crate::svg::file_name;

/// Write it down. `folder`: where the charts are, as the text names it; without one there are their captions alone.
pub fn markdown(document: &Document, folder: Option<&str>) -> String {
    let mut out = format!("# {}\n\n{}\n", escape(&document.title), escape(&document.subtitle));
    for section in &document.sections {
        let _ = write!(
            out,
            "\n<a id=\"{}\"></a>\n\n## {}\n",
            section.id,
            escape(&section.title)
        );
        for block in &section.blocks {
            out.push('\n');
            write_block(&mut out, block, folder);
        }
    }
    out
}

fn write_block(out: &mut String, block: &Block, folder: Option<&str>) {
    match block {
        Block::Paragraph(text) => {
            let _ = writeln!(out, "{}", inline(text));
        }
        Block::Heading(title) => {
            let _ = writeln!(out, "### {}", escape(title));
        }
        Block::List(points) => {
            for point in points {
                let _ = writeln!(out, "- {}", inline(point));
            }
        }
        Block::Items(items) => {
            for (number, item) in (1..).zip(items) {
                write_item(out, number, item);
            }
        }
        Block::Table(table) => write_table(out, table),
        Block::Figure(figure) => {
            let _ = write!(out, "<a id=\"{}\"></a>", figure.id);
            if let Some(folder) = folder {
                let (title, file) = (escape(&figure.drawing.title), file_name(&figure.id));
                let _ = write!(
                    out,
                    "![{title}](<{}/{file}>)\n\n",
                    folder.replace(['<', '>', '\n'], "_")
                );
            }
            let _ = writeln!(out, "*Chart:* {}", inline(&figure.caption));
        }
    }
}

fn write_item(out: &mut String, number: u32, item: &Item) {
    let severity = item.severity.as_ref().map_or_else(String::new, |s| format!("**{s}** "));
    let _ = writeln!(
        out,
        "{number}. <a id=\"{}\"></a>{severity}{}",
        item.id,
        inline(&item.title)
    );
    for point in item.points.iter().chain(&item.notes) {
        let _ = writeln!(out, "   - {}", inline(point));
    }
}

fn write_table(out: &mut String, table: &Table) {
    let _ = writeln!(out, "<a id=\"{}\"></a>{}\n", table.id, inline(&table.caption));
    let names: Vec<_> = table.headers.iter().map(|(name, _)| escape(name)).collect();
    let rule: Vec<_> = table
        .headers
        .iter()
        .map(|(_, right)| if *right { "---:" } else { "---" })
        .collect();
    let _ = writeln!(out, "| {} |\n| {} |", names.join(" | "), rule.join(" | "));
    for row in &table.rows {
        let anchor = row
            .id
            .as_ref()
            .map_or_else(String::new, |id| format!("<a id=\"{id}\"></a>"));
        let cells: Vec<_> = row.cells.iter().map(inline).collect();
        let _ = writeln!(out, "| {anchor}{} |", cells.join(" | "));
    }
}

fn inline(text: &Text) -> String {
    let mut out = String::new();
    for span in &text.0 {
        let _ = match span {
            Span::Plain(text) => write!(out, "{}", escape(text)),
            Span::Strong(text) => write!(out, "**{}**", escape(text)),
            // A code span ends at a backtick and a cell at a bar, whatever stands before them.
            Span::Code(text) => write!(out, "`{}`", one_line(text).replace('`', "'").replace('|', "¦")),
            Span::Link { to, text } => write!(out, "[{}](#{to})", escape(text)),
        };
    }
    out
}

/// Text that means nothing to Markdown or HTML.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in one_line(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
