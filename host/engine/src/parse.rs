//! Frame to metadata word.
