//! The tables and the store from outside.
#![allow(clippy::unwrap_used)]

mod capture;
mod commits;
mod docs;
mod kill;
mod merge;
mod readers;
mod room;
mod rows;
mod tables;
