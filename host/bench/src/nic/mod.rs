//! What a bench around the card's logic needs: captures as play lists, and what the engine makes of them, counted.

pub mod coverage;
pub mod play;
mod visits;
