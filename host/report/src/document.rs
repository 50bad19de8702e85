//! What a report is made of, whatever it is written as.

/// A report.
#[derive(Debug, Default)]
pub struct Document {
    /// Its title.
    pub title: String,
    /// A line below the title.
    pub subtitle: String,
    /// Its sections, in order.
    pub sections: Vec<Section>,
}

/// A part with a heading.
#[derive(Debug)]
pub struct Section {
    /// Where links to it lead.
    pub id: &'static str,
    /// Its heading.
    pub title: String,
    /// What stands in it.
    pub blocks: Vec<Block>,
}

/// A piece of a section.
#[derive(Debug)]
pub enum Block {
    /// A paragraph.
    Paragraph(Text),
    /// A heading within the section.
    Heading(String),
    /// Points.
    List(Vec<Text>),
    /// Numbered observations or recommendations.
    Items(Vec<Item>),
    /// Rows and columns.
    Table(Table),
    /// A chart.
    Figure(Figure),
}

/// A numbered observation or recommendation.
#[derive(Debug)]
pub struct Item {
    /// Where links to it lead.
    pub id: String,
    /// `INFO`, `WARNING` or `CRITICAL`; a recommendation has none.
    pub severity: Option<String>,
    /// Its first sentence.
    pub title: Text,
    /// What it rests on.
    pub points: Vec<Text>,
    /// When, how sure, who, where it shows.
    pub notes: Vec<Text>,
}

/// A table.
#[derive(Debug, Default)]
pub struct Table {
    /// Where links to it lead.
    pub id: &'static str,
    /// What it shows.
    pub caption: Text,
    /// Column headings; `true`: numbers, to the right.
    pub headers: Vec<(&'static str, bool)>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A row of a table.
#[derive(Debug, Default)]
pub struct Row {
    /// Where links to it lead.
    pub id: Option<String>,
    /// As many as there are headings.
    pub cells: Vec<Text>,
}

/// A chart and what it says.
#[derive(Debug)]
pub struct Figure {
    /// Where links to it lead.
    pub id: String,
    /// What it shows, and what to see in it.
    pub caption: Text,
    /// The drawing.
    pub drawing: Drawing,
}

/// A drawing in SVG, [`crate::chart::WIDTH`] px wide.
#[derive(Debug)]
pub struct Drawing {
    /// Its height, px.
    pub height: f64,
    /// What it is, for those who do not see it.
    pub title: String,
    /// Elements of SVG, nothing unescaped.
    pub body: String,
    /// What the colours stand for: class of the colour, drawn as a line, name.
    pub legend: Vec<(String, bool, String)>,
}

/// Running text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(pub Vec<Span>);

/// A piece of text; none of it is markup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// As it is.
    Plain(String),
    /// Stressed.
    Strong(String),
    /// Something to type or a name from the wire.
    Code(String),
    /// Leads to the anchor `to` of this document.
    Link {
        /// An id, without `#`.
        to: String,
        /// What is shown.
        text: String,
    },
}

impl Text {
    /// More of it.
    #[must_use]
    pub fn plain(mut self, text: impl Into<String>) -> Self {
        self.0.push(Span::Plain(text.into()));
        self
    }

    /// More of it, stressed.
    #[must_use]
    pub fn strong(mut self, text: impl Into<String>) -> Self {
        self.0.push(Span::Strong(text.into()));
        self
    }

    /// More of it, literally.
    #[must_use]
    pub fn code(mut self, text: impl Into<String>) -> Self {
        self.0.push(Span::Code(text.into()));
        self
    }

    /// More of it, leading to an anchor.
    #[must_use]
    pub fn link(mut self, to: impl Into<String>, text: impl Into<String>) -> Self {
        self.0.push(Span::Link {
            to: to.into(),
            text: text.into(),
        });
        self
    }

    /// Nothing in it.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Self {
        Self::default().plain(text)
    }
}
