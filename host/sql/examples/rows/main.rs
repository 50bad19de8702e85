//! Writes a store with rows made up, for tests and for measuring queries: `rows FOLDER [CONNECTIONS [HOURS]]`.

mod evidence;
#[path = "../../tests/sql/sample.rs"]
mod sample;

use std::path::PathBuf;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let usage = "rows FOLDER [CONNECTIONS [HOURS]]";
    let folder: PathBuf = arguments.next().expect(usage).into();
    let mut number = |default: u64| arguments.next().map_or(default, |text| text.parse().expect(usage));
    let size = sample::Size {
        connections: number(1000),
        hours: number(3),
    };
    sample::write(&folder, size);
    evidence::write(&folder, size);
    println!(
        "{}: {} connections, {} transactions, {} packets, events and segments each",
        folder.display(),
        size.connections,
        size.connections * sample::TRANSACTIONS,
        size.connections * evidence::EACH
    );
}
