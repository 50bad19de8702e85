//! Table `findings`: what an expert would point out; while a daemon measures, each time that it changes.

use weir_messages::v1::finding_change::Kind;
use weir_messages::v1::finding_value::Value;
use weir_messages::v1::{Finding as Message, FindingChange};

use super::column::{Cell, Column, nanos, text};
use super::{Row, Table};

/// A finding as it stood at a time.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Number of the finding in its tap and run.
    id: u64,
    change: &'static str,
    /// UTC ns.
    time: i64,
    message: Message,
}

impl Finding {
    /// A finding about a whole input, whose last packet passed at `end` (UTC ns).
    pub fn last(id: u64, message: Message, end: i64) -> Self {
        let time = nanos(message.end).unwrap_or(end);
        Self {
            id,
            change: "FINAL",
            time,
            message,
        }
    }

    /// A change told by a daemon; `None` if it lacks what a row must have.
    pub fn change(change: FindingChange) -> Option<Self> {
        let kind = match change.kind() {
            Kind::Unspecified => return None,
            Kind::Opened => "OPENED",
            Kind::Updated => "UPDATED",
            Kind::Closed => "CLOSED",
        };
        Some(Self {
            id: change.id,
            change: kind,
            time: nanos(change.time)?,
            message: change.finding?,
        })
    }
}

impl Row for Finding {
    const TABLE: Table = Table::Findings;

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::always(
                "id",
                Cell::U64(|f: &Self| Some(f.id)),
                "Number of the finding in its source; the rows of one finding have the same. Those of a daemon are never used again by a later one.",
            ),
            Column::always(
                "change",
                Cell::Name(|f| text(f.change)),
                "FINAL: about a whole capture. OPENED, UPDATED, CLOSED: told by a daemon, the last one as it was found last.",
            ),
            Column::always(
                "time",
                Cell::Time(|f| Some(f.time)),
                "When it changed, by the clock of the traffic; FINAL: its end.",
            ),
            Column::always(
                "kind",
                Cell::Name(|f| text(&f.message.kind)),
                "Its kind (docs: findings).",
            ),
            Column::always(
                "severity",
                Cell::Name(|f| text(&f.message.severity)),
                "INFO, WARNING or CRITICAL.",
            ),
            Column::always("confidence", Cell::F64(|f| Some(f.message.confidence)), "0 to 1."),
            Column::known(
                "who",
                Cell::Text(|f| text(&f.message.who)),
                "Whom it is about when there may be several of a kind: addresses, an address and a port, or a pair.",
            ),
            Column::always(
                "title",
                Cell::Prose(|f| Some(f.message.title.as_str().into())),
                "It in one sentence.",
            ),
            Column::always(
                "evidence",
                Cell::Texts(|f| f.message.evidence.iter().map(|line| line.as_str().into()).collect()),
                "What it rests on, in sentences.",
            ),
            Column::known("start_time", Cell::Time(|f| nanos(f.message.start)), "When it began."),
            Column::known("end_time", Cell::Time(|f| nanos(f.message.end)), "When it ended."),
            Column::always(
                "connection_ids",
                Cell::U64s(|f| f.message.connection_ids.clone()),
                "Connections that show it; evidence says when they are only the first ones.",
            ),
            Column::always(
                "numbers",
                Cell::Numbers(|f| {
                    let number = |value: &Option<Value>| match value {
                        Some(Value::Number(number)) => Some(*number),
                        _ => None,
                    };
                    let named = f.message.values.iter();
                    named
                        .filter_map(|(name, value)| Some((name.as_str(), number(&value.value)?)))
                        .collect()
                }),
                "Its values that are one number, by the names of docs: findings.",
            ),
            Column::always(
                "values",
                Cell::Prose(|f| Some(serde_json::to_string(&f.message.values).unwrap_or_default().into())),
                "All its values as JSON, texts and lists, too.",
            ),
        ]
    }
}
