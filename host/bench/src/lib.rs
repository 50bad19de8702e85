//! Generator of large captures and the floor program.
